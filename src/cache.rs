//! The cache and its builder.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::raw::{self, Count, Panics, RawCache};
use crate::read::Reader;
use crate::settings::Settings;
use crate::trace;
use crate::{
    Changes, DefaultFor, Iter, Keys, Pinned, RandomState, ReadCache, Snapshot, Subscription,
    Timestamp, Tracker, View, ViewReader, WaitError, WritePolicy,
};

/// A map from keys to records that answers at once, or wakes you when there is something newer.
///
/// A record is a value, the time that was given with it (*modified*) and the time at which it was
/// last confirmed (*observed*). Beside the records stands one *global time*: every record is at
/// least this new. `key` is *fresh* for `min` if the global time is `> min`, or its record's
/// modified or observed time is.
///
/// Clones are handles to the same cache. When the last one is dropped, the cache is closed as by
/// [`close`](Self::close); [`ReadCache`]s and [`Subscription`]s do not keep it open.
///
/// # Consistency
///
/// On one key, `set`, `set_observed_time`, `delete`, `get` and registering a wait are
/// linearizable; each takes effect at the one compare-and-swap, or load, of the key's slot.
/// `update_time` takes effect for reads when it replaces the global time, and for waits when it
/// visits them before it returns: a wait that overlaps it may be satisfied by it. Whoever sees a
/// global time sees all writes that came before it.
///
/// # Progress
///
/// Reads are wait-free (under [`WritePolicy::Monotonic`] lock-free), everything else is lock-free:
/// a thread that is stopped anywhere, inside user code too, stops nobody else. What it can hold
/// back is memory, if it stands inside a call.
///
/// # Panics
///
/// A panic in a key's `Hash`, `Eq` or `Clone`, in [`DefaultFor`], or in a waker goes to the caller
/// who ran it, after everybody else has been served; the cache stays as if the call had not been
/// made, or had been completed. A panic in the `Drop` of a replaced value or key has nobody to go
/// to: it is reported by the panic hook and ends there.
pub struct Cache<K, V, S = RandomState> {
    pub(crate) raw: Arc<RawCache<K, V, S>>,
    open: Arc<Open<K, V, S>>,
}

/// Closes the cache when its last owner is gone.
struct Open<K, V, S>(Arc<RawCache<K, V, S>>);

