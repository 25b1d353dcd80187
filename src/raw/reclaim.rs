//! Memory reclamation: the only file that names crossbeam-epoch.
//!
//! Whoever follows a shared pointer holds a [`Guard`]; whoever takes an object out of every
//! shared place gives it to [`Guard::retire`], which destroys it once every guard that could have
//! seen the object is gone.
//!
//! Under loom without `--cfg crossbeam_loom` nothing is reclaimed during an execution: the
//! protocol can then be explored without a bound. With it, the real crossbeam-epoch is explored.

use std::any::Any;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use super::sync::Arc;

/// Runs a destructor of user code in a place where its caller is nobody in particular. A panic is
/// reported by the panic hook and ends here: it must not reach a stranger who happened to collect.
pub(crate) fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f)) {
        dispose(payload);
    }
}

/// Drops pairs of which either may be the last owner of user data, so that no panic meets another.
pub(crate) fn contain_pairs<A, B>(pairs: impl IntoIterator<Item = (A, B)>) {
    for (a, b) in pairs {
        contain(|| drop(a));
        contain(|| drop(b));
    }
}

/// Drops what somebody panicked with, which is user data too: if that panics, it is left.
pub(crate) fn dispose(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(another);
    }
}

/// An object that others may see, alive for `'g`, by the pointer that it was found by. A plain
/// reference would not do where the `Arc` or `Box` is to be made again: it covers the object alone,
/// and is for reading.
pub(crate) struct Shared<'g, T>(NonNull<T>, PhantomData<&'g T>);

// SAFETY: as for an `Arc`, which may be made from it.
unsafe impl<T: Send + Sync> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Shared<'_, T> {}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<'_, T> {}

impl<T> Deref for Shared<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.get()
    }
}

impl<'g, T> Shared<'g, T> {
    /// # Safety
    ///
    /// `object` comes from [`Arc::into_raw`] or [`Box::into_raw`], and lives for `'g`.
    #[inline]
    pub(crate) unsafe fn new(object: *const T) -> Option<Self> {
        NonNull::new(object.cast_mut()).map(|object| Shared(object, PhantomData))
    }

    /// What an `Arc` lends.
    pub(crate) fn of(object: &'g Arc<T>) -> Self {
        let object = NonNull::new(Arc::as_ptr(object).cast_mut());
        Shared(object.expect("an Arc's pointer"), PhantomData)
    }

    #[inline]
    pub(crate) fn get(self) -> &'g T {
        // SAFETY: alive for `'g`, and only shared.
        unsafe { self.0.as_ref() }
    }

    pub(crate) fn as_non_null(self) -> NonNull<T> {
        self.0
    }

    #[inline]
    pub(crate) fn as_ptr(self) -> *mut T {
        self.0.as_ptr()
    }
}

/// An object that is out of every shared place, and how to destroy it.
#[derive(Clone, Copy)]
struct Retired {
    object: *mut (),
    destroy: unsafe fn(*mut ()),
}

// SAFETY: `Guard::retire` asks for objects that may be destroyed on any thread.
unsafe impl Send for Retired {}

impl Retired {
    fn new<T>(object: *mut T, destroy: unsafe fn(*mut T)) -> Self {
        Retired {
            object: object.cast(),
            // SAFETY: the same function, called with the same pointer: those to sized types are
            // passed alike.
            destroy: unsafe {
                std::mem::transmute::<unsafe fn(*mut T), unsafe fn(*mut ())>(destroy)
            },
        }
    }

    /// Once, when every guard is gone that could have seen it.
    fn destroy(self) {
        // SAFETY: as `Guard::retire` asks.
        unsafe { (self.destroy)(self.object) }
    }
}

/// Destroys what came from [`Box::into_raw`].
///
/// # Safety
///
/// As for [`Box::from_raw`].
pub(crate) unsafe fn drop_box<T>(object: *mut T) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(object) });
}

/// Takes an object out of its box.
///
/// # Safety
///
/// As for [`Box::from_raw`].
pub(crate) unsafe fn take_out<T>(object: *mut T) -> (T, Box<MaybeUninit<T>>) {
    // SAFETY: the caller's promise; from now on the box counts as empty.
    unsafe { (object.read(), Box::from_raw(object.cast())) }
}

pub(crate) use imp::{Guard, discard, pin};

#[cfg(any(not(podcache_loom), crossbeam_loom))]
mod imp {
    use std::cell::{Cell, RefCell, UnsafeCell};
    use std::collections::VecDeque;
    use std::mem::{self, MaybeUninit};

    use super::Retired;
    use crate::raw::sync::{Arc, AtomicU8, Ordering, thread_local};

    /// How many objects wait for their end together.
    #[cfg(not(podcache_loom))]
    const BATCH: usize = 128;
    #[cfg(podcache_loom)]
    const BATCH: usize = 2;

    /// How many batches a thread keeps to itself: as many as it needs while nobody holds back the
    /// epoch.
    #[cfg(not(podcache_loom))]
    const KEPT: usize = 4;
    #[cfg(podcache_loom)]
    const KEPT: usize = 1;

