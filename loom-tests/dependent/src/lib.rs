//! A pod worker: it is asked to sync its pod, and does so with a status that is newer than the
//! request. Written as a user of podcache would write it, to show how he runs loom on his own code.
//!
//! # How it is done
//!
//! 1. A module [`sync`] takes the primitives from loom or from std. podcache does the same inside,
//!    under its own cfg `podcache_loom`: one cfg for both keeps the two in step.
//! 2. A model (see `tests/loom.rs`) is a closure that makes the cache and the threads anew. Its last
//!    step, after all threads are joined and all handles on the cache dropped, is
//!    `podcache::model::free_garbage()`: under loom nothing is freed before that.
//! 3. It is run with `RUSTFLAGS="--cfg podcache_loom" cargo test --release`, or in this directory with
//!    plain `cargo test`, whose `.cargo/config.toml` sets the cfg.
//!
//! Deadlines do not pass by themselves under loom: `podcache::model::let_time_pass()` lets them, at
//! an instant of the thread that calls it. The default hasher has a fixed seed there, since loom
//! needs every execution to begin alike.
//!
//! # What it costs
//!
//! Every call of the cache is some ten to forty steps to loom. This model, with two threads and three
//! calls on one of them, takes 1,070 executions at three preemptions (0.1 s), 5,979 at four, and has
//! not come to its end after 400,000 without a bound. loom allows five threads, the first included.
//!
//! # The planted bug
//!
//! With `--cfg planted_bug` the worker forgets its request when it has served it, not when it takes
//! it: a request that comes in between is lost. No test with real threads finds that soon; the model
//! finds it in a few executions.

use podcache::{ReadCache, Snapshot, Timestamp, WaitError};

use crate::sync::{AtomicU64, Condvar, Mutex, Ordering};

/// The primitives, from loom or from std.
pub mod sync {
    #[cfg(podcache_loom)]
    pub use loom::{
        sync::atomic::{AtomicU64, Ordering},
        sync::{Condvar, Mutex},
        thread,
    };
    #[cfg(not(podcache_loom))]
    pub use std::{
        sync::atomic::{AtomicU64, Ordering},
        sync::{Condvar, Mutex},
        thread,
    };
}

/// What the cache holds of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// How often its container has been restarted.
    pub restarts: u32,
}

impl podcache::DefaultFor<u64> for Status {
    fn default_for(_: &u64) -> Self {
        Status::default()
    }
}

/// The worker of one pod.
#[derive(Debug)]
pub struct Worker {
    pod: u64,
    cache: ReadCache<u64, Status>,
    /// The time of the newest request that is not served, or 0.
    wanted: AtomicU64,
    stopped: Mutex<bool>,
    asked: Condvar,
}

impl Worker {
    /// The worker of `pod`, for a thread that calls [`run`](Self::run).
    pub fn new(pod: u64, cache: ReadCache<u64, Status>) -> Self {
        Worker {
            pod,
            cache,
            wanted: AtomicU64::new(0),
            stopped: Mutex::new(false),
            asked: Condvar::new(),
        }
    }

    /// Asks for a sync with a status newer than `time`. Never waits for the sync.
    pub fn request(&self, time: Timestamp) {
        self.wanted.fetch_max(time.as_nanos(), Ordering::AcqRel);
        // Under the lock, so that it cannot fall between the worker's look and its sleep.
        let _stopped = self.stopped.lock().unwrap();
        self.asked.notify_one();
    }

    /// Ends [`run`](Self::run) once all requests are served.
    pub fn stop(&self) {
        *self.stopped.lock().unwrap() = true;
        self.asked.notify_one();
    }

    /// Serves requests until the worker is stopped.
    ///
    /// # Errors
    ///
    /// If the cache is closed while a request waits for a newer status.
    pub fn run(&self, mut sync: impl FnMut(&Snapshot<Status>)) -> Result<(), WaitError> {
        while let Some(time) = self.next() {
            sync(&self.cache.get_newer_than(&self.pod, time)?);
            if cfg!(planted_bug) {
                // What was asked for since is not served, and forgotten all the same.
                self.wanted.store(0, Ordering::Release);
            }
        }
        Ok(())
    }

    /// The next request; `None` when stopped and nothing is left to do.
    fn next(&self) -> Option<Timestamp> {
        let mut stopped = self.stopped.lock().unwrap();
        loop {
            let wanted = if cfg!(planted_bug) {
                self.wanted.load(Ordering::Acquire)
            } else {
                self.wanted.swap(0, Ordering::AcqRel)
            };
            if wanted > 0 {
                return Some(Timestamp::from_nanos(wanted));
            }
            if *stopped {
                return None;
            }
            stopped = self.asked.wait(stopped).unwrap();
        }
    }
}
