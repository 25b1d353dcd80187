//! Many reads under one guard.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::ops::Deref;

use crate::raw::{Current, Guard, RawCache};
use crate::{RandomState, Timestamp};

/// A view for many reads in a row: [`Cache::pin`](crate::Cache::pin).
///
/// Each [`get`](Self::get) reads the record as it is at that moment, and lends it without touching
/// a reference count. Not to be held long: whatever is replaced meanwhile, in this and in every
/// other cache of the process, is freed only after it is dropped. A forgotten one
/// ([`std::mem::forget`]) holds all that back for the rest of the process, since what it lent may
/// have been leaked with it, and never a writer. For the
/// same reason it is not `Send`, and not to be held across an `.await` or a wait.
pub struct Pinned<'a, K, V, S = RandomState> {
    raw: &'a RawCache<K, V, S>,
    guard: Guard,
}

impl<'a, K, V, S> Pinned<'a, K, V, S> {
    pub(crate) fn new(raw: &'a RawCache<K, V, S>, guard: Guard) -> Self {
        Pinned { raw, guard }
    }
}

impl<K, V, S> Pinned<'_, K, V, S>
where
    K: Hash + Eq,
    S: BuildHasher,
{
    /// The record of `key`, if there is one.
    ///
    /// Linearization point: the load of the slot's node.
    ///
    /// # Progress
    ///
    /// Wait-free, but under [`WritePolicy::Monotonic`](crate::WritePolicy::Monotonic) lock-free:
    /// it may have to decide a write that is under way.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Option<Entry<'_, V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.raw
            .lookup(key, self.raw.hash(key), &self.guard)
            .map(Entry)
    }
}

impl<K, V, S> fmt::Debug for Pinned<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pinned").finish_non_exhaustive()
    }
}

/// A record that a [`Pinned`] lends.
pub struct Entry<'p, V>(Current<'p, V>);

impl<'p, V> Entry<'p, V> {
    /// The value.
    #[inline]
    pub fn value(&self) -> &'p V {
        self.0.node().value().expect("an entry has a value")
    }

    /// The time that was given with the value.
    #[inline]
    pub fn modified(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.modified)
    }

    /// The time at which the record was last confirmed.
    #[inline]
    pub fn observed(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.observed)
    }

    /// The same as an owned snapshot, to keep beyond the [`Pinned`].
    pub fn to_snapshot(&self) -> crate::Snapshot<V> {
        crate::Snapshot::of_record(self.0.to_arc())
    }
}

impl<V> Clone for Entry<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Entry<'_, V> {}

impl<V> Deref for Entry<'_, V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.value()
    }
}

impl<V: fmt::Debug> fmt::Debug for Entry<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("value", self.value())
            .field("modified", &self.modified())
            .field("observed", &self.observed())
            .finish()
    }
}
