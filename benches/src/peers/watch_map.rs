//! The whole map in one `tokio::sync::watch` channel.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::watch;

use super::Peer;
use crate::data::{Hasher, Key, Record, Status};

#[derive(Debug)]
struct State {
    records: HashMap<Key, Arc<Record>, Hasher>,
    time: u64,
}

/// A watched map. All waiters are woken by every change and look again.
#[derive(Debug)]
pub struct WatchMap(watch::Sender<State>);

impl Peer for WatchMap {
    const NAME: &'static str = "watch<HashMap>";
    type Snapshot = Arc<Record>;

    fn with_capacity(keys: usize) -> Self {
        let records = HashMap::with_capacity_and_hasher(keys, Hasher::default());
        Self(watch::Sender::new(State { records, time: 0 }))
    }

    #[inline]
    fn get(&self, key: &Key) -> Arc<Record> {
        self.0
            .borrow()
            .records
            .get(key)
            .cloned()
            .unwrap_or_else(Record::missing)
    }

    #[inline]
    fn set(&self, key: &Key, status: Status, time: u64) {
        let record = Record::new(status, time);
        self.0
            .send_modify(|state| match state.records.get_mut(key) {
                Some(old) => *old = record,
                None => drop(state.records.insert(key.clone(), record)),
            });
    }

    fn delete(&self, key: &Key) {
        // A delete wakes nobody.
        self.0.send_if_modified(|state| {
            state.records.remove(key);
            false
        });
    }

    fn update_time(&self, time: u64) {
        self.0.send_modify(|state| state.time = time);
    }

    async fn newer_than(&self, key: &Key, min: u64) -> Arc<Record> {
        let mut watched = self.0.subscribe();
        let record = |state: &State| {
            state
                .records
                .get(key)
                .cloned()
                .unwrap_or_else(Record::missing)
        };
        loop {
            {
                let state = watched.borrow_and_update();
                let record = record(&state);
                if state.time > min || record.newer_than(min) {
                    return record;
                }
            }
            let _ = watched.changed().await;
        }
    }
}
