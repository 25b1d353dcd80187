//! The one place that knows whether the atomics are std's or loom's.
//!
//! `--cfg podcache_loom` swaps every atomic of the crate for loom's; with `--cfg podcache_shuttle`
//! beside it they are shuttle's, for longer programs under random schedules. Reference counts
//! are no part of the models: they guard no protocol of ours (reclamation does), and as loom objects
//! they would multiply the interleavings without adding an outcome.

#[cfg(any(not(podcache_loom), podcache_shuttle))]
use std::cell::UnsafeCell;
use std::mem::{ManuallyDrop, MaybeUninit};

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
use loom::cell::UnsafeCell;

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
pub(crate) use loom as model;
#[cfg(all(podcache_loom, podcache_shuttle))]
pub(crate) use shuttle as model;

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
pub(crate) use super::published::AtomicPtr;
#[cfg(all(podcache_loom, podcache_shuttle))]
pub(crate) use model::sync::atomic::AtomicPtr;
#[cfg(podcache_loom)]
pub(crate) use model::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};
#[cfg(not(podcache_loom))]
pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering, fence,
};

/// std's without weak references: one locked instruction less when the last one goes, and eight
/// bytes. Models use the weak ones, to see whether anybody looks at what was released.
#[cfg(podcache_loom)]
pub(crate) use std::sync::Arc;
#[cfg(not(podcache_loom))]
pub(crate) use triomphe::Arc;

/// Gives up a reference; what was shared, if it was the last. Of several who do so, one gets it:
/// not so with `try_unwrap`, which all may be refused.
pub(crate) fn sole<T>(object: Arc<T>) -> Option<T> {
    #[cfg(podcache_loom)]
    return Arc::into_inner(object);
    #[cfg(not(podcache_loom))]
    return Arc::into_unique(object).map(triomphe::UniqueArc::into_inner);
}

/// One more reference to what is shared.
///
/// # Safety
///
/// `object` is an [`Arc`]'s pointer, and somebody owns a reference until this returns.
#[inline]
pub(crate) unsafe fn counted<T>(object: *const T) -> Arc<T> {
    // SAFETY: the caller's promise.
    let theirs = ManuallyDrop::new(unsafe { Arc::from_raw(object) });
    Arc::clone(&theirs)
}

/// Room for one object, put in and taken out by whoever a protocol says may. loom checks that
/// nobody does so while another does.
pub(crate) struct Place<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: it only moves objects from thread to thread; who may do so when is the callers' promise.
unsafe impl<T: Send> Sync for Place<T> {}

impl<T> Place<T> {
    pub(crate) fn empty() -> Self {
        Place(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// # Safety
    ///
    /// It is empty, and nobody else is at it.
    pub(crate) unsafe fn put(&self, object: T) {
        // SAFETY: the caller's promise.
        at(&self.0, |room| unsafe { (*room).write(object) });
    }

    /// # Safety
    ///
    /// It is full, and nobody else is at it.
    pub(crate) unsafe fn take(&self) -> T {
        // SAFETY: the caller's promise.
        at(&self.0, |room| unsafe { (*room).assume_init_read() })
    }
}

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
fn at<T, R>(cell: &UnsafeCell<T>, f: impl FnOnce(*mut T) -> R) -> R {
    cell.with_mut(f)
}
#[cfg(any(not(podcache_loom), podcache_shuttle))]
fn at<T, R>(cell: &UnsafeCell<T>, f: impl FnOnce(*mut T) -> R) -> R {
    f(cell.get())
}

#[cfg(podcache_loom)]
pub(crate) use model::thread_local;
#[cfg(not(podcache_loom))]
pub(crate) use std::thread_local;

/// `n` null pointers. The std form is one zeroed allocation, which a large table gets from the
/// system without touching its pages.
#[cfg(not(podcache_loom))]
pub(crate) fn null_pointers(n: usize) -> Box<[AtomicPtr<()>]> {
    let words: Box<[usize]> = vec![0; n].into_boxed_slice();
    // SAFETY: an AtomicPtr has the size, alignment and bit validity of a pointer, which has those
    // of a usize; all-zero is the null pointer.
    unsafe { Box::from_raw(Box::into_raw(words) as *mut [AtomicPtr<()>]) }
}

/// `n` null pointers.
#[cfg(podcache_loom)]
pub(crate) fn null_pointers(n: usize) -> Box<[AtomicPtr<()>]> {
    (0..n)
        .map(|_| AtomicPtr::new(std::ptr::null_mut()))
        .collect()
}
