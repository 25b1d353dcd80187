//! No waiter is hostage to the thread that won it: a thread is stopped inside the waker of one
//! waiter, or in its default, in the middle of a call that claimed many. Another call that names
//! them finishes what the first began before it returns.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::gate::Gate;
use common::model::Seen;
use common::t;
use common::trap::{self, Action, Place};
use common::values::{TrapKey, TrapVal, Val};
use common::wakers::{TestWaker, block_on, ready};
use common::watchdog::Watchdog;
use podcache::{Cache, Subscription};

const WAITS: usize = 6;

type Call = (&'static str, fn(&Cache<u64, Val>));

/// The first calls, which claim the waiters.
const CLAIMING: [Call; 3] = [
    ("set", |c| assert!(c.set(&1, Val(10), t(10)))),
    ("set_observed_time", |c| c.set_observed_time(&1, t(10))),
    ("update_time", |c| c.update_time(t(10))),
];

/// The second calls, which name the same waiters.
const HELPING: [Call; 4] = [
    ("set", |c| assert!(c.set(&1, Val(20), t(5)))),
    ("set_observed_time", |c| c.set_observed_time(&1, t(5))),
    ("update_time", |c| c.update_time(t(5))),
    ("close", |c| c.close()),
];

/// Waits on key 1 (or, for update_time's sake, spread over some keys), of which the wakers at the
/// given places stop who calls them.
struct Scene {
    cache: Cache<u64, Val>,
    waits: Vec<Subscription<Val>>,
    wakers: Vec<TestWaker>,
    gate: Arc<Gate>,
}

fn scene(stops: &[usize], keys: u64, record: bool) -> Scene {
    let cache: Cache<u64, Val> = Cache::new();
    if record {
        for key in 1..=keys {
            cache.set(&key, Val(key), t(1));
        }
    }
    let gate = Gate::new();
    let mut waits: Vec<_> = (0..WAITS as u64)
        .map(|n| cache.subscribe(&(1 + n % keys), t(5)))
        .collect();
    let wakers: Vec<_> = (0..WAITS)
        .map(|n| {
            let gate = Arc::clone(&gate);
            match stops.contains(&n) {
                true => TestWaker::calling(move || gate.enter()),
                false => TestWaker::new(),
            }
        })
        .collect();
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(waker.poll(wait).is_pending());
    }
    Scene {
        cache,
        waits,
        wakers,
        gate,
    }
}

#[test]
fn a_second_call_on_the_key_finishes_the_first() {
    let _dog = Watchdog::start();
    for stop in 0..WAITS {
        for (first, claim) in CLAIMING {
            for (second, help) in HELPING {
                for record in [false, true] {
                    let case = format!("{first} stopped in waker {stop}, then {second}, {record}");
                    let Scene {
                        cache,
                        waits,
                        wakers,
                        gate,
                    } = scene(&[stop], 1, record);
                    std::thread::scope(|scope| {
                        let _open = gate.open_on_drop();
                        scope.spawn(|| claim(&cache));
                        gate.await_arrivals(1);
                        help(&cache);
                        let expected = match (first, record) {
                            ("set", _) => Seen::set(10, 10),
                            (_, false) => Seen::default_of(1),
                            ("set_observed_time", _) => Seen {
                                value: 1,
                                times: Some((1, 10)),
                            },
                            _ => Seen::set(1, 1),
                        };
                        for (n, wait) in waits.iter().enumerate() {
                            let got = wait.try_get().map(|result| result.map(|s| Seen::of(&s)));
                            assert_eq!(got, Some(Ok(expected)), "{case}: wait {n}");
                        }
                        assert_eq!(cache.waiters(), 0, "{case}");
                        let woken = wakers.iter().map(TestWaker::wakes).collect::<Vec<_>>();
                        assert_eq!(woken, [1; WAITS], "{case}: woken too, each once");
                    });
                    assert!(wakers.iter().all(|waker| waker.handles() == 0), "{case}");
                }
            }
        }
    }
}

