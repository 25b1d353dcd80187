//! What reads and waits: the read-only handle, and the one implementation behind both handles.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::raw::{self, Home, RawCache, Wait};
use crate::subscription::result;
use crate::{
    Changes, DefaultFor, Iter, Keys, Pinned, RandomState, Snapshot, Subscription, Timestamp,
    Tracker, View, ViewReader, WaitError, WritePolicy,
};

/// The reading half of a [`Cache`](crate::Cache), as its handles share it.
pub(crate) struct Reader<'a, K, V, S>(pub(crate) &'a Arc<RawCache<K, V, S>>);

impl<'a, K, V, S> Reader<'a, K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    #[inline]
    pub(crate) fn get<Q>(self, key: &Q) -> Snapshot<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<Q>,
    {
        let hash = self.0.hash(key); // user code: not under the guard
        let node = self
            .0
            .lookup(key, hash, &raw::pin())
            .map(|node| node.to_arc());
        Self::snapshot(node, key)
    }

    #[inline]
    fn snapshot<Q>(node: Option<raw::Arc<raw::Node<V>>>, key: &Q) -> Snapshot<V>
    where
        Q: ?Sized,
        V: DefaultFor<Q>,
    {
        match node {
            Some(node) => Snapshot::of_record(node),
            None => Snapshot::of_missing(V::default_for(key)),
        }
    }

    pub(crate) fn try_get_newer_than<Q>(self, key: &Q, min: Timestamp) -> Option<Snapshot<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<Q>,
    {
        let node = self.0.fresh(key, min.as_nanos())?;
        Some(Self::snapshot(node, key))
    }

    pub(crate) fn subscribe<Q>(self, key: &Q, min: Timestamp) -> Subscription<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        match self.0.subscribe(key, min.as_nanos()) {
            Wait::Over(outcome) => Subscription::over(result(outcome)),
            Wait::Missing => Subscription::over(Ok(Snapshot::of_missing(V::default_for(key)))),
            Wait::Registered(waiter) => {
                let home: Weak<RawCache<K, V, S>> = Arc::downgrade(self.0);
                let home: Weak<dyn Home<V>> = home;
                Subscription::registered(waiter, home)
            }
        }
    }

    pub(crate) fn get_newer_than_timeout<Q>(
        self,
        key: &Q,
        min: Timestamp,
        timeout: Duration,
    ) -> Result<Snapshot<V>, WaitError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        // Counted from the call, not from the registration.
        let deadline = Instant::now().checked_add(timeout);
        let subscription = self.subscribe(key, min);
        match deadline {
            Some(deadline) => subscription.wait_deadline(deadline),
            None => subscription.wait(),
        }
    }

    pub(crate) fn global_time(self) -> Timestamp {
        Timestamp::from_nanos(self.0.tick().time)
    }

    pub(crate) fn closed(self) -> bool {
        self.0.tick().closed
    }

    pub(crate) fn contains<Q>(self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.0.hash(key);
        self.0.lookup(key, hash, &raw::pin()).is_some()
    }

    pub(crate) fn iter(self) -> Iter<'a, K, V, S> {
        Iter::new(self.0)
    }

    pub(crate) fn keys(self) -> Keys<'a, K, V, S> {
        Keys::new(self.0)
    }
}

/// A handle that reads and waits but cannot write: the kubelet's `ROCache`.
///
/// Made by [`Cache::read_only`](crate::Cache::read_only). It does not keep the cache open: when
/// the last [`Cache`](crate::Cache) is dropped, waits end with [`WaitError::Closed`], and reads go
/// on working on what is there.
///
/// Its methods behave as those of the same name of [`Cache`](crate::Cache).
pub struct ReadCache<K, V, S = RandomState> {
    pub(crate) raw: Arc<RawCache<K, V, S>>,
}

impl<K, V, S> ReadCache<K, V, S> {
    pub(crate) fn new(raw: Arc<RawCache<K, V, S>>) -> Self {
        ReadCache { raw }
    }
}

