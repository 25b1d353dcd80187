//! The boundary: on entry a record must be strictly newer, a registered waiter is woken by an equal
//! time. Every way to ask, against every time that can answer, on both sides and on the edge.

mod common;

use std::task::Poll;
use std::time::{Duration, Instant};

use common::model::{Outcome, Seen};
use common::values::Val;
use common::wakers::TestWaker;
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, t};
use podcache::{Cache, WritePolicy};

const MIN: u64 = 50;

type Ask = (&'static str, fn(&Cache<u8, Val>, u8) -> Option<Outcome>);

/// The ways to ask that come back at once: each says whether the answer was fresh.
const ASK: [Ask; 7] = [
    ("try_get_newer_than", |cache, key| {
        let got = cache.try_get_newer_than(&key, t(MIN));
        got.map(|snapshot| Outcome::Ready(Seen::of(&snapshot)))
    }),
    ("timeout of zero", |cache, key| {
        Outcome::of(&cache.get_newer_than_timeout(&key, t(MIN), Duration::ZERO))
    }),
    ("deadline now", |cache, key| {
        Outcome::of(&cache.get_newer_than_deadline(&key, t(MIN), Instant::now()))
    }),
    ("subscribe", |cache, key| {
        let waiting = cache.subscribe(&key, t(MIN));
        waiting.try_get().and_then(|result| Outcome::of(&result))
    }),
    ("subscribe and wait", |cache, key| {
        Outcome::of(&cache.subscribe(&key, t(MIN)).wait_timeout(Duration::ZERO))
    }),
    ("poll", |cache, key| {
        let mut waiting = cache.subscribe(&key, t(MIN));
        match TestWaker::new().poll(&mut waiting) {
            Poll::Ready(result) => Outcome::of(&result),
            Poll::Pending => None,
        }
    }),
    ("read-only", |cache, key| {
        let got = cache.read_only().try_get_newer_than(&key, t(MIN));
        got.map(|snapshot| Outcome::Ready(Seen::of(&snapshot)))
    }),
];

fn asked_every_way(cache: &Cache<u8, Val>, key: u8, expected: Option<Seen>, case: &str) {
    for (name, ask) in ASK {
        let got = ask(cache, key);
        assert_eq!(got, expected.map(Outcome::Ready), "{name}: {case}");
    }
    if expected.is_some() {
        // The way without an end comes back too.
        let got = Outcome::of(&cache.get_newer_than(&key, t(MIN)));
        assert_eq!(got, expected.map(Outcome::Ready), "get_newer_than: {case}");
    }
    assert_eq!(cache.waiters(), 0, "asking leaves nothing: {case}");
}

#[test]
fn entry_is_strict_against_each_time_and_any_of_them_will_do() {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        for modified in [MIN - 1, MIN, MIN + 1] {
            for observed in [MIN - 1, MIN, MIN + 1] {
                for global in [0, MIN - 1, MIN, MIN + 1] {
                    let cache = cache_with::<u8, Val>(policy);
                    cache.set(&1, Val(7), t(modified));
                    cache.set_observed_time(&1, t(observed));
                    cache.update_time(t(global));
                    let kept = match policy {
                        WritePolicy::Monotonic => observed.max(modified),
                        _ => observed,
                    };
                    let record = Seen {
                        value: 7,
                        times: Some((modified, kept)),
                    };
                    let fresh = modified > MIN || kept > MIN || global > MIN;
                    let case = format!("{policy:?} {modified} {observed} {global}");
                    asked_every_way(&cache, 1, fresh.then_some(record), &case);
                    // A missing key has only the global time to go by.
                    let default = (global > MIN).then_some(Seen::default_of(2));
                    asked_every_way(&cache, 2, default, &case);
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Set,
    SetObservedTime,
    UpdateTime,
}

const CALLS: [Call; 3] = [Call::Set, Call::SetObservedTime, Call::UpdateTime];

impl Call {
    fn make(self, cache: &Cache<u8, Val>, ts: u64) {
        match self {
            Self::Set => assert!(cache.set(&1, Val(8), t(ts))),
            Self::SetObservedTime => cache.set_observed_time(&1, t(ts)),
            Self::UpdateTime => cache.update_time(t(ts)),
        }
    }

    /// What the call hands to a waiter on key 1 that it names.
    fn hands_out(self, record: Option<Seen>, ts: u64) -> Seen {
        match (self, record) {
            (Self::Set, _) => Seen::set(8, ts),
            (_, None) => Seen::default_of(1),
            (Self::UpdateTime, Some(record)) => record,
            (Self::SetObservedTime, Some(record)) => Seen {
                times: record.times.map(|(modified, _)| (modified, ts)),
                ..record
            },
        }
    }
}

/// With a record or without, before a call with a time just below, at or just above what the
/// waiters ask for.
fn every_wake(check: impl Fn(&Cache<u8, Val>, Call, u64, Option<Seen>, &str)) {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        for record in [None, Some(Seen::set(7, MIN - 9))] {
            for call in CALLS {
                for ts in [MIN - 1, MIN, MIN + 1] {
                    let cache = cache_with::<u8, Val>(policy);
                    if record.is_some() {
                        cache.set(&1, Val(7), t(MIN - 9));
                    }
                    let named = (ts >= MIN).then(|| call.hands_out(record, ts));
                    let case = format!("{policy:?} {call:?} at {ts} on {record:?}");
                    check(&cache, call, ts, named, &case);
                }
            }
        }
    }
}

#[test]
fn wake_by_each_call_reaches_try_get() {
    every_wake(|cache, call, ts, named, case| {
        let waiting = cache.subscribe(&1, t(MIN));
        assert!(waiting.try_get().is_none(), "{case}");
        call.make(cache, ts);
        let got = waiting.try_get().and_then(|result| Outcome::of(&result));
        assert_eq!(got, named.map(Outcome::Ready), "{case}");
        assert_eq!(cache.waiters(), usize::from(named.is_none()), "{case}");
    });
}

#[test]
fn wake_by_each_call_reaches_blocking_and_timed_waits() {
    let ages = Duration::from_secs(3600);
    every_wake(|cache, call, ts, named, case| {
        std::thread::scope(|scope| {
            let waits = [
                scope.spawn(|| cache.get_newer_than(&1, t(MIN))),
                scope.spawn(|| cache.get_newer_than_timeout(&1, t(MIN), ages)),
                scope.spawn(|| cache.get_newer_than_deadline(&1, t(MIN), Instant::now() + ages)),
                scope.spawn(|| cache.subscribe(&1, t(MIN)).wait()),
            ];
            while cache.waiters() < waits.len() {
                std::thread::yield_now();
            }
            call.make(cache, ts);
            if named.is_none() {
                assert_eq!(cache.waiters(), waits.len(), "{case}");
                // Let them go, with the one call that is sure to name them.
                cache.set_observed_time(&1, t(MIN + 9));
            }
            for wait in waits {
                let got = Outcome::of(&wait.join().unwrap());
                match named {
                    Some(named) => assert_eq!(got, Some(Outcome::Ready(named)), "{case}"),
                    None => assert!(matches!(got, Some(Outcome::Ready(_))), "{case}"),
                }
            }
        });
    });
}

#[test]
fn wake_by_each_call_reaches_futures() {
    every_wake(|cache, call, ts, named, case| {
        let mut waiting = cache.subscribe(&1, t(MIN));
        let waker = TestWaker::new();
        assert!(waker.poll(&mut waiting).is_pending(), "{case}");
        call.make(cache, ts);
        assert_eq!(waker.wakes(), usize::from(named.is_some()), "{case}");
        match (waker.poll(&mut waiting), named) {
            (Poll::Pending, None) => {}
            (Poll::Ready(Ok(got)), Some(named)) => assert_eq!(Seen::of(&got), named, "{case}"),
            (other, named) => panic!("{other:?} instead of {named:?}: {case}"),
        }
    });
}

#[test]
fn a_wake_leaves_try_get_newer_than_and_later_waits_to_the_strict_entry() {
    every_wake(|cache, call, ts, _, case| {
        let _waiting = cache.subscribe(&1, t(MIN));
        call.make(cache, ts);
        let stored = !matches!(call, Call::SetObservedTime) || cache.contains(&1);
        let fresh = ts > MIN && stored;
        assert_eq!(
            cache.try_get_newer_than(&1, t(MIN)).is_some(),
            fresh,
            "{case}"
        );
        let again = cache.subscribe(&1, t(MIN));
        assert_eq!(again.try_get().is_some(), fresh, "{case}");
    });
}

#[test]
fn only_the_global_time_reaches_other_keys() {
    every_wake(|cache, call, ts, _, case| {
        let other = cache.subscribe(&2, t(MIN));
        call.make(cache, ts);
        let reached = matches!(call, Call::UpdateTime) && ts >= MIN;
        assert_eq!(other.try_get().is_some(), reached, "{case}");
    });
}
