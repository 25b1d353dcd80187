//! The kubelet's day: a lister that relists, a worker per pod that waits for something newer.
//!
//! A relist takes its time first, then sets the tenth of the pods that changed, then says by
//! `update_time` that everything is that new, which wakes the worker of every pod. Workers look at
//! what they got and wait for the next relist.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::{Experiment, Scope, Subject, every_peer, filled, note, seconds};
use crate::data::{Key, Order, Pick, Status, uuids};
use crate::peers::{Peer, Snapshot, go};
use crate::stats::histogram;

/// One pod in so many has changed since the last relist.
const CHANGED: usize = 10;

pub(super) fn experiments(scope: Scope) -> Vec<Experiment> {
    let compressed = |&pods: &usize| {
        let seconds = seconds(day_length(scope), scope);
        Experiment::new(
            "kubelet day, compressed",
            "pods",
            pods,
            seconds,
            move |bench| {
                let keys: Arc<[Key]> = uuids(pods).into();
                let mut subjects = every_peer!(compressed(&keys, scope));
                if let Some(go) = go::start() {
                    subjects.push(Subject::new(go::NAME, move |_| {
                        let answer = go.lock().ask("day", pods, 0.0, "", day_length(scope));
                        vec![answer.expect("the Go peer answers").figures[RELISTS]]
                    }));
                }
                bench.run(&[RELISTS], subjects);
            },
        )
    };
    let paced = |&pods: &usize| {
        Experiment::new(
            "kubelet day, 20 relists a second",
            "pods",
            pods,
            seconds(RELIST_PERIOD * relists(scope), scope),
            move |bench| {
                let keys: Arc<[Key]> = uuids(pods).into();
                bench.run_rounds(5, &["gets/s"], every_peer!(paced(&keys, scope)));
            },
        )
    };
    let pods = scope.pick(&[110, 2_500][..], &[110, 500, 2_500]);
    pods.iter()
        .map(compressed)
        .chain(pods.iter().map(paced))
        .collect()
}

const RELISTS: &str = "relists/s";

/// How far relists are apart when they are paced, and how many there are in a slice.
const RELIST_PERIOD: Duration = Duration::from_millis(50);
fn relists(scope: Scope) -> u32 {
    scope.pick(3, 6)
}

fn day_length(scope: Scope) -> Duration {
    Duration::from_millis(scope.pick(30, 100))
}

/// A node: the cache, its workers and their latencies.
struct Node<P> {
    peer: Arc<P>,
    keys: Arc<[Key]>,
    shared: Arc<Shared>,
    runtime: tokio::runtime::Runtime,
    relists: u64,
}

struct Shared {
    start: Instant,
    /// The time of the relist that is going on.
    relist: AtomicU64,
    /// Workers that were woken by the present relist.
    woken: AtomicUsize,
    /// From the beginning of a relist to the worker that it woke.
    latencies: Mutex<Histogram<u64>>,
    over: AtomicBool,
}

impl Shared {
    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 2
    }
}

impl<P: Peer> Node<P> {
    fn new(keys: &Arc<[Key]>) -> Self {
        let shared = Arc::new(Shared {
            start: Instant::now(),
            relist: AtomicU64::new(1),
            woken: AtomicUsize::new(0),
            latencies: Mutex::new(histogram()),
            over: AtomicBool::new(false),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build();
        let node = Self {
            peer: filled(keys),
            keys: Arc::clone(keys),
            shared,
            runtime: runtime.expect("a runtime without I/O"),
            relists: 0,
        };
        for key in &keys[..] {
            let (peer, key, shared) = (
                Arc::clone(&node.peer),
                key.clone(),
                Arc::clone(&node.shared),
            );
            node.runtime.spawn(async move {
                let mut seen = 1;
                while !shared.over.load(SeqCst) {
                    black_box(peer.newer_than(&key, seen).await.status().generation);
                    // Whatever woke it belongs to this relist or an earlier one.
                    seen = shared.relist.load(SeqCst);
                    shared
                        .latencies
                        .lock()
                        .saturating_record(shared.now() - seen);
                    shared.woken.fetch_add(1, SeqCst);
                }
            });
        }
        node
    }

    fn relist(&mut self) {
        let time = self.shared.now();
        self.shared.woken.store(0, SeqCst);
        self.shared.relist.store(time, SeqCst);
        self.relists += 1;
        let first = self.relists as usize % CHANGED;
        for key in self.keys.iter().skip(first).step_by(CHANGED) {
            self.peer.set(key, Status::new(time), time);
        }
        self.peer.update_time(time);
    }

    fn wait_for_workers(&self) {
        while self.shared.woken.load(SeqCst) < self.keys.len() {
            thread::yield_now();
        }
    }
}

impl<P> Drop for Node<P> {
    fn drop(&mut self) {
        self.shared.over.store(true, SeqCst);
    }
}

/// Relists one after the other, each when the workers are through with the last.
pub fn compressed<P: Peer>(keys: &Arc<[Key]>, scope: Scope) -> Subject<'static> {
    let length = day_length(scope);
    let mut node = Node::<P>::new(keys);
    Subject::new(P::NAME, move |latencies| {
        let (start, mut relists) = (Instant::now(), 0);
        while start.elapsed() < length || relists == 0 {
            node.relist();
            node.wait_for_workers();
            relists += 1;
        }
        let rate = f64::from(relists) / start.elapsed().as_secs_f64();
        note(latencies, "relist to worker", &node.shared.latencies.lock());
        node.shared.latencies.lock().reset();
        vec![rate]
    })
}

/// A relist every 50 ms, while somebody reads: a get every 100 us, timed from when it should begin.
fn paced<P: Peer>(keys: &Arc<[Key]>, level: Scope) -> Subject<'static> {
    const GETS: Duration = Duration::from_micros(100);
    let mut node = Node::<P>::new(keys);
    Subject::new(P::NAME, move |latencies| {
        let over = AtomicBool::new(false);
        let (peer, keys) = (Arc::clone(&node.peer), Arc::clone(&node.keys));
        let (gets, rate) = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut times = histogram();
                let mut order = Order::new(Pick::Uniform, keys.len(), 1);
                let start = Instant::now();
                let mut intended = start;
                while !over.load(SeqCst) {
                    black_box(peer.get(&keys[order.next()]).status().generation);
                    times.saturating_record(intended.elapsed().as_nanos() as u64);
                    intended += GETS;
                    thread::sleep(intended.saturating_duration_since(Instant::now()));
                }
                let rate = times.len() as f64 / start.elapsed().as_secs_f64();
                (times, rate)
            });
            let mut intended = Instant::now();
            for _ in 0..relists(level) {
                node.relist();
                intended += RELIST_PERIOD;
                thread::sleep(intended.saturating_duration_since(Instant::now()));
            }
            node.wait_for_workers();
            over.store(true, SeqCst);
            reader.join().expect("the reader does not panic")
        });
        note(latencies, "get", &gets);
        note(latencies, "relist to worker", &node.shared.latencies.lock());
        node.shared.latencies.lock().reset();
        vec![rate]
    })
}
