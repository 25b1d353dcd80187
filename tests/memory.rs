//! Memory follows what is in the cache, up and down.

mod common;

use std::collections::VecDeque;

use common::alloc::{Counting, alone, live};
use common::values::Val;
use common::wakers::ready;
use common::watchdog::Watchdog;
use common::{cache_with, eventually, rounds, t, traffic};
use podcache::{Cache, WritePolicy};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SPARE: u64 = u64::MAX;
const SLACK: isize = 64 * 1_024;

fn filled(keys: u64) -> Cache<u64, Val> {
    let cache = Cache::new();
    for key in 0..keys {
        cache.set(&key, Val(key), t(1));
    }
    cache
}

/// Waits for live bytes to come down to a limit.
#[track_caller]
fn comes_down_to(limit: isize, cache: &Cache<u64, Val>) {
    eventually(|| traffic(cache, &SPARE), || live() <= limit);
}

/// Waits until live bytes stay where they are.
fn settled(cache: &Cache<u64, Val>) -> isize {
    for _ in 0..100 {
        (0..64).for_each(|_| traffic(cache, &SPARE));
    }
    live()
}

#[test]
fn a_million_keys_come_and_go() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let outside = live();
    for (residents, crowd) in [(0, 1_000_000), (1_000, 200_000)] {
        let cache = filled(residents);
        let started = settled(&cache) - outside;
        for key in residents..crowd {
            cache.set(&key, Val(key), t(1));
        }
        assert_eq!(cache.len() as u64, crowd);
        let full = live() - outside;
        assert!(
            full > crowd as isize * 16,
            "the figures mean something: {full}"
        );
        for key in residents..crowd {
            assert!(cache.delete(&key));
        }
        assert_eq!(cache.len() as u64, residents);
        comes_down_to(outside + 3 * started + SLACK, &cache);
        for key in 0..residents {
            assert_eq!(cache.get(&key).value(), &Val(key));
        }
    }
}

#[test]
fn a_big_cache_is_gone_when_it_is_dropped() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let other = filled(10);
    let before = settled(&other);
    let cache = filled(100_000);
    let reader = cache.read_only();
    drop(cache);
    assert_eq!(reader.len(), 100_000, "a reader keeps what is there");
    drop(reader);
    comes_down_to(before + SLACK, &other);
}

#[test]
fn values_that_are_replaced_do_not_pile_up() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache = filled(100);
    let before = settled(&cache);
    for n in 0..rounds(300_000) as u64 {
        match n % 4 {
            0 => cache.set_observed_time(&(n % 100), t(n)),
            1 => cache.update_time(t(n)),
            _ => _ = cache.set(&(n % 100), Val(n), t(n)),
        }
        if n % 10_000 == 0 {
            assert!(
                live() <= before + 1_024 * 1_024,
                "{} bytes more",
                live() - before
            );
        }
    }
    comes_down_to(before + SLACK, &cache);
}

#[test]
fn values_that_several_threads_replace_do_not_pile_up() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache = filled(100);
    let before = settled(&cache);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for n in 0..rounds(50_000) as u64 {
                    cache.set(&((n + thread) % 100), Val(n), t(n));
                    let _ = cache.get(&(n % 100));
                }
            });
        }
    });
    comes_down_to(before + SLACK, &cache);
}

#[test]
fn keys_that_pass_through_do_not_pile_up() {
    let _dog = Watchdog::start();
    let _alone = alone();
    for policy in common::POLICIES {
        let cache = cache_with::<u64, Val>(policy);
        let mut window = VecDeque::new();
        let mut step = |n: u64| {
            cache.set(&n, Val(n), t(n));
            window.push_back(n);
            if window.len() > 1_000 {
                cache.delete(&window.pop_front().unwrap());
            }
            // A relist now and then, which is also what lets Monotonic forget the dead.
            if n.is_multiple_of(500) {
                cache.update_time(t(n));
            }
        };
        (1..20_000).for_each(&mut step);
        let before = live();
        let mut largest = 0;
        for n in 20_000..20_000 + rounds(100_000) as u64 {
            step(n);
            largest = largest.max(live() - before);
        }
        assert!(largest <= 512 * 1_024, "{policy:?}: {largest} bytes more");
    }
}

