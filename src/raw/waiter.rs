//! One waiter, be it a thread or a task.
//!
//! `result` decides: it goes once from null to a snapshot, to closed or to cancelled, by one
//! compare-and-swap, whoever makes it. Telling the waiter comes after, and is done by everybody
//! who finds the hand-over unfinished, so that no waiter depends on the thread that won.
//!
//! The waker cell is a pointer that is only ever swapped. The usual crates do not fit: atomic-waker
//! stays locked for ever when cloning or dropping a waker panics inside it, diatomic-waker keeps a
//! waker alive after its wait, and neither runs under loom as a dependency.

use std::ptr;
use std::task::Waker;
use std::time::Instant;

use super::node::{Aux, Handed, Node};
use super::park::{Word, has_passed};
use super::sync::{Arc, AtomicPtr, Ordering};

/// A thread may sleep on the word.
const PARKED: u32 = 1;
/// There is a result; nobody needs to sleep any more.
const NOTIFIED: u32 = 2;
/// Whoever slept when NOTIFIED was set has been woken.
const WOKEN: u32 = 4;

pub(crate) struct Waiter<V> {
    pub(crate) min: u64,
    /// The slot it is registered in, as its cache knows it. Valid under a guard while waiting.
    pub(crate) slot: *const (),
    result: AtomicPtr<Node<V>>,
    word: Word,
    waker: AtomicPtr<Waker>,
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
            result: AtomicPtr::new(ptr::null_mut()),
            word: Word::new(0),
            waker: AtomicPtr::new(ptr::null_mut()),
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

    /// Gives up; false if the wait was decided before.
    pub(crate) fn cancel(&self) -> bool {
        self.decide(cancelled())
    }

    /// Tells the waiter that there is a result. Wakes a parked thread even if somebody else is
    /// about to: he may have been stopped. A task's waker is called by the one who takes it.
    ///
    /// # Panics
    ///
    /// If the waker does.
    fn tell(&self) {
        // AcqRel, with the same in `wait`: on one word, one of the two comes first. If ours does,
        // the thread sees NOTIFIED, with it the result, and does not sleep; if the thread's does,
        // we see PARKED.
        let before = self.word.fetch_or(NOTIFIED, Ordering::AcqRel);
        if before & (PARKED | WOKEN) == PARKED {
            self.word.unpark_all();
            // Relaxed: says only that waking again is not needed.
            self.word.fetch_or(WOKEN, Ordering::Relaxed);
        }
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Sleeps until there is a result, or `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        while self.is_waiting() {
            // AcqRel, with the same in `tell`.
            if self.word.fetch_or(PARKED, Ordering::AcqRel) & NOTIFIED != 0 {
                return;
            }
            match deadline {
                None => self.word.park(PARKED),
                Some(deadline) if !has_passed(deadline) => {
                    self.word.park_until(PARKED, deadline);
                }
                Some(_) => return,
            }
        }
    }

    /// Leaves `waker` to be called when there is a result. To be followed by a look at
    /// [`outcome`](Self::outcome). By one task at a time.
    ///
    /// # Panics
    ///
    /// If cloning `waker` or dropping the one before panics.
    pub(crate) fn register(&self, waker: &Waker) {
        // What is there is taken out, looked at, and put in again or replaced. If `tell` comes in
        // between, it finds nothing, and the look at the outcome that follows finds the result.
        let before = self.take_waker();
        let next = match before {
            Some(before) if before.will_wake(waker) => before,
            before => {
                let next = Box::new(waker.clone());
                drop(before);
                next
            }
        };
        // AcqRel, with the swap of `tell` in `take_waker`: on one word, one of the two comes
        // first. If ours does, it takes this waker; if its does, we see the result after.
        let left = self.waker.swap(Box::into_raw(next), Ordering::AcqRel);
        debug_assert!(left.is_null(), "one task at a time");
    }

    /// Takes the waker out, to be dropped or called.
    pub(crate) fn take_waker(&self) -> Option<Box<Waker>> {
        // AcqRel, with the swap in `register`.
        let waker = self.waker.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: whoever swaps a waker out owns it.
        (!waker.is_null()).then(|| unsafe { Box::from_raw(waker) })
    }
}

impl<V> Drop for Waiter<V> {
    fn drop(&mut self) {
        drop(self.take_waker());
        // Relaxed: `&mut self` has seen everything.
        let result = self.result.load(Ordering::Relaxed);
        if !result.is_null() && result != closed() && result != cancelled() {
            // SAFETY: the waiter's own reference.
            drop(unsafe { Arc::from_raw(result) });
        }
    }
}

impl<V> Handed<V> {
    /// Gives every waiter its outcome and tells it. Idempotent; by as many threads as like to.
    pub(crate) fn finish(&self, carrier: &Arc<Node<V>>, panics: &mut Panics) {
        for waiter in self.waiters.iter() {
            let outcome = self.outcome.clone();
            waiter.offer(outcome.unwrap_or_else(|| Outcome::Snapshot(Arc::clone(carrier))));
            panics.catch(|| waiter.tell());
        }
        // Release, with the acquire of `Current::unfinished`.
        self.done.store(true, Ordering::Release);
    }
}

impl<V> Aux<V> {
    pub(crate) fn finish(&self, carrier: &Arc<Node<V>>, panics: &mut Panics) {
        if let Some(handed) = &self.handed {
            handed.finish(carrier, panics);
        }
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
