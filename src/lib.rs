//! The newest snapshot of X, or a wake-up when there is one newer than T.
//!
//! `podcache` is the kubelet's pod status cache as a lock-free concurrent data structure. Somebody
//! states what is known of a key and as of when; everybody else reads the newest record at once,
//! or waits, as a thread or as a task, until it is newer than a time that they name.
//!
//! ```
//! use podcache::{Cache, DefaultFor, Timestamp};
//!
//! #[derive(Debug, PartialEq)]
//! enum Phase { Unknown, Running }
//!
//! // What a key without a record reads as, for each form a key is given in.
//! impl DefaultFor<String> for Phase { fn default_for(_: &String) -> Self { Phase::Unknown } }
//! impl DefaultFor<str> for Phase { fn default_for(_: &str) -> Self { Phase::Unknown } }
//!
//! let cache = Cache::<String, Phase>::new();
//! assert_eq!(*cache.get("pod-1"), Phase::Unknown); // at once, whatever is going on
//!
//! let (t1, t2) = (Timestamp::from_nanos(1), Timestamp::from_nanos(2));
//! std::thread::scope(|s| {
//!     let worker = s.spawn(|| cache.get_newer_than("pod-1", t1)); // sleeps until there is news
//!     cache.set("pod-1", Phase::Running, t2);
//!     assert_eq!(*worker.join().unwrap().unwrap(), Phase::Running);
//! });
//! ```
//!
//! # The model
//!
//! A key has at most one *record*: a value, the time given with it (*modified*), and the time at
//! which somebody last confirmed it (*observed*). Beside all records stands one *global time*:
//! "every record is at least this new". A key is *fresh* for `min` if the global time, or its
//! record's modified or observed time, is `> min`. Times are plain numbers.
//!
//! | call | effect, at one instant |
//! |---|---|
//! | [`get`](Cache::get) | gives the record, or the [default](DefaultFor) of a missing key |
//! | [`set`](Cache::set) | replaces the record; ends the key's waits with `time >= min`, each with this record |
//! | [`set_observed_time`](Cache::set_observed_time) | confirms the record; ends the key's waits with `time >= min`, also without a record |
//! | [`delete`](Cache::delete) | removes the record; its waits go on |
//! | [`update_time`](Cache::update_time) | replaces the global time; ends the waits with `time >= min` on every key |
//! | [`get_newer_than`](Cache::get_newer_than), [`subscribe`](Cache::subscribe) | ready at once if the key is fresh, else when one of the three calls names it |
//! | [`close`](Cache::close), or dropping the last [`Cache`] | ends every wait that is not fresh with [`WaitError::Closed`] |
//!
//! What a write may do to times that are already newer is the cache's [`WritePolicy`].
//!
//! # What it guarantees
//!
//! * **One snapshot per wait, chosen by the call that ended it.** Not "woken, look again": what is
//!   set or deleted a moment later does not change what a waiter gets.
//! * **No lost wake-up**, in whatever order registering and the three waking calls race.
//! * **Ready when the waking call returns**, also if another thread had claimed the waiter and was
//!   stopped half way.
//! * **Never torn.** A value and its two times are one immutable [`Snapshot`], yours to keep.
//! * **On each key linearizable**: every call takes effect at one instant between its start and its
//!   end. Whoever sees a global time sees all writes that came before it.
//! * **Lock-free**: a thread that is stopped at any instruction, inside your own code too, stops no
//!   other. Reads are wait-free (lock-free under [`WritePolicy::Monotonic`]). The exception is
//!   [`view`](Cache::view), where those who ask wait for the one who builds.
//! * **A wait given up takes nothing from others and leaves nothing behind.**
//! * **Panics in your code** (`Hash`, `Eq`, `Clone`, a default, a waker) reach the caller who ran
//!   it, after everybody else was served, and break nothing.
//!
//! # Where to go on
//!
//! * [`Cache`]: all of the calls, each with its progress and linearization point. [`ReadCache`] is
//!   the half that cannot write.
//! * [`Subscription`]: a registered wait, for threads, tasks and deadlines.
//! * [`Cache::pin`] for many reads in a row, [`Tracker`] for one key read again and again, [`View`]
//!   for all keys at once, [`Changes`] for all that changes.
//! * [`Cache::relist`] for the lister: one listing of everything as one call.
//! * [`Stats`]: what the cache counts about itself. [`Builder`]: write policy, a limit to timestamps
//!   from the future, a name, a hasher.
//! * [`pod`]: the kubelet's types, and [`PodCache`](pod::PodCache).
//! * [`docs::design`]: how it works. [`docs::orderings`]: every fence, and why. [`docs::models`]: what
//!   is model-checked. [`docs::limitations`]: **read this before you rely on it**.
//!
//! # Features and cfgs
//!
//! None is on by default.
//!
//! * `metrics`: [`Stats`] can be published through the `metrics` facade, and the latency of waits is.
//! * `serde`: serialization of [`Timestamp`] and of the pod types.
//! * `stream`: [`Changes`] is a `Stream`.
//! * `tracing`: spans for waits, events for refused writes and for closing; none for reads.
//! * `--cfg podcache_loom`, in `RUSTFLAGS`: the crate runs on loom's atomics, for models of your own
//!   that use a cache; `loom-tests/dependent` in the repository is a worked example. With
//!   `--cfg podcache_shuttle` beside it, on shuttle's.

mod cache;
mod changes;
pub mod docs;
mod error;
mod hasher;
mod iter;
#[cfg(feature = "metrics")]
mod measure;
mod pinned;
pub mod pod;
mod policy;
mod raw;
mod read;
mod relist;
mod settings;
mod snapshot;
mod stats;
mod subscription;
mod time;
mod trace;
mod tracker;
mod view;

pub use cache::{Builder, Cache};
pub use changes::{Change, Changes};
pub use error::WaitError;
pub use hasher::{DefaultHasher, RandomState};
pub use iter::{Iter, Keys};
pub use pinned::{Entry, Pinned};
pub use policy::WritePolicy;
pub use read::ReadCache;
pub use relist::RelistSummary;
pub use snapshot::{DefaultFor, Snapshot};
pub use stats::Stats;
pub use subscription::Subscription;
pub use time::{Timestamp, TimestampError};
pub use tracker::Tracker;
pub use view::{Changed, Diff, View, ViewIter, ViewReader};

#[cfg(podcache_loom)]
#[doc(hidden)]
pub mod model {
    //! What model checks need beside the public face.

    /// Does for memory what the end of a thread does: the last step of each thread of a model but the
    /// first. Only the real collector, that is with `--cfg crossbeam_loom`, needs it.
    pub fn end_thread() {
        crate::raw::end_thread();
    }

    /// Frees what an execution left: the last step of a model, after its threads are joined.
    pub fn free_garbage() {
        crate::raw::free_garbage();
    }

    /// Lets every deadline pass, at this instant of the calling thread. Until something orders
    /// another thread after it, a timed wait there explores both: time is up, and it is not.
    pub fn let_time_pass() {
        crate::raw::let_time_pass();
    }
}
