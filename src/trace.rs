//! The feature `tracing`: what a subscriber is told. Without it all of this is nothing.
//!
//! Subscribers are user code: everything here is called without a guard, and by a waking call only
//! after everybody was woken.

pub(crate) use imp::*;

#[cfg(feature = "tracing")]
mod imp {
    use std::sync::Weak;

    use tracing::Span;
    use tracing::field::{Empty, display};

    use crate::raw::Home;
    use crate::settings::Settings;
    use crate::{Snapshot, Timestamp, WaitError};

    const TARGET: &str = "podcache";

    pub(crate) fn refused_set(settings: &Settings, time: Timestamp) {
        tracing::debug!(
            target: TARGET,
            cache = settings.name.as_deref(),
            policy = ?settings.policy,
            %time,
            "refused a set",
        );
    }

    pub(crate) fn refused_future(settings: &Settings, call: &'static str, time: Timestamp) {
        tracing::warn!(
            target: TARGET,
            cache = settings.name.as_deref(),
            call,
            %time,
            max_future_skew = ?settings.max_future_skew.unwrap_or_default(),
            "refused a timestamp too far in the future",
        );
    }

    pub(crate) fn closed(settings: &Settings) {
        tracing::debug!(target: TARGET, cache = settings.name.as_deref(), "closed");
    }

    /// A wait of a thread, or of a task.
    pub(crate) struct WaitSpan(Option<Span>);

    impl WaitSpan {
        pub(crate) const NONE: Self = WaitSpan(None);

        /// Opens it, unless it is open.
        pub(crate) fn open<V>(&mut self, by: &'static str, home: &Weak<dyn Home<V>>, min: u64) {
            self.0.get_or_insert_with(|| {
                tracing::debug_span!(
                    target: TARGET,
                    "wait",
                    cache = home.upgrade().and_then(|home| home.name()).as_deref(),
                    by,
                    min = %Timestamp::from_nanos(min),
                    outcome = Empty,
                )
            });
        }

        pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
            match &self.0 {
                Some(span) => span.in_scope(f),
                None => f(),
            }
        }

        /// Closes it, if it is open.
        pub(crate) fn close<V>(&mut self, result: Option<&Result<Snapshot<V>, WaitError>>) {
            if let Some(span) = self.0.take() {
                let outcome = match result {
                    None => "given up",
                    Some(Ok(_)) => "ready",
                    Some(Err(WaitError::Closed)) => "closed",
                    Some(Err(WaitError::TimedOut)) => "timed out",
                };
                span.record("outcome", display(outcome));
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod imp {
    use std::sync::Weak;

    use crate::raw::Home;
    use crate::settings::Settings;
    use crate::{Snapshot, Timestamp, WaitError};

    pub(crate) fn refused_set(_: &Settings, _: Timestamp) {}

    pub(crate) fn refused_future(_: &Settings, _: &'static str, _: Timestamp) {}

    pub(crate) fn closed(_: &Settings) {}

    pub(crate) struct WaitSpan;

    impl WaitSpan {
        pub(crate) const NONE: Self = WaitSpan;

        pub(crate) fn open<V>(&mut self, _: &'static str, _: &Weak<dyn Home<V>>, _: u64) {}

        #[inline]
        pub(crate) fn within<R>(&self, f: impl FnOnce() -> R) -> R {
            f()
        }

        pub(crate) fn close<V>(&mut self, _: Option<&Result<Snapshot<V>, WaitError>>) {}
    }
}
