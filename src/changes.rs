//! The stream of changes.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::raw::{self, Bell, Feed, Found, Panics, RawCache, Shared, Slot, contain, contain_pairs};
use crate::{RandomState, Snapshot, Timestamp, WaitError};

/// What has become of a key.
#[non_exhaustive]
pub enum Change<K, V> {
    /// It has this record: it was there at the beginning, or has been set since.
    Set {
        /// The key.
        key: K,
        /// The newest record.
        snapshot: Snapshot<V>,
    },
    /// It has no record any more.
    Deleted {
        /// The key.
        key: K,
    },
}

/// The changes of a cache, key by key: [`Cache::changes`](crate::Cache::changes).
///
/// It begins with all records that are there, each at least as new as [`since`](Self::since), and
/// goes on with what changes. Of each key only the newest change is given: who reads slowly sees
/// fewer of them, and costs memory by the number of keys, not of events. A writer is never
/// delayed. That a record was confirmed (its observed time moved) is no change.
///
/// A key that came and went between two looks may be given as deleted only, and one that was
/// deleted and set again as set only. A key may be given twice with the same record.
///
/// As an iterator it sleeps for the next change and ends when the cache is closed and everything
/// has been given. With the `stream` feature it is a `futures_core::Stream` too. It does
/// not keep the cache open.
///
/// # Progress
///
/// [`try_next`](Self::try_next) is lock-free. A writer that was stopped between its write and the
/// announcement of it delays that one announcement until it goes on.
pub struct Changes<K, V, S = RandomState> {
    raw: Arc<RawCache<K, V, S>>,
    feed: raw::Arc<Feed<Slot<K, V>>>,
    since: Timestamp,
    /// The position of the first look at all records; `None` when that is over.
    cursor: Option<u64>,
    found: Vec<Found<K, V>>,
    changed: VecDeque<raw::Arc<Slot<K, V>>>,
}

impl<K, V, S> Changes<K, V, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(crate) fn new(raw: Arc<RawCache<K, V, S>>) -> Self {
        let since = Timestamp::from_nanos(raw.tick().time);
        let feed = raw.join();
        Changes {
            raw,
            feed,
            since,
            cursor: Some(0),
            found: Vec::new(),
            changed: VecDeque::new(),
        }
    }

    /// The global time when it began.
    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// Whether all records that were there at the beginning have been given.
    pub fn in_sync(&self) -> bool {
        self.cursor.is_none() && self.found.is_empty()
    }

    /// How many keys have changed and were not given yet: how far the reader lags behind.
    pub fn lag(&self) -> usize {
        self.feed.behind()
    }

    /// The next change, if there is one. Never waits.
    pub fn try_next(&mut self) -> Option<Change<K, V>> {
        loop {
            if let Some((slot, _)) = self.found.last() {
                let key = slot.key().clone(); // may panic: nothing is lost
                let (_, node) = self.found.pop()?;
                let snapshot = Snapshot::of_record(node);
                return Some(Change::Set { key, snapshot });
            }
            if let Some(cursor) = self.cursor {
                self.cursor = self.raw.scan(cursor, true, &mut self.found);
                continue;
            }
            if self.changed.is_empty() {
                self.changed = self.feed.take().into();
            }
            let slot = self.changed.front()?;
            let key = slot.key().clone();
            self.feed.clear(slot);
            let record = self.raw.record_of(Shared::of(slot));
            if record.is_none() {
                self.raw.let_go(Shared::of(slot));
            }
            self.changed.pop_front();
            return Some(match record.map(Snapshot::of_record) {
                Some(snapshot) => Change::Set { key, snapshot },
                None => Change::Deleted { key },
            });
        }
    }

    /// The next change; sleeps until there is one.
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] when the cache is closed and everything has been given.
    pub fn wait_next(&mut self) -> Result<Change<K, V>, WaitError> {
        self.sleep(None)
    }

    /// The next change; sleeps until there is one, for `timeout` at the longest.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] if the time is up; [`WaitError::Closed`] as for
    /// [`wait_next`](Self::wait_next).
    pub fn wait_next_timeout(&mut self, timeout: Duration) -> Result<Change<K, V>, WaitError> {
        // A deadline beyond what the clock can say is none.
        self.sleep(Instant::now().checked_add(timeout))
    }

    fn sleep(&mut self, deadline: Option<Instant>) -> Result<Change<K, V>, WaitError> {
        loop {
            // Before the look, so that no ring after it is forgotten.
            self.feed.bell.reset();
            if let Some(end) = self.look() {
                return end.ok_or(WaitError::Closed);
            }
            if Bell::is_late(deadline) {
                return Err(WaitError::TimedOut);
            }
            self.feed.bell.sleep(deadline);
        }
    }

    /// The next change, or the end; `None` if neither is there.
    fn look(&mut self) -> Option<Option<Change<K, V>>> {
        // Closed first: what was written before the end is given before it.
        let closed = self.raw.tick().closed;
        match self.try_next() {
            None if !closed => None,
            change => Some(change),
        }
    }

    /// The next change, or `None` at the end, for a task: its waker is called when there is
    /// something to look at.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the task goes away between two polls.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Change<K, V>>> {
        if let Some(end) = self.look() {
            return Poll::Ready(end);
        }
        self.feed.bell.register(cx.waker());
        // Looked at again: it may have rung before the waker was there.
        match self.look() {
            Some(end) => {
                // Contained: the change would be lost with the panic.
                contain(|| drop(self.feed.bell.withdraw_waker()));
                Poll::Ready(end)
            }
            None => Poll::Pending,
        }
    }
}

/// Sleeps for each; ends when the cache is closed and everything has been given.
impl<K, V, S> Iterator for Changes<K, V, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    type Item = Change<K, V>;

    fn next(&mut self) -> Option<Change<K, V>> {
        self.wait_next().ok()
    }
}

#[cfg(feature = "stream")]
impl<K, V, S> futures_core::Stream for Changes<K, V, S>
where
    K: Hash + Eq + Clone + Send + Sync + Unpin + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    type Item = Change<K, V>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Change<K, V>>> {
        self.get_mut().poll_next(cx)
    }
}

impl<K, V, S> Drop for Changes<K, V, S> {
    fn drop(&mut self) {
        let waker = self.feed.bell.withdraw_waker();
        let left = self.raw.leave(&self.feed);
        for slot in self.changed.drain(..).chain(left) {
            self.feed.clear(&slot);
            self.raw.let_go(Shared::of(&slot));
        }
        contain_pairs(self.found.drain(..));
        Panics::passing_on(|panics| panics.catch(|| drop(waker)));
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Change<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Set { key, snapshot } => f
                .debug_struct("Set")
                .field("key", key)
                .field("snapshot", snapshot)
                .finish(),
            Change::Deleted { key } => f.debug_struct("Deleted").field("key", key).finish(),
        }
    }
}

impl<K: Clone, V> Clone for Change<K, V> {
    fn clone(&self) -> Self {
        match self {
            Change::Set { key, snapshot } => Change::Set {
                key: key.clone(),
                snapshot: snapshot.clone(),
            },
            Change::Deleted { key } => Change::Deleted { key: key.clone() },
        }
    }
}

impl<K, V, S> fmt::Debug for Changes<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes")
            .field("since", &self.since)
            .field("lag", &self.feed.behind())
            .finish_non_exhaustive()
    }
}
