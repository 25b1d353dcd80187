//! Waits as futures, under the runtimes that people use.

mod common;

use std::time::Duration;

use common::model::Seen;
use common::values::Val;
use common::wakers::{block_on, is_closed, is_timed_out};
use common::watchdog::Watchdog;
use common::{rounds, t};
use podcache::Cache;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

const AGES: Duration = Duration::from_secs(3600);

fn runtimes() -> [(&'static str, Runtime); 2] {
    let current = Builder::new_current_thread().enable_time().build();
    let multi = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build();
    [
        ("current thread", current.unwrap()),
        ("multi thread", multi.unwrap()),
    ]
}

#[test]
fn many_tasks_on_one_key() {
    let _dog = Watchdog::start();
    for (name, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        runtime.block_on(async {
            let tasks: Vec<_> = (0..1_000)
                .map(|_| tokio::spawn(cache.subscribe(&1, t(5))))
                .collect();
            assert_eq!(
                cache.waiters(),
                1_000,
                "{name}: registered before the first poll"
            );
            tokio::task::yield_now().await;
            cache.set(&1, Val(1), t(5));
            for task in tasks {
                let got = task.await.unwrap().unwrap();
                assert_eq!(Seen::of(&got), Seen::set(1, 5), "{name}");
            }
        });
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn a_set_from_another_thread_wakes_a_task() {
    let _dog = Watchdog::start();
    for (_, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..=rounds(2_000) as u64 {
                    while cache.waiters() == 0 {
                        std::thread::yield_now();
                    }
                    cache.set(&1, Val(n), t(n));
                }
            });
            runtime.block_on(async {
                for n in 1..=rounds(2_000) as u64 {
                    let got = cache.subscribe(&1, t(n)).await.unwrap();
                    assert_eq!(Seen::of(&got), Seen::set(n, n));
                }
            });
        });
    }
}

#[test]
fn select_takes_the_one_that_is_named_and_drops_the_other() {
    let _dog = Watchdog::start();
    for (name, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        runtime.block_on(async {
            let writer = tokio::spawn({
                let cache = cache.clone();
                async move {
                    // An equal time ends only a wait that is there already.
                    while cache.waiters() < 2 {
                        tokio::task::yield_now().await;
                    }
                    cache.set(&2, Val(2), t(5));
                }
            });
            let got = tokio::select! {
                _ = cache.subscribe(&1, t(5)) => panic!("{name}: nobody named key 1"),
                got = cache.subscribe(&2, t(5)) => got.unwrap(),
            };
            assert_eq!(Seen::of(&got), Seen::set(2, 5));
            assert_eq!(cache.waiters(), 0, "{name}: the loser is dropped");
            writer.await.unwrap();
        });
    }
}

#[test]
fn select_by_reference_keeps_the_wait() {
    let _dog = Watchdog::start();
    for (_, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        runtime.block_on(async {
            let mut waiting = cache.subscribe(&1, t(5));
            for _ in 0..10 {
                tokio::select! {
                    biased;
                    _ = &mut waiting => panic!("nobody named it"),
                    () = tokio::task::yield_now() => {}
                }
                assert_eq!(cache.waiters(), 1);
            }
            cache.set(&1, Val(1), t(5));
            cache.delete(&1);
            assert_eq!(Seen::of(&waiting.await.unwrap()), Seen::set(1, 5));
        });
    }
}

#[test]
fn timeout_drops_the_wait_or_gives_its_snapshot() {
    let _dog = Watchdog::start();
    for (_, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        runtime.block_on(async {
            let out = timeout(Duration::from_millis(1), cache.subscribe(&1, t(5))).await;
            assert!(out.is_err());
            assert_eq!(cache.waiters(), 0);
            let waiting = timeout(AGES, cache.subscribe(&1, t(5)));
            cache.set(&1, Val(1), t(5));
            assert!(waiting.await.unwrap().is_ok());
        });
    }
}

#[test]
fn an_aborted_task_leaves_nothing_and_takes_nothing() {
    let _dog = Watchdog::start();
    for (name, runtime) in runtimes() {
        for _ in 0..rounds(200) {
            let cache: Cache<u8, Val> = Cache::new();
            runtime.block_on(async {
                let mut tasks: Vec<_> = (0..6)
                    .map(|_| tokio::spawn(cache.subscribe(&1, t(5))))
                    .collect();
                tokio::task::yield_now().await;
                let quitters = tasks.split_off(3);
                quitters.iter().for_each(|task| task.abort());
                cache.set(&1, Val(1), t(5));
                for task in tasks {
                    assert!(task.await.unwrap().is_ok(), "{name}");
                }
                for quitter in quitters {
                    let _ = quitter.await;
                }
                assert_eq!(cache.waiters(), 0, "{name}");
            });
        }
    }
}