#[test]
fn a_second_update_finishes_the_first_on_every_key() {
    let _dog = Watchdog::start();
    for stop in 0..WAITS {
        for keys in [2, 3, WAITS as u64] {
            for record in [false, true] {
                let Scene {
                    cache,
                    waits,
                    wakers,
                    gate,
                } = scene(&[stop], keys, record);
                std::thread::scope(|scope| {
                    let _open = gate.open_on_drop();
                    scope.spawn(|| cache.update_time(t(10)));
                    gate.await_arrivals(1);
                    cache.update_time(t(5));
                    assert!(
                        waits.iter().all(|wait| ready(wait).is_some()),
                        "{keys} keys"
                    );
                    let woken = wakers.iter().map(TestWaker::wakes).collect::<Vec<_>>();
                    assert_eq!(woken, [1; WAITS]);
                    assert_eq!(cache.waiters(), 0);
                });
                assert!(wakers.iter().all(|waker| waker.handles() == 0));
            }
        }
    }
}

#[test]
fn a_set_and_an_update_finish_each_other_across_keys() {
    let _dog = Watchdog::start();
    for stop in 0..WAITS {
        let Scene {
            cache, waits, gate, ..
        } = scene(&[stop], 2, true);
        std::thread::scope(|scope| {
            let _open = gate.open_on_drop();
            scope.spawn(|| cache.update_time(t(10)));
            gate.await_arrivals(1);
            for key in [1, 2] {
                cache.set(&key, Val(20), t(6));
                let named = waits
                    .iter()
                    .enumerate()
                    .filter(|(n, _)| 1 + *n as u64 % 2 == key);
                for (n, wait) in named {
                    assert!(
                        ready(wait).is_some(),
                        "wait {n} on key {key}, stopped in {stop}"
                    );
                }
            }
        });
    }
}

#[test]
fn several_threads_are_stopped_and_one_finishes_for_all() {
    let _dog = Watchdog::start();
    for keys in [1, 2, WAITS as u64] {
        for stops in [[0, 1, 2], [1, 3, 5], [3, 4, 5], [0, 2, 4]] {
            let Scene {
                cache,
                waits,
                wakers,
                gate,
            } = scene(&stops, keys, true);
            std::thread::scope(|scope| {
                let _open = gate.open_on_drop();
                for arrived in 1..=stops.len() {
                    scope.spawn(|| cache.update_time(t(10)));
                    gate.await_arrivals(arrived);
                }
                cache.update_time(t(5));
                assert!(waits.iter().all(|wait| ready(wait).is_some()));
                let woken = wakers.iter().map(TestWaker::wakes).collect::<Vec<_>>();
                assert_eq!(woken, [1; WAITS]);
            });
        }
    }
}

#[test]
fn blocked_threads_and_tasks_come_home_while_the_first_stands_still() {
    let _dog = Watchdog::start();
    for (first, claim) in CLAIMING {
        for (second, help) in HELPING {
            let Scene { cache, gate, .. } = scene(&[], 1, true);
            let waker = TestWaker::calling({
                let gate = Arc::clone(&gate);
                move || gate.enter()
            });
            // Some before the one that stops the caller, some after.
            let home = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                let _open = gate.open_on_drop();
                let sleeper = |n: usize| {
                    let (cache, home) = (&cache, &home);
                    scope.spawn(move || {
                        let waited = match n % 3 {
                            0 => cache.get_newer_than(&1, t(5)),
                            1 => cache.get_newer_than_timeout(
                                &1,
                                t(5),
                                std::time::Duration::from_secs(3_600),
                            ),
                            _ => block_on(cache.subscribe(&1, t(5))),
                        };
                        assert!(waited.is_ok());
                        home.fetch_add(1, SeqCst);
                    });
                };
                let before = cache.waiters();
                (0..3).for_each(sleeper);
                while cache.waiters() < before + 3 {
                    std::thread::yield_now();
                }
                let mut stopping = cache.subscribe(&1, t(5));
                assert!(waker.poll(&mut stopping).is_pending());
                (3..6).for_each(sleeper);
                while cache.waiters() < before + 7 {
                    std::thread::yield_now();
                }
                scope.spawn(|| claim(&cache));
                gate.await_arrivals(1);
                help(&cache);
                // They need no more calls, only the processor.
                while home.load(SeqCst) < 6 {
                    std::thread::yield_now();
                }
                assert!(ready(&stopping).is_some(), "{first} then {second}");
            });
        }
    }
}

