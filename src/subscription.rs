//! A registered wait.

use std::fmt;
use std::future::Future;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::pin::Pin;
use std::sync::Weak;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::raw::{Arc, Bell, Home, Outcome, Panics, Waiter};
use crate::trace::WaitSpan;
use crate::{Snapshot, WaitError};

/// A wait that is registered: made by [`Cache::subscribe`](crate::Cache::subscribe).
///
/// It ends once, with the snapshot that the call which ended it chose, or with
/// [`WaitError::Closed`]; from then on every method gives that same result. It can be waited for
/// by threads ([`wait`](Self::wait) and its timed forms, several at once if you like) and by one
/// task at a time (it is a [`Future`]). It does not keep the cache open.
///
/// # Cancel safety
///
/// Dropping it gives up the wait: its waker is dropped at once, nobody else's wait is touched. A
/// `wait_timeout` that timed out, or a future that was polled and put aside, is still registered
/// and misses nothing.
///
/// # Progress
///
/// Lock-free. A wait that has been named by a call is ready for all these methods even if the
/// thread of that call was stopped before it came to this waiter. None of them, nor a drop, runs
/// another task's waker.
#[must_use = "dropping a subscription gives up the wait"]
pub struct Subscription<V>(State<V>);

enum State<V> {
    Over(Result<Snapshot<V>, WaitError>),
    Registered {
        waiter: Arc<Waiter<V>>,
        home: Weak<dyn Home<V>>,
        /// While it is polled.
        span: WaitSpan,
    },
}

impl<V> Subscription<V> {
    pub(crate) fn over(result: Result<Snapshot<V>, WaitError>) -> Self {
        Subscription(State::Over(result))
    }

    pub(crate) fn registered(waiter: Arc<Waiter<V>>, home: Weak<dyn Home<V>>) -> Self {
        Subscription(State::Registered {
            waiter,
            home,
            span: WaitSpan::NONE,
        })
    }

    /// The result, if there is one. Never waits.
    pub fn try_get(&self) -> Option<Result<Snapshot<V>, WaitError>> {
        match &self.0 {
            State::Over(result) => Some(result.clone()),
            State::Registered { waiter, home, .. } => outcome_of(waiter, home).map(result),
        }
    }

    /// Sleeps until there is a result. The thread is parked and uses no CPU.
    ///
    /// # Errors
    ///
    /// [`WaitError::Closed`] if the cache is closed first.
    pub fn wait(&self) -> Result<Snapshot<V>, WaitError> {
        self.sleep(None)
    }

    /// Sleeps until there is a result, for `timeout` at the longest.
    ///
    /// # Errors
    ///
    /// [`WaitError::TimedOut`] if the time is up: the wait is still registered, and may be waited
    /// for again. [`WaitError::Closed`] if the cache is closed first.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Snapshot<V>, WaitError> {
        // A deadline beyond what the clock can say is none.
        self.sleep(Instant::now().checked_add(timeout))
    }

    /// Sleeps until there is a result, or until `deadline`.
    ///
    /// # Errors
    ///
    /// As for [`wait_timeout`](Self::wait_timeout).
    pub fn wait_deadline(&self, deadline: Instant) -> Result<Snapshot<V>, WaitError> {
        self.sleep(Some(deadline))
    }

    fn sleep(&self, deadline: Option<Instant>) -> Result<Snapshot<V>, WaitError> {
        let (waiter, home) = match &self.0 {
            State::Over(result) => return result.clone(),
            State::Registered { waiter, home, .. } => (waiter, home),
        };
        if let Some(outcome) = outcome_of(waiter, home) {
            return result(outcome);
        }
        let mut span = WaitSpan::NONE;
        span.open("thread", home, waiter.min);
        let outcome = span.within(|| {
            loop {
                if Bell::is_late(deadline) {
                    return outcome_of(waiter, home);
                }
                waiter.bell.sleep(deadline);
                if let Some(outcome) = outcome_of(waiter, home) {
                    return Some(outcome);
                }
            }
        });
        let result = outcome.map_or(Err(WaitError::TimedOut), result);
        span.close(Some(&result));
        if let (Err(WaitError::TimedOut), Some(home)) = (&result, home.upgrade()) {
            home.timed_out();
        }
        result
    }
}

fn outcome_of<V>(waiter: &Waiter<V>, home: &Weak<dyn Home<V>>) -> Option<Outcome<V>> {
    waiter.outcome().or_else(|| {
        // Named by a call that has not come to us yet? Then it is ready all the same.
        home.upgrade()?.claim(waiter);
        waiter.outcome()
    })
}

pub(crate) fn result<V>(outcome: Outcome<V>) -> Result<Snapshot<V>, WaitError> {
    match outcome {
        Outcome::Snapshot(node) => Ok(Snapshot::of_record(node)),
        Outcome::Closed => Err(WaitError::Closed),
    }
}

impl<V> Future for Subscription<V> {
    type Output = Result<Snapshot<V>, WaitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let (waiter, home, span) = match &mut self.0 {
            State::Over(result) => return Poll::Ready(result.clone()),
            State::Registered { waiter, home, span } => (waiter, home, span),
        };
        let mut outcome = waiter.outcome();
        if outcome.is_none() {
            span.open("task", home, waiter.min);
            span.within(|| waiter.bell.register(cx.waker()));
            // Only now the close look: the result may have come before the waker.
            outcome = outcome_of(waiter, home);
        }
        match outcome.map(result) {
            None => Poll::Pending,
            Some(result) => {
                // The task knows, and has no more use for a call.
                drop(waiter.bell.withdraw_waker());
                span.close(Some(&result));
                Poll::Ready(result)
            }
        }
    }
}

impl<V> Drop for Subscription<V> {
    fn drop(&mut self) {
        if let State::Registered { waiter, home, span } = &mut self.0 {
            // Taken out first: whatever follows, it is not called and not kept.
            let waker = waiter.bell.withdraw_waker();
            Panics::passing_on(|panics| {
                if waiter.is_waiting()
                    && let Some(home) = home.upgrade()
                {
                    panics.catch(|| home.cancel(waiter));
                }
                panics.catch(|| drop(waker));
                panics.catch(|| span.close::<V>(None));
            });
        }
    }
}

// A panic leaves it registered, or over.
impl<V: RefUnwindSafe> UnwindSafe for Subscription<V> {}
impl<V: RefUnwindSafe> RefUnwindSafe for Subscription<V> {}

impl<V: fmt::Debug> fmt::Debug for Subscription<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("result", &self.try_get())
            .finish()
    }
}
