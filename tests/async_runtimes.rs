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