    /// Keeps everything that was reachable when it was made, or becomes reachable later, alive.
    pub(crate) struct Guard(crossbeam_epoch::Guard);

    /// Wait-free but for an occasional bounded collection of garbage.
    #[inline]
    pub(crate) fn pin() -> Guard {
        Guard(crossbeam_epoch::pin())
    }

    /// Frees memory that nobody else can reach.
    pub(crate) fn discard<T>(memory: Box<MaybeUninit<T>>) {
        drop(memory);
    }

    impl Guard {
        /// Destroys `object` when all current guards are gone, on some thread: this one if it goes
        /// on retiring. Panics of the destructor are contained.
        ///
        /// # Safety
        ///
        /// No guard made from now on can reach `object`, it is nobody else's, and `destroy` may run
        /// for it on any thread and at any time.
        #[inline]
        pub(crate) unsafe fn retire<T>(&self, object: *mut T, destroy: unsafe fn(*mut T)) {
            let retired = Retired::new(object, destroy);
            let put = LIMBO.try_with(|limbo| limbo.put(retired, &self.0));
            if put.is_err() {
                // This thread is on its way out.
                self.0.defer(move || free([retired]));
            }
        }

        /// Destroys what this thread has retired and nobody can reach any more, and leaves the rest
        /// to whoever collects: this thread may never retire anything again.
        pub(crate) fn flush(&self) {
            if !is_freeing() {
                let _ = LIMBO.try_with(|limbo| limbo.give_up(&self.0));
                self.0.flush();
            }
        }
    }

    thread_local! {
        /// Whether this thread is in a destructor of something retired.
        // loom has no form for a constant.
        #[allow(clippy::missing_const_for_thread_local)]
        static FREEING: Cell<bool> = Cell::new(false);

        static LIMBO: Limbo = Limbo::default();
    }

    fn is_freeing() -> bool {
        FREEING.try_with(Cell::get).unwrap_or(false)
    }

    /// Destroys what nobody can reach any more.
    ///
    /// A destructor that retires something must not run the next one from there, and so on down the
    /// stack: hence the mark. (A nested pin collects nothing.)
    fn free(retired: impl IntoIterator<Item = Retired>) {
        let before = FREEING.try_with(|freeing| freeing.replace(true));
        for retired in retired {
            super::contain(|| retired.destroy());
        }
        if let Ok(before) = before {
            FREEING.with(|freeing| freeing.set(before));
        }
    }

    /// Objects that were retired one after the other, and whose grace period ends with that of the
    /// last.
    ///
    /// Its owner and whoever collects meet here once, by one exchange each. If the end of the grace
    /// period comes first, the owner destroys the objects when he finds that; if the owner has
    /// gone away before, whoever collects does.
    struct Batch {
        state: AtomicU8,
        objects: UnsafeCell<Vec<Retired>>,
    }

    const WAITING: u8 = 0;
    const RIPE: u8 = 1;
    const GIVEN_UP: u8 = 2;

    // SAFETY: `Retired` may go to any thread; the cell is for whoever comes second to `state`.
    unsafe impl Send for Batch {}
    // SAFETY: as above.
    unsafe impl Sync for Batch {}

    impl Batch {
        /// The objects, for whoever comes second.
        ///
        /// # Safety
        ///
        /// Only for him, and once.
        unsafe fn take(&self) -> Vec<Retired> {
            // SAFETY: nobody else looks here any more.
            unsafe { mem::take(&mut *self.objects.get()) }
        }

        /// By its owner: its objects, if they may be destroyed.
        fn ripe(&self) -> Option<Vec<Retired>> {
            // Acquire, with the release in `ripen`: what others did to the objects under their
            // guards is over.
            let ripe = self.state.load(Ordering::Acquire) == RIPE;
            // SAFETY: ripe before its owner has given it up, and the owner asks.
            ripe.then(|| unsafe { self.take() })
        }

        /// By its owner, who does not come back.
        fn give_up(&self) {
            // AcqRel, with the same in `ripen`.
            if self.state.swap(GIVEN_UP, Ordering::AcqRel) == RIPE {
                // SAFETY: we are second.
                free(unsafe { self.take() });
            }
        }

        /// When the grace period is over.
        fn ripen(&self) {
            // AcqRel, with the same in `give_up` and the acquire in `ripe`.
            if self.state.swap(RIPE, Ordering::AcqRel) == GIVEN_UP {
                // SAFETY: we are second.
                free(unsafe { self.take() });
            }
        }
    }

    /// What a thread has retired and not destroyed yet.
    ///
    /// crossbeam-epoch runs destructors on whichever thread comes by: readers would pay for
    /// writers, and the allocator for memory that goes home to another thread. So it is told of
    /// batches only, and says when their time has come; their owner destroys them, an object for
    /// each that he retires, while the place it came from is warm.
    #[derive(Default)]
    struct Limbo {
        filling: RefCell<Vec<Retired>>,
        kept: RefCell<VecDeque<Arc<Batch>>>,
        ripe: RefCell<Vec<Retired>>,
        /// Empty.
        spare: Cell<Vec<Retired>>,
    }

