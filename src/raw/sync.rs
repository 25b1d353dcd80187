//! The one place that knows whether the atomics are std's or loom's.
//!
//! `--cfg podcache_loom` swaps every atomic of the crate for loom's; with `--cfg podcache_shuttle`
//! beside it they are shuttle's, for longer programs under random schedules. Reference counts stay std's
//! in both: they guard no protocol of ours (reclamation does), and as loom objects they would
//! multiply the interleavings without adding an outcome.

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

pub(crate) use std::sync::Arc;

/// One more reference to what is shared.
///
/// # Safety
///
/// `object` is an [`Arc`]'s pointer, and somebody owns a reference until this returns.
#[inline]
pub(crate) unsafe fn counted<T>(object: *const T) -> Arc<T> {
    // SAFETY: the caller's promise.
    unsafe {
        Arc::increment_strong_count(object);
        Arc::from_raw(object)
    }
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
