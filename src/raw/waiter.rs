//! One waiter, be it a thread or a task.
//!
//! `result` decides: it goes once from null to a snapshot, to closed or to cancelled, by one
//! compare-and-swap, whoever makes it. Telling the waiter comes after, and is done by everybody
//! who finds the hand-over unfinished, so that no waiter depends on the thread that won.

use std::ptr;
use std::time::Instant;

use super::bell::Bell;
use super::counters::Ended;
use super::node::{Aux, Node};
use super::sync::{Arc, AtomicPtr, Ordering};

pub(crate) struct Waiter<V> {
    pub(crate) min: u64,
    /// The slot it is registered in, as its cache knows it. Valid under a guard while waiting.
    pub(crate) slot: *const (),
    /// When it was registered.
    pub(crate) since: Instant,
    result: AtomicPtr<Node<V>>,
    pub(crate) bell: Bell,
}

// SAFETY: the slot pointer is followed only by the cache, which knows when it is valid; a result is
// an `Arc<Node<V>>`, a waker is Send and Sync.
unsafe impl<V: Send + Sync> Send for Waiter<V> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Waiter<V> {}

/// How a wait ends.
pub(crate) enum Outcome<V> {
    Snapshot(Arc<Node<V>>),
    Closed,
}

impl<V> Clone for Outcome<V> {
    fn clone(&self) -> Self {
        match self {
            Outcome::Snapshot(node) => Outcome::Snapshot(Arc::clone(node)),
            Outcome::Closed => Outcome::Closed,
        }
    }
}

fn closed<V>() -> *mut Node<V> {
    ptr::without_provenance_mut(1)
}

fn cancelled<V>() -> *mut Node<V> {
    ptr::without_provenance_mut(2)
}

impl<V> Waiter<V> {
    pub(crate) fn new(min: u64, slot: *const ()) -> Arc<Self> {
        Arc::new(Waiter {
            min,
            slot,
            since: Instant::now(),
            result: AtomicPtr::new(ptr::null_mut()),
            bell: Bell::new(),
        })
    }

    pub(crate) fn is_waiting(&self) -> bool {
        // Acquire, with the release of `decide`.
        self.result.load(Ordering::Acquire).is_null()
    }

    pub(crate) fn outcome(&self) -> Option<Outcome<V>> {
        // Acquire, with the release of `decide`: the node is complete.
        let result = self.result.load(Ordering::Acquire);
        if result.is_null() {
            None
        } else if result == closed() || result == cancelled() {
            Some(Outcome::Closed)
        } else {
            // SAFETY: a node that the waiter owns a reference to, until it is dropped.
            unsafe {
                Arc::increment_strong_count(result);
                Some(Outcome::Snapshot(Arc::from_raw(result)))
            }
        }
    }

    fn decide(&self, result: *mut Node<V>) -> bool {
        // Release: the node is published with it. Acquire on failure only for symmetry's cost of
        // nothing: whoever loses goes on to tell the waiter, who must then find the result.
        self.result
            .compare_exchange(ptr::null_mut(), result, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Decides the wait, unless it is decided. Does not tell the waiter.
    pub(crate) fn offer(&self, outcome: Outcome<V>) -> bool {
        match outcome {
            Outcome::Closed => self.decide(closed()),
            Outcome::Snapshot(node) => {
                let node = Arc::into_raw(node);
                let mine = self.decide(node.cast_mut());
                if !mine {
                    // SAFETY: just made from an `Arc`, and not kept by the waiter.
                    drop(unsafe { Arc::from_raw(node) });
                }
                mine
            }
        }
    }

    /// Notes that it has just been ended so; `None` is by a snapshot.
    fn note(&self, outcome: Option<&Outcome<V>>, ended: &mut Ended) {
        if let Some(Outcome::Closed) = outcome {
            ended.closed += 1;
        } else {
            ended.woken += 1;
            #[cfg(feature = "metrics")]
            ended.waited.push(self.since.elapsed());
        }
    }

    /// Gives up; false if the wait was decided before.
    pub(crate) fn cancel(&self) -> bool {
        self.decide(cancelled())
    }

    /// Sleeps until there is a result, or `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        while self.is_waiting() {
            if Bell::is_late(deadline) {
                return;
            }
            self.bell.sleep(deadline);
        }
    }
}

impl<V> Drop for Waiter<V> {
    fn drop(&mut self) {
        // Relaxed: `&mut self` has seen everything.
        let result = self.result.load(Ordering::Relaxed);
        if !result.is_null() && result != closed() && result != cancelled() {
            // SAFETY: the waiter's own reference.
            drop(unsafe { Arc::from_raw(result) });
        }
    }
}

impl<V> Aux<V> {
    /// Who is being handed something, and what; `None` is the snapshot of the node.
    fn handing(&self, claimed: bool) -> impl Iterator<Item = (&Waiter<V>, Option<&Outcome<V>>)> {
        let claimed = claimed.then_some((&self.waiters.list, None));
        let handed = self
            .handed
            .as_ref()
            .map(|h| (&h.waiters, h.outcome.as_ref()));
        let lists = handed.into_iter().chain(claimed);
        lists.flat_map(|(list, outcome)| list.iter().map(move |waiter| (&**waiter, outcome)))
    }

    /// Gives every waiter its outcome, and wakes the threads among them. Idempotent; by as many
    /// threads as like to. Says whether waiters that were claimed were among them, and notes those
    /// whose wait it has ended.
    pub(crate) fn offer(&self, node: &Arc<Node<V>>, ended: &mut Ended) -> bool {
        let claimed = self.fate.is_claimed();
        for (waiter, outcome) in self.handing(claimed) {
            if waiter.is_waiting() {
                let snapshot = || Outcome::Snapshot(Arc::clone(node));
                if waiter.offer(outcome.cloned().unwrap_or_else(snapshot)) {
                    waiter.note(outcome, ended);
                }
            }
            waiter.bell.ring_threads();
        }
        claimed
    }

    /// The same, then calls the tasks among them.
    pub(crate) fn finish(&self, node: &Arc<Node<V>>, panics: &mut Panics) -> Ended {
        let mut ended = Ended::default();
        // Once: who is claimed after this is not served by this.
        let claimed = self.offer(node, &mut ended);
        // After everybody has a result: this is user code, and may take its time.
        for (waiter, _) in self.handing(claimed) {
            panics.catch(|| waiter.bell.ring_task());
        }
        if let Some(handed) = &self.handed {
            // Release, with the acquire in `Current::unfinished`.
            handed.done.store(true, Ordering::Release);
        }
        if claimed {
            self.fate.served();
        }
        ended
    }
}

/// Keeps the first panic of user code until everybody else has been served.
#[derive(Default)]
pub(crate) struct Panics(Option<Box<dyn std::any::Any + Send>>);

impl Panics {
    pub(crate) fn catch<R>(&mut self, f: impl FnOnce() -> R) -> Option<R> {
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
            Ok(value) => Some(value),
            Err(panic) => {
                if let Some(another) = self.0.replace(panic) {
                    std::mem::forget(another); // its own drop may panic
                }
                None
            }
        }
    }

    /// Passes the panic on to the caller, unless there is one under way.
    pub(crate) fn resume(self) {
        if let Some(panic) = self.0 {
            if std::thread::panicking() {
                std::mem::forget(panic);
            } else {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
