//! A concurrent table whose every entry has a `tokio::sync::watch` channel beside it.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::sync::watch;

use super::Peer;
use crate::data::{Hasher, Key, Record, Status};

/// An entry of the table.
#[derive(Debug, Default)]
pub struct Watched {
    record: Option<Arc<Record>>,
    changed: watch::Sender<()>,
}

/// A table with short critical sections per entry.
pub trait Table: Send + Sync + 'static {
    /// The peer's name with this table.
    const NAME: &'static str;

    /// A table with room for `keys` keys.
    fn with_capacity(keys: usize) -> Self;
    /// Reads an entry if it is there.
    fn read<R>(&self, key: &Key, f: impl FnOnce(&Watched) -> R) -> Option<R>;
    /// Changes an entry if it is there.
    fn change<R>(&self, key: &Key, f: impl FnOnce(&mut Watched) -> R) -> Option<R>;
    /// Changes an entry, making it first if it is missing.
    fn change_or_make<R>(&self, key: &Key, f: impl FnOnce(&mut Watched) -> R) -> R;
    /// Removes an entry if `f` agrees.
    fn remove_if(&self, key: &Key, f: impl FnOnce(&mut Watched) -> bool);
}

/// dashmap.
#[derive(Debug)]
pub struct DashTable(DashMap<Key, Watched, Hasher>);

impl Table for DashTable {
    const NAME: &'static str = "DashMap + watch";

    fn with_capacity(keys: usize) -> Self {
        Self(DashMap::with_capacity_and_hasher(keys, Hasher::default()))
    }

    #[inline]
    fn read<R>(&self, key: &Key, f: impl FnOnce(&Watched) -> R) -> Option<R> {
        self.0.get(key).map(|entry| f(&entry))
    }

    #[inline]
    fn change<R>(&self, key: &Key, f: impl FnOnce(&mut Watched) -> R) -> Option<R> {
        self.0.get_mut(key).map(|mut entry| f(&mut entry))
    }

    fn change_or_make<R>(&self, key: &Key, f: impl FnOnce(&mut Watched) -> R) -> R {
        f(&mut self.0.entry(key.clone()).or_default())
    }

    fn remove_if(&self, key: &Key, f: impl FnOnce(&mut Watched) -> bool) {
        self.0.remove_if_mut(key, |_, entry| f(entry));
    }
}

/// scc.
#[derive(Debug)]
pub struct SccTable(scc::HashMap<Key, Watched, Hasher>);

impl Table for SccTable {
    const NAME: &'static str = "scc + watch";

    fn with_capacity(keys: usize) -> Self {
        Self(scc::HashMap::with_capacity_and_hasher(
            keys,
            Hasher::default(),
        ))
    }

    #[inline]
    fn read<R>(&self, key: &Key, f: impl FnOnce(&Watched) -> R) -> Option<R> {
        self.0.read_sync(key, |_, entry| f(entry))
    }

    #[inline]
    fn change<R>(&self, key: &Key, f: impl FnOnce(&mut Watched) -> R) -> Option<R> {
        self.0.update_sync(key, |_, entry| f(entry))
    }

    fn change_or_make<R>(&self, key: &Key, f: impl FnOnce(&mut Watched) -> R) -> R {
        f(self.0.entry_sync(key.clone()).or_default().get_mut())
    }

    fn remove_if(&self, key: &Key, f: impl FnOnce(&mut Watched) -> bool) {
        self.0.remove_if_sync(key, f);
    }
}

/// A table with a channel per entry, and one channel for the global time.
///
/// Its waiters are told that something changed and look again: what they get is the newest record,
/// not the one that woke them.
#[derive(Debug)]
pub struct TableWatch<T> {
    table: T,
    time: watch::Sender<u64>,
}

impl<T: Table> TableWatch<T> {
    fn record(&self, key: &Key) -> Arc<Record> {
        self.table
            .read(key, |entry| entry.record.clone())
            .flatten()
            .unwrap_or_else(Record::missing)
    }
}

impl<T: Table> Peer for TableWatch<T> {
    const NAME: &'static str = T::NAME;
    type Snapshot = Arc<Record>;

    fn with_capacity(keys: usize) -> Self {
        Self {
            table: T::with_capacity(keys),
            time: watch::Sender::new(0),
        }
    }

    #[inline]
    fn get(&self, key: &Key) -> Arc<Record> {
        self.record(key)
    }

    #[inline]
    fn set(&self, key: &Key, status: Status, time: u64) {
        let record = Record::new(status, time);
        let store = |entry: &mut Watched| {
            // Fails if nobody listens, which is cheaper than sending.
            let old = entry.record.replace(Arc::clone(&record));
            let _ = entry.changed.send(());
            old
        };
        if self.table.change(key, store).is_none() {
            self.table.change_or_make(key, store);
        }
    }

    fn delete(&self, key: &Key) {
        self.table.remove_if(key, |entry| {
            entry.record = None;
            entry.changed.receiver_count() == 0
        });
    }

    fn update_time(&self, time: u64) {
        self.time.send_replace(time);
    }

    async fn newer_than(&self, key: &Key, min: u64) -> Arc<Record> {
        let mut time = self.time.subscribe();
        let mut changed = self
            .table
            .change_or_make(key, |entry| entry.changed.subscribe());
        loop {
            let now = *time.borrow_and_update();
            let record = self.record(key);
            if now > min || record.newer_than(min) {
                return record;
            }
            tokio::select! {
                _ = changed.changed() => {}
                _ = time.changed() => {}
            }
        }
    }
}
