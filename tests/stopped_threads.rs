//! A thread that is stopped inside user code, in the middle of a call, stops nobody else.

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::task::Poll;

use common::gate::Gate;
use common::race::AbortOnPanic;
use common::trap::{self, Action, Place};
use common::values::{Live, TrapKey, TrapVal};
use common::wakers::{TestWaker, ready};
use common::watchdog::Watchdog;
use common::{eventually, t};
use podcache::{Cache, Subscription};

type Slow = Cache<TrapKey, TrapVal>;
type Victim = fn(&Slow);

const PRESENT: TrapKey = TrapKey(1);
const MISSING: TrapKey = TrapKey(2);
/// Beyond all keys that the tests grow to.
const AWAY: u64 = 1 << 40;

fn grown_to(cache: &Slow, size: u64) {
    for key in 0..size {
        cache.set(&TrapKey(AWAY + key), TrapVal::new(key), t(1));
    }
}

/// Every operation, to its end: on the keys that the stopped thread may stand on, on others, and
/// through the growth of the table to ten times its size and back.
fn all_others_go_on(cache: &Slow) {
    all_others_go_on_to(cache, 10_000);
}

fn all_others_go_on_to(cache: &Slow, size: u64) {
    let now = cache.global_time().as_nanos() + 100;
    for key in [PRESENT, MISSING, TrapKey(3), TrapKey(AWAY + 500)] {
        let [by_set, by_observation, by_update] =
            [0, 10, 20].map(|later| cache.subscribe(&key, t(now + later)));
        drop(cache.subscribe(&key, t(now)));
        assert!(cache.set(&key, TrapVal::new(now), t(now)));
        assert_eq!(cache.get(&key).number, now);
        assert_eq!(ready(&by_set).unwrap().number, now);
        assert!(cache.get_newer_than(&key, t(now - 1)).is_ok());
        assert!(cache.try_get_newer_than(&key, t(now)).is_none());
        cache.set_observed_time(&key, t(now + 10));
        assert_eq!(ready(&by_observation).unwrap().number, now);
        assert!(cache.pin().get(&key).is_some());
        assert!(cache.delete(&key));
        assert!(!cache.contains(&key));
        assert!(by_update.try_get().is_none());
        cache.update_time(t(now + 20));
        assert!(ready(&by_update).is_some());
        cache.update_time(t(now));
        assert!(cache.set(&key, TrapVal::new(now + 1), t(now)));
    }
    grown_to(cache, size);
    for key in 0..size {
        assert_eq!(cache.get(&TrapKey(AWAY + key)).number, key);
    }
    let away = cache.keys().filter(|key| key.0 >= AWAY).count();
    assert_eq!(away as u64, size);
    for key in 1_000..size {
        assert!(cache.delete(&TrapKey(AWAY + key)));
    }
}

/// Stops a thread at `place` inside `victim`, and checks that all others go on. Returns what the
/// victim came to when it was let go.
fn stopped_at<R: Send>(
    cache: &Slow,
    place: Place,
    passes: usize,
    victim: impl FnOnce() -> R + Send,
) -> R {
    let _dog = Watchdog::start();
    let gate = Gate::new();
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        let parked = scope.spawn(|| {
            // Its end is awaited at the gate, where it would never arrive.
            let _abort = AbortOnPanic;
            trap::set(place, passes, Action::Park(Arc::clone(&gate)));
            let result = victim();
            assert!(!trap::clear(), "it was never at {place:?}");
            result
        });
        gate.await_arrivals(1);
        all_others_go_on(cache);
        gate.open();
        parked.join().unwrap()
    })
}

/// A thousand keys, one of which the victims use.
fn inhabited() -> Slow {
    let cache = Cache::new();
    grown_to(&cache, 1_000);
    cache.set(&PRESENT, TrapVal::new(7), t(5));
    cache
}

#[test]
fn in_hash() {
    let cache = inhabited();
    let value = stopped_at(&cache, Place::Hash, 0, || cache.get(&PRESENT).number);
    assert_ne!(value, 7, "it reads what is there when it goes on");
    assert!(stopped_at(&cache, Place::Hash, 0, || {
        cache.set(&MISSING, TrapVal::new(8), t(5))
    }));
    assert_eq!(cache.get(&MISSING).number, 8);
    stopped_at(&cache, Place::Hash, 0, || cache.delete(&PRESENT));
    let wait = stopped_at(&cache, Place::Hash, 0, || {
        cache.subscribe(&PRESENT, t(u64::MAX))
    });
    assert!(wait.try_get().is_none());
}

#[test]
fn in_hash_while_the_table_grows() {
    // Wherever the cache asks for a hash while a thread inserts its way through several sizes.
    for passes in [10, 447, 448, 449, 896, 897, 1_500, 3_000] {
        let cache: Slow = Cache::new();
        stopped_at(&cache, Place::Hash, passes, || {
            for key in 0..4_000 {
                cache.set(&TrapKey(key + 10), TrapVal::new(key), t(1));
            }
        });
        for key in 0..4_000 {
            assert_eq!(cache.get(&TrapKey(key + 10)).number, key);
        }
    }
}

