//! Snapshots, and what a missing key reads as.

use std::fmt;
use std::ops::Deref;
use std::panic::{RefUnwindSafe, UnwindSafe};

use crate::Timestamp;
use crate::raw::{Arc, Node};

/// What a missing key reads as: the kubelet's "PodStatus with only its ID".
///
/// Implement it for every form a key is looked up in: a cache with `String` keys that is asked
/// with `&str` needs `DefaultFor<String>` and `DefaultFor<str>`. There are no blanket
/// implementations that could collide with yours.
///
/// ```
/// # use podcache::DefaultFor;
/// #[derive(Default)]
/// struct Status { id: String, phase: &'static str }
///
/// impl DefaultFor<str> for Status {
///     fn default_for(id: &str) -> Self {
///         Status { id: id.to_owned(), ..Status::default() }
///     }
/// }
/// impl DefaultFor<String> for Status {
///     fn default_for(id: &String) -> Self {
///         Self::default_for(id.as_str())
///     }
/// }
/// ```
pub trait DefaultFor<K: ?Sized> {
    /// The value that stands for "nothing is known of `key`".
    fn default_for(key: &K) -> Self;
}

/// One record as it was at one instant: a value and its two times, immutable, yours to keep.
///
/// A snapshot is a counted reference: cloning it is one atomic increment, and it keeps its value
/// alive for as long as you like, whatever becomes of the cache.
pub struct Snapshot<V>(Arc<Node<V>>);

impl<V> Snapshot<V> {
    pub(crate) fn of_record(node: Arc<Node<V>>) -> Self {
        Snapshot(node)
    }

    pub(crate) fn of_missing(value: V) -> Self {
        Snapshot(Node::default(value))
    }

    /// The value; for a missing key what it reads as.
    #[inline]
    pub fn value(&self) -> &V {
        self.0.value().expect("a snapshot has a value")
    }

    /// The time that was given with the value; `None` if there was no record.
    #[inline]
    pub fn modified(&self) -> Option<Timestamp> {
        self.is_present()
            .then(|| Timestamp::from_nanos(self.0.modified))
    }

    /// The time at which the record was last confirmed; `None` if there was no record.
    #[inline]
    pub fn observed(&self) -> Option<Timestamp> {
        self.is_present()
            .then(|| Timestamp::from_nanos(self.0.observed))
    }

    /// Whether there was a record.
    #[inline]
    pub fn is_present(&self) -> bool {
        self.0.is_record()
    }

    /// Whether both hold the very same value in memory: it was set once, and at most its observed
    /// time differs.
    pub fn same_value(&self, other: &Self) -> bool {
        std::ptr::eq(self.value(), other.value())
    }
}

impl<V> Clone for Snapshot<V> {
    #[inline]
    fn clone(&self) -> Self {
        Snapshot(Arc::clone(&self.0))
    }
}

// Nothing in it changes.
impl<V: RefUnwindSafe> UnwindSafe for Snapshot<V> {}
impl<V: RefUnwindSafe> RefUnwindSafe for Snapshot<V> {}

impl<V> Deref for Snapshot<V> {
    type Target = V;

    #[inline]
    fn deref(&self) -> &V {
        self.value()
    }
}

impl<V> AsRef<V> for Snapshot<V> {
    fn as_ref(&self) -> &V {
        self.value()
    }
}

impl<V: fmt::Debug> fmt::Debug for Snapshot<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("value", self.value())
            .field("modified", &self.modified())
            .field("observed", &self.observed())
            .finish()
    }
}
