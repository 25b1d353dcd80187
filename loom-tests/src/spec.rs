//! The sequential specification: what the cache does when one thing happens at a time.
//!
//! No atomics, no threads, no cleverness: maps and plain numbers. Everything that a concurrent
//! execution returned is compared with this.

use std::collections::BTreeMap;
use std::fmt;

/// A time stamp; 0 is "not yet".
pub type Time = u64;

/// Which set call brought a value: no two write the same. 0 is the default of a missing key.
pub type Value = u32;

/// A key. Programs name them `a`, `b`, ….
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Key(pub u8);

/// A wait, by the order in which a program's text names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Wait(pub u16);

/// A record as a reader sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Record {
    /// The value.
    pub value: Value,
    /// The time given with the value.
    pub modified: Time,
    /// When it was last confirmed.
    pub observed: Time,
}

/// What a read of a key gives; `None` is the default value of a missing key.
pub type Reading = Option<Record>;

/// Which sets are refused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Policy {
    /// None.
    Overwrite,
    /// Those older than the record.
    RejectOlder,
    /// Those older than anything known; times never go back.
    Monotonic,
}

impl Policy {
    /// All of them.
    pub const ALL: [Policy; 3] = [Policy::Overwrite, Policy::RejectOlder, Policy::Monotonic];
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// Satisfied, with this snapshot.
    Ready(Reading),
    /// The cache was closed.
    Closed,
}

/// Where a wait stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Status {
    /// Registered.
    Pending,
    /// Over, with this.
    Over(End),
}

/// A wait that is registered or decided and not gone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Waiter {
    /// The key.
    pub key: Key,
    /// It waits for something newer than this.
    pub min: Time,
    /// Where it stands.
    pub status: Status,
}

/// The whole state.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Spec {
    policy: Policy,
    records: BTreeMap<Key, Record>,
    /// When a key was deleted (`Monotonic` only).
    tombs: BTreeMap<Key, Time>,
    global: Time,
    closed: bool,
    waiters: BTreeMap<Wait, Waiter>,
    /// All that a read of each key has given since the last statement of the global time.
    given: BTreeMap<Key, Vec<Reading>>,
}

impl Spec {
    /// An empty cache.
    pub fn new(policy: Policy) -> Self {
        Spec {
            policy,
            records: BTreeMap::new(),
            tombs: BTreeMap::new(),
            global: 0,
            closed: false,
            waiters: BTreeMap::new(),
            given: BTreeMap::new(),
        }
    }

    /// What a read of `key` gives.
    pub fn read(&self, key: Key) -> Reading {
        self.records.get(&key).copied()
    }

    /// What a read of `key` may have given since the last statement of the global time: what a
    /// view says of it that is as new as that.
    pub fn given(&self, key: Key) -> Vec<Reading> {
        self.given
            .get(&key)
            .cloned()
            .unwrap_or_else(|| vec![self.read(key)])
    }

    /// To be called before every change of `key`.
    fn changing(&mut self, key: Key) {
        let before = self.read(key);
        self.given.entry(key).or_insert_with(|| vec![before]);
    }

    /// To be called after every change of `key`.
    fn changed(&mut self, key: Key) {
        let now = self.read(key);
        let given = self.given.entry(key).or_default();
        if !given.contains(&now) {
            given.push(now);
        }
    }

