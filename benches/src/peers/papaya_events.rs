//! papaya for the records, an `event_listener::Event` per key that was ever waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst, fence};

use event_listener::Event;
use papaya::HashMap;

use super::Peer;
use crate::data::{Hasher, Key, Record, Status};

/// papaya and event-listener. Waiters look again when they are woken.
#[derive(Debug)]
pub struct PapayaEvents {
    records: HashMap<Key, Arc<Record>, Hasher>,
    events: HashMap<Key, Arc<Event>, Hasher>,
    waiting: AtomicUsize,
    time: AtomicU64,
    ticked: Event,
}

/// Counts a waiter for as long as it is there.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(waiting: &'a AtomicUsize) -> Self {
        waiting.fetch_add(1, SeqCst);
        Self(waiting)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

impl PapayaEvents {
    #[inline]
    fn notify(&self, key: &Key) {
        // Pairs with the fence of `listen`: either the waiter sees the record, or it is seen here.
        fence(SeqCst);
        if self.waiting.load(SeqCst) > 0
            && let Some(event) = self.events.pin().get(key)
        {
            event.notify(usize::MAX);
        }
    }
}

impl Peer for PapayaEvents {
    const NAME: &'static str = "papaya + event-listener";
    type Snapshot = Arc<Record>;

    fn with_capacity(keys: usize) -> Self {
        Self {
            records: HashMap::with_capacity_and_hasher(keys, Hasher::default()),
            events: HashMap::with_hasher(Hasher::default()),
            waiting: AtomicUsize::new(0),
            time: AtomicU64::new(0),
            ticked: Event::new(),
        }
    }

    #[inline]
    fn get(&self, key: &Key) -> Arc<Record> {
        self.records
            .pin()
            .get(key)
            .cloned()
            .unwrap_or_else(Record::missing)
    }

    #[inline]
    fn set(&self, key: &Key, status: Status, time: u64) {
        self.records
            .pin()
            .insert(key.clone(), Record::new(status, time));
        self.notify(key);
    }

    fn delete(&self, key: &Key) {
        self.records.pin().remove(key);
    }

    fn update_time(&self, time: u64) {
        self.time.store(time, SeqCst);
        self.ticked.notify(usize::MAX);
    }

    async fn newer_than(&self, key: &Key, min: u64) -> Arc<Record> {
        let fresh = || {
            let now = self.time.load(SeqCst);
            let record = self.get(key);
            (now > min || record.newer_than(min)).then_some(record)
        };
        if let Some(record) = fresh() {
            return record;
        }
        let _counted = Counted::new(&self.waiting);
        let event = Arc::clone(
            self.events
                .pin()
                .get_or_insert_with(key.clone(), || Arc::new(Event::new())),
        );
        loop {
            let changed = event.listen();
            let ticked = self.ticked.listen();
            if let Some(record) = fresh() {
                return record;
            }
            tokio::select! {
                () = changed => {}
                () = ticked => {}
            }
        }
    }
}
