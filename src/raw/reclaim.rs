//! Memory reclamation: the only file that names crossbeam-epoch.
//!
//! Whoever follows a shared pointer holds a [`Guard`]; whoever takes an object out of every
//! shared place hands its destruction to [`Guard::defer`], which runs it once every guard that
//! could have seen the object is gone.
//!
//! Under loom without `--cfg crossbeam_loom` nothing is reclaimed during an execution: the
//! protocol can then be explored without a bound. With it, the real crossbeam-epoch is explored.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a destructor of user code in a place where its caller is nobody in particular. A panic is
/// reported by the panic hook and ends here: it must not reach a stranger who happened to collect.
pub(crate) fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        // The payload is user data too, and its own drop may panic.
        std::mem::forget(payload);
    }
}

pub(crate) use imp::{Guard, pin};

#[cfg(any(not(podcache_loom), crossbeam_loom))]
mod imp {
    use std::cell::Cell;

    std::thread_local! {
        /// Whether this thread is running something deferred.
        static FREEING: Cell<bool> = const { Cell::new(false) };
    }

    /// Keeps everything that was reachable when it was made, or becomes reachable later, alive.
    pub(crate) struct Guard(crossbeam_epoch::Guard);

    /// Wait-free but for an occasional bounded collection of garbage.
    #[inline]
    pub(crate) fn pin() -> Guard {
        Guard(crossbeam_epoch::pin())
    }

    impl Guard {
        /// Runs `f` on some thread after all current guards are gone. Panics in it are contained.
        ///
        /// # Safety
        ///
        /// What `f` destroys can no longer be reached by a guard made from now on, `f` may run on
        /// any thread, and it owns or outlives all that it uses.
        #[inline]
        pub(crate) unsafe fn defer<F: FnOnce()>(&self, f: F) {
            // SAFETY: the caller's promise is the one that is asked for here.
            unsafe {
                self.0.defer_unchecked(move || {
                    let before = FREEING.replace(true);
                    super::contain(f);
                    FREEING.set(before);
                });
            }
        }

        /// Hands this thread's garbage over so that others can free it, and tries to free some.
        ///
        /// Not from within a destructor that is run by this: one that ends in another flush would
        /// run the next from there, and so on down the stack. (A nested pin collects nothing.)
        pub(crate) fn flush(&self) {
            if !FREEING.get() {
                self.0.flush();
            }
        }
    }
}

#[cfg(all(podcache_loom, not(crossbeam_loom)))]
mod imp {
    use std::cell::{Cell, RefCell};

    use crate::raw::sync::{Ordering, fence, model};

    type Garbage = Vec<Box<dyn FnOnce()>>;

    std::thread_local! {
        // loom runs all threads of an execution on one OS thread.
        static GARBAGE: RefCell<Garbage> = const { RefCell::new(Vec::new()) };
    }

    model::thread_local! {
        static PINS: Cell<usize> = Cell::new(0);
    }

    pub(crate) struct Guard(());

    /// With the fence that crossbeam-epoch has in it, and none in a pin under a pin: the crate
    /// relies on it.
    pub(crate) fn pin() -> Guard {
        PINS.with(|pins| {
            if pins.replace(pins.get() + 1) == 0 {
                fence(Ordering::SeqCst);
            }
        });
        Guard(())
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            PINS.with(|pins| pins.set(pins.get() - 1));
        }
    }

    impl Guard {
        /// # Safety
        ///
        /// As above.
        pub(crate) unsafe fn defer<F: FnOnce()>(&self, f: F) {
            let f: Box<dyn FnOnce() + '_> = Box::new(f);
            // SAFETY: by the caller's promise `f` owns or outlives what it uses.
            let f: Box<dyn FnOnce()> = unsafe { std::mem::transmute(f) };
            GARBAGE.with(|g| g.borrow_mut().push(f));
        }

        pub(crate) fn flush(&self) {}
    }

    /// Frees what the execution left: the last step of a model, after all its threads are joined.
    pub(crate) fn free_garbage() {
        loop {
            let garbage = GARBAGE.with(|g| std::mem::take(&mut *g.borrow_mut()));
            if garbage.is_empty() {
                return;
            }
            for f in garbage {
                super::contain(f);
            }
        }
    }
}

#[cfg(all(podcache_loom, not(crossbeam_loom)))]
pub(crate) use imp::free_garbage;
