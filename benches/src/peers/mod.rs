//! The caches that are compared, each doing the whole job behind one small trait.

mod copy_on_write;
pub mod go;
mod one_lock;
mod ours;
mod papaya_events;
mod read_only;
mod table_watch;
mod watch_map;

use std::future::Future;
use std::sync::Arc;

pub use copy_on_write::CopyOnWrite;
pub use one_lock::{OneLock, ParkingLot, Std};
pub use ours::Ours;
pub use papaya_events::PapayaEvents;
pub use read_only::{Flurry, LeftRight, Papaya, Plain, ReadOnly};
pub use table_watch::{DashTable, SccTable, TableWatch};
pub use watch_map::WatchMap;

use crate::data::{Key, Record, Status};

/// What a read gives: a status with its time, to be kept as long as one likes.
pub trait Snapshot: Send + Sync + 'static {
    /// The value.
    fn status(&self) -> &Status;
}

impl Snapshot for Arc<Record> {
    #[inline]
    fn status(&self) -> &Status {
        &self.status
    }
}

/// A cache that can do the kubelet's job: read at once, or wait until newer than a time.
///
/// A wait is over when the record or the global time is newer than `min`. (The kubelet's waiters are
/// also woken by an equal time; those that are woken to look again cannot tell it from one that was
/// there before, so no benchmark depends on it.)
pub trait Peer: Sized + Send + Sync + 'static {
    /// Its name in tables and charts.
    const NAME: &'static str;

    /// What reads and waits give.
    type Snapshot: Snapshot;

    /// An empty cache with room for `keys` keys.
    fn with_capacity(keys: usize) -> Self;

    /// The record, or the default of a missing key.
    fn get(&self, key: &Key) -> Self::Snapshot;

    /// Replaces the record and wakes the key's waiters.
    fn set(&self, key: &Key, status: Status, time: u64);

    /// Removes the record.
    fn delete(&self, key: &Key);

    /// Everything is at least this new: wakes the waiters of all keys.
    fn update_time(&self, time: u64);

    /// Waits until the record of `key` is newer than `min`. Dropping the future cancels the wait.
    fn newer_than(&self, key: &Key, min: u64) -> impl Future<Output = Self::Snapshot> + Send;

    /// The same for a thread that has nothing else to do.
    fn wait_newer_than(&self, key: &Key, min: u64) -> Self::Snapshot {
        pollster::block_on(self.newer_than(key, min))
    }
}
