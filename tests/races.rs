//! Two or more threads against each other, released together, many times.

mod common;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use common::model::Seen;
use common::race::{Race, Runner};
use common::values::Val;
use common::wakers::{TestWaker, block_on, is_closed, ready};
use common::watchdog::Watchdog;
use common::{rounds, t};
use podcache::{Cache, ReadCache, Snapshot, Subscription, WaitError};

type Waited = Result<Snapshot<Val>, WaitError>;
type Wait = fn(&ReadCache<u8, Val>) -> Waited;
type Call = fn(&Cache<u8, Val>);
type Caller<'a> = &'a (dyn Fn(&Cache<u8, Val>) + Sync);

const AGES: Duration = Duration::from_secs(3600);
const ROUNDS: usize = 10_000;

/// The ways to wait, each of which registers and then stays until it is served.
const WAITS: [(&str, Wait); 4] = [
    ("blocking", |cache| cache.get_newer_than(&1, t(5))),
    ("timed", |cache| {
        cache.get_newer_than_timeout(&1, t(5), AGES)
    }),
    ("deadline", |cache| {
        cache.get_newer_than_deadline(&1, t(5), Instant::now() + AGES)
    }),
    ("async", |cache| block_on(cache.subscribe(&1, t(5)))),
];

/// A cache that one of the threads may drop.
struct Open {
    cache: Mutex<Option<Cache<u8, Val>>>,
    reader: ReadCache<u8, Val>,
}

impl Open {
    fn new(_round: usize) -> Self {
        let cache = Cache::new();
        Self {
            reader: cache.read_only(),
            cache: Mutex::new(Some(cache)),
        }
    }

    fn cache(&self) -> Cache<u8, Val> {
        self.cache.lock().unwrap().clone().unwrap()
    }
}

/// A waiter that is just registering against a call that names it: whoever comes first, the waiter
/// comes home. Half the rounds have a record, half have none.
fn register_against(call: impl Fn(&Open) + Sync, fits: impl Fn(&Waited) -> bool + Sync) {
    let _dog = Watchdog::start();
    for (name, wait) in WAITS {
        Race::new(rounds(ROUNDS), |round| {
            let open = Open::new(round);
            if round % 2 == 0 {
                open.cache().set(&1, Val(1), t(1));
            }
            open
        })
        .run(
            &[
                &|open| {
                    let waited = wait(&open.reader);
                    assert!(fits(&waited), "{name}: {waited:?}");
                },
                &|open| call(open),
            ],
            |_, open| assert_eq!(open.reader.waiters(), 0, "{name}"),
        );
    }
}

#[test]
fn register_against_set() {
    register_against(
        |open| assert!(open.cache().set(&1, Val(2), t(6))),
        |waited| Seen::of(waited.as_ref().unwrap()) == Seen::set(2, 6),
    );
}

#[test]
fn register_against_set_observed_time() {
    // An observation of no record leaves nothing: who registers after it is not named by it. So it
    // is repeated until the waiter is home, as every lister does.
    let home = AtomicUsize::new(0);
    let _dog = Watchdog::start();
    for (name, wait) in WAITS {
        Race::new(rounds(ROUNDS), |round| {
            home.store(0, SeqCst);
            let open = Open::new(round);
            if round % 2 == 0 {
                open.cache().set(&1, Val(1), t(1));
            }
            open
        })
        .run(
            &[
                &|open| {
                    let seen = Seen::of(&wait(&open.reader).unwrap());
                    let observed = Seen {
                        value: 1,
                        times: Some((1, 6)),
                    };
                    assert!(
                        [Seen::default_of(1), observed].contains(&seen),
                        "{name}: {seen:?}"
                    );
                    home.store(1, SeqCst);
                },
                &|open| {
                    let cache = open.cache();
                    cache.set_observed_time(&1, t(6));
                    while !cache.contains(&1) && home.load(SeqCst) == 0 {
                        std::thread::yield_now();
                        cache.set_observed_time(&1, t(6));
                    }
                },
            ],
            |_, open| assert_eq!(open.reader.waiters(), 0, "{name}"),
        );
    }
}