#[test]
fn in_eq() {
    let cache = inhabited();
    let victims: [fn(&Slow); 6] = [
        |c| drop(c.get(&PRESENT)),
        |c| _ = c.set(&PRESENT, TrapVal::new(8), t(5)),
        |c| _ = c.delete(&PRESENT),
        |c| c.set_observed_time(&PRESENT, t(5)),
        |c| drop(c.subscribe(&PRESENT, t(u64::MAX))),
        |c| _ = c.pin().get(&PRESENT),
    ];
    for victim in victims {
        cache.set(&PRESENT, TrapVal::new(7), t(5));
        stopped_at(&cache, Place::Eq, 0, || victim(&cache));
    }
    assert_eq!(cache.waiters(), 0);
}

#[test]
fn in_the_clone_of_a_key() {
    let cache = inhabited();
    cache.delete(&MISSING);
    stopped_at(&cache, Place::CloneKey, 0, || {
        cache.set(&MISSING, TrapVal::new(8), t(5))
    });
    assert_eq!(cache.get(&MISSING).number, 8, "it set last");
    cache.delete(&MISSING);
    let wait = stopped_at(&cache, Place::CloneKey, 0, || {
        cache.subscribe(&MISSING, t(u64::MAX))
    });
    assert!(wait.try_get().is_none());
    assert_eq!(cache.waiters(), 1);
}

#[test]
fn in_the_drop_of_a_value() {
    let cache = inhabited();
    // It replaces values until one of them dies in its hands.
    stopped_at(&cache, Place::DropValue, 0, || {
        for n in 0..100_000 {
            cache.set(&PRESENT, TrapVal::new(n), t(5));
        }
    });
    assert_eq!(cache.get(&PRESENT).number, 99_999);
}

#[test]
fn in_the_drop_of_a_value_that_a_snapshot_was_the_last_to_hold() {
    let cache = inhabited();
    let live = Live::default();
    let kept: Vec<_> = (0..4)
        .map(|n| {
            cache.set(&PRESENT, TrapVal::counted(n, &live), t(5));
            cache.get(&PRESENT)
        })
        .collect();
    // Some other values first, so that the cache itself has let go of these.
    let replace = || _ = cache.set(&PRESENT, TrapVal::counted(9, &live), t(5));
    (0..10_000).for_each(|_| replace());
    eventually(replace, || live.load(SeqCst) < 1_000);
    stopped_at(&cache, Place::DropValue, 2, || drop(kept));
}

#[test]
fn in_the_drop_of_a_key() {
    let cache = inhabited();
    let keys: Vec<_> = (10..110).map(TrapKey).collect();
    stopped_at(&cache, Place::DropKey, 3, || {
        for n in 0..1_000 {
            for key in &keys {
                cache.set(key, TrapVal::new(n), t(n));
            }
            for key in &keys {
                assert!(cache.delete(key));
            }
        }
    });
    assert!(keys.iter().all(|key| !cache.contains(key)));
}

#[test]
fn in_the_default_that_a_reader_asks_for() {
    let cache = inhabited();
    let default = || cache.get(&TrapKey(4)).number;
    assert!(stopped_at(&cache, Place::Default, 0, default) > 1 << 39);
}

#[test]
fn in_the_default_that_a_waking_call_asks_for() {
    let calls: [fn(&Slow); 2] = [
        |c| c.set_observed_time(&MISSING, t(5)),
        |c| c.update_time(t(5)),
    ];
    for call in calls {
        let cache = inhabited();
        let wait = cache.subscribe(&MISSING, t(5));
        stopped_at(&cache, Place::Default, 0, || call(&cache));
        assert!(ready(&wait).is_some());
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn in_the_clone_of_a_waker() {
    let cache = inhabited();
    let waker = TestWaker::new();
    let mut wait = cache.subscribe(&PRESENT, t(50));
    let polled = stopped_at(&cache, Place::CloneWaker, 0, || waker.poll(&mut wait));
    // It was named while it stood there: it is told so, now or by its waker.
    assert!(polled.is_ready() || waker.wakes() == 1);
    assert!(ready(&wait).is_some());
    assert_eq!(waker.handles(), 0);
}

#[test]
fn in_the_drop_of_a_waker_that_gives_up() {
    let cache = inhabited();
    let waker = TestWaker::new();
    let mut wait = cache.subscribe(&PRESENT, t(u64::MAX));
    assert!(waker.poll(&mut wait).is_pending());
    stopped_at(&cache, Place::DropWaker, 0, || drop(wait));
    assert_eq!(cache.waiters(), 0);
    assert_eq!((waker.wakes(), waker.handles()), (0, 0));
}

#[test]
fn in_the_drop_of_a_waker_that_a_poll_replaces() {
    let cache = inhabited();
    let [first, second] = [TestWaker::new(), TestWaker::new()];
    let mut wait = cache.subscribe(&PRESENT, t(u64::MAX));
    assert!(first.poll(&mut wait).is_pending());
    let polled = stopped_at(&cache, Place::DropWaker, 0, || second.poll(&mut wait));
    assert!(polled.is_pending());
    cache.set(&PRESENT, TrapVal::new(9), t(u64::MAX));
    assert_eq!((first.wakes(), second.wakes()), (0, 1));
}

#[test]
fn in_a_waker() {
    let calls: [fn(&Slow); 4] = [
        |c| _ = c.set(&PRESENT, TrapVal::new(8), t(5)),
        |c| c.set_observed_time(&PRESENT, t(5)),
        |c| c.update_time(t(5)),
        |c| c.close(),
    ];
    for call in calls {
        let _dog = Watchdog::start();
        let cache = inhabited();
        let gate = Gate::new();
        let waker = TestWaker::calling({
            let gate = Arc::clone(&gate);
            move || gate.enter()
        });
        let mut wait = cache.subscribe(&PRESENT, t(5));
        assert!(waker.poll(&mut wait).is_pending());
        let closing = std::thread::scope(|scope| {
            let _open = gate.open_on_drop();
            scope.spawn(|| call(&cache));
            gate.await_arrivals(1);
            let closing = cache.is_closed();
            if closing {
                // Nothing is registered any more; the rest goes on.
                let late = cache.subscribe(&PRESENT, t(u64::MAX));
                assert!(common::wakers::is_closed(&late.wait()));
                grown_to(&cache, 10_000);
                assert!(cache.delete(&PRESENT));
            } else {
                all_others_go_on(&cache);
            }
            closing
        });
        assert_eq!(wait.try_get().unwrap().is_err(), closing);
        assert_eq!((waker.wakes(), waker.handles()), (1, 0));
    }
}

#[test]
fn under_a_pin() {
    let _dog = Watchdog::start();
    let cache = inhabited();
    let gate = Gate::new();
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        scope.spawn(|| {
            let pinned = cache.pin();
            let entry = pinned.get(&PRESENT).unwrap();
            gate.enter();
            assert_eq!(entry.value().number, 7, "what it holds is still there");
        });
        gate.await_arrivals(1);
        all_others_go_on(&cache);
    });
}

