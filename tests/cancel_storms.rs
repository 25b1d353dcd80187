//! Thousands of waiters that give up: they cost what they are, and leave nothing.

mod common;

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use common::alloc::{Counting, alone, asked_by, live};
use common::model::Seen;
use common::rng::Rng;
use common::values::Val;
use common::wakers::{TestWaker, is_timed_out, ready};
use common::watchdog::Watchdog;
use common::{eventually, rounds, t, traffic};
use podcache::{Cache, Subscription};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const CROWD: usize = 10_000;
const SPARE: u64 = u64::MAX;

type Wait = Subscription<Val>;
type Order = (&'static str, fn(Vec<Wait>) -> Vec<Wait>);

/// In which order the crowd leaves: each takes them apart into the order of their leaving.
const ORDERS: [Order; 5] = [
    ("first come, first gone", |waits| waits),
    ("last come, first gone", |mut waits| {
        waits.reverse();
        waits
    }),
    ("at random", |mut waits| {
        Rng::new(7).shuffle(&mut waits);
        waits
    }),
    ("every other one first", |waits| {
        let (even, odd): (Vec<_>, Vec<_>) =
            waits.into_iter().enumerate().partition(|(n, _)| n % 2 == 0);
        even.into_iter().chain(odd).map(|(_, wait)| wait).collect()
    }),
    ("from both ends", |waits| {
        let mut waits = std::collections::VecDeque::from(waits);
        let mut order = Vec::with_capacity(waits.len());
        while let Some(wait) = waits.pop_front() {
            order.push(wait);
            order.extend(waits.pop_back());
        }
        order
    }),
];

fn crowd(cache: &Cache<u64, Val>, size: usize) -> Vec<Wait> {
    (0..size).map(|_| cache.subscribe(&1, t(5))).collect()
}

#[test]
fn a_crowd_leaves_and_its_neighbours_are_served() {
    let _alone = alone();
    let _dog = Watchdog::start();
    for (order, leave) in ORDERS {
        let cache: Cache<u64, Val> = Cache::new();
        let oldest = cache.subscribe(&1, t(5));
        let mut waits = crowd(&cache, CROWD);
        let middle: Vec<_> = (0..5).map(|n| waits.swap_remove(n * 1_000)).collect();
        let newest = cache.subscribe(&1, t(5));
        let elsewhere = cache.subscribe(&2, t(5));
        let waker = TestWaker::new();
        for wait in &mut waits {
            assert!(waker.poll(wait).is_pending());
        }
        let mut left = waits.len();
        for wait in leave(waits) {
            drop(wait);
            left -= 1;
            assert_eq!(waker.handles(), left, "{order}: its waker goes at once");
        }
        assert_eq!(cache.waiters(), 8, "{order}");
        cache.set(&1, Val(1), t(5));
        for wait in middle.iter().chain([&oldest, &newest]) {
            assert_eq!(Seen::of(&ready(wait).unwrap()), Seen::set(1, 5), "{order}");
        }
        assert!(elsewhere.try_get().is_none());
        assert_eq!(waker.wakes(), 0);
        drop(elsewhere);
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn the_cost_grows_with_the_crowd_and_not_with_its_square() {
    let _alone = alone();
    let _dog = Watchdog::start();
    for (order, leave) in ORDERS {
        let cost = |size: usize| {
            let cache: Cache<u64, Val> = Cache::new();
            let _stays = cache.subscribe(&1, t(5));
            let (coming, waits) = asked_by(|| crowd(&cache, size));
            let waits = leave(waits);
            let (leaving, ()) = asked_by(|| waits.into_iter().for_each(drop));
            assert_eq!(cache.waiters(), 1);
            (coming.bytes, leaving.bytes)
        };
        let (few, many) = (cost(CROWD / 10), cost(CROWD));
        // Ten times as many cost ten times as much, and twice that for odds and ends.
        assert!(many.0 <= 20 * few.0, "{order}: coming {few:?} {many:?}");
        assert!(
            many.1 <= 20 * few.1 + 65_536,
            "{order}: leaving {few:?} {many:?}"
        );
    }
}

#[test]
fn nothing_of_a_crowd_that_left_lingers() {
    let _alone = alone();
    let _dog = Watchdog::start();
    for (order, leave) in ORDERS {
        let cache: Cache<u64, Val> = Cache::new();
        (0..1_000).for_each(|_| traffic(&cache, &SPARE));
        let before = live();
        let mut waits = crowd(&cache, CROWD);
        let stay = waits.split_off(CROWD - 10);
        drop(leave(waits));
        let settled = || live() <= before + 64 * 1_024;
        eventually(|| traffic(&cache, &SPARE), settled);
        assert_eq!(cache.waiters(), 10, "{order}");
        drop(stay);
        assert_eq!(cache.waiters(), 0, "{order}");
    }
}

#[test]
fn a_long_wait_beside_endless_short_ones_costs_no_memory() {
    let _alone = alone();
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    let stays = cache.subscribe(&1, t(5));
    let waker = TestWaker::new();
    let mut churn = |n: usize| match n % 3 {
        0 => drop(cache.subscribe(&1, t(5))),
        1 => {
            let mut wait = cache.subscribe(&1, t(5));
            assert!(waker.poll(&mut wait).is_pending());
        }
        _ => {
            let waited = cache.get_newer_than_timeout(&1, t(5), Duration::ZERO);
            assert!(is_timed_out(&waited));
        }
    };
    (0..5_000).for_each(&mut churn);
    let before = live();
    for _ in 0..10 {
        (0..rounds(10_000)).for_each(&mut churn);
        assert!(
            live() <= before + 256 * 1_024,
            "{} bytes more",
            live() - before
        );
    }
    assert_eq!(cache.waiters(), 1);
    assert_eq!((waker.wakes(), waker.handles()), (0, 0));
    cache.update_time(t(5));
    assert!(ready(&stays).is_some());
}

#[test]
fn waiters_on_keys_that_never_came_leave_no_keys() {
    let _alone = alone();
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    (0..1_000).for_each(|_| traffic(&cache, &SPARE));
    let before = live();
    for _ in 0..3 {
        let waits: Vec<_> = (0..CROWD as u64)
            .map(|key| cache.subscribe(&key, t(5)))
            .collect();
        assert_eq!(cache.waiters(), CROWD);
        drop(waits);
        assert_eq!(cache.waiters(), 0);
        assert!(cache.is_empty());
    }
    eventually(
        || traffic(&cache, &SPARE),
        || live() <= before + 128 * 1_024,
    );
    // A new time has nobody to visit, and what comes now is served as ever.
    cache.update_time(t(3));
    let wait = cache.subscribe(&1, t(5));
    cache.update_time(t(5));
    assert!(ready(&wait).is_some());
}

#[test]
fn crowds_leave_from_several_threads_at_once() {
    let _alone = alone();
    let _dog = Watchdog::start();
    for round in 0..rounds(10) {
        let cache: Cache<u64, Val> = Cache::new();
        let waker = TestWaker::new();
        let stay: Vec<_> = (0..3).map(|_| cache.subscribe(&1, t(5))).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (cache, waker) = (&cache, &waker);
                let (_, leave) = ORDERS[(round + thread) % ORDERS.len()];
                scope.spawn(move || {
                    let mut waits = crowd(cache, CROWD / 4);
                    for wait in &mut waits {
                        assert!(waker.poll(wait).is_pending());
                    }
                    leave(waits).into_iter().for_each(drop);
                });
            }
        });
        assert_eq!(cache.waiters(), 3);
        assert_eq!((waker.wakes(), waker.handles()), (0, 0));
        cache.set_observed_time(&1, t(5));
        assert!(stay.iter().all(|wait| ready(wait).is_some()));
    }
}

