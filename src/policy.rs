//! What a write may do to the times that are there.

/// Which writes are stored. Chosen once, in the [`Builder`](crate::Builder).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum WritePolicy {
    /// Every write is stored; times may go back. The kubelet's default.
    #[default]
    Overwrite,
    /// A [`set`](crate::Cache::set) is refused if the record that is there was modified later.
    /// An equal time is stored; the observed and the global time play no part. The gate that the
    /// kubelet puts before its cache with evented PLEG.
    RejectOlder,
    /// Times never go back. [`update_time`](crate::Cache::update_time) and
    /// [`set_observed_time`](crate::Cache::set_observed_time) keep the larger value; a
    /// [`set`](crate::Cache::set) is refused if it is older than what the cache already vouches
    /// for on that key: the record's times, the global time, and the time at which the key was
    /// deleted, so that a late set does not bring a deleted pod back.
    Monotonic,
}