#[test]
fn a_waiter_that_gives_up_meanwhile_is_no_obstacle() {
    let _dog = Watchdog::start();
    for stop in 0..WAITS {
        let Scene {
            cache,
            mut waits,
            wakers,
            gate,
        } = scene(&[stop], 1, true);
        std::thread::scope(|scope| {
            let _open = gate.open_on_drop();
            scope.spawn(|| cache.set(&1, Val(10), t(10)));
            gate.await_arrivals(1);
            // All that the stopped thread has won, whatever they have come to.
            waits.clear();
            assert_eq!(cache.waiters(), 0);
            let late = cache.subscribe(&1, t(11));
            cache.set(&1, Val(11), t(11));
            assert_eq!(Seen::of(&ready(&late).unwrap()), Seen::set(11, 11));
        });
        assert!(
            wakers
                .iter()
                .all(|waker| waker.handles() == 0 && waker.wakes() <= 1)
        );
    }
}

#[test]
fn a_default_that_stands_still_holds_up_nobody() {
    let _dog = Watchdog::start();
    for passes in 0..4 {
        let cache: Cache<TrapKey, TrapVal> = Cache::new();
        let waits: Vec<_> = (0..8)
            .map(|n| cache.subscribe(&TrapKey(n % 4), t(5)))
            .collect();
        let gate = Gate::new();
        std::thread::scope(|scope| {
            let _open = gate.open_on_drop();
            scope.spawn(|| {
                trap::set(Place::Default, passes, Action::Park(Arc::clone(&gate)));
                cache.update_time(t(10));
            });
            gate.await_arrivals(1);
            cache.update_time(t(5));
            for (n, wait) in waits.iter().enumerate() {
                let got = ready(wait).expect("named by the second call");
                assert_eq!(got.number, Val::DEFAULTS + n as u64 % 4);
            }
            assert_eq!(cache.waiters(), 0);
        });
    }
}

#[test]
fn a_default_that_stands_still_in_an_observation_holds_up_nobody() {
    let _dog = Watchdog::start();
    let calls: [fn(&Cache<TrapKey, TrapVal>); 3] = [
        |c| assert!(c.set(&TrapKey(1), TrapVal::new(7), t(5))),
        |c| c.set_observed_time(&TrapKey(1), t(5)),
        |c| c.update_time(t(5)),
    ];
    for call in calls {
        let cache: Cache<TrapKey, TrapVal> = Cache::new();
        let waits: Vec<_> = (0..4).map(|_| cache.subscribe(&TrapKey(1), t(5))).collect();
        let gate = Gate::new();
        std::thread::scope(|scope| {
            let _open = gate.open_on_drop();
            scope.spawn(|| {
                trap::set(Place::Default, 0, Action::Park(Arc::clone(&gate)));
                cache.set_observed_time(&TrapKey(1), t(10));
            });
            gate.await_arrivals(1);
            call(&cache);
            assert!(waits.iter().all(|wait| ready(wait).is_some()));
        });
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn a_close_is_finished_for_a_closer_that_stands_still() {
    let _dog = Watchdog::start();
    for stop in 0..WAITS {
        for keys in [1, 3] {
            let Scene {
                cache,
                waits,
                wakers,
                gate,
            } = scene(&[stop], keys, true);
            std::thread::scope(|scope| {
                let _open = gate.open_on_drop();
                scope.spawn(|| cache.close());
                gate.await_arrivals(1);
                cache.close();
                assert!(
                    waits
                        .iter()
                        .all(|wait| wait.try_get().is_some_and(|r| r.is_err()))
                );
                let woken = wakers.iter().map(TestWaker::wakes).collect::<Vec<_>>();
                assert_eq!(woken, [1; WAITS]);
            });
        }
    }
}
