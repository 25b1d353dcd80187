//! Bursts at fixed times, whether or not the last one is through.
//!
//! A latency is counted from when the call should have begun, so a stall is felt by all the calls
//! that it held up and not only by the one that it hit.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use super::{Experiment, Scope, Subject, every_peer, filled, note, seconds};
use crate::data::{KEYS, Key, Order, Pick, Status, uuids};
use crate::harness::{Member, Run, together};
use crate::peers::{Peer, Snapshot};
use crate::stats::histogram;

const FIGURES: &[&str] = &["operations/s"];

/// Every thread does this many reads and one set at once...
const BURST: usize = 32;
/// ... this often.
const PERIOD: Duration = Duration::from_millis(1);

pub(super) fn experiments(scope: Scope) -> Vec<Experiment> {
    let threads = scope.pick(&[8][..], &[2, 8, 16, 64]);
    let experiment = |&threads: &usize| {
        let seconds = seconds(slice_length(scope), scope);
        Experiment::new("paced bursts", "threads", threads, seconds, move |bench| {
            let keys: Arc<[Key]> = uuids(KEYS).into();
            let mut subjects = every_peer!(subject(&keys, threads, scope));
            subjects.push(pace_alone(threads, scope));
            bench.run(FIGURES, subjects);
        })
    };
    threads.iter().map(experiment).collect()
}

fn slice_length(scope: Scope) -> Duration {
    Duration::from_millis(scope.pick(50, 150))
}

/// What a thread did.
struct Done {
    count: u64,
    gets: Histogram<u64>,
    sets: Histogram<u64>,
}

/// Calls `read` and `write` in bursts until the end of the slice.
fn bursts(run: &Run, mut read: impl FnMut(), mut write: impl FnMut()) -> Done {
    let mut done = Done {
        count: 0,
        gets: histogram(),
        sets: histogram(),
    };
    let mut intended = Instant::now();
    let since = |start: Instant| start.elapsed().as_nanos() as u64;
    while run.goes_on() {
        for _ in 0..BURST {
            read();
            done.gets.saturating_record(since(intended));
        }
        write();
        done.sets.saturating_record(since(intended));
        done.count += BURST as u64 + 1;
        intended += PERIOD;
        thread::sleep(intended.saturating_duration_since(Instant::now()));
    }
    done
}

fn slice(
    name: &'static str,
    threads: usize,
    scope: Scope,
    mut member: impl for<'a> FnMut(usize) -> Box<dyn FnOnce(&Run) -> Done + Send> + 'static,
) -> Subject<'static> {
    Subject::new(name, move |latencies| {
        let members = (0..threads)
            .map(|at| -> Member<'_, Done> { member(at) })
            .collect();
        let done = together(slice_length(scope), members);
        let mut count = 0;
        for thread in &done.results {
            count += thread.count;
            note(latencies, "get", &thread.gets);
            note(latencies, "set", &thread.sets);
        }
        vec![count as f64 / done.took.as_secs_f64()]
    })
}

fn subject<P: Peer>(keys: &Arc<[Key]>, threads: usize, scope: Scope) -> Subject<'static> {
    let peer = filled::<P>(keys);
    let keys = Arc::clone(keys);
    slice(P::NAME, threads, scope, move |at| {
        let (peer, keys) = (Arc::clone(&peer), Arc::clone(&keys));
        let mut reads = Order::new(Pick::Uniform, KEYS, at as u64);
        let mut writes = Order::new(Pick::Uniform, KEYS, at as u64 + 1000);
        let mut time = 1;
        Box::new(move |run| {
            bursts(
                run,
                || {
                    black_box(peer.get(&keys[reads.next()]).status().generation);
                },
                || {
                    time += 1;
                    peer.set(&keys[writes.next()], Status::new(time), time);
                },
            )
        })
    })
}

/// What the clock and the scheduler cost without any cache.
fn pace_alone(threads: usize, scope: Scope) -> Subject<'static> {
    slice("no cache", threads, scope, |_| {
        Box::new(|run| bursts(run, || {}, || {}))
    })
}