#[test]
fn register_against_update_time() {
    register_against(
        |open| open.cache().update_time(t(6)),
        |waited| {
            [Seen::default_of(1), Seen::set(1, 1)].contains(&Seen::of(waited.as_ref().unwrap()))
        },
    );
}

#[test]
fn register_against_close() {
    register_against(|open| open.cache().close(), is_closed);
}

#[test]
fn register_against_the_drop_of_the_last_cache() {
    register_against(|open| drop(open.cache.lock().unwrap().take()), is_closed);
}

/// At the equal time, too: the call names only those that it finds registered, and those it must
/// never miss. The waiter is registered for sure, only its parking races.
#[test]
fn park_against_each_call_at_the_equal_time() {
    let _dog = Watchdog::start();
    let calls: [(&str, Call); 3] = [
        ("set", |cache| assert!(cache.set(&1, Val(2), t(5)))),
        ("set_observed_time", |cache| {
            cache.set_observed_time(&1, t(5))
        }),
        ("update_time", |cache| cache.update_time(t(5))),
    ];
    for (name, call) in calls {
        Race::new(rounds(ROUNDS), |round| {
            let cache = Cache::<u8, Val>::new();
            let waits = [0, 1, 2].map(|_| cache.subscribe(&1, t(5)));
            (round, cache, waits.map(|wait| Mutex::new(Some(wait))))
        })
        .run(
            &[
                &|(round, _, waits)| {
                    let wait = waits[0].lock().unwrap();
                    let waited = match round % 3 {
                        0 => wait.as_ref().unwrap().wait(),
                        1 => wait.as_ref().unwrap().wait_timeout(AGES),
                        _ => wait.as_ref().unwrap().wait_deadline(Instant::now() + AGES),
                    };
                    assert!(waited.is_ok(), "{name}");
                },
                &|(_, _, waits)| {
                    let wait = waits[1].lock().unwrap().take().unwrap();
                    assert!(block_on(wait).is_ok(), "{name}");
                },
                &|(_, cache, waits)| {
                    call(cache);
                    assert!(
                        ready(waits[2].lock().unwrap().as_ref().unwrap()).is_some(),
                        "{name}"
                    );
                },
            ],
            |_, (_, cache, _)| assert_eq!(cache.waiters(), 0, "{name}"),
        );
    }
}

/// A pod's last status reaches its waiter though the pod is deleted, or set back, at once.
#[test]
fn the_last_status_reaches_its_waiter_whatever_follows() {
    let _dog = Watchdog::start();
    let follow: [(&str, Call); 3] = [
        ("delete", |cache| assert!(cache.delete(&1))),
        ("older set", |cache| assert!(cache.set(&1, Val(9), t(1)))),
        ("close", |cache| cache.close()),
    ];
    for (name, follow) in follow {
        Race::new(rounds(ROUNDS), |round| {
            let cache = Cache::<u8, Val>::new();
            let wait = Mutex::new(Some(cache.subscribe(&1, t(5))));
            (round, cache, wait)
        })
        .run(
            &[
                &|(round, _, wait)| {
                    let wait = wait.lock().unwrap().take().unwrap();
                    let waited = match round % 3 {
                        0 => wait.wait(),
                        1 => wait.wait_timeout(AGES),
                        _ => block_on(wait),
                    };
                    let exit = Seen::of(&waited.expect("the status comes before the end"));
                    assert_eq!(exit, Seen::set(137, 5), "{name}");
                },
                &|(_, cache, _)| {
                    cache.set(&1, Val(137), t(5));
                    follow(cache);
                },
            ],
            |_, _| {},
        );
    }
}

