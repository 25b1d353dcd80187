//! What the threads tell the main one.

use std::time::Duration;

use podcache::{Snapshot, pod::PodUid};

use crate::pod::Report;

#[derive(Debug)]
pub(crate) enum Event {
    /// A child runs that is to exit with this code.
    Started { uid: PodUid, code: i32 },
    /// A child exited with this code.
    Reaped { uid: PodUid, code: i32 },
    /// The lister is through with a listing.
    Listed(Listed),
    /// A worker got what it waited for.
    Woken(Woken),
    /// A worker left.
    Left { uid: PodUid, why: Left },
    /// Something failed that the agent can live with.
    Trouble(String),
    /// The user wants it to end.
    Interrupted,
}

/// What one listing came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) took: Duration,
    pub(crate) sets: u64,
    pub(crate) refused: u64,
    pub(crate) observes: u64,
    pub(crate) deletes: u64,
    /// How many of the deletes followed the pod's last status at once.
    pub(crate) deletes_at_once: u64,
    pub(crate) workers: usize,
}

#[derive(Debug)]
pub(crate) struct Woken {
    pub(crate) uid: PodUid,
    pub(crate) snapshot: Snapshot<Report>,
    pub(crate) why: Why,
    /// From the call of `set` to the worker going on, if it was waiting when that call was made.
    pub(crate) latency: Option<Duration>,
}

/// How a status is newer than what the worker had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It is another one.
    News,
    /// It is the same one, and still true.
    Confirmed,
    /// It is not: the wake-up was for the very time that the worker named.
    SameTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The pod is gone.
    Deleted,
    /// The cache was closed.
    Closed,
}
