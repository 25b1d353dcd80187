//! Why a wait ended without a snapshot.

/// Why a wait ended without a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum WaitError {
    /// The cache was closed, or its last [`Cache`](crate::Cache) handle dropped, before the wait
    /// was satisfied. It will not be.
    #[error("the cache was closed before a new enough snapshot came")]
    Closed,
    /// The time was up. A [`Subscription`](crate::Subscription) is still registered and may be
    /// waited on again.
    #[error("no new enough snapshot came in time")]
    TimedOut,
}