impl<K, V, S> Drop for Open<K, V, S> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<K, V> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    /// An empty cache.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An empty cache that takes `capacity` keys before it grows.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::builder().capacity(capacity).build()
    }

    /// A cache with settings of your own.
    pub fn builder() -> Builder<K, V> {
        Builder {
            settings: Settings::default(),
            capacity: 0,
            hasher: RandomState::default(),
            of: PhantomData,
        }
    }
}

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// The record of `key`, or what a missing key reads as. Never fails, never waits.
    ///
    /// Linearization point: the load of the slot's node.
    ///
    /// # Progress
    ///
    /// Wait-free (lock-free under [`WritePolicy::Monotonic`]); allocates only for a missing key.
    #[inline]
    pub fn get<Q>(&self, key: &Q) -> Snapshot<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().get(key)
    }

    /// Waits until `key` is fresh for `min`, or a call names this wait, and gives the record as
    /// it was then.
    ///
    /// Returns at once if the key is fresh (`> min`). Once it waits, a `set`, `set_observed_time`
    /// or `update_time` with a time `>= min` ends the wait: the two comparisons differ on
    /// purpose, so asking again after an equal time waits again.
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] if the cache is closed before that.
    ///
    /// # Progress
    ///
    /// The calling thread sleeps; it uses no CPU and holds up nobody.
    ///
    /// # Examples
    ///
    /// ```
    /// # use podcache::{Cache, DefaultFor, Timestamp};
    /// # #[derive(Debug, PartialEq)] struct Status(u32);
    /// # impl DefaultFor<str> for Status { fn default_for(_: &str) -> Self { Status(0) } }
    /// # impl DefaultFor<String> for Status { fn default_for(_: &String) -> Self { Status(0) } }
    /// let cache = Cache::<String, Status>::new();
    /// let synced = Timestamp::from_nanos(5);
    /// std::thread::scope(|s| {
    ///     let worker = s.spawn(|| cache.get_newer_than("pod", synced));
    ///     cache.set("pod", Status(7), Timestamp::from_nanos(6));
    ///     assert_eq!(worker.join().unwrap().unwrap().value(), &Status(7));
    /// });
    /// ```
    pub fn get_newer_than<Q>(&self, key: &Q, min: Timestamp) -> Result<Snapshot<V>, WaitError>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        self.subscribe(key, min).wait()
    }

    /// As [`get_newer_than`](Self::get_newer_than), for `timeout` at the longest.
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

    /// As [`get_newer_than`](Self::get_newer_than), until `deadline` at the latest.
    ///
    /// # Errors
    ///
    /// As for [`get_newer_than_timeout`](Self::get_newer_than_timeout).
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

    /// The record of `key` if it is fresh for `min`. Never waits, registers nothing.
    ///
    /// Linearization point: the load of the slot's node; for `None` any instant between two looks
    /// at an unchanged global time.
    ///
    /// # Progress
    ///
    /// Lock-free: it looks again only if the global time was changed meanwhile.
    pub fn try_get_newer_than<Q>(&self, key: &Q, min: Timestamp) -> Option<Snapshot<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().try_get_newer_than(key, min)
    }

    /// Registers a wait for something newer than `min`, to be waited for by a thread or a task.
    ///
    /// It is registered when this returns: no later call that names it is missed. Ready at once
    /// if the key is fresh (`> min`), or the cache is closed.
    ///
    /// What it returns borrows nothing, so it can be spawned, sent and kept. A future that borrows
    /// the cache and is registered only when it is first polled is
    /// `async { cache.subscribe(key, min).await }`.
    ///
    /// Linearization point: the compare-and-swap that puts the waiter into the slot, or the load
    /// that finds the key fresh.
    ///
    /// # Cancel safety
    ///
    /// Dropping the subscription, before or between polls, gives up the wait and takes nothing
    /// from others. Put aside, it misses nothing: what named it is there when it is polled again.
    ///
    /// # Progress
    ///
    /// Lock-free.
    pub fn subscribe<Q>(&self, key: &Q, min: Timestamp) -> Subscription<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<Q>,
    {
        self.reader().subscribe(key, min)
    }

    /// Replaces the record: the value, with `time` as its modified and observed time. Ends the
    /// waits of this key with `time >= min`; each gets this very record. Returns whether it was
    /// stored: the [`WritePolicy`] may refuse it, and then nothing is changed and nobody woken.
    ///
    /// Linearization point: the compare-and-swap of the slot's node. Under
    /// [`WritePolicy::Monotonic`]: the look at the global time that decides it.
    ///
    /// # Progress
    ///
    /// Lock-free. Allocates the snapshot, and for a key that is there and that nobody waits for
    /// nothing else (under [`WritePolicy::Monotonic`] one thing more).
    #[inline]
    pub fn set<Q>(&self, key: &Q, value: V, time: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if self.refuses("set", time) {
            return false;
        }
        let stored = Panics::passing_on(|panics| self.raw.set(key, value, time.as_nanos(), panics));
        if !stored {
            trace::refused_set(self.raw.settings(), time);
        }
        stored
    }

    /// States that the record was seen to be right at `time`, if there is one: its observed time
    /// becomes `time`, also backwards (not under [`WritePolicy::Monotonic`]). Ends the waits of
    /// this key with `time >= min`, also if there is no record: they get what a missing key reads
    /// as, and nothing is stored.
    ///
    /// Linearization point: the compare-and-swap of the slot's node.
    ///
    /// # Progress
    ///
    /// Lock-free.
    pub fn set_observed_time<Q>(&self, key: &Q, time: Timestamp)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
        V: DefaultFor<K>,
    {
        if self.refuses("set_observed_time", time) {
            return;
        }
        Panics::passing_on(|panics| {
            let time = time.as_nanos();
            self.raw
                .set_observed_time(key, time, &V::default_for, panics);
        });
    }

    /// Removes the record; returns whether there was one. Wakes nobody: waiters stay.
    ///
    /// Under [`WritePolicy::Monotonic`] the record's newest time is remembered until the global
    /// time has reached it, so that no older set brings the key back.
    ///
    /// Linearization point: the compare-and-swap of the slot's node.
    ///
    /// # Progress
    ///
    /// Lock-free.
    pub fn delete<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        Panics::passing_on(|panics| self.raw.delete(key, panics))
    }

    /// Removes the record as of `time`; returns whether there was one and it was removed.
    ///
    /// Under [`WritePolicy::Monotonic`] a `time` older than what the cache vouches for on this key
    /// is refused (false, nothing changed); otherwise `time` is remembered, also for a key without
    /// a record, and sets older than it are refused. Under the other policies this is
    /// [`delete`](Self::delete), but that a `time` beyond
    /// [`max_future_skew`](Builder::max_future_skew) is refused under all of them.
    ///
    /// # Progress
    ///
    /// Lock-free.
    pub fn delete_at<Q>(&self, key: &Q, time: Timestamp) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        !self.refuses("delete_at", time)
            && Panics::passing_on(|panics| self.raw.delete_at(key, time.as_nanos(), panics))
    }

    /// States that every record is at least as new as `time`, also backwards (not under
    /// [`WritePolicy::Monotonic`]). Ends every wait with `time >= min`, on every key; each gets
    /// the record as it is when it is visited.
    ///
    /// Linearization point: the compare-and-swap of the global time.
    ///
    /// # Progress
    ///
    /// Lock-free. Takes time by the number of keys that are waited for, not by that of all keys.
    pub fn update_time(&self, time: Timestamp)
    where
        V: DefaultFor<K>,
    {
        if !self.refuses("update_time", time) {
            Panics::passing_on(|panics| {
                let time = time.as_nanos();
                self.raw.update_time(time, &V::default_for, panics);
            });
        }
    }

    /// The global time; [`Timestamp::ZERO`] while unset.
    ///
    /// # Progress
    ///
    /// Wait-free.
    pub fn global_time(&self) -> Timestamp {
        self.reader().global_time()
    }

    /// How many records there are. Weakly consistent: exact when nobody writes.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are no records. Weakly consistent.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether `key` has a record. Progress as for [`get`](Self::get).
    pub fn contains<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.reader().contains(key)
    }

    /// All records, in no order. Weakly consistent: a key that is there throughout is given
    /// exactly once, each item is a record as it was at one instant of the iteration. Holds
    /// nothing between two items.
    pub fn iter(&self) -> Iter<'_, K, V, S>
    where
        K: Clone,
    {
        self.reader().iter()
    }

    /// The keys of all records, in no order. Weakly consistent as [`iter`](Self::iter).
    pub fn keys(&self) -> Keys<'_, K, V, S>
    where
        K: Clone,
    {
        self.reader().keys()
    }

    /// How many waits are registered and neither ended nor given up. Weakly consistent; takes time
    /// by their number.
    pub fn waiters(&self) -> usize {
        self.raw.waiters().0
    }

    /// Ends every registered wait, and every later one that is not fresh at once, with
    /// [`WaitError::Closed`]. Reads and writes go on working. Closing again does nothing new.
    ///
    /// # Progress
    ///
    /// Lock-free.
    pub fn close(&self) {
        self.raw.close();
    }

    /// Whether the cache is closed. Wait-free.
    pub fn is_closed(&self) -> bool {
        self.reader().closed()
    }

    /// A guard for many reads in a row that touch no reference count.
    #[inline]
    pub fn pin(&self) -> Pinned<'_, K, V, S> {
        Pinned::new(&self.raw, raw::pin())
    }

    /// A handle that reads and waits but cannot write, and does not keep the cache open.
    pub fn read_only(&self) -> ReadCache<K, V, S> {
        ReadCache::new(Arc::clone(&self.raw))
    }

    /// A handle that follows one key: reading it while nothing changed is one atomic load.
    pub fn track<Q>(&self, key: &Q) -> Tracker<K, V, S>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        V: DefaultFor<K>,
    {
        Tracker::new(Arc::clone(&self.raw), key.to_owned())
    }

    /// All records in key order, as an immutable map that all who ask until the next
    /// [`update_time`](Self::update_time) share.
    ///
    /// Every record in it is at least as new as [`View::timestamp`]. It is built when first asked
    /// for, at most once per `update_time`; whoever asks while it is being built waits for that,
    /// since building it twice is the alternative. Writers and all other reads take no part.
    pub fn view(&self) -> Arc<View<K, V>>
    where
        K: Ord + Clone,
    {
        self.raw.view()
    }

    /// A handle for who asks for the [`view`](Self::view) often.
    pub fn view_reader(&self) -> ViewReader<K, V, S>
    where
        K: Ord + Clone,
    {
        ViewReader::new(Arc::clone(&self.raw))
    }

    /// All records, then what changes: see [`Changes`].
    pub fn changes(&self) -> Changes<K, V, S>
    where
        K: Clone,
    {
        Changes::new(Arc::clone(&self.raw))
    }

    /// How writes are judged.
    pub fn write_policy(&self) -> WritePolicy {
        self.raw.settings().policy
    }

    #[inline]
    fn reader(&self) -> Reader<'_, K, V, S> {
        Reader(&self.raw)
    }
}