#[test]
fn a_runtime_dropped_with_waiters_in_it_leaves_nothing() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    for (name, runtime) in runtimes() {
        let stays = cache.subscribe(&1, t(5));
        runtime.block_on(async {
            for n in 0..100 {
                let waiting = cache.subscribe(&(n % 3), t(5));
                tokio::spawn(async move {
                    let _ = waiting.await;
                    panic!("never named");
                });
            }
            tokio::task::yield_now().await;
        });
        assert_eq!(cache.waiters(), 101);
        drop(runtime);
        assert_eq!(cache.waiters(), 1, "{name}");
        cache.set(&1, Val(1), t(5));
        assert!(stays.wait().is_ok());
        cache.delete(&1);
    }
}

#[test]
fn a_runtime_dropped_while_a_set_wakes_its_tasks() {
    let _dog = Watchdog::start();
    for round in 0..rounds(100) {
        let cache: Cache<u8, Val> = Cache::new();
        let (_, runtime) = runtimes().into_iter().nth(round % 2).unwrap();
        for _ in 0..20 {
            runtime.spawn(cache.subscribe(&1, t(5)));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| cache.set(&1, Val(1), t(5)));
            drop(runtime);
        });
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn close_reaches_tasks() {
    let _dog = Watchdog::start();
    for (_, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        let reader = cache.read_only();
        runtime.block_on(async {
            let task = tokio::spawn(reader.subscribe(&1, t(5)));
            tokio::task::yield_now().await;
            drop(cache);
            assert!(is_closed(&task.await.unwrap()));
        });
    }
}

#[test]
fn a_worker_per_pod_under_smol() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let last = rounds(300) as u64;
    let workers: Vec<_> = (0..20_u8)
        .map(|pod| {
            let cache = cache.clone();
            smol::spawn(async move {
                let mut newest = 0;
                while newest < last {
                    let got = cache.subscribe(&pod, t(newest)).await.unwrap();
                    let seen = Seen::of(&got);
                    let (modified, _) = seen.times.unwrap();
                    assert!(modified >= newest && modified == seen.value);
                    newest = modified.max(newest + 1);
                }
            })
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for relist in 1..=last + 1 {
                for pod in 0..20 {
                    cache.set(&pod, Val(relist), t(relist));
                }
            }
        });
    });
    smol::block_on(async {
        for worker in workers {
            worker.await;
        }
    });
    assert_eq!(cache.waiters(), 0);
}

#[test]
fn a_wait_started_under_one_runtime_is_finished_under_another() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let [(_, first), (_, second)] = runtimes();
    let mut waiting = cache.subscribe(&1, t(5));
    first.block_on(async {
        assert!(
            timeout(Duration::from_millis(1), &mut waiting)
                .await
                .is_err()
        );
    });
    drop(first);
    let task = second.spawn(waiting);
    cache.set(&1, Val(1), t(5));
    let got = second.block_on(task).unwrap().unwrap();
    assert_eq!(Seen::of(&got), Seen::set(1, 5));
}

#[test]
fn a_future_that_timed_out_as_a_blocking_wait_still_resolves() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(5));
    assert!(is_timed_out(
        &waiting.wait_timeout(Duration::from_millis(1))
    ));
    std::thread::scope(|scope| {
        let task = scope.spawn(|| block_on(waiting));
        cache.set(&1, Val(1), t(5));
        assert!(task.join().unwrap().is_ok());
    });
}

#[test]
fn one_update_time_wakes_tasks_on_many_pods() {
    let _dog = Watchdog::start();
    for (name, runtime) in runtimes() {
        let cache: Cache<u64, Val> = Cache::new();
        let pods = rounds(2_000) as u64;
        runtime.block_on(async {
            let tasks: Vec<_> = (0..pods)
                .map(|pod| tokio::spawn(cache.subscribe(&pod, t(5))))
                .collect();
            tokio::task::yield_now().await;
            cache.set(&0, Val(7), t(1));
            cache.update_time(t(5));
            for (pod, task) in tasks.into_iter().enumerate() {
                let got = Seen::of(&task.await.unwrap().unwrap());
                let default = Seen {
                    value: Val::default_of(pod as u64).0,
                    times: None,
                };
                let expected = if pod == 0 { Seen::set(7, 1) } else { default };
                assert_eq!(got, expected, "{name}");
            }
        });
        assert_eq!((cache.waiters(), cache.len()), (0, 1));
    }
}

