//! Many tasks that wait, on one thread or on a pool.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;

use crate::data::Key;
use crate::harness::cpu_time;
use crate::peers::Peer;

/// A runtime on this thread alone: what its tasks cost is CPU time of this thread.
pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .expect("a runtime without I/O")
}

/// What it cost to wake the tasks of a storm.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    /// The waking call alone.
    pub call: Duration,
    /// From the start of the waking call until the last task had run.
    pub all: Duration,
}

/// Runs `wait` in `count` tasks on a fresh set, lets them all begin to wait, wakes them by `wake`.
pub fn storm<F>(
    runtime: &Runtime,
    count: usize,
    wait: impl Fn(usize) -> F,
    wake: impl FnOnce(),
) -> Storm
where
    F: Future<Output = ()> + Send + 'static,
{
    runtime.block_on(async {
        let waiting = Arc::new(AtomicUsize::new(0));
        let tasks: Vec<_> = (0..count)
            .map(|at| {
                let (wait, waiting) = (wait(at), Arc::clone(&waiting));
                tokio::spawn(async move {
                    let mut wait = pin!(wait);
                    let mut begun = false;
                    poll_fn(|context| {
                        let polled = wait.as_mut().poll(context);
                        if !begun {
                            begun = true;
                            assert!(polled.is_pending(), "it waits until it is woken");
                            // All on one thread: nothing to order.
                            waiting.fetch_add(1, Relaxed);
                        }
                        polled
                    })
                    .await;
                })
            })
            .collect();
        while waiting.load(Relaxed) < count {
            tokio::task::yield_now().await;
        }
        let start = cpu_time();
        wake();
        let call = cpu_time() - start;
        for task in tasks {
            task.await.expect("a waiting task does not panic");
        }
        Storm {
            call,
            all: cpu_time() - start,
        }
    })
}

/// One task per key waits for a time newer than `min`; `update_time` wakes them all.
pub fn peer_storm<P: Peer>(runtime: &Runtime, peer: &Arc<P>, keys: &[Key], min: u64) -> Storm {
    let wait = |at: usize| {
        let (peer, key) = (Arc::clone(peer), Key::clone(&keys[at]));
        async move { drop(peer.newer_than(&key, min).await) }
    };
    storm(runtime, keys.len(), wait, || peer.update_time(min + 1))
}

/// The least that any cache must do: each task leaves its waker in a list, which is woken.
pub fn bare_storm(runtime: &Runtime, count: usize) -> Storm {
    let wakers = Arc::new(Mutex::new(Vec::<Waker>::with_capacity(count)));
    let wait = |_| {
        let wakers = Arc::clone(&wakers);
        let mut begun = false;
        poll_fn(move |context| {
            if begun {
                return Poll::Ready(());
            }
            begun = true;
            wakers.lock().push(context.waker().clone());
            Poll::Pending
        })
    };
    storm(runtime, count, wait, || {
        wakers.lock().drain(..).for_each(Waker::wake)
    })
}
