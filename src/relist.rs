//! One listing of everything, as one call.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::{BuildHasher, Hash};

use crate::raw::{self, Current, Panics, contain};
use crate::{Cache, DefaultFor, Timestamp, trace};

/// What a [`relist`](Cache::relist) did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct RelistSummary {
    /// Records that were set: new ones, and those whose value was different.
    pub set: usize,
    /// Records that were left as they are, since they have the listed value.
    pub unchanged: usize,
    /// Records that were deleted, since they are not listed.
    pub deleted: usize,
    /// Records that the [`WritePolicy`](crate::WritePolicy) kept against the listing, since they
    /// are newer.
    pub refused: usize,
    /// Listed items that did not count, since their key is listed again further on.
    pub duplicates: usize,
    /// The listing was empty, and was taken for a fault: nothing was done.
    pub ignored_empty: bool,
    /// The time is further in the future than
    /// [`Builder::max_future_skew`](crate::Builder::max_future_skew) allows: nothing was done.
    pub ignored_future: bool,
}

impl<K, V, S> Cache<K, V, S>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: PartialEq + DefaultFor<K> + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    /// Brings the cache to what a listing of everything found, which was begun at `time`: sets
    /// what is new or different, deletes what is not listed, and states `time` as the global time
    /// last. What has the listed value already is left alone: the global time vouches for it.
    ///
    /// If a key is listed more than once, the last one counts. An empty listing is more often a
    /// fault than the truth, and is ignored; [`relist_or_clear`](Self::relist_or_clear) believes
    /// it. `time` must be from before the listing was taken, or the cache vouches for what
    /// happened after.
    ///
    /// This is as many calls, not one: readers and waiters meet each in its turn, and each is
    /// judged by the [`WritePolicy`](crate::WritePolicy). Under
    /// [`Monotonic`](crate::WritePolicy::Monotonic) what is newer than `time` stays, listed or not.
    /// Under the others a relist is best the only writer: what somebody else sets or deletes
    /// between the listing and this call is overwritten by what was listed.
    ///
    /// # Panics
    ///
    /// If a waker or a default does: when all is done. If `Hash`, `Eq` or `Clone` of a key or
    /// comparing two values does: at once; then a part of it is done, and the global time has not
    /// moved.
    ///
    /// # Examples
    ///
    /// ```
    /// # use podcache::{Cache, DefaultFor, Timestamp};
    /// # #[derive(Debug, PartialEq)] struct Status(&'static str);
    /// # impl DefaultFor<u64> for Status { fn default_for(_: &u64) -> Self { Status("") } }
    /// let cache = Cache::<u64, Status>::new();
    /// let first = Timestamp::now();
    /// cache.relist(first, [(1, Status("running")), (2, Status("running")), (3, Status("created"))]);
    ///
    /// let second = Timestamp::now();
    /// let summary = cache.relist(second, [(1, Status("running")), (3, Status("running"))]);
    /// assert_eq!((summary.set, summary.unchanged, summary.deleted), (1, 1, 1));
    /// assert_eq!(cache.global_time(), second);
    /// assert_eq!(cache.get(&1).modified(), Some(first));
    /// ```
    pub fn relist(&self, time: Timestamp, pods: impl IntoIterator<Item = (K, V)>) -> RelistSummary {
        self.relist_with(time, all_well(pods), false).0
    }

    /// As [`relist`](Self::relist), but an empty listing means that everything is gone.
    pub fn relist_or_clear(
        &self,
        time: Timestamp,
        pods: impl IntoIterator<Item = (K, V)>,
    ) -> RelistSummary {
        self.relist_with(time, all_well(pods), true).0
    }

    /// As [`relist`](Self::relist), where some of what was listed could not be read: an `Err`
    /// leaves the record of its key as it is, and is given back beside the summary, in no order.
    ///
    /// If there is one, the global time does not move: it would vouch for a record that nobody has
    /// seen. Instead what is unchanged, and what is gone, is confirmed key by key with
    /// [`set_observed_time`](Self::set_observed_time), so that whoever waits for those is served.
    pub fn relist_results<E>(
        &self,
        time: Timestamp,
        pods: impl IntoIterator<Item = (K, Result<V, E>)>,
    ) -> (RelistSummary, Vec<(K, E)>) {
        self.relist_with(time, pods, false)
    }

    fn relist_with<E>(
        &self,
        time: Timestamp,
        pods: impl IntoIterator<Item = (K, Result<V, E>)>,
        may_be_empty: bool,
    ) -> (RelistSummary, Vec<(K, E)>) {
        // A waker or a default may panic; the others are to have what was listed all the same.
        Panics::passing_on(|panics| self.relist_all(time, pods, may_be_empty, panics))
    }

    fn relist_all<E>(
        &self,
        time: Timestamp,
        pods: impl IntoIterator<Item = (K, Result<V, E>)>,
        may_be_empty: bool,
        panics: &mut Panics,
    ) -> (RelistSummary, Vec<(K, E)>) {
        let mut summary = RelistSummary::default();
        let mut listed = HashMap::new();
        let mut errors = Vec::new();
        for (key, pod) in pods {
            summary.duplicates += usize::from(listed.insert(key, pod).is_some());
        }
        summary.ignored_empty = listed.is_empty() && !may_be_empty;
        summary.ignored_future = !summary.ignored_empty && self.refuses("relist", time);
        let ignored = summary.ignored_empty || summary.ignored_future;
        let partial = listed.values().any(Result::is_err);
        // Before anything is set: so somebody else's new key is not taken for one that is gone.
        let gone: Vec<K> = match ignored {
            true => Vec::new(),
            false => self
                .keys()
                .filter(|key| !listed.contains_key(key))
                .collect(),
        };

        for (key, pod) in listed {
            match pod {
                Err(error) => errors.push((key, error)),
                Ok(_) if ignored => {}
                Ok(value) if self.has(&key, &value) => {
                    contain(|| drop(value));
                    summary.unchanged += 1;
                    if partial {
                        self.confirm(&key, time, panics);
                    }
                }
                Ok(value) => {
                    if self.raw.set(&key, value, time.as_nanos(), panics) {
                        summary.set += 1;
                    } else {
                        summary.refused += 1;
                        panics.catch(|| trace::refused_set(self.raw.settings(), time));
                    }
                }
            }
        }
        for key in gone {
            if self.raw.delete_at(&key, time.as_nanos(), panics) {
                summary.deleted += 1;
                if partial {
                    self.confirm(&key, time, panics);
                }
            } else if self.contains(&key) {
                summary.refused += 1;
            }
        }
        if !ignored && !partial {
            self.raw
                .update_time(time.as_nanos(), &V::default_for, panics);
        }
        (summary, errors)
    }

    fn has(&self, key: &K, value: &V) -> bool {
        let hash = self.raw.hash(key);
        let node = self.raw.lookup(key, hash, &raw::pin()).map(Current::to_arc);
        // The guard is gone: comparing is user code.
        node.is_some_and(|node| node.value() == Some(value))
    }

    fn confirm(&self, key: &K, time: Timestamp, panics: &mut Panics) {
        let time = time.as_nanos();
        self.raw
            .set_observed_time(key, time, &V::default_for, panics);
    }
}

fn all_well<K, V>(
    pods: impl IntoIterator<Item = (K, V)>,
) -> impl Iterator<Item = (K, Result<V, Infallible>)> {
    pods.into_iter().map(|(key, value)| (key, Ok(value)))
}