impl<K, V, S> Cache<K, V, S> {
    /// Whether `time`, given to `call`, is too far in the future; if so, that is counted and told.
    #[inline]
    pub(crate) fn refuses(&self, call: &'static str, time: Timestamp) -> bool {
        match self.raw.settings().max_future_skew {
            None => false,
            Some(skew) => self.refuses_beyond(skew, call, time),
        }
    }

    #[cold]
    fn refuses_beyond(&self, skew: Duration, call: &'static str, time: Timestamp) -> bool {
        let refused = time > Timestamp::now().saturating_add(skew);
        if refused {
            self.raw.add(Count::RefusedFuture, 1);
            trace::refused_future(self.raw.settings(), call, time);
        }
        refused
    }
}

impl<K, V> Default for Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V, S> Clone for Cache<K, V, S> {
    fn clone(&self) -> Self {
        Cache {
            raw: Arc::clone(&self.raw),
            open: Arc::clone(&self.open),
        }
    }
}

// Whatever panics in a call, the cache is as if the call had been made or not.
impl<K, V, S> UnwindSafe for Cache<K, V, S> {}
impl<K, V, S> RefUnwindSafe for Cache<K, V, S> {}

impl<K, V, S> fmt::Debug for Cache<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.raw.describe(&mut f.debug_struct("Cache"))
    }
}