#[test]
fn crowds_leave_while_they_are_served() {
    let _alone = alone();
    let _dog = Watchdog::start();
    for round in 0..rounds(10) {
        let cache: Cache<u64, Val> = Cache::new();
        let waker = TestWaker::new();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let leaving: Vec<_> = (0..3)
                .map(|thread| {
                    let (cache, waker) = (&cache, &waker);
                    let (_, leave) = ORDERS[(round + thread) % ORDERS.len()];
                    scope.spawn(move || {
                        let mut waits = crowd(cache, 1_000);
                        for wait in &mut waits {
                            let _ = waker.poll(wait);
                        }
                        leave(waits).into_iter().for_each(drop);
                    })
                })
                .collect();
            scope.spawn(|| {
                let mut ts = 0;
                while !done.load(SeqCst) {
                    match ts % 3 {
                        0 => _ = cache.set(&1, Val(ts), t(ts % 7)),
                        1 => cache.set_observed_time(&1, t(ts % 7)),
                        _ => cache.update_time(t(ts % 7)),
                    }
                    ts += 1;
                }
            });
            for thread in leaving {
                thread.join().unwrap();
            }
            done.store(true, SeqCst);
        });
        assert_eq!(cache.waiters(), 0);
        assert_eq!(waker.handles(), 0);
    }
}

