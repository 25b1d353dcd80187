//! One waiter, be it a thread or a task.
//!
//! `result` decides: it goes once from null to a snapshot, to closed or to cancelled, by one
//! compare-and-swap, whoever makes it. Telling the waiter comes after, and is done by everybody
//! who finds the hand-over unfinished, so that no waiter depends on the thread that won.

use std::ptr;
use std::time::Instant;

use super::bell::Bell;
use super::counters::Ended;
use super::list::{Keyed, List};
use super::node::{Aux, Current, Node};
use super::reclaim::{contain, dispose};
use super::sync::{Arc, AtomicPtr, Ordering, counted};

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
// As for a node.
impl<V> Unpin for Waiter<V> {}

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
            Some(Outcome::Snapshot(unsafe { counted(result) }))
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
}

impl<V> Keyed for Arc<Waiter<V>> {
    fn key(&self) -> u64 {
        self.min
    }
}

impl<V> Drop for Waiter<V> {
    fn drop(&mut self) {
        // Relaxed: `&mut self` has seen everything.
        let result = self.result.load(Ordering::Relaxed);
        if !result.is_null() && result != closed() && result != cancelled() {
            // SAFETY: the waiter's own reference.
            contain(|| drop(unsafe { Arc::from_raw(result) }));
        }
    }
}

impl<V> Aux<V> {
    /// Whether somebody whom the node hands something may not have been told.
    pub(crate) fn is_handing(&self) -> bool {
        // Acquire, with the release in `finish`: who skips it sees what it did.
        (self.handed.is_some() || !self.owed.is_empty()) && !self.done.load(Ordering::Acquire)
    }

    /// Looks at what is about to be changed, so that it is at hand. The misses of several slots
    /// overlap in this way; across the locked instructions that follow they would not.
    pub(crate) fn preload(&self) {
        // Not under loom: nothing depends on it, and each look would multiply the executions.
        #[cfg(not(podcache_loom))]
        if let Some(waiter) = self.waiters.list.iter().next() {
            std::hint::black_box(waiter.is_waiting() | waiter.bell.has_task());
        }
    }

    /// Gives everybody who is handed something his outcome, and wakes the threads among them. Runs
    /// no user code. Idempotent; by as many threads as like to. Says whether waiters that were
    /// claimed were among them, and notes those whose wait it has ended.
    pub(crate) fn offer(&self, node: Current<'_, V>, ended: &mut Ended) -> bool {
        let claimed = self.fate.is_claimed();
        let handed = self.handed.as_ref();
        let handed = handed.map(|handed| (&handed.waiters, handed.outcome.as_ref()));
        let lists = handed
            .into_iter()
            .chain(claimed.then_some((&self.waiters.list, None)));
        for (list, outcome) in lists {
            for waiter in list.iter() {
                if waiter.is_waiting() {
                    let snapshot = || Outcome::Snapshot(node.to_arc());
                    if waiter.offer(outcome.cloned().unwrap_or_else(snapshot)) {
                        waiter.note(outcome, ended);
                    }
                }
                waiter.bell.ring_threads();
            }
        }
        claimed
    }

    /// Who has been offered something, and may be a task that was not called yet; `claimed` is what
    /// the offer said. Who is claimed after that is not among them.
    fn told(&self, claimed: bool) -> impl Iterator<Item = &List<Arc<Waiter<V>>>> {
        let handed = self.handed.as_ref().map(|handed| &handed.waiters);
        let claimed = claimed.then_some(&self.waiters.list);
        let lists = [Some(&self.owed), handed, claimed];
        lists.into_iter().flatten().filter(|list| !list.is_empty())
    }

    /// The same in one list.
    pub(crate) fn untold(&self, claimed: bool) -> List<Arc<Waiter<V>>> {
        let mut lists = self.told(claimed);
        let first = lists.next().cloned().unwrap_or(List::EMPTY);
        lists
            .flat_map(List::iter)
            .fold(first, |all, waiter| all.push(Arc::clone(waiter)))
    }

    /// Whether somebody is named here, and not by a node before.
    pub(crate) fn names(&self, claimed: bool) -> bool {
        claimed || self.handed.is_some()
    }

    /// Calls the tasks among those who have been offered something: user code, which may take its
    /// time.
    pub(crate) fn finish(&self, claimed: bool, panics: &mut Panics) {
        for waiter in self.told(claimed).flat_map(List::iter) {
            panics.catch(|| waiter.bell.ring_task_at_last());
        }
        // Release, with the acquire in `is_handing`.
        self.done.store(true, Ordering::Release);
        if claimed {
            self.fate.served();
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
                self.add(Panics(Some(panic)));
                None
            }
        }
    }

    /// Lets `f` collect panics, and passes on the first when it is through.
    pub(crate) fn passing_on<R>(f: impl FnOnce(&mut Panics) -> R) -> R {
        let mut panics = Panics::default();
        let result = f(&mut panics);
        panics.resume();
        result
    }

    /// Keeps what `others` has kept, unless there was one before.
    pub(super) fn add(&mut self, others: Panics) {
        if let Some(panic) = others.0 {
            match self.0 {
                None => self.0 = Some(panic),
                Some(_) => dispose(panic),
            }
        }
    }

    /// Passes the panic on to the caller, unless there is one under way.
    pub(crate) fn resume(self) {
        if let Some(panic) = self.0 {
            if std::thread::panicking() {
                dispose(panic);
            } else {
                std::panic::resume_unwind(panic);
            }
        }
    }
}
