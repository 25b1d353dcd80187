//! The whole node at once.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::raw::{RawCache, contain_pairs};
use crate::{RandomState, Snapshot, Timestamp};

/// An immutable, sorted map of all records: [`Cache::view`](crate::Cache::view).
///
/// Every record in it is at least as new as [`timestamp`](Self::timestamp). It is shared by all
/// who ask until the next `update_time`, outlives the cache, and never changes.
pub struct View<K, V> {
    timestamp: Timestamp,
    records: Box<[(K, Snapshot<V>)]>,
}

impl<K, V> View<K, V> {
    /// Collects all records. The time is read first: what is found after is at least that new.
    pub(crate) fn build<S>(raw: &RawCache<K, V, S>) -> Self
    where
        K: Ord + Clone,
    {
        let timestamp = Timestamp::from_nanos(raw.tick().time);
        let mut records: Vec<_> = crate::Iter::new(raw).collect();
        records.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        // A key that was deleted and set again meanwhile may have been met twice.
        records.dedup_by(|(a, _), (b, _)| a == b);
        View {
            timestamp,
            records: records.into(),
        }
    }

    /// The global time when it was built: every record is at least this new.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }

    /// The record of `key`. Takes the logarithm of the number of records.
    pub fn get<Q>(&self, key: &Q) -> Option<&Snapshot<V>>
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        let at = self
            .records
            .binary_search_by(|(k, _)| k.borrow().cmp(key))
            .ok()?;
        Some(&self.records[at].1)
    }

    /// Whether there is a record of `key`.
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Ord + ?Sized,
    {
        self.get(key).is_some()
    }

    /// All records, in the order of their keys.
    pub fn iter(&self) -> ViewIter<'_, K, V> {
        ViewIter(self.records.iter())
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> + ExactSizeIterator {
        self.records.iter().map(|(key, _)| key)
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// What is different from an older view. Takes time by the size of both.
    ///
    /// A record that was only confirmed since then (its observed time moved) is not different.
    pub fn diff<'a>(&'a self, older: &'a Self) -> Diff<'a, K, V>
    where
        K: Ord,
    {
        let mut diff = Diff {
            added: Vec::new(),
            changed: Vec::new(),
            removed: Vec::new(),
        };
        let mut new = self.iter().peekable();
        let mut old = older.iter().peekable();
        loop {
            let order = match (new.peek(), old.peek()) {
                (None, None) => return diff,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((a, _)), Some((b, _))) => a.cmp(b),
            };
            match order {
                Ordering::Less => diff.added.extend(new.next()),
                Ordering::Greater => diff.removed.extend(old.next()),
                Ordering::Equal => {
                    let pair = new.next().zip(old.next());
                    diff.changed.extend(
                        pair.filter(|((_, n), (_, o))| !n.same_value(o))
                            .map(|((key, new), (_, old))| Changed { key, new, old }),
                    );
                }
            }
        }
    }
}

impl<K, V> Drop for View<K, V> {
    fn drop(&mut self) {
        contain_pairs(mem::take(&mut self.records));
    }
}

impl<'a, K, V> IntoIterator for &'a View<K, V> {
    type Item = (&'a K, &'a Snapshot<V>);
    type IntoIter = ViewIter<'a, K, V>;

    fn into_iter(self) -> ViewIter<'a, K, V> {
        self.iter()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for View<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Records<'a, K, V>(&'a View<K, V>);
        impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Records<'_, K, V> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_map().entries(self.0).finish()
            }
        }
        f.debug_struct("View")
            .field("timestamp", &self.timestamp)
            .field("records", &Records(self))
            .finish()
    }
}

/// The records of a [`View`], in the order of their keys.
pub struct ViewIter<'a, K, V>(std::slice::Iter<'a, (K, Snapshot<V>)>);

impl<'a, K, V> Iterator for ViewIter<'a, K, V> {
    type Item = (&'a K, &'a Snapshot<V>);

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|(key, snapshot)| (key, snapshot))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for ViewIter<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|(key, snapshot)| (key, snapshot))
    }
}

impl<K, V> ExactSizeIterator for ViewIter<'_, K, V> {}
impl<K, V> std::iter::FusedIterator for ViewIter<'_, K, V> {}

impl<K, V> Clone for ViewIter<'_, K, V> {
    fn clone(&self) -> Self {
        ViewIter(self.0.clone())
    }
}

impl<K, V> fmt::Debug for ViewIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewIter")
            .field("left", &self.len())
            .finish()
    }
}

/// What is different between two views: made by [`View::diff`]. Each part is in key order.
pub struct Diff<'a, K, V> {
    /// What the older view did not have.
    pub added: Vec<(&'a K, &'a Snapshot<V>)>,
    /// What was set anew.
    pub changed: Vec<Changed<'a, K, V>>,
    /// What the newer view does not have, as the older had it.
    pub removed: Vec<(&'a K, &'a Snapshot<V>)>,
}

/// A record that was set anew between two views.
pub struct Changed<'a, K, V> {
    /// The key.
    pub key: &'a K,
    /// The record in the newer view.
    pub new: &'a Snapshot<V>,
    /// The record in the older view.
    pub old: &'a Snapshot<V>,
}

impl<K, V> Diff<'_, K, V> {
    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Diff<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Diff")
            .field("added", &self.added)
            .field("changed", &self.changed)
            .field("removed", &self.removed)
            .finish()
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Changed<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changed")
            .field("key", self.key)
            .field("new", self.new)
            .field("old", self.old)
            .finish()
    }
}

/// A view at hand for who reads it often: [`Cache::view_reader`](crate::Cache::view_reader).
///
/// Keeps the view it gave last, and looks for another only after an `update_time`. Does not keep
/// the cache open.
pub struct ViewReader<K, V, S = RandomState> {
    raw: Arc<RawCache<K, V, S>>,
    seen: u64,
    view: Arc<View<K, V>>,
}

impl<K: Ord + Clone, V, S> ViewReader<K, V, S> {
    pub(crate) fn new(raw: Arc<RawCache<K, V, S>>) -> Self {
        let seen = raw.tick().number;
        let view = raw.view();
        ViewReader { raw, seen, view }
    }

    /// The present view, as [`Cache::view`](crate::Cache::view) gives it.
    pub fn load(&mut self) -> &Arc<View<K, V>> {
        let number = self.raw.tick().number;
        if self.seen != number {
            self.view = self.raw.view();
            self.seen = number;
        }
        &self.view
    }
}

impl<K, V, S> fmt::Debug for ViewReader<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewReader")
            .field("timestamp", &self.view.timestamp)
            .finish_non_exhaustive()
    }
}