#[test]
fn a_wait_that_changes_hands_wakes_the_task_that_has_it() {
    let _dog = Watchdog::start();
    for (_, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        runtime.block_on(async {
            for _ in 0..rounds(200) {
                let mut waiting = cache.subscribe(&1, t(5));
                // Each of these tasks polls it with its own waker, and passes it on.
                for _ in 0..3 {
                    let hand_on = async move {
                        tokio::select! {
                            biased;
                            _ = &mut waiting => None,
                            () = tokio::task::yield_now() => Some(waiting),
                        }
                    };
                    let handed_on = tokio::spawn(hand_on).await.unwrap();
                    waiting = handed_on.expect("nobody named it");
                }
                let last = tokio::spawn(waiting);
                tokio::task::yield_now().await;
                cache.set(&1, Val(1), t(5));
                assert!(last.await.unwrap().is_ok());
                cache.delete(&1);
            }
        });
    }
}

#[test]
fn tasks_that_stay_on_their_thread() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let [(_, current), _] = runtimes();
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    tokio::task::LocalSet::new().block_on(&current, async {
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let (waiting, seen) = (cache.subscribe(&1, t(5)), seen.clone());
                tokio::task::spawn_local(async move {
                    let value = waiting.await.unwrap().value().0;
                    seen.set(seen.get() + value);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        cache.set(&1, Val(3), t(5));
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(seen.get(), 30);
}

#[test]
fn a_thread_of_the_runtime_may_sleep_where_it_may_block() {
    let _dog = Watchdog::start();
    for (_, runtime) in runtimes() {
        let cache: Cache<u8, Val> = Cache::new();
        runtime.block_on(async {
            let sleeper = tokio::task::spawn_blocking({
                let cache = cache.clone();
                move || cache.get_newer_than(&1, t(5))
            });
            while cache.waiters() == 0 {
                tokio::task::yield_now().await;
            }
            cache.set(&1, Val(1), t(5));
            assert_eq!(Seen::of(&sleeper.await.unwrap().unwrap()), Seen::set(1, 5));
        });
    }
}

#[test]
fn the_static_and_the_borrowing_form() {
    fn can_be_spawned<F: Future + Send + 'static>(future: F) -> F {
        future
    }
    async fn borrows(cache: &Cache<String, Val>, key: &str) -> u64 {
        cache.subscribe(key, t(5)).await.unwrap().value().0
    }
    let _dog = Watchdog::start();
    let cache: Cache<String, Val> = Cache::new();
    let key = String::from("pod");
    let owned = can_be_spawned(cache.subscribe(key.as_str(), t(5)));
    let borrowing = borrows(&cache, &key);
    assert_eq!(
        cache.waiters(),
        1,
        "only the first is registered before it is polled"
    );
    let value = std::thread::scope(|scope| {
        let both = scope.spawn(|| block_on(smol::future::zip(owned, borrowing)));
        while cache.waiters() < 2 {
            std::thread::yield_now();
        }
        cache.set("pod", Val(7), t(5));
        both.join().unwrap()
    });
    assert_eq!((value.0.unwrap().value(), value.1), (&Val(7), 7));
}

#[test]
fn a_bare_block_on_on_many_threads() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| block_on(cache.subscribe(&1, t(5)))))
            .collect();
        while cache.waiters() < 8 {
            std::thread::yield_now();
        }
        cache.set(&1, Val(1), t(5));
        for waiter in waiters {
            assert_eq!(Seen::of(&waiter.join().unwrap().unwrap()), Seen::set(1, 5));
        }
    });
}

#[test]
fn under_smol_the_loser_of_a_race_leaves_nothing() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    smol::block_on(async {
        // Against a timer.
        let wait = async { Some(cache.subscribe(&1, t(5)).await) };
        let timer = async {
            smol::Timer::after(Duration::from_millis(1)).await;
            None
        };
        assert!(smol::future::or(wait, timer).await.is_none());
        assert_eq!(cache.waiters(), 0);

        // Against another wait.
        let waits = [1, 2].map(|key| cache.subscribe(&key, t(5)));
        let task = smol::spawn({
            let cache = cache.clone();
            async move { cache.set(&2, Val(2), t(5)) }
        });
        let [one, two] = waits;
        let got = smol::future::race(one, two).await.unwrap();
        assert_eq!(Seen::of(&got), Seen::set(2, 5));
        assert!(task.await);
        assert_eq!(cache.waiters(), 0);

        // Against its own cancellation.
        let stays = cache.subscribe(&3, t(5));
        let task = smol::spawn(cache.subscribe(&3, t(5)));
        smol::future::yield_now().await;
        assert!(task.cancel().await.is_none());
        assert_eq!(cache.waiters(), 1);
        cache.set(&3, Val(3), t(5));
        assert_eq!(Seen::of(&stays.await.unwrap()), Seen::set(3, 5));
    });
}
