//! When a wait began, for those who ask how long it has been.
//!
//! Registering a wait takes the time, so it is taken as cheaply as it can be. The feature `metrics`
//! makes a histogram of it and needs it exactly; else it is only shown to people, and on Linux the
//! clock of the scheduler's ticks will do, which costs a tenth and is some milliseconds late.

use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(imp::Time);

impl Moment {
    pub(crate) fn now() -> Self {
        Moment(imp::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        imp::since(self.0)
    }
}

#[cfg(all(target_os = "linux", not(feature = "metrics"), not(podcache_loom)))]
mod imp {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    /// Since the machine was started.
    pub(super) type Time = Duration;

    pub(super) fn now() -> Time {
        let now = clock_gettime(ClockId::MonotonicCoarse);
        // Neither is ever negative.
        Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
    }

    pub(super) fn since(time: Time) -> Duration {
        now().saturating_sub(time)
    }
}

#[cfg(not(all(target_os = "linux", not(feature = "metrics"), not(podcache_loom))))]
mod imp {
    use std::time::{Duration, Instant};

    pub(super) type Time = Instant;

    pub(super) fn now() -> Time {
        Instant::now()
    }

    pub(super) fn since(time: Time) -> Duration {
        time.elapsed()
    }
}
