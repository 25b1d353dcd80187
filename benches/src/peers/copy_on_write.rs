//! An immutable map behind an `ArcSwap`, copied by every write.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::Peer;
use crate::data::{Hasher, Key, Record, Status};

/// A copy-on-write map. All waiters are woken by every change and look again.
#[derive(Debug)]
pub struct CopyOnWrite {
    records: ArcSwap<HashMap<Key, Arc<Record>, Hasher>>,
    /// Writers go one by one: else each would copy in vain whenever another was faster.
    writing: Mutex<()>,
    time: watch::Sender<u64>,
}

impl CopyOnWrite {
    fn change(&self, f: impl FnOnce(&mut HashMap<Key, Arc<Record>, Hasher>)) {
        let _writing = self.writing.lock();
        let mut records = HashMap::clone(&self.records.load());
        f(&mut records);
        self.records.store(Arc::new(records));
    }
}

impl Peer for CopyOnWrite {
    const NAME: &'static str = "ArcSwap<HashMap>";
    type Snapshot = Arc<Record>;

    fn with_capacity(keys: usize) -> Self {
        let records = HashMap::with_capacity_and_hasher(keys, Hasher::default());
        Self {
            records: ArcSwap::from_pointee(records),
            writing: Mutex::new(()),
            time: watch::Sender::new(0),
        }
    }

    #[inline]
    fn get(&self, key: &Key) -> Arc<Record> {
        self.records
            .load()
            .get(key)
            .cloned()
            .unwrap_or_else(Record::missing)
    }

    fn set(&self, key: &Key, status: Status, time: u64) {
        let record = Record::new(status, time);
        self.change(|records| drop(records.insert(key.clone(), record)));
        self.time.send_modify(|_| {});
    }

    fn delete(&self, key: &Key) {
        self.change(|records| drop(records.remove(key)));
    }

    fn update_time(&self, time: u64) {
        self.time.send_replace(time);
    }

    async fn newer_than(&self, key: &Key, min: u64) -> Arc<Record> {
        let mut time = self.time.subscribe();
        loop {
            let now = *time.borrow_and_update();
            let record = self.get(key);
            if now > min || record.newer_than(min) {
                return record;
            }
            let _ = time.changed().await;
        }
    }
}