/// A waiter that comes too late for the set gets what is there then, never a mixture.
#[test]
fn register_against_set_and_delete_at_once() {
    let _dog = Watchdog::start();
    Race::new(rounds(ROUNDS), Open::new).run(
        &[
            &|open| {
                let seen = Seen::of(&open.reader.get_newer_than(&1, t(5)).unwrap());
                assert!(
                    [Seen::set(137, 6), Seen::default_of(1)].contains(&seen),
                    "{seen:?}"
                );
            },
            &|open| {
                let cache = open.cache();
                cache.set(&1, Val(137), t(6));
                cache.delete(&1);
                // The next relist lets go whoever came after both.
                cache.update_time(t(7));
            },
        ],
        |_, open| assert_eq!(open.reader.waiters(), 0),
    );
}

/// Several waiters on several keys, and several calls that name them: after each call returns, the
/// caller finds all whom it named ready, whoever served them.
fn ready_when_each_returns(calls: &[Caller<'_>], keys: u8, per_key: usize) {
    let _dog = Watchdog::start();
    type Set = (Cache<u8, Val>, Vec<Subscription<Val>>);
    let runners: Vec<_> = calls
        .iter()
        .map(|call| {
            move |(cache, waits): &Set| {
                call(cache);
                for (n, wait) in waits.iter().enumerate() {
                    assert!(wait.try_get().is_some(), "wait {n} is not ready");
                }
            }
        })
        .collect();
    let runners: Vec<Runner<'_, Set>> = runners.iter().map(|r| r as _).collect();
    Race::new(rounds(ROUNDS), |round| {
        let cache = Cache::new();
        let waits = (1..=keys).flat_map(|key| vec![key; per_key]);
        let waits = waits.map(|key| cache.subscribe(&key, t(5))).collect();
        if round % 2 == 0 {
            cache.set(&1, Val(1), t(1));
        }
        (cache, waits)
    })
    .run(&runners, |_, (cache, waits)| {
        assert_eq!(cache.waiters(), 0);
        assert!(waits.iter().all(|wait| ready(wait).is_some()));
    });
}

#[test]
fn update_against_update() {
    ready_when_each_returns(&[&|c| c.update_time(t(5)), &|c| c.update_time(t(6))], 4, 2);
}

#[test]
fn three_updates() {
    let updates: [Caller<'_>; 3] = [&|c| c.update_time(t(7)), &|c| c.update_time(t(6)), &|c| {
        c.update_time(t(5))
    }];
    ready_when_each_returns(&updates, 8, 1);
}

#[test]
fn set_against_set() {
    let sets: [Caller<'_>; 2] = [&|c| assert!(c.set(&1, Val(2), t(6))), &|c| {
        assert!(c.set(&1, Val(3), t(5)))
    }];
    ready_when_each_returns(&sets, 1, 8);
}

#[test]
fn set_against_observation_and_update() {
    let calls: [Caller<'_>; 3] = [
        &|c| assert!(c.set(&1, Val(2), t(6))),
        &|c| c.set_observed_time(&1, t(5)),
        &|c| c.update_time(t(5)),
    ];
    ready_when_each_returns(&calls, 1, 8);
}

#[test]
fn observation_against_delete_and_update() {
    let deleted = AtomicUsize::new(0);
    let calls: [Caller<'_>; 2] = [
        &|c| {
            deleted.fetch_add(usize::from(c.delete(&1)), SeqCst);
            c.set_observed_time(&1, t(5));
        },
        &|c| c.update_time(t(6)),
    ];
    ready_when_each_returns(&calls, 1, 4);
    assert!(deleted.load(SeqCst) > 0);
}