    /// All records.
    pub fn records(&self) -> Vec<(Key, Record)> {
        self.records
            .iter()
            .map(|(key, record)| (*key, *record))
            .collect()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there is no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The global time.
    pub fn global(&self) -> Time {
        self.global
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether a read of `key` is newer than `min`. Strictly.
    pub fn fresh(&self, key: Key, min: Time) -> bool {
        self.global > min
            || self
                .read(key)
                .is_some_and(|r| r.modified > min || r.observed > min)
    }

    /// The newest time that the cache vouches for on `key`.
    fn vouched(&self, key: Key) -> Time {
        let record = self.read(key).map_or(0, |r| r.modified.max(r.observed));
        record
            .max(self.global)
            .max(self.tombs.get(&key).copied().unwrap_or(0))
    }

    /// Whether a set at `ts` is stored.
    pub fn admits(&self, key: Key, ts: Time) -> bool {
        match self.policy {
            Policy::Overwrite => true,
            Policy::RejectOlder => self.read(key).is_none_or(|r| r.modified <= ts),
            Policy::Monotonic => self.vouched(key) <= ts,
        }
    }

    /// Stores a record and decides the waits that it names.
    pub fn set(&mut self, key: Key, value: Value, ts: Time) {
        self.changing(key);
        self.records.insert(
            key,
            Record {
                value,
                modified: ts,
                observed: ts,
            },
        );
        self.tombs.remove(&key);
        self.changed(key);
        self.wake_key(key, ts);
    }

    /// Confirms the record, if there is one, and decides the waits that `ts` names.
    pub fn observe(&mut self, key: Key, ts: Time) {
        let keep = self.policy == Policy::Monotonic;
        self.changing(key);
        if let Some(record) = self.records.get_mut(&key) {
            record.observed = if keep { record.observed.max(ts) } else { ts };
        }
        self.changed(key);
        self.wake_key(key, ts);
    }

    /// Removes the record; whether there was one.
    pub fn delete(&mut self, key: Key) -> bool {
        let at = self.vouched(key);
        self.remove(key, at)
    }

    /// Removes the record as of `ts`; `None` if that is refused.
    pub fn delete_at(&mut self, key: Key, ts: Time) -> Option<bool> {
        match self.policy {
            Policy::Monotonic if ts < self.vouched(key) => None,
            Policy::Monotonic => Some(self.remove(key, ts)),
            _ => Some(self.delete(key)),
        }
    }

    fn remove(&mut self, key: Key, at: Time) -> bool {
        if self.policy == Policy::Monotonic && at > self.global {
            self.tombs.insert(key, at);
        }
        self.changing(key);
        let was_there = self.records.remove(&key).is_some();
        self.changed(key);
        was_there
    }

    /// Moves the global time. Whoever calls this then decides the waits, one at a time.
    pub fn update_time(&mut self, ts: Time) {
        let keep = self.policy == Policy::Monotonic;
        if !keep || ts >= self.global {
            self.given.clear();
        }
        self.global = if keep { self.global.max(ts) } else { ts };
        self.tombs.retain(|_, at| *at > self.global);
    }

    /// Marks the cache closed. Whoever calls this then decides the waits.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Enters a wait: decided at once if it is fresh or the cache is closed.
    pub fn register(&mut self, wait: Wait, key: Key, min: Time) {
        let status = if self.fresh(key, min) {
            Status::Over(End::Ready(self.read(key)))
        } else if self.closed {
            Status::Over(End::Closed)
        } else {
            Status::Pending
        };
        self.waiters.insert(wait, Waiter { key, min, status });
    }

    /// A wait that is still known.
    pub fn waiter(&self, wait: Wait) -> Option<Waiter> {
        self.waiters.get(&wait).copied()
    }

    /// Forgets a wait: it was dropped, or nobody will ask again.
    pub fn forget(&mut self, wait: Wait) {
        self.waiters.remove(&wait);
    }

    /// The waits that are registered and not decided.
    pub fn pending(&self) -> impl Iterator<Item = (Wait, Waiter)> + '_ {
        self.waiters().filter(|(_, w)| w.status == Status::Pending)
    }

    /// All waits that are known.
    pub fn waiters(&self) -> impl Iterator<Item = (Wait, Waiter)> + '_ {
        self.waiters.iter().map(|(k, w)| (*k, *w))
    }

    /// Decides a pending wait with the record as it is now.
    pub fn satisfy(&mut self, wait: Wait) {
        let key = self.waiters[&wait].key;
        self.decide(wait, End::Ready(self.read(key)));
    }

    /// Decides a pending wait.
    pub fn decide(&mut self, wait: Wait, end: End) {
        if let Some(waiter) = self.waiters.get_mut(&wait) {
            assert_eq!(waiter.status, Status::Pending);
            waiter.status = Status::Over(end);
        }
    }

    fn wake_key(&mut self, key: Key, ts: Time) {
        let named: Vec<Wait> = self
            .pending()
            .filter(|(_, w)| w.key == key && w.min <= ts)
            .map(|(wait, _)| wait)
            .collect();
        for wait in named {
            self.satisfy(wait);
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", char::from(b'a' + self.0))
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}@{}", self.value, self.modified)?;
        if self.observed != self.modified {
            write!(f, "/{}", self.observed)?;
        }
        Ok(())
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Policy::Overwrite => "overwrite",
            Policy::RejectOlder => "reject-older",
            Policy::Monotonic => "monotonic",
        })
    }
}