#[test]
fn blocked_threads_that_time_out_together_leave_nothing() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache: Cache<u64, Val> = Cache::new();
    let stays = cache.subscribe(&1, t(5));
    std::thread::scope(|scope| {
        for thread in 0..100 {
            let cache = &cache;
            std::thread::Builder::new()
                .stack_size(128 * 1_024)
                .spawn_scoped(scope, move || {
                    for n in 0..20 {
                        let limit = Duration::from_micros((thread * 7 + n * 13) % 300);
                        let waited = cache.get_newer_than_timeout(&1, t(5), limit);
                        assert!(is_timed_out(&waited));
                    }
                })
                .unwrap();
        }
    });
    assert_eq!(cache.waiters(), 1);
    cache.update_time(t(5));
    assert!(ready(&stays).is_some());
}

#[test]
fn a_huge_crowd_fits_on_a_small_stack() {
    let _alone = alone();
    let _dog = Watchdog::start();
    const HUGE: usize = 100_000;
    // Whoever takes a long list apart must not do so one inside the other.
    let ends: [fn(Cache<u64, Val>); 5] = [
        |cache| cache.set_observed_time(&1, t(5)),
        |cache| cache.update_time(t(5)),
        |cache| _ = cache.set(&1, Val(1), t(5)),
        |cache| cache.close(),
        drop,
    ];
    let small = || std::thread::Builder::new().stack_size(64 * 1_024);
    std::thread::scope(|scope| {
        for end in ends {
            let run = move || {
                let cache: Cache<u64, Val> = Cache::new();
                let waits = crowd(&cache, HUGE);
                end(cache);
                assert!(waits.iter().all(|wait| wait.try_get().is_some()));
            };
            small().spawn_scoped(scope, run).unwrap().join().unwrap();
        }
        let leave = || {
            let cache: Cache<u64, Val> = Cache::new();
            drop(crowd(&cache, HUGE));
            assert_eq!(cache.waiters(), 0);
        };
        small().spawn_scoped(scope, leave).unwrap().join().unwrap();
        let everywhere = || {
            let cache: Cache<u64, Val> = Cache::new();
            let waits: Vec<_> = (0..HUGE as u64)
                .map(|key| cache.subscribe(&key, t(5)))
                .collect();
            cache.update_time(t(5));
            assert!(waits.iter().all(|wait| ready(wait).is_some()));
        };
        small()
            .spawn_scoped(scope, everywhere)
            .unwrap()
            .join()
            .unwrap();
    });
}
