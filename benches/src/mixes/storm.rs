//! One `update_time` that wakes many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use super::{Experiment, Scope, Subject, every_peer, filled, seconds};
use crate::data::{Key, uuids};
use crate::peers::{Peer, go};
use crate::tasks;

/// The waking call, and from its start until the last has run. CPU time for tasks, since they all
/// run on the calling thread; wall time for threads, and for goroutines.
const FIGURES: &[&str] = &["call ns", "all ns"];

pub(super) fn experiments(scope: Scope) -> Vec<Experiment> {
    let some = |count| {
        let length = Duration::from_micros(5 * count as u64);
        let seconds = seconds(length, scope);
        Experiment::new("wake tasks", "waiters", count, seconds, move |bench| {
            let keys: Arc<[Key]> = uuids(count).into();
            let mut subjects = every_peer!(of_tasks(&keys));
            let runtime = tasks::runtime();
            subjects.push(Subject::new("bare wakers", move |_| {
                figures(tasks::bare_storm(&runtime, count))
            }));
            if let Some(go) = go::start() {
                subjects.push(Subject::new(go::NAME, move |_| {
                    let answer = go.lock().ask("storm", count, 0.0, "", Duration::ZERO);
                    let answer = answer.expect("the Go peer answers");
                    vec![answer.figures["call"], answer.figures["all"]]
                }));
            }
            bench.run(FIGURES, subjects);
        })
    };
    let threads = |count| {
        let length = Duration::from_micros(25_000 + 60 * count as u64);
        let seconds = seconds(length, scope);
        Experiment::new("wake threads", "waiters", count, seconds, move |bench| {
            let keys: Arc<[Key]> = uuids(count).into();
            bench.run_rounds(5, FIGURES, every_peer!(of_threads(&keys)));
        })
    };
    let tasks = scope.pick(&[100, 2_500][..], &[10, 100, 1_000, 2_500, 10_000]);
    let few = scope.pick(&[100][..], &[10, 100, 1_000]);
    tasks
        .iter()
        .copied()
        .map(some)
        .chain(few.iter().copied().map(threads))
        .collect()
}

fn figures(storm: tasks::Storm) -> Vec<f64> {
    vec![storm.call.as_nanos() as f64, storm.all.as_nanos() as f64]
}

fn of_tasks<P: Peer>(keys: &Arc<[Key]>) -> Subject<'static> {
    let peer = filled::<P>(keys);
    let keys = Arc::clone(keys);
    let runtime = tasks::runtime();
    let mut time = 1;
    Subject::new(P::NAME, move |_| {
        time += 1;
        figures(tasks::peer_storm(&runtime, &peer, &keys, time - 1))
    })
}

fn of_threads<P: Peer>(keys: &Arc<[Key]>) -> Subject<'static> {
    let peer = filled::<P>(keys);
    let keys = Arc::clone(keys);
    let mut time = 1;
    Subject::new(P::NAME, move |_| {
        let min = time;
        time += 1;
        let about_to_wait = AtomicUsize::new(0);
        thread::scope(|scope| {
            for key in &keys[..] {
                let (peer, about_to_wait) = (&peer, &about_to_wait);
                thread::Builder::new()
                    .stack_size(64 * 1024)
                    .spawn_scoped(scope, move || {
                        about_to_wait.fetch_add(1, SeqCst);
                        drop(peer.wait_newer_than(key, min));
                        about_to_wait.fetch_sub(1, SeqCst);
                    })
                    .expect("a thread can be started");
            }
            while about_to_wait.load(SeqCst) < keys.len() {
                thread::sleep(Duration::from_millis(1));
            }
            // Who is not asleep yet is soon; who comes too late finds the new time and does not wait.
            thread::sleep(Duration::from_millis(20));
            let start = Instant::now();
            peer.update_time(time);
            let call = start.elapsed();
            while about_to_wait.load(SeqCst) > 0 {
                thread::yield_now();
            }
            vec![call.as_nanos() as f64, start.elapsed().as_nanos() as f64]
        })
    })
}
