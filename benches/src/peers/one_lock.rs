//! The kubelet's own design: one readers-writer lock around everything, one channel per waiter.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use tokio::sync::oneshot;

use super::Peer;
use crate::data::{Hasher, Key, Record, Status};

/// The lock that is used.
pub trait Lock: 'static {
    /// The peer's name with this lock.
    const NAME: &'static str;
    /// The lock around a value.
    type Of<T: Send + Sync + 'static>: Send + Sync;

    /// Puts a value under a lock.
    fn new<T: Send + Sync + 'static>(value: T) -> Self::Of<T>;
    /// Locks for reading.
    fn read<T: Send + Sync + 'static>(lock: &Self::Of<T>) -> impl Deref<Target = T>;
    /// Locks for writing.
    fn write<T: Send + Sync + 'static>(lock: &Self::Of<T>) -> impl DerefMut<Target = T>;
}

/// The standard library's lock.
#[derive(Debug)]
pub struct Std;

/// parking_lot's lock.
#[derive(Debug)]
pub struct ParkingLot;

impl Lock for Std {
    const NAME: &'static str = "one lock (std)";
    type Of<T: Send + Sync + 'static> = std::sync::RwLock<T>;

    fn new<T: Send + Sync + 'static>(value: T) -> Self::Of<T> {
        std::sync::RwLock::new(value)
    }

    #[inline]
    fn read<T: Send + Sync + 'static>(lock: &Self::Of<T>) -> impl Deref<Target = T> {
        lock.read().unwrap()
    }

    #[inline]
    fn write<T: Send + Sync + 'static>(lock: &Self::Of<T>) -> impl DerefMut<Target = T> {
        lock.write().unwrap()
    }
}

impl Lock for ParkingLot {
    const NAME: &'static str = "one lock (parking_lot)";
    type Of<T: Send + Sync + 'static> = parking_lot::RwLock<T>;

    fn new<T: Send + Sync + 'static>(value: T) -> Self::Of<T> {
        parking_lot::RwLock::new(value)
    }

    #[inline]
    fn read<T: Send + Sync + 'static>(lock: &Self::Of<T>) -> impl Deref<Target = T> {
        lock.read()
    }

    #[inline]
    fn write<T: Send + Sync + 'static>(lock: &Self::Of<T>) -> impl DerefMut<Target = T> {
        lock.write()
    }
}

struct Waiter {
    min: u64,
    ready: oneshot::Sender<Arc<Record>>,
}

struct State {
    records: HashMap<Key, Arc<Record>, Hasher>,
    waiters: HashMap<Key, Vec<Waiter>, Hasher>,
    time: u64,
}

impl State {
    #[inline]
    fn get(&self, key: &Key) -> Arc<Record> {
        self.records
            .get(key)
            .cloned()
            .unwrap_or_else(Record::missing)
    }

    fn notify(&mut self, key: &Key, time: u64) {
        let Some(mut waiters) = self.waiters.remove(key) else {
            return;
        };
        for waiter in waiters.extract_if(.., |waiter| time >= waiter.min) {
            // Who gave up does not listen any more.
            let _ = waiter.ready.send(self.get(key));
        }
        if !waiters.is_empty() {
            self.waiters.insert(key.clone(), waiters);
        }
    }
}

/// One lock around everything. As in the original a waiter that gives up stays listed until its key
/// is next notified.
#[allow(
    missing_debug_implementations,
    reason = "a lock that another thread may hold"
)]
pub struct OneLock<L: Lock> {
    state: L::Of<State>,
    lock: PhantomData<fn() -> L>,
}

impl<L: Lock> Peer for OneLock<L> {
    const NAME: &'static str = L::NAME;
    type Snapshot = Arc<Record>;

    fn with_capacity(keys: usize) -> Self {
        let records = HashMap::with_capacity_and_hasher(keys, Hasher::default());
        let state = State {
            records,
            waiters: HashMap::default(),
            time: 0,
        };
        Self {
            state: L::new(state),
            lock: PhantomData,
        }
    }

    #[inline]
    fn get(&self, key: &Key) -> Arc<Record> {
        L::read(&self.state).get(key)
    }

    #[inline]
    fn set(&self, key: &Key, status: Status, time: u64) {
        let record = Record::new(status, time);
        let mut state = L::write(&self.state);
        match state.records.get_mut(key) {
            Some(old) => *old = record,
            None => drop(state.records.insert(key.clone(), record)),
        }
        state.notify(key, time);
    }

    fn delete(&self, key: &Key) {
        L::write(&self.state).records.remove(key);
    }

    fn update_time(&self, time: u64) {
        let mut state = L::write(&self.state);
        state.time = time;
        let waiting: Vec<Key> = state.waiters.keys().cloned().collect();
        for key in &waiting {
            state.notify(key, time);
        }
    }

    async fn newer_than(&self, key: &Key, min: u64) -> Arc<Record> {
        let receiver = {
            let mut state = L::write(&self.state);
            if state.time > min
                || state
                    .records
                    .get(key)
                    .is_some_and(|record| record.newer_than(min))
            {
                return state.get(key);
            }
            let (ready, receiver) = oneshot::channel();
            let waiter = Waiter { min, ready };
            state.waiters.entry(key.clone()).or_default().push(waiter);
            receiver
        };
        receiver
            .await
            .expect("a listed waiter is dropped only after it was served")
    }
}
