//! What a cache counts about itself.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;
use std::time::Duration;

use crate::raw::{Count, RawCache};
use crate::{Cache, ReadCache, Timestamp};

/// The figures of a cache: made by [`Cache::stats`].
///
/// Counts are from the making of the cache. Weakly consistent: exact for all that happened before
/// the call, while nobody else uses the cache. Then [`waits`](Self::waits) is the sum of
/// [`waiters`](Self::waiters), [`wake_ups`](Self::wake_ups),
/// [`closed_waits`](Self::closed_waits) and [`cancellations`](Self::cancellations).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// Records that are there.
    pub records: usize,
    /// Sets that were stored.
    pub sets: u64,
    /// Sets that the [`WritePolicy`](crate::WritePolicy) refused.
    pub refused_sets: u64,
    /// Calls that were refused since their timestamp was further in the future than
    /// [`Builder::max_future_skew`](crate::Builder::max_future_skew) allows.
    pub refused_future: u64,
    /// Records that were deleted.
    pub deletes: u64,
    /// Calls of [`set_observed_time`](Cache::set_observed_time), whether or not there was a record.
    pub observations: u64,
    /// Times that the global time was stated; under [`Monotonic`](crate::WritePolicy::Monotonic) an
    /// older one counts for nothing.
    pub time_updates: u64,
    /// Waits that were registered. A wait that is ready at once is none of them.
    pub waits: u64,
    /// Waits that are registered and neither ended nor given up.
    pub waiters: usize,
    /// For how long the oldest of them has been registered.
    pub longest_wait: Option<Duration>,
    /// Waits that ended with a snapshot.
    pub wake_ups: u64,
    /// Waits that ended because the cache was closed.
    pub closed_waits: u64,
    /// Waits that were given up: dropped before they were ready.
    pub cancellations: u64,
    /// Times that a blocking wait ran out of time. The wait may go on after that, or be given up.
    pub time_outs: u64,
    /// The global time; [`Timestamp::ZERO`] while unset.
    pub global_time: Timestamp,
    /// How far the global time is behind [`Timestamp::now`]; `None` while unset. Says something
    /// only if the cache's times are of that clock, or of the wall clock.
    pub global_time_age: Option<Duration>,
    /// Keys in the hash table: those with a record, those that are waited for, and those whose
    /// deletion is remembered.
    pub index_slots: usize,
    /// Buckets of the hash table.
    pub index_buckets: usize,
    /// Memory of the hash table, without the keys and records.
    pub index_bytes: usize,
    name: Option<Arc<str>>,
}

impl Stats {
    pub(crate) fn of<K, V, S>(raw: &RawCache<K, V, S>) -> Self {
        let tick = raw.tick();
        let (waiters, since) = raw.waiters();
        let (index_slots, index_buckets, index_bytes) = raw.index_size();
        let global_time = Timestamp::from_nanos(tick.time);
        let is_set = global_time != Timestamp::ZERO;
        Stats {
            records: raw.len(),
            sets: raw.count(Count::Sets),
            refused_sets: raw.count(Count::RefusedSets),
            refused_future: raw.count(Count::RefusedFuture),
            deletes: raw.count(Count::Deletes),
            observations: raw.count(Count::Observations),
            time_updates: tick.number,
            waits: raw.count(Count::Waits),
            waiters,
            longest_wait: since.map(|since| since.elapsed()),
            wake_ups: raw.count(Count::WakeUps),
            closed_waits: raw.count(Count::ClosedWaits),
            cancellations: raw.count(Count::Cancellations),
            time_outs: raw.count(Count::TimeOuts),
            global_time,
            global_time_age: is_set.then(|| Timestamp::now().duration_since(global_time)),
            index_slots,
            index_buckets,
            index_bytes,
            name: raw.settings().name.clone(),
        }
    }

    /// The name of the cache, if it was [given one](crate::Builder::name).
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Hands the figures to the recorder of the [`metrics`] facade: counts as absolute counters,
    /// the others as gauges, all named `podcache_…` and labelled `cache` with the name of the
    /// cache if it has one. To be called now and then, as by whoever serves them.
    ///
    /// The latency of satisfied waits is recorded as it comes, as the histogram
    /// `podcache_wait_seconds`, by the call that satisfied them.
    #[cfg(feature = "metrics")]
    pub fn publish(&self) {
        crate::measure::publish(self, self.name.as_ref());
    }

    /// Tells the recorder of the [`metrics`] facade what the figures mean. To be called once.
    #[cfg(feature = "metrics")]
    pub fn describe() {
        crate::measure::describe();
    }
}

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// What the cache has counted about itself. Costs reads nothing, and writes no locked
    /// instruction; takes time by the number of waits.
    pub fn stats(&self) -> Stats {
        Stats::of(&self.raw)
    }
}

impl<K, V, S> ReadCache<K, V, S>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// See [`Cache::stats`].
    pub fn stats(&self) -> Stats {
        Stats::of(&self.raw)
    }
}
