//! The newest snapshot of X, or a wake-up when there is one newer than T.

mod cache;
mod error;
mod hasher;
mod iter;
mod pinned;
pub mod pod;
mod policy;
mod raw;
mod read;
mod snapshot;
mod subscription;
mod time;
mod tracker;
mod view;

pub use cache::{Builder, Cache};
pub use error::WaitError;
pub use hasher::{DefaultHasher, RandomState};
pub use iter::{Iter, Keys};
pub use pinned::{Entry, Pinned};
pub use policy::WritePolicy;
pub use read::ReadCache;
pub use snapshot::{DefaultFor, Snapshot};
pub use subscription::Subscription;
pub use time::{Timestamp, TimestampError};
pub use tracker::Tracker;
pub use view::{Changed, Diff, View, ViewIter, ViewReader};

#[cfg(podcache_loom)]
#[doc(hidden)]
pub mod model {
    //! What model checks need beside the public face.

    /// Frees what an execution left: the last step of a model, after its threads are joined.
    #[cfg(not(crossbeam_loom))]
    pub fn free_garbage() {
        crate::raw::free_garbage();
    }

    /// Lets every deadline pass, at this instant of the calling thread. Until something orders
    /// another thread after it, a timed wait there explores both: time is up, and it is not.
    pub fn let_time_pass() {
        crate::raw::let_time_pass();
    }
}
