//! The global time, and whether the cache is closed.
//!
//! Both stand in one immutable [`Tick`] behind one pointer. A pointer and not a number, since
//! times may go back: two looks that find the same tick under one guard prove that nothing
//! happened in between, two looks that find the same number prove nothing.

use std::ptr;

use super::reclaim::Guard;
use super::sync::{Arc, AtomicPtr, Ordering, counted};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) time: u64,
    pub(crate) closed: bool,
    /// Which statement of the time this is, counted from zero.
    pub(crate) number: u64,
}

pub(crate) struct Clock(AtomicPtr<Tick>);

impl Clock {
    pub(crate) fn new() -> Self {
        let start = Tick {
            time: 0,
            closed: false,
            number: 0,
        };
        Clock(AtomicPtr::new(Arc::into_raw(Arc::new(start)).cast_mut()))
    }

    /// The present tick: its address is its identity for as long as the guard lives.
    #[inline]
    pub(crate) fn tick<'g>(&self, _guard: &'g Guard) -> &'g Tick {
        // SAFETY: never null; freed only after every guard that could have loaded it is gone.
        unsafe { &*self.load() }
    }

    #[inline]
    fn load(&self) -> *mut Tick {
        // Acquire, with the release of `advance`: who sees a time sees every write before it.
        self.0.load(Ordering::Acquire)
    }

    /// The present tick, to keep beyond the guard: so its address stays its own.
    pub(crate) fn keep(&self, _guard: &Guard) -> Arc<Tick> {
        // SAFETY: an `Arc`'s pointer, and the clock's reference is released only after the guard.
        unsafe { counted(self.load()) }
    }

    /// Whether this very tick is still the present one.
    #[inline]
    pub(crate) fn still_shows(&self, tick: &Arc<Tick>) -> bool {
        // Relaxed: compares, and follows nothing.
        ptr::eq(self.0.load(Ordering::Relaxed), Arc::as_ptr(tick))
    }

    /// Replaces the tick by what `change` makes of it. Lock-free.
    ///
    /// Linearization point of `update_time` and `close`.
    pub(crate) fn advance(&self, guard: &Guard, change: impl Fn(&mut Tick)) {
        let mut now = self.tick(guard);
        let new = Arc::into_raw(Arc::new(*now)).cast_mut();
        loop {
            let mut tick = *now;
            change(&mut tick);
            // SAFETY: `new` is not published yet.
            unsafe { *new = tick };
            let old: *const Tick = now;
            // Release, with the acquire of `tick`; acquire to follow the pointer on failure.
            match self
                .0
                .compare_exchange(old.cast_mut(), new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(old) => {
                    // SAFETY: unreachable from now on for new guards; the clock's reference is ours.
                    return unsafe { guard.retire(old, |old| drop(Arc::from_raw(old))) };
                }
                // SAFETY: as in `tick`.
                Err(other) => now = unsafe { &*other },
            }
        }
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // Relaxed: `&mut self` has seen everything.
        let tick = self.0.load(Ordering::Relaxed);
        // SAFETY: the clock's reference to the last tick, and nobody else is here.
        drop(unsafe { Arc::from_raw(tick) });
    }
}