impl<K, V, S> ReadCache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    fn reader(&self) -> Reader<'_, K, V, S> {
        Reader(&self.raw)
    }

    /// See [`Cache::get`](crate::Cache::get).
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Snapshot<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().get(key)
    }

    /// See [`Cache::get_newer_than`](crate::Cache::get_newer_than).
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] if the cache is closed before that.
    pub fn get_newer_than<Q>(&self, key: &Q, min: Timestamp) -> Result<Snapshot<V>, WaitError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        self.subscribe(key, min).wait()
    }

    /// See [`Cache::get_newer_than_timeout`](crate::Cache::get_newer_than_timeout).
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] if the time is up, [`WaitError::Closed`] if the cache is closed
    /// before that.
    pub fn get_newer_than_timeout<Q>(
        &self,
        key: &Q,
        min: Timestamp,
        timeout: Duration,
    ) -> Result<Snapshot<V>, WaitError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().get_newer_than_timeout(key, min, timeout)
    }

    /// See [`Cache::get_newer_than_deadline`](crate::Cache::get_newer_than_deadline).
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] if the time is up, [`WaitError::Closed`] if the cache is closed
    /// before that.
    pub fn get_newer_than_deadline<Q>(
        &self,
        key: &Q,
        min: Timestamp,
        deadline: Instant,
    ) -> Result<Snapshot<V>, WaitError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        self.subscribe(key, min).wait_deadline(deadline)
    }

    /// See [`Cache::try_get_newer_than`](crate::Cache::try_get_newer_than).
    pub fn try_get_newer_than<Q>(&self, key: &Q, min: Timestamp) -> Option<Snapshot<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().try_get_newer_than(key, min)
    }

    /// See [`Cache::subscribe`](crate::Cache::subscribe).
    pub fn subscribe<Q>(&self, key: &Q, min: Timestamp) -> Subscription<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().subscribe(key, min)
    }

    /// See [`Cache::global_time`](crate::Cache::global_time).
    pub fn global_time(&self) -> Timestamp {
        self.reader().global_time()
    }

    /// See [`Cache::len`](crate::Cache::len).
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// See [`Cache::is_empty`](crate::Cache::is_empty).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Cache::contains`](crate::Cache::contains).
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.reader().contains(key)
    }

    /// See [`Cache::iter`](crate::Cache::iter).
    pub fn iter(&self) -> Iter<'_, K, V, S>
    where
        K: Clone,
    {
        self.reader().iter()
    }

    /// See [`Cache::keys`](crate::Cache::keys).
    pub fn keys(&self) -> Keys<'_, K, V, S>
    where
        K: Clone,
    {
        self.reader().keys()
    }

    /// See [`Cache::waiters`](crate::Cache::waiters).
    pub fn waiters(&self) -> usize {
        self.raw.waiters().0
    }

    /// See [`Cache::is_closed`](crate::Cache::is_closed).
    pub fn is_closed(&self) -> bool {
        self.reader().closed()
    }

    /// See [`Cache::pin`](crate::Cache::pin).
    #[inline]
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned::new(&self.raw, raw::pin())
    }

    /// See [`Cache::track`](crate::Cache::track).
    pub fn track<Q>(&self, key: &Q) -> Tracker<K, V, S>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<K>,
    {
        Tracker::new(Arc::clone(&self.raw), key.to_owned())
    }

    /// See [`Cache::view`](crate::Cache::view).
    pub fn view(&self) -> Arc<View<K, V>>
    where
        K: Ord + Clone,
    {
        self.raw.view()
    }

    /// See [`Cache::view_reader`](crate::Cache::view_reader).
    pub fn view_reader(&self) -> ViewReader<K, V, S>
    where
        K: Ord + Clone,
    {
        ViewReader::new(Arc::clone(&self.raw))
    }

    /// See [`Cache::changes`](crate::Cache::changes).
    pub fn changes(&self) -> Changes<K, V, S>
    where
        K: Clone,
    {
        Changes::new(Arc::clone(&self.raw))
    }

    /// See [`Cache::write_policy`](crate::Cache::write_policy).
    pub fn write_policy(&self) -> WritePolicy {
        self.raw.settings().policy
    }
}

impl<K, V, S> Clone for ReadCache<K, V, S> {
    fn clone(&self) -> Self {
        ReadCache {
            raw: Arc::clone(&self.raw),
        }
    }
}

// As for `Cache`.
impl<K, V, S> UnwindSafe for ReadCache<K, V, S> {}
impl<K, V, S> RefUnwindSafe for ReadCache<K, V, S> {}

impl<K, V, S> fmt::Debug for ReadCache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.describe(&mut f.debug_struct("ReadCache"))
    }
}