#[test]
fn in_the_middle_of_an_iteration() {
    let _dog = Watchdog::start();
    let cache = inhabited();
    let gate = Gate::new();
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        let lister = scope.spawn(|| {
            let mut residents = 0;
            for (n, (key, _)) in cache.iter().enumerate() {
                if n == 300 {
                    gate.enter();
                }
                residents += usize::from((AWAY..AWAY + 400).contains(&key.0));
            }
            residents
        });
        gate.await_arrivals(1);
        all_others_go_on(&cache);
        gate.open();
        assert_eq!(
            lister.join().unwrap(),
            400,
            "each of those that stayed, once"
        );
    });
}

#[test]
fn many_threads_at_once_in_all_places() {
    let _dog = Watchdog::start();
    let cache = inhabited();
    let gate = Gate::new();
    let victims: [(Place, Victim); 8] = [
        (Place::Hash, |c| drop(c.get(&PRESENT))),
        (Place::Hash, |c| _ = c.set(&PRESENT, TrapVal::new(1), t(1))),
        (Place::Eq, |c| drop(c.get(&PRESENT))),
        (Place::Eq, |c| _ = c.set(&PRESENT, TrapVal::new(1), t(1))),
        (Place::Eq, |c| drop(c.subscribe(&PRESENT, t(u64::MAX)))),
        (Place::CloneKey, |c| {
            _ = c.set(&TrapKey(50), TrapVal::new(1), t(1))
        }),
        (Place::CloneKey, |c| {
            drop(c.subscribe(&TrapKey(50), t(u64::MAX)))
        }),
        (Place::Default, |c| drop(c.get(&TrapKey(51)))),
    ];
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        for (place, victim) in victims {
            let (cache, gate) = (&cache, &gate);
            scope.spawn(move || {
                trap::set(place, 0, Action::Park(Arc::clone(gate)));
                victim(cache);
            });
        }
        gate.await_arrivals(victims.len());
        // From a thousand keys to a hundred thousand.
        all_others_go_on_to(&cache, 100_000);
    });
    assert_eq!(cache.waiters(), 0);
    assert!(cache.contains(&TrapKey(50)));
}

#[test]
fn a_task_that_is_polled_by_a_stopped_thread_is_served() {
    // The thread stands in the clone of its waker while the call that names the wait goes by.
    let _dog = Watchdog::start();
    for _ in 0..common::rounds(200) {
        let cache: Slow = Cache::new();
        let gate = Gate::new();
        let waker = TestWaker::new();
        let mut wait: Subscription<TrapVal> = cache.subscribe(&PRESENT, t(5));
        std::thread::scope(|scope| {
            let _open = gate.open_on_drop();
            let polling = scope.spawn(|| {
                trap::set(Place::CloneWaker, 0, Action::Park(Arc::clone(&gate)));
                matches!(waker.poll(&mut wait), Poll::Ready(Ok(_)))
            });
            gate.await_arrivals(1);
            cache.set(&PRESENT, TrapVal::new(7), t(5));
            gate.open();
            let told = polling.join().unwrap();
            assert!(told || waker.wakes() == 1, "neither ready nor woken");
        });
        assert_eq!(ready(&wait).unwrap().number, 7);
    }
}
