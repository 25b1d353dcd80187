//! The cache as a sequential program, in plain data: what the property test compares the cache
//! with, and what the linearizability checker runs histories on.
//!
//! Keys are small numbers, times are nanoseconds, and a value is the number of a [`Val`].

use podcache::{Snapshot, WaitError, WritePolicy};

use super::values::Val;

pub(crate) const KEYS: u8 = 4;

/// What a reader sees: a value, and the two times if there is a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Seen {
    pub(crate) value: u64,
    pub(crate) times: Option<(u64, u64)>,
}

impl Seen {
    pub(crate) fn of(snapshot: &Snapshot<Val>) -> Self {
        let modified = snapshot.modified().map(|t| t.as_nanos());
        let observed = snapshot.observed().map(|t| t.as_nanos());
        assert_eq!(modified.is_some(), observed.is_some(), "half a record");
        assert_eq!(snapshot.is_present(), modified.is_some());
        Self {
            value: snapshot.value().0,
            times: modified.zip(observed),
        }
    }

    pub(crate) const fn default_of(key: u8) -> Self {
        Self {
            value: Val::default_of(key as u64).0,
            times: None,
        }
    }

    /// A record as `set` leaves it.
    pub(crate) const fn set(value: u64, ts: u64) -> Self {
        Self {
            value,
            times: Some((ts, ts)),
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Outcome {
    Ready(Seen),
    Closed,
}

impl Outcome {
    /// `None` for a time-out.
    pub(crate) fn of(result: &Result<Snapshot<Val>, WaitError>) -> Option<Self> {
        match result {
            Ok(snapshot) => Some(Self::Ready(Seen::of(snapshot))),
            Err(WaitError::Closed) => Some(Self::Closed),
            Err(WaitError::TimedOut) => None,
            Err(other) => panic!("a new kind of error: {other:?}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wait {
    Registered { key: u8, min: u64 },
    Over(Outcome),
    GivenUp,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Slot {
    record: Option<Record>,
    /// Under `Monotonic`, the time at which the key was deleted.
    buried: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Record {
    value: u64,
    modified: u64,
    observed: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Model {
    slots: [Slot; KEYS as usize],
    global: u64,
    closed: bool,
    /// By the number of the wait; `None` before it begins.
    waits: Vec<Option<Wait>>,
}

impl Model {
    pub(crate) fn new() -> Self {
        Self {
            slots: Default::default(),
            global: 0,
            closed: false,
            waits: Vec::new(),
        }
    }

    pub(crate) fn global_time(&self) -> u64 {
        self.global
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn get(&self, key: u8) -> Seen {
        match self.slots[usize::from(key)].record {
            Some(r) => Seen {
                value: r.value,
                times: Some((r.modified, r.observed)),
            },
            None => Seen::default_of(key),
        }
    }

    pub(crate) fn contains(&self, key: u8) -> bool {
        self.slots[usize::from(key)].record.is_some()
    }

    pub(crate) fn fresh(&self, key: u8, min: u64) -> bool {
        let record = self.slots[usize::from(key)].record;
        self.global > min || record.is_some_and(|r| r.modified > min || r.observed > min)
    }

    pub(crate) fn try_get_newer_than(&self, key: u8, min: u64) -> Option<Seen> {
        self.fresh(key, min).then(|| self.get(key))
    }

    pub(crate) fn set(&mut self, policy: WritePolicy, key: u8, value: u64, ts: u64) -> bool {
        let record = self.slots[usize::from(key)].record;
        let refused = match policy {
            WritePolicy::Overwrite => false,
            WritePolicy::RejectOlder => record.is_some_and(|r| r.modified > ts),
            WritePolicy::Monotonic => ts < self.vouched(key),
        };
        if refused {
            return false;
        }
        self.slots[usize::from(key)].record = Some(Record {
            value,
            modified: ts,
            observed: ts,
        });
        self.wake_key(key, ts);
        true
    }

    pub(crate) fn set_observed_time(&mut self, policy: WritePolicy, key: u8, ts: u64) {
        if let Some(record) = &mut self.slots[usize::from(key)].record {
            record.observed = match policy {
                WritePolicy::Monotonic => record.observed.max(ts),
                _ => ts,
            };
        }
        self.wake_key(key, ts);
    }

    pub(crate) fn delete(&mut self, policy: WritePolicy, key: u8) -> bool {
        let vouched = self.vouched(key);
        self.delete_at(policy, key, vouched)
    }

    pub(crate) fn delete_at(&mut self, policy: WritePolicy, key: u8, ts: u64) -> bool {
        if policy == WritePolicy::Monotonic {
            if ts < self.vouched(key) {
                return false;
            }
            self.slots[usize::from(key)].buried = ts;
        }
        self.slots[usize::from(key)].record.take().is_some()
    }

    pub(crate) fn update_time(&mut self, policy: WritePolicy, ts: u64) {
        self.move_time(policy, ts);
        self.wake_where(|_, min| ts >= min);
    }

    /// The first half of `update_time`: from here on the time is as told.
    pub(crate) fn move_time(&mut self, policy: WritePolicy, ts: u64) {
        self.global = match policy {
            WritePolicy::Monotonic => self.global.max(ts),
            _ => ts,
        };
    }

    pub(crate) fn close(&mut self) {
        self.start_closing();
        for wait in self.waits.iter_mut().flatten() {
            if let Wait::Registered { .. } = wait {
                *wait = Wait::Over(Outcome::Closed);
            }
        }
    }

    /// The first half of `close`: from here on no wait is registered.
    pub(crate) fn start_closing(&mut self) {
        self.closed = true;
    }

    pub(crate) fn subscribe(&mut self, id: usize, key: u8, min: u64) {
        let wait = if self.fresh(key, min) {
            Wait::Over(Outcome::Ready(self.get(key)))
        } else if self.closed {
            Wait::Over(Outcome::Closed)
        } else {
            Wait::Registered { key, min }
        };
        if self.waits.len() <= id {
            self.waits.resize(id + 1, None);
        }
        let before = self.waits[id].replace(wait);
        assert_eq!(before, None, "wait {id} begins twice");
    }

    pub(crate) fn wait(&self, id: usize) -> Option<Wait> {
        self.waits.get(id).copied().flatten()
    }

    /// The outcome of a wait, if it is over.
    pub(crate) fn outcome(&self, id: usize) -> Option<Outcome> {
        match self.wait(id) {
            Some(Wait::Over(outcome)) => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn give_up(&mut self, id: usize) {
        self.waits[id] = Some(Wait::GivenUp);
    }

    /// The wait gets the record as it is now.
    pub(crate) fn serve(&mut self, id: usize) {
        if let Some(Wait::Registered { key, .. }) = self.wait(id) {
            self.waits[id] = Some(Wait::Over(Outcome::Ready(self.get(key))));
        }
    }

    pub(crate) fn end_by_close(&mut self, id: usize) {
        self.waits[id] = Some(Wait::Over(Outcome::Closed));
    }

    pub(crate) fn registered(&self) -> usize {
        let registered = |wait: &&Wait| matches!(wait, Wait::Registered { .. });
        self.waits.iter().flatten().filter(registered).count()
    }

    pub(crate) fn waits(&self) -> impl Iterator<Item = (usize, Wait)> {
        let numbered = self.waits.iter().enumerate();
        numbered.filter_map(|(id, wait)| wait.map(|wait| (id, wait)))
    }

    /// The newest time that the cache vouches for on this key.
    fn vouched(&self, key: u8) -> u64 {
        let slot = &self.slots[usize::from(key)];
        let record = slot.record.map_or(0, |r| r.modified.max(r.observed));
        record.max(self.global).max(slot.buried)
    }

    fn wake_key(&mut self, key: u8, ts: u64) {
        self.wake_where(|k, min| k == key && ts >= min);
    }

    fn wake_where(&mut self, named: impl Fn(u8, u64) -> bool) {
        for id in 0..self.waits.len() {
            if let Some(Wait::Registered { key, min }) = self.waits[id]
                && named(key, min)
            {
                self.serve(id);
            }
        }
    }
}