/// Settings of a [`Cache`]: made by [`Cache::builder`].
pub struct Builder<K, V, S = RandomState> {
    settings: Settings,
    capacity: usize,
    hasher: S,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K, V, S> Builder<K, V, S> {
    /// Which writes are stored; [`WritePolicy::Overwrite`] unless set.
    #[must_use]
    pub fn write_policy(mut self, policy: WritePolicy) -> Self {
        self.settings.policy = policy;
        self
    }

    /// How far ahead of [`Timestamp::now`] a timestamp may be; any may unless set. For caches
    /// whose times are of that clock, or of the wall clock.
    ///
    /// A timestamp that is further ahead is refused by [`set`](Cache::set),
    /// [`set_observed_time`](Cache::set_observed_time), [`update_time`](Cache::update_time),
    /// [`delete_at`](Cache::delete_at) and [`relist`](Cache::relist): nothing is changed, nobody is
    /// woken, and it is counted in [`Stats::refused_future`](crate::Stats::refused_future). Without
    /// that one timestamp from a clock that is wrong makes every later set look old, for as long
    /// as that clock is ahead.
    #[must_use]
    pub fn max_future_skew(mut self, skew: Duration) -> Self {
        self.settings.max_future_skew = Some(skew);
        self
    }

    /// What the cache is called in `Debug`, in spans and events, and as the label of its metrics.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// How many keys the cache takes before it grows, and does not shrink below.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self
    }

    /// The hasher of keys; [`RandomState`] unless set.
    #[must_use]
    pub fn hasher<T>(self, hasher: T) -> Builder<K, V, T> {
        Builder {
            settings: self.settings,
            capacity: self.capacity,
            hasher,
            of: PhantomData,
        }
    }

    /// The cache.
    ///
    /// # Panics
    ///
    /// If the capacity is more than any allocation can be; a smaller one that is not to be had is
    /// the allocator's own failure.
    pub fn build(self) -> Cache<K, V, S>
    where
        K: Hash + Eq + Send + Sync + 'static,
        V: Send + Sync + 'static,
        S: BuildHasher + Send + Sync + 'static,
    {
        let raw = Arc::new(RawCache::new(self.capacity, self.settings, self.hasher));
        Cache {
            open: Arc::new(Open(Arc::clone(&raw))),
            raw,
        }
    }
}

impl<K, V, S> fmt::Debug for Builder<K, V, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.settings.name)
            .field("write_policy", &self.settings.policy)
            .field("max_future_skew", &self.settings.max_future_skew)
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