#[test]
fn close_against_update() {
    let closed_some = AtomicBool::new(false);
    let _dog = Watchdog::start();
    Race::new(rounds(ROUNDS), |_| {
        let cache = Cache::<u8, Val>::new();
        let waits: Vec<_> = (0..6).map(|n| cache.subscribe(&(n % 3), t(5))).collect();
        (cache, waits)
    })
    .run(
        &[
            &|(cache, waits)| {
                cache.close();
                assert!(waits.iter().all(|wait| wait.try_get().is_some()));
            },
            &|(cache, waits)| {
                cache.update_time(t(5));
                assert!(waits.iter().all(|wait| wait.try_get().is_some()));
            },
        ],
        |_, (cache, waits)| {
            assert_eq!(cache.waiters(), 0);
            assert!(cache.is_closed(), "the time does not open it again");
            assert_eq!(cache.global_time(), t(5), "closing does not lose the time");
            if waits.iter().any(|wait| wait.try_get().unwrap().is_err()) {
                closed_some.store(true, SeqCst);
            }
        },
    );
    assert!(closed_some.load(SeqCst), "the race was never one");
}

/// A waiter that gives up while a call names it: it takes nothing from its neighbour.
#[test]
fn set_against_cancel() {
    let _dog = Watchdog::start();
    let calls: [Call; 3] = [
        |cache| assert!(cache.set(&1, Val(2), t(5))),
        |cache| cache.set_observed_time(&1, t(5)),
        |cache| cache.update_time(t(5)),
    ];
    for call in calls {
        Race::new(rounds(ROUNDS), |round| {
            let cache = Cache::<u8, Val>::new();
            let waker = TestWaker::new();
            let mut waits = [0, 1, 2].map(|_| cache.subscribe(&1, t(5)));
            for wait in &mut waits {
                assert!(waker.poll(wait).is_pending());
            }
            // Whichever of the three gives up: the oldest, the newest, or between the two.
            waits.rotate_left(round % 3);
            let [quitter, first, second] = waits;
            (cache, waker, Mutex::new(Some(quitter)), [first, second])
        })
        .run(
            &[
                &|(_, _, quitter, _)| drop(quitter.lock().unwrap().take()),
                &|(cache, _, _, neighbours)| {
                    call(cache);
                    assert!(neighbours.iter().all(|wait| ready(wait).is_some()));
                },
            ],
            |_, (cache, waker, _, _)| {
                assert_eq!(cache.waiters(), 0);
                assert_eq!(waker.handles(), 0);
                let wakes = waker.wakes();
                assert!(
                    (2..=3).contains(&wakes),
                    "{wakes} wakes for two waiters and one who left"
                );
            },
        );
    }
}

/// A poll that replaces the waker against the call that takes it: the newer one is called, or the
/// poll itself says ready.
#[test]
fn poll_with_another_waker_against_set() {
    let _dog = Watchdog::start();
    Race::new(rounds(ROUNDS), |_| {
        let cache = Cache::<u8, Val>::new();
        let mut wait = cache.subscribe(&1, t(5));
        let wakers = [TestWaker::new(), TestWaker::new()];
        assert!(wakers[0].poll(&mut wait).is_pending());
        (cache, Mutex::new(wait), wakers, AtomicBool::new(false))
    })
    .run(
        &[
            &|(_, wait, wakers, pending)| {
                let polled = wakers[1].poll(&mut *wait.lock().unwrap());
                pending.store(polled.is_pending(), SeqCst);
            },
            &|(cache, ..)| {
                cache.set(&1, Val(1), t(5));
            },
        ],
        |_, (cache, wait, wakers, pending)| {
            let wait = wait.into_inner().unwrap();
            assert_eq!(Seen::of(&ready(&wait).unwrap()), Seen::set(1, 5));
            let called = wakers.each_ref().map(TestWaker::wakes);
            if pending.load(SeqCst) {
                assert_eq!(called[1], 1, "it was told to wait for this waker");
            }
            assert!(called[0] <= 1 && called[1] <= 1, "{called:?}");
            assert_eq!(wakers.map(|w| w.handles()), [0, 0]);
            assert_eq!(cache.waiters(), 0);
        },
    );
}

