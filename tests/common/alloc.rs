use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system's allocator, counting: live bytes of the process, and what each thread asked for.
/// A test binary that wants the figures installs it as its global allocator.
pub(crate) struct Counting;

static LIVE: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    // Constant and without destructors: usable inside an allocator, and while a thread ends.
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// What this thread has asked for so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) calls: usize,
    pub(crate) bytes: usize,
}

/// Runs `f` and says what this thread asked for in it.
pub(crate) fn asked_by<R>(f: impl FnOnce() -> R) -> (Asked, R) {
    let (calls, bytes) = (CALLS.get(), BYTES.get());
    let result = f();
    let asked = Asked {
        calls: CALLS.get() - calls,
        bytes: BYTES.get() - bytes,
    };
    (asked, result)
}

/// Lets one test at a time look at what the whole process holds.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes that the process holds at this moment.
pub(crate) fn live() -> isize {
    LIVE.load(Relaxed)
}

fn count(size: usize) {
    LIVE.fetch_add(size as isize, Relaxed);
    let _ = CALLS.try_with(|calls| calls.set(calls.get() + 1));
    let _ = BYTES.try_with(|bytes| bytes.set(bytes.get() + size));
}

fn uncount(size: usize) {
    LIVE.fetch_sub(size as isize, Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller's promises are those that are asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        uncount(layout.size());
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        uncount(layout.size());
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}
