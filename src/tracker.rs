//! One pod's handle.

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use crate::raw::{RawCache, Watched};
use crate::read::Reader;
use crate::{DefaultFor, RandomState, Snapshot, Subscription, Timestamp, WaitError};

/// Follows one key: [`Cache::track`](crate::Cache::track).
///
/// While nothing changed, [`load`](Self::load) is one atomic load and a comparison: no hashing, no
/// locked instruction, no guard, no reference count. It follows the key through deletion and
/// re-creation, keeps at most one old snapshot alive, and does not keep the cache open.
///
/// Watching a key that has no slot (never set and nobody waits for it) costs a lookup each time:
/// there is nothing yet to watch.
pub struct Tracker<K, V, S = RandomState> {
    raw: Arc<RawCache<K, V, S>>,
    key: K,
    hash: u64,
    watched: Option<Watched<K, V>>,
    last: Snapshot<V>,
}

impl<K, V, S> Tracker<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: DefaultFor<K> + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    pub(crate) fn new(raw: Arc<RawCache<K, V, S>>, key: K) -> Self {
        let hash = raw.hash(&key);
        let watched = raw.watch(&key, hash);
        let last = match watched.as_ref().and_then(Watched::record) {
            Some(node) => Snapshot::of_record(node),
            None => Snapshot::of_missing(V::default_for(&key)),
        };
        Tracker {
            raw,
            key,
            hash,
            watched,
            last,
        }
    }

    /// The record as it is, or what a missing key reads as.
    ///
    /// Linearization point: the load of the slot's node.
    ///
    /// # Progress
    ///
    /// Wait-free while nothing changed; otherwise that of [`Cache::get`](crate::Cache::get).
    #[inline]
    pub fn load(&mut self) -> &Snapshot<V> {
        if !self.watched.as_ref().is_some_and(Watched::is_current) {
            self.reload();
        }
        &self.last
    }

    #[cold]
    fn reload(&mut self) {
        let watched = self.raw.watch(&self.key, self.hash);
        match watched.as_ref().and_then(Watched::record) {
            Some(node) => self.last = Snapshot::of_record(node),
            None if self.last.is_present() => {
                self.last = Snapshot::of_missing(V::default_for(&self.key));
            }
            None => {}
        }
        // Last: if the default panics, the next load looks again.
        self.watched = watched;
    }

    /// The key it follows.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// What [`load`](Self::load) gave last.
    pub fn last(&self) -> &Snapshot<V> {
        &self.last
    }

    /// Registers a wait for something newer than `min`, as
    /// [`Cache::subscribe`](crate::Cache::subscribe) does.
    pub fn changed_since(&self, min: Timestamp) -> Subscription<V>
    where
        K: Clone,
    {
        Reader(&self.raw).subscribe(&self.key, min)
    }

    /// Waits until the key is fresh for `min`, as
    /// [`Cache::get_newer_than`](crate::Cache::get_newer_than) does.
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] if the cache is closed before that.
    pub fn newer_than(&self, min: Timestamp) -> Result<Snapshot<V>, WaitError>
    where
        K: Clone,
    {
        self.changed_since(min).wait()
    }
}

impl<K: fmt::Debug, V: fmt::Debug, S> fmt::Debug for Tracker<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("key", &self.key)
            .field("last", &self.last)
            .finish()
    }
}