#[test]
fn subscribe_and_cancel_against_delete_of_the_same_key() {
    // The last waiter of a missing key takes the key's place with it; who comes meanwhile must not
    // be lost with it.
    let _dog = Watchdog::start();
    Race::new(rounds(ROUNDS), |_| {
        let cache = Cache::<u8, Val>::new();
        cache.set(&1, Val(1), t(1));
        (cache, Mutex::new(None))
    })
    .run(
        &[
            &|(cache, _)| {
                cache.delete(&1);
                drop(cache.subscribe(&1, t(5)));
                drop(cache.subscribe(&1, t(5)));
            },
            &|(cache, kept)| {
                *kept.lock().unwrap() = Some(cache.subscribe(&1, t(5)));
            },
            &|(cache, _)| {
                drop(cache.subscribe(&1, t(5)));
                cache.delete(&1);
            },
        ],
        |_, (cache, kept)| {
            let kept = kept.into_inner().unwrap().unwrap();
            assert_eq!(cache.waiters(), 1);
            assert!(kept.try_get().is_none());
            cache.set(&1, Val(2), t(5));
            assert_eq!(Seen::of(&ready(&kept).unwrap()), Seen::set(2, 5));
        },
    );
}

/// One value and its own time, set by one thread while others read: never another's time.
#[test]
fn readers_never_see_a_value_with_anothers_time() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let done = AtomicBool::new(false);
    cache.set(&1, Val(1), t(1));
    std::thread::scope(|scope| {
        for kind in 0..3 {
            let (cache, done) = (&cache, &done);
            scope.spawn(move || {
                let mut newest = 0;
                while !done.load(SeqCst) {
                    let (value, times) = match kind {
                        0 => {
                            let s = Seen::of(&cache.get(&1));
                            (s.value, s.times.unwrap())
                        }
                        1 => {
                            let pinned = cache.pin();
                            let entry = pinned.get(&1).unwrap();
                            let times = (entry.modified(), entry.observed());
                            (entry.value().0, (times.0.as_nanos(), times.1.as_nanos()))
                        }
                        _ => {
                            let s = Seen::of(&cache.iter().next().unwrap().1);
                            (s.value, s.times.unwrap())
                        }
                    };
                    assert_eq!(times.0, value);
                    assert!(times.1 == value || times.1 == value + 1_000_000);
                    assert!(value >= newest, "went back from {newest} to {value}");
                    newest = value;
                }
            });
        }
        for n in 2..rounds(100_000) as u64 {
            cache.set(&1, Val(n), t(n));
            if n % 3 == 0 {
                cache.set_observed_time(&1, t(n + 1_000_000));
            }
        }
        done.store(true, SeqCst);
    });
}

/// Who sees a global time sees every set that preceded it.
#[test]
fn nobody_sees_a_global_time_before_its_sets() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let last = rounds(50_000) as u64;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let time = cache.global_time().as_nanos();
                    for key in 0..4 {
                        if let Some(got) = cache.try_get_newer_than(&key, t(time)) {
                            let value = Seen::of(&got).value;
                            assert!(value > time, "key {key}: {value} is not newer than {time}");
                        }
                        let value = Seen::of(&cache.get(&key)).value;
                        assert!(
                            time == 0 || value >= time,
                            "key {key}: {value} under {time}"
                        );
                    }
                    if time == last {
                        break;
                    }
                }
            });
            // The same by the wait itself. By an equal time it may be woken, by an older one never.
            scope.spawn(|| {
                let mut min = 0;
                while min < last {
                    for key in 0..4 {
                        let got = Seen::of(&cache.get_newer_than(&key, t(min)).unwrap());
                        assert!(got.value >= min, "key {key}: {got:?} is older than {min}");
                    }
                    min = cache.global_time().as_nanos();
                }
            });
        }
        for relist in 1..=last {
            for key in 0..4 {
                cache.set(&key, Val(relist), t(relist));
            }
            cache.update_time(t(relist));
        }
        // Whoever waits for more than the last is let go.
        cache.update_time(t(last));
        for key in 0..4 {
            cache.set(&key, Val(last + 1), t(last + 1));
        }
    });
}
