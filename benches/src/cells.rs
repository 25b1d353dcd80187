//! Cells that hold one record, in the three ways in which a slot could.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering::AcqRel, Ordering::Acquire};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::data::Record;

/// A place for one record that is replaced whole.
pub trait Cell: Send + Sync + 'static {
    /// Its name in tables and charts.
    const NAME: &'static str;

    /// A cell with this record.
    fn new(record: Arc<Record>) -> Self;
    /// The record that is there.
    fn load(&self) -> Arc<Record>;
    /// Puts another record there.
    fn store(&self, record: Arc<Record>);
}

/// A pointer that crossbeam-epoch protects.
#[derive(Debug)]
pub struct EpochCell(AtomicPtr<Record>);

impl Cell for EpochCell {
    const NAME: &'static str = "epoch";

    fn new(record: Arc<Record>) -> Self {
        Self(AtomicPtr::new(Arc::into_raw(record).cast_mut()))
    }

    #[inline]
    fn load(&self) -> Arc<Record> {
        let _guard = crossbeam_epoch::pin();
        // Acquire pairs with the swap that brought the record here.
        let record = self.0.load(Acquire);
        // SAFETY: it came from `Arc::into_raw`, and the cell's reference to it is given up only after
        // the guard is gone.
        unsafe {
            Arc::increment_strong_count(record);
            Arc::from_raw(record)
        }
    }

    #[inline]
    fn store(&self, record: Arc<Record>) {
        let guard = crossbeam_epoch::pin();
        let old = self.0.swap(Arc::into_raw(record).cast_mut(), AcqRel);
        // SAFETY: the cell's reference to `old` is given up once, by who took it out of the cell, and
        // after every guard that could have seen it there.
        unsafe { guard.defer_unchecked(move || drop(Arc::from_raw(old))) };
    }
}

impl Drop for EpochCell {
    fn drop(&mut self) {
        // SAFETY: nobody else has the cell any more; the reference is its own.
        drop(unsafe { Arc::from_raw(*self.0.get_mut()) });
    }
}

/// An [`ArcSwap`].
#[derive(Debug)]
pub struct ArcSwapCell(ArcSwap<Record>);

impl Cell for ArcSwapCell {
    const NAME: &'static str = "arc-swap";

    fn new(record: Arc<Record>) -> Self {
        Self(ArcSwap::new(record))
    }

    #[inline]
    fn load(&self) -> Arc<Record> {
        self.0.load_full()
    }

    #[inline]
    fn store(&self, record: Arc<Record>) {
        self.0.store(record);
    }
}

/// A mutex of one byte.
#[derive(Debug)]
pub struct MutexCell(Mutex<Arc<Record>>);

impl Cell for MutexCell {
    const NAME: &'static str = "mutex";

    fn new(record: Arc<Record>) -> Self {
        Self(Mutex::new(record))
    }

    #[inline]
    fn load(&self) -> Arc<Record> {
        Arc::clone(&self.0.lock())
    }

    #[inline]
    fn store(&self, record: Arc<Record>) {
        // The old record is freed after the lock is.
        let old = std::mem::replace(&mut *self.0.lock(), record);
        drop(old);
    }
}