#[test]
fn deletions_are_forgotten_once_the_global_time_has_reached_them() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache = cache_with::<u64, Val>(WritePolicy::Monotonic);
    for _ in 0..1_000 {
        traffic(&cache, &SPARE);
    }
    let before = live();
    for key in 0..50_000 {
        cache.set(&key, Val(key), t(10));
        cache.delete_at(&key, t(20));
    }
    assert!(cache.is_empty());
    assert!(!cache.set(&7, Val(7), t(15)), "remembered");
    cache.update_time(t(20));
    let settle = || {
        traffic(&cache, &SPARE);
        cache.update_time(t(20));
    };
    eventually(settle, || live() <= before + SLACK);
    assert!(
        !cache.set(&7, Val(7), t(15)),
        "as the global time says by itself"
    );
    assert!(cache.set(&7, Val(7), t(20)));
}

#[test]
fn a_kept_snapshot_keeps_itself_and_nothing_before_or_after_it() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache = filled(10);
    let before = settled(&cache);
    let mut kept = Vec::with_capacity(1_000);
    for n in 0..50_000 {
        // Observed again and again: each record stands on the value of the first.
        cache.set_observed_time(&1, t(n));
        if n % 500 == 0 {
            kept.push(cache.get(&1));
        }
        cache.set(&2, Val(n), t(n));
        if n % 500 == 0 {
            kept.push(cache.get(&2));
        }
    }
    comes_down_to(before + 200 * 256 + SLACK, &cache);
    drop(kept);
    comes_down_to(before + SLACK, &cache);
}

#[test]
fn a_served_wait_that_is_kept_holds_back_nothing_else() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache = filled(10);
    let before = settled(&cache);
    let mut kept = Vec::with_capacity(1_000);
    for n in 1..50_000 {
        if n % 500 == 0 {
            kept.push(cache.subscribe(&1, t(n)));
        }
        cache.set(&1, Val(n), t(n));
        drop(cache.subscribe(&1, t(n)));
    }
    assert!(kept.iter().all(|wait| ready(wait).is_some()));
    comes_down_to(before + 100 * 1_024 + SLACK, &cache);
}

#[test]
fn waits_that_are_served_leave_no_memory() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache: Cache<u64, Val> = Cache::new();
    (0..1_000).for_each(|_| traffic(&cache, &SPARE));
    let before = live();
    for round in 0..10 {
        let waits: Vec<_> = (0..5_000)
            .map(|key| cache.subscribe(&(key % 2_500), t(round)))
            .collect();
        match round % 3 {
            0 => (0..2_500).for_each(|key| cache.set_observed_time(&key, t(round))),
            1 => cache.update_time(t(round)),
            _ => (0..2_500).for_each(|key| {
                cache.set(&key, Val(key), t(round));
                cache.delete(&key);
            }),
        }
        assert!(waits.iter().all(|wait| ready(wait).is_some()));
        cache.update_time(t(0));
    }
    comes_down_to(before + 2 * SLACK, &cache);
}

#[test]
fn threads_that_come_and_go_leave_no_memory() {
    let _dog = Watchdog::start();
    let _alone = alone();
    let cache = filled(100);
    let crowd = || {
        for _ in 0..50 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    for n in 0..50 {
                        cache.set(&n, Val(n), t(n));
                        drop(cache.subscribe(&n, t(u64::MAX)));
                        let _ = cache.get(&n);
                    }
                });
            });
        }
    };
    crowd();
    let before = settled(&cache);
    (0..rounds(10)).for_each(|_| crowd());
    comes_down_to(before + SLACK, &cache);
}
