//! What wakes one listener, be it a thread or a task.
//!
//! The waker cell is a pointer that is only ever exchanged; it mostly says no more than that the
//! waker stands beside it. The usual crates do not fit: atomic-waker stays locked for ever when
//! cloning or dropping a waker panics inside it, diatomic-waker keeps a waker alive after its wait,
//! and neither runs under loom as a dependency.

use std::ptr;
use std::task::Waker;
use std::time::Instant;

use super::park::{Word, has_passed};
use super::sync::{AtomicBool, AtomicPtr, Ordering, Place};
use super::waiter::Panics;

/// A thread may sleep on the word.
const PARKED: u32 = 1;
/// There is something to see; nobody needs to sleep any more.
const RUNG: u32 = 2;
/// Whoever slept when RUNG was set has been woken.
const WOKEN: u32 = 4;
/// The bits above count the resets, so that a late WOKEN is not taken for one of a later ring.
const RESET: u32 = 8;

pub(crate) struct Bell {
    word: Word,
    /// Null, a box's, [`here`] or [`called`].
    waker: AtomicPtr<Waker>,
    here: Place<Waker>,
    /// Whether nobody is at that place: it is empty, and whoever emptied it is through.
    free: AtomicBool,
}

/// No pointer: the waker stands in the bell.
fn here() -> *mut Waker {
    ptr::without_provenance_mut(1)
}

/// No pointer: the task has been called for the last time, and no waker is left here any more.
fn called() -> *mut Waker {
    ptr::without_provenance_mut(2)
}

/// Whether it is a waker's, and not a mark.
fn is_waker(waker: *mut Waker) -> bool {
    !waker.is_null() && waker != called()
}

impl Bell {
    pub(crate) fn new() -> Self {
        Bell {
            word: Word::new(0),
            waker: AtomicPtr::new(ptr::null_mut()),
            here: Place::empty(),
            free: AtomicBool::new(true),
        }
    }

    /// Wakes the threads that sleep here, now and until [`reset`](Self::reset). Wakes a sleeping
    /// thread even if somebody else is about to: he may have been stopped.
    pub(crate) fn ring_threads(&self) {
        // AcqRel, with the same in `sleep`: on one word, one of the two comes first. If ours does,
        // the thread sees RUNG, with it what there is to see, and does not sleep; if the thread's
        // does, we see PARKED.
        let before = self.word.fetch_or(RUNG, Ordering::AcqRel);
        if before & (PARKED | WOKEN) == PARKED {
            self.word.unpark_all();
            // Relaxed: says only that waking again is not needed.
            self.word
                .replace(before | RUNG, before | RUNG | WOKEN, Ordering::Relaxed);
        }
    }

    /// Whether a ring would make a difference, as far as can be seen.
    pub(crate) fn is_wanted(&self) -> bool {
        // Relaxed: what the listener did before it looked has been acquired, if it counts.
        let word = self.word.load(Ordering::Relaxed);
        word & RUNG == 0 || word & (PARKED | WOKEN) == PARKED || self.has_task()
    }

    /// Calls the task that listens. Its waker is called by the one who takes it, once.
    ///
    /// # Panics
    ///
    /// If the waker does.
    pub(crate) fn ring_task(&self) {
        if let Some(waker) = self.exchange(ptr::null_mut()) {
            waker.wake();
        }
    }

    /// The same, for the last time: whoever comes to register finds that there is something to see.
    /// So [`has_task`](Self::has_task) says whether the task is still to be called.
    ///
    /// # Panics
    ///
    /// If the waker does.
    pub(crate) fn ring_task_at_last(&self) {
        if let Some(waker) = self.exchange(called()) {
            waker.wake();
        }
    }

    /// Forgets that it rang. What was there to see by then is to be looked at after this. By one
    /// listener, that does not sleep.
    pub(crate) fn reset(&self) {
        // Relaxed: nobody else changes the count.
        let count = self.word.load(Ordering::Relaxed) & !(RESET - 1);
        // AcqRel, with `ring_threads`: what a ring that is forgotten here told of is seen.
        self.word.swap(count.wrapping_add(RESET), Ordering::AcqRel);
    }

