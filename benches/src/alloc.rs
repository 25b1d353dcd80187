//! A global allocator that counts when it is asked to.
//!
//! While nobody counts it costs one relaxed load and a branch, the same for every peer.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

/// The system's allocator with counters beside it.
#[derive(Debug)]
pub struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
static LIVE: AtomicI64 = AtomicI64::new(0);

fn count(calls: u64, bytes: i64) {
    // Statistics only: nothing is published through these counters.
    if ON.load(Relaxed) {
        CALLS.fetch_add(calls, Relaxed);
        LIVE.fetch_add(bytes, Relaxed);
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: the caller's promise is the one that is asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(0, -(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(1, new_size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

/// What was allocated between [`Count::start`] and [`Count::stop`], by all threads.
#[derive(Debug, Clone, Copy, Default)]
pub struct Count {
    /// Calls that returned fresh memory.
    pub calls: u64,
    /// Bytes asked for and not given back: below zero when older memory was freed.
    pub live: i64,
}

impl Count {
    /// Starts counting from zero.
    pub fn start() {
        LIVE.store(0, Relaxed);
        CALLS.store(0, Relaxed);
        ON.store(true, Relaxed);
    }

    /// The figures so far.
    pub fn now() -> Self {
        Self {
            calls: CALLS.load(Relaxed),
            live: LIVE.load(Relaxed),
        }
    }

    /// Stops counting.
    pub fn stop() -> Self {
        let count = Self::now();
        ON.store(false, Relaxed);
        count
    }
}
