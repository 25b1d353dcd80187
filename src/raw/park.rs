//! Parking a thread on a word: the only file that names atomic-wait and rustix.
//!
//! [`Word`] is a futex. Waits without a deadline go through atomic-wait everywhere. That crate has
//! no time-out, so waits with one sleep on the same word through rustix on Linux (an absolute
//! CLOCK_MONOTONIC deadline: nothing is added to the kernel's own slack), and in `park_timeout`
//! elsewhere. Both may return early; callers loop.

use std::time::Instant;

#[cfg(podcache_loom)]
use super::park_loom as imp;
use super::sync::{AtomicU32, Ordering};

/// Whether `deadline` is over. Under loom, the model says so.
pub(crate) fn has_passed(deadline: Instant) -> bool {
    imp::has_passed(deadline)
}

pub(crate) struct Word {
    word: AtomicU32,
    sleepers: imp::Sleepers,
}

impl Word {
    pub(crate) fn new(value: u32) -> Self {
        Word {
            word: AtomicU32::new(value),
            sleepers: imp::Sleepers::new(),
        }
    }

    pub(crate) fn fetch_or(&self, bits: u32, order: Ordering) -> u32 {
        self.word.fetch_or(bits, order)
    }

    pub(crate) fn load(&self, order: Ordering) -> u32 {
        self.word.load(order)
    }

    pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.word.swap(value, order)
    }

    /// Puts `new` in the place of `old`, if that is still there.
    pub(crate) fn replace(&self, old: u32, new: u32, order: Ordering) {
        let _ = self
            .word
            .compare_exchange(old, new, order, Ordering::Relaxed);
    }

    /// Sleeps while the word is `value`; may return early.
    pub(crate) fn park(&self, value: u32) {
        imp::wait(&self.word, value);
    }

    /// Sleeps while the word is `value`, until `deadline` at the latest; may return early.
    pub(crate) fn park_until(&self, value: u32, deadline: Instant) {
        imp::wait_until(&self.word, &self.sleepers, value, deadline);
    }

    /// Ends the sleep of everybody who is parked here.
    pub(crate) fn unpark_all(&self) {
        imp::wake_all(&self.word, &self.sleepers);
    }
}

#[cfg(all(not(podcache_loom), target_os = "linux", not(podcache_portable_park)))]
mod imp {
    use std::sync::atomic::AtomicU32;
    use std::time::Instant;

    use rustix::thread::futex;
    use rustix::time::{ClockId, Timespec, clock_gettime};

    /// The kernel keeps the list.
    pub(super) struct Sleepers;

    impl Sleepers {
        pub(super) fn new() -> Self {
            Sleepers
        }
    }

    pub(super) fn has_passed(deadline: Instant) -> bool {
        Instant::now() >= deadline
    }

    pub(super) fn wait(word: &AtomicU32, value: u32) {
        atomic_wait::wait(word, value);
    }

    pub(super) fn wake_all(word: &AtomicU32, _: &Sleepers) {
        atomic_wait::wake_all(word);
    }

    pub(super) fn wait_until(word: &AtomicU32, _: &Sleepers, value: u32, deadline: Instant) {
        // The clock first, then the distance: a preemption in between ends the sleep early, which
        // the caller mends, never late.
        let now = clock_gettime(ClockId::Monotonic);
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let nanos = now.tv_nsec + i64::from(left.subsec_nanos());
        let seconds = i64::try_from(left.as_secs()).ok().and_then(|s| {
            s.checked_add(now.tv_sec)?
                .checked_add(nanos / 1_000_000_000)
        });
        let Some(tv_sec) = seconds else {
            return wait(word, value); // beyond the clock's range
        };
        let until = Timespec {
            tv_sec,
            tv_nsec: nanos % 1_000_000_000,
        };
        // An early end (a changed word, a signal, the time-out) is the caller's to tell apart.
        let _ = futex::wait_bitset(
            word,
            futex::Flags::PRIVATE,
            value,
            Some(&until),
            std::num::NonZeroU32::MAX,
        );
    }
}

#[cfg(all(
    not(podcache_loom),
    any(not(target_os = "linux"), podcache_portable_park)
))]
mod imp {
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
    use std::thread::{self, Thread};
    use std::time::Instant;

    /// The threads that ever slept here with a deadline: a stack that only grows, by one entry a
    /// thread, and is freed with the word. Whoever wakes unparks them all; a needless unpark is
    /// an early return of some later park, which every caller of park must expect.
    pub(super) struct Sleepers(AtomicPtr<Sleeper>);

    struct Sleeper {
        thread: Thread,
        next: *const Sleeper,
    }

    impl Sleepers {
        pub(super) fn new() -> Self {
            Sleepers(AtomicPtr::new(ptr::null_mut()))
        }

        fn iter(&self) -> impl Iterator<Item = &Thread> {
            // Acquire, with the release in `enrol`: the entries below the top are there too.
            let mut next = self.0.load(Ordering::Acquire).cast_const();
            std::iter::from_fn(move || {
                // SAFETY: entries live as long as `self` and are never changed.
                let sleeper = unsafe { next.as_ref() }?;
                next = sleeper.next;
                Some(&sleeper.thread)
            })
        }

        fn enrol(&self, me: Thread) {
            if self.iter().any(|thread| thread.id() == me.id()) {
                return;
            }
            let top = self.0.load(Ordering::Relaxed);
            let new = Box::into_raw(Box::new(Sleeper {
                thread: me,
                next: top,
            }));
            let mut top = top;
            while let Err(other) =
                self.0
                    .compare_exchange_weak(top, new, Ordering::Release, Ordering::Relaxed)
            {
                top = other;
                // SAFETY: not published yet.
                unsafe { (*new).next = top };
            }
        }
    }

    impl Drop for Sleepers {
        fn drop(&mut self) {
            let mut next = *self.0.get_mut();
            while !next.is_null() {
                // SAFETY: `&mut self`: nobody else is here, and each entry is met once.
                let sleeper = unsafe { Box::from_raw(next) };
                next = sleeper.next.cast_mut();
            }
        }
    }

    // SAFETY: the entries are shared read-only, and a Thread is Send and Sync.
    unsafe impl Send for Sleepers {}
    // SAFETY: as above.
    unsafe impl Sync for Sleepers {}

    pub(super) fn has_passed(deadline: Instant) -> bool {
        Instant::now() >= deadline
    }

    pub(super) fn wait(word: &AtomicU32, value: u32) {
        atomic_wait::wait(word, value);
    }

    pub(super) fn wake_all(word: &AtomicU32, sleepers: &Sleepers) {
        atomic_wait::wake_all(word);
        // With the fence in `wait_until`: if this fence comes first, the sleeper sees the changed
        // word; if the sleeper's does, its entry is seen here.
        std::sync::atomic::fence(Ordering::SeqCst);
        sleepers.iter().for_each(Thread::unpark);
    }

    pub(super) fn wait_until(word: &AtomicU32, sleepers: &Sleepers, value: u32, end: Instant) {
        sleepers.enrol(thread::current());
        // With the fence in `wake_all`.
        std::sync::atomic::fence(Ordering::SeqCst);
        let left = end.saturating_duration_since(Instant::now());
        if word.load(Ordering::Relaxed) == value && !left.is_zero() {
            thread::park_timeout(left);
        }
    }
}