    impl Limbo {
        #[inline]
        fn put(&self, retired: Retired, guard: &crossbeam_epoch::Guard) {
            let full = {
                let mut filling = self.filling.borrow_mut();
                filling.push(retired);
                filling.len() >= BATCH
            };
            if full {
                self.seal(guard);
            }
            if !is_freeing() {
                // Two if it lags behind.
                let lag = self.kept.borrow().len() > KEPT / 2;
                free((0..1 + usize::from(lag)).map_while(|_| self.next()));
            }
        }

        #[inline]
        fn next(&self) -> Option<Retired> {
            let next = self.ripe.borrow_mut().pop();
            next.or_else(|| self.harvest())
        }

        #[cold]
        fn harvest(&self) -> Option<Retired> {
            let mut kept = self.kept.borrow_mut();
            let objects = kept.front()?.ripe()?;
            kept.pop_front();
            let mut ripe = self.ripe.borrow_mut();
            self.spare.set(mem::replace(&mut *ripe, objects));
            ripe.pop()
        }

        #[cold]
        fn seal(&self, guard: &crossbeam_epoch::Guard) {
            let mut next = self.spare.take();
            next.reserve_exact(BATCH);
            let objects = self.filling.replace(next);
            let batch = Arc::new(Batch {
                state: AtomicU8::new(WAITING),
                objects: UnsafeCell::new(objects),
            });
            let late = {
                let mut kept = self.kept.borrow_mut();
                kept.push_back(Arc::clone(&batch));
                if kept.len() > KEPT {
                    kept.pop_front()
                } else {
                    None
                }
            };
            guard.defer(move || batch.ripen());
            if !is_freeing() {
                guard.flush();
            }
            if let Some(late) = late {
                late.give_up();
            }
        }

        fn is_empty(&self) -> bool {
            let filling = self.filling.borrow();
            filling.is_empty() && self.kept.borrow().is_empty() && self.ripe.borrow().is_empty()
        }

        fn give_up(&self, guard: &crossbeam_epoch::Guard) {
            let objects = self.filling.take();
            if !objects.is_empty() {
                guard.defer(move || free(objects));
            }
            for batch in self.kept.take() {
                batch.give_up();
            }
            free(self.ripe.take());
        }
    }

    #[cfg(not(podcache_loom))]
    impl Drop for Limbo {
        fn drop(&mut self) {
            if !self.is_empty() {
                let guard = crossbeam_epoch::pin();
                self.give_up(&guard);
                guard.flush();
            }
        }
    }

    // loom drops a thread's locals in no certain order, and after it was joined: nothing that
    // happens then can be a step of a model. What `end_thread` did not give up is leaked.
    #[cfg(podcache_loom)]
    impl Drop for Limbo {
        fn drop(&mut self) {
            if !self.is_empty() {
                mem::forget(mem::take(self));
            }
        }
    }

    /// Does what a thread does when it ends: the last step of a thread of a model.
    #[cfg(podcache_loom)]
    pub(crate) fn end_thread() {
        LIMBO.with(|limbo| limbo.give_up(&crossbeam_epoch::pin()));
    }

    /// Frees what the execution left, from one epoch to the next, to the one after it: the last step
    /// of a model, after all its threads are joined. When the collector goes it is too late.
    #[cfg(podcache_loom)]
    pub(crate) fn free_garbage() {
        for _ in 0..4 {
            pin().flush();
        }
    }
}

#[cfg(all(podcache_loom, not(crossbeam_loom)))]
mod imp {
    use std::cell::{Cell, RefCell};
    use std::mem::MaybeUninit;

    use super::{Retired, drop_box};
    use crate::raw::sync::{Ordering, fence, model};

    std::thread_local! {
        // loom runs all threads of an execution on one OS thread.
        static GARBAGE: RefCell<Vec<Retired>> = const { RefCell::new(Vec::new()) };
    }

    /// Keeps memory to the end of the execution: if the next object got the same address, what
    /// compares the two would go by the allocator, and differ from run to run.
    pub(crate) fn discard<T>(memory: Box<MaybeUninit<T>>) {
        let retired = Retired::new(Box::into_raw(memory), drop_box);
        GARBAGE.with(|garbage| garbage.borrow_mut().push(retired));
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
        pub(crate) unsafe fn retire<T>(&self, object: *mut T, destroy: unsafe fn(*mut T)) {
            let retired = Retired::new(object, destroy);
            GARBAGE.with(|garbage| garbage.borrow_mut().push(retired));
        }

        pub(crate) fn flush(&self) {}
    }

    /// What a thread has retired is everybody's.
    pub(crate) fn end_thread() {}

    /// Frees what the execution left: the last step of a model, after all its threads are joined.
    pub(crate) fn free_garbage() {
        loop {
            let garbage = GARBAGE.with(|g| std::mem::take(&mut *g.borrow_mut()));
            if garbage.is_empty() {
                return;
            }
            for retired in garbage {
                super::contain(|| retired.destroy());
            }
        }
    }
}

#[cfg(podcache_loom)]
pub(crate) use imp::{end_thread, free_garbage};