    /// Sleeps until it rings, or `deadline`, or for no reason.
    pub(crate) fn sleep(&self, deadline: Option<Instant>) {
        // AcqRel, with the same in `ring_threads`.
        let before = self.word.fetch_or(PARKED, Ordering::AcqRel);
        if before & RUNG == 0 {
            match deadline {
                None => self.word.park(before | PARKED),
                Some(deadline) if !has_passed(deadline) => {
                    self.word.park_until(before | PARKED, deadline);
                }
                Some(_) => {}
            }
        }
    }

    /// Whether `deadline` is over, by the clock that [`sleep`](Self::sleep) goes by.
    pub(crate) fn is_late(deadline: Option<Instant>) -> bool {
        deadline.is_some_and(has_passed)
    }

    /// Leaves `waker` to be called. To be followed by a look at what there is to see. By one task
    /// at a time.
    ///
    /// # Panics
    ///
    /// If cloning `waker` or dropping the one before panics.
    pub(crate) fn register(&self, waker: &Waker) {
        // What is there is taken out, looked at, and put in again or replaced. If a ring comes in
        // between, it finds nothing, and the look that follows finds what it rang for.
        let mut before = self.withdraw_waker();
        if before.is_none() {
            drop(self.leave(waker.clone()));
            return;
        }
        Panics::passing_on(|panics| {
            let same = before.take_if(|before| before.will_wake(waker));
            let next = same.or_else(|| panics.catch(|| waker.clone()));
            // Last: by now the next one is in its place.
            let refused = next.and_then(|next| self.leave(next));
            panics.catch(|| drop(refused));
            panics.catch(|| drop(before));
        });
    }

    /// Gives it back if the task has been called for the last time.
    fn leave(&self, waker: Waker) -> Option<Waker> {
        // Acquire, with the release in `take`. If it is not free, who took the waker before has
        // been stopped on his way out.
        let waker = if self.free.load(Ordering::Acquire) {
            // Relaxed: the next to look comes after us.
            self.free.store(false, Ordering::Relaxed);
            // SAFETY: empty, and only one task at a time fills it.
            unsafe { self.here.put(waker) };
            here()
        } else {
            Box::into_raw(Box::new(waker))
        };
        // AcqRel, with the swap in `exchange`: on one word, one of the two comes first. If ours
        // does, it takes this waker; if its does, we see what it rang for after. So with the
        // acquire if it was called for the last time.
        let left = self.waker.compare_exchange(
            ptr::null_mut(),
            waker,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        debug_assert!(left.is_ok() || left == Err(called()), "one task at a time");
        // SAFETY: it was not left.
        left.err().and_then(|_| unsafe { self.take(waker) })
    }

    /// Whether there is a task to call, as far as can be seen.
    pub(crate) fn has_task(&self) -> bool {
        // Relaxed: after a fence, or by the task itself, if it counts.
        is_waker(self.waker.load(Ordering::Relaxed))
    }

    /// Takes the waker out, by whoever registers here: nobody else puts one in.
    pub(crate) fn withdraw_waker(&self) -> Option<Waker> {
        // Relaxed, here and below: what he takes out he has put in.
        let waker = self.waker.load(Ordering::Relaxed);
        if !is_waker(waker) {
            return None;
        }
        let mine = self.waker.compare_exchange(
            waker,
            ptr::null_mut(),
            Ordering::Relaxed,
            Ordering::Relaxed,
        );
        // SAFETY: taken out.
        mine.ok().and_then(|waker| unsafe { self.take(waker) })
    }

    /// Takes the waker out, to be dropped or called, and leaves a mark.
    fn exchange(&self, mark: *mut Waker) -> Option<Waker> {
        // AcqRel, with the same in `leave`.
        let waker = self.waker.swap(mark, Ordering::AcqRel);
        // SAFETY: taken out.
        unsafe { self.take(waker) }
    }

    /// # Safety
    ///
    /// Only whoever took `waker` out of the cell: he owns it, and the place until it is free.
    unsafe fn take(&self, waker: *mut Waker) -> Option<Waker> {
        if waker == here() {
            // SAFETY: the caller's promise.
            let waker = unsafe { self.here.take() };
            // Release, with the acquire in `leave`.
            self.free.store(true, Ordering::Release);
            return Some(waker);
        }
        // SAFETY: the caller's promise, and it is a box's.
        is_waker(waker).then(|| *unsafe { Box::from_raw(waker) })
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        drop(self.exchange(called()));
    }
}
