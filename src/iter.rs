//! Iteration.

use std::fmt;
use std::iter::FusedIterator;

use crate::Snapshot;
use crate::raw::{Found, RawCache, contain, contain_pairs};

/// All records of a cache: made by [`Cache::iter`](crate::Cache::iter).
///
/// Collects a few records at a time and holds no guard between two items, so it may be kept as
/// long as you like.
pub struct Iter<'a, K, V, S> {
    raw: &'a RawCache<K, V, S>,
    /// The position from which to go on; `None` at the end.
    cursor: Option<u64>,
    found: Vec<Found<K, V>>,
}

impl<'a, K, V, S> Iter<'a, K, V, S> {
    pub(crate) fn new(raw: &'a RawCache<K, V, S>) -> Self {
        Iter {
            raw,
            cursor: Some(0),
            found: Vec::new(),
        }
    }
}

impl<K: Clone, V, S> Iterator for Iter<'_, K, V, S> {
    type Item = (K, Snapshot<V>);

    fn next(&mut self) -> Option<Self::Item> {
        while self.found.is_empty() {
            self.cursor = self.raw.scan(self.cursor?, false, &mut self.found);
        }
        let key = self.found.last()?.0.key().clone(); // may panic: nothing is lost
        let (_, node) = self.found.pop()?;
        Some((key, Snapshot::of_record(node)))
    }
}

impl<K: Clone, V, S> FusedIterator for Iter<'_, K, V, S> {}

impl<K, V, S> Drop for Iter<'_, K, V, S> {
    fn drop(&mut self) {
        contain_pairs(self.found.drain(..));
    }
}

impl<K, V, S> fmt::Debug for Iter<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").finish_non_exhaustive()
    }
}

/// The keys of all records of a cache: made by [`Cache::keys`](crate::Cache::keys).
pub struct Keys<'a, K, V, S>(Iter<'a, K, V, S>);

impl<'a, K, V, S> Keys<'a, K, V, S> {
    pub(crate) fn new(raw: &'a RawCache<K, V, S>) -> Self {
        Keys(Iter::new(raw))
    }
}

impl<K: Clone, V, S> Iterator for Keys<'_, K, V, S> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        let (key, snapshot) = self.0.next()?;
        contain(|| drop(snapshot)); // may be the last of a record that nobody asked for
        Some(key)
    }
}

impl<K: Clone, V, S> FusedIterator for Keys<'_, K, V, S> {}

impl<K, V, S> fmt::Debug for Keys<'_, K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}
