use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker};
use std::thread::Thread;

use podcache::{Snapshot, Subscription, WaitError};

use super::trap::{self, Place};

/// A waker under observation: how often it was called, how many handles to it are alive.
#[derive(Clone)]
pub(crate) struct TestWaker(Arc<Inner>);

struct Inner {
    wakes: AtomicUsize,
    handles: AtomicUsize,
    on_wake: Box<dyn Fn() + Send + Sync>,
}

impl TestWaker {
    pub(crate) fn new() -> Self {
        Self::calling(|| {})
    }

    /// Calls `on_wake` whenever it is woken.
    pub(crate) fn calling(on_wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            wakes: AtomicUsize::new(0),
            handles: AtomicUsize::new(0),
            on_wake: Box::new(on_wake),
        }))
    }

    pub(crate) fn wakes(&self) -> usize {
        self.0.wakes.load(SeqCst)
    }

    /// How many `Waker`s of it are alive: those that somebody keeps.
    pub(crate) fn handles(&self) -> usize {
        self.0.handles.load(SeqCst)
    }

    /// Polls once with this waker, which is given back at once unless the future keeps it.
    pub(crate) fn poll<F: Future + Unpin>(&self, future: &mut F) -> Poll<F::Output> {
        let waker = self.waker();
        Pin::new(future).poll(&mut Context::from_waker(&waker))
    }

    pub(crate) fn waker(&self) -> Waker {
        let raw = raw(Arc::clone(&self.0));
        // SAFETY: the table below keeps one count of the Arc per waker.
        unsafe { Waker::from_raw(raw) }
    }
}

fn raw(inner: Arc<Inner>) -> RawWaker {
    inner.handles.fetch_add(1, SeqCst);
    RawWaker::new(Arc::into_raw(inner).cast(), &TABLE)
}

static TABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

unsafe fn clone(data: *const ()) -> RawWaker {
    trap::hit(Place::CloneWaker);
    let data = data.cast::<Inner>();
    // SAFETY: `data` comes from `Arc::into_raw` in `raw`, and the waker that is cloned keeps a count.
    let inner = unsafe {
        Arc::increment_strong_count(data);
        Arc::from_raw(data)
    };
    raw(inner)
}

unsafe fn wake(data: *const ()) {
    let _consumed = DropOnExit(data);
    // SAFETY: the count goes only when `_consumed` does.
    unsafe { wake_by_ref(data) };
}

unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker that is called keeps a count.
    let inner = unsafe { &*data.cast::<Inner>() };
    inner.wakes.fetch_add(1, SeqCst);
    trap::hit(Place::Wake);
    (inner.on_wake)();
}

unsafe fn drop_waker(data: *const ()) {
    // SAFETY: this waker's own count, taken in `raw`.
    let inner = unsafe { Arc::from_raw(data.cast::<Inner>()) };
    inner.handles.fetch_sub(1, SeqCst);
    drop(inner);
    trap::hit(Place::DropWaker);
}

struct DropOnExit(*const ());

impl Drop for DropOnExit {
    fn drop(&mut self) {
        // SAFETY: made once, by the `wake` that consumes the waker.
        unsafe { drop_waker(self.0) };
    }
}

/// Runs one future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = std::pin::pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        std::thread::park();
    }
}

/// What a subscription has come to, if anything, without a panic on an error.
pub(crate) fn ready<V>(subscription: &Subscription<V>) -> Option<Snapshot<V>> {
    subscription.try_get().map(|result| match result {
        Ok(snapshot) => snapshot,
        Err(error) => panic!("the wait ended with {error:?}"),
    })
}

pub(crate) fn is_closed<T>(result: &Result<T, WaitError>) -> bool {
    matches!(result, Err(WaitError::Closed))
}

pub(crate) fn is_timed_out<T>(result: &Result<T, WaitError>) -> bool {
    matches!(result, Err(WaitError::TimedOut))
}
