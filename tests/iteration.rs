//! Iteration is weakly consistent: what is there throughout is given exactly once, what comes or
//! goes meanwhile may be given or not, and each item is a real snapshot.

mod common;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use common::model::Seen;
use common::rng::Rng;
use common::values::{SameHash, Val};
use common::watchdog::Watchdog;
use common::{rounds, t};
use podcache::Cache;

#[test]
fn at_rest_it_is_exact() {
    let cache: Cache<u64, Val> = Cache::new();
    for size in [0, 1, 2, 7, 8, 9, 100, 1_000, 10_000] {
        for key in 0..size {
            cache.set(&key, Val(key), t(key));
        }
        let listed: HashMap<u64, Seen> = cache.iter().map(|(k, v)| (k, Seen::of(&v))).collect();
        assert_eq!(cache.iter().count() as u64, size, "none twice");
        assert_eq!(listed.len() as u64, size);
        assert!(
            listed
                .iter()
                .all(|(key, seen)| *seen == Seen::set(*key, *key))
        );
        let keys: HashSet<u64> = cache.keys().collect();
        assert_eq!(keys.len() as u64, size);
        assert_eq!(cache.len() as u64, size);
    }
    for key in 0..10_000 {
        assert!(cache.delete(&key));
        if key % 1_000 == 999 {
            let rest: HashSet<u64> = cache.keys().collect();
            assert_eq!(rest, (key + 1..10_000).collect());
        }
    }
    assert_eq!(cache.iter().count(), 0);
}

#[test]
fn keys_with_waiters_but_no_record_are_not_listed() {
    let cache: Cache<u64, Val> = Cache::new();
    let _waits: Vec<_> = (0..100).map(|key| cache.subscribe(&key, t(5))).collect();
    assert_eq!(cache.iter().count() + cache.keys().count() + cache.len(), 0);
    cache.set(&7, Val(7), t(1));
    assert_eq!(cache.keys().collect::<Vec<_>>(), [7]);
}

#[test]
fn an_iterator_may_be_left_half_way_and_outlive_what_it_has_yet_to_list() {
    let cache: Cache<u64, Val> = Cache::new();
    for key in 0..1_000 {
        cache.set(&key, Val(key), t(1));
    }
    let mut half: Vec<_> = cache.iter().take(500).collect();
    let mut iter = cache.iter();
    half.push(iter.next().unwrap());
    for key in 0..1_000 {
        cache.delete(&key);
    }
    let rest = iter.map(|(key, _)| key).collect::<Vec<_>>();
    let distinct: HashSet<u64> = rest.iter().copied().collect();
    assert_eq!(rest.len(), distinct.len());
    assert!(
        half.iter()
            .all(|(key, seen)| Seen::of(seen) == Seen::set(*key, 1))
    );
}

#[test]
fn keys_that_hash_alike_are_listed_like_any() {
    let cache: Cache<SameHash, Val> = Cache::new();
    for key in 0..300 {
        cache.set(&SameHash(key), Val(key), t(1));
    }
    let mut keys: Vec<u64> = cache.keys().map(|key| key.0).collect();
    keys.sort_unstable();
    assert_eq!(keys, (0..300).collect::<Vec<_>>());
}

/// Iterates while `disturb` goes on. The keys below `RESIDENTS` are there throughout.
fn while_disturbed(disturb: impl Fn(&Cache<u64, Val>, &mut Rng) + Sync) {
    const RESIDENTS: u64 = 500;
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    for key in 0..RESIDENTS {
        cache.set(&key, Val(key), t(key));
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (cache, done, disturb) = (&cache, &done, &disturb);
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                while !done.load(SeqCst) {
                    disturb(cache, &mut rng);
                }
            });
        }
        // Also by a failed assertion.
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let _done = Done(&done);
        for pass in 0..rounds(150) {
            let mut residents = 0;
            let mut given = HashSet::new();
            let mut note = |key: u64| {
                assert!(
                    given.insert(key) || key >= RESIDENTS,
                    "{key} twice in pass {pass}"
                );
                residents += u64::from(key < RESIDENTS);
            };
            if pass % 2 == 0 {
                for (key, snapshot) in cache.iter() {
                    let seen = Seen::of(&snapshot);
                    assert_eq!(seen.value % 1_000_000, key, "another key's value");
                    let (modified, observed) = seen.times.expect("a record");
                    assert_eq!((modified, observed), (seen.value, seen.value), "torn");
                    note(key);
                }
            } else {
                cache.keys().for_each(note);
            }
            assert_eq!(residents, RESIDENTS, "in pass {pass}");
        }
    });
}

#[test]
fn while_it_grows_and_shrinks() {
    while_disturbed(|cache, _| {
        for key in 1_000..6_000 {
            cache.set(&key, Val(key), t(key));
        }
        for key in 1_000..6_000 {
            cache.delete(&key);
        }
    });
}

#[test]
fn while_keys_come_and_go() {
    while_disturbed(|cache, rng| {
        let key = 1_000 + rng.below(1_000);
        cache.set(&key, Val(key), t(key));
        cache.delete(&(1_000 + rng.below(1_000)));
    });
}

#[test]
fn while_residents_are_set_again() {
    while_disturbed(|cache, rng| {
        let key = rng.below(500);
        let value = rng.below(1_000) * 1_000_000 + key;
        cache.set(&key, Val(value), t(value));
    });
}

#[test]
fn while_waiters_come_and_go_on_missing_keys() {
    while_disturbed(|cache, rng| {
        let waits: Vec<_> = (0..50)
            .map(|_| cache.subscribe(&(1_000 + rng.below(5_000)), t(u64::MAX)))
            .collect();
        drop(waits);
    });
}

#[test]
fn len_is_exact_when_all_are_home() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    std::thread::scope(|scope| {
        for seed in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                let mut rng = Rng::new(seed);
                for _ in 0..rounds(20_000) {
                    let key = rng.below(64);
                    if rng.below(2) == 0 {
                        cache.set(&key, Val(key), t(1));
                    } else {
                        cache.delete(&key);
                    }
                }
            });
        }
    });
    let present = (0..64).filter(|key| cache.contains(key)).count();
    assert_eq!(cache.len(), present);
    assert_eq!(cache.iter().count(), present);
}
