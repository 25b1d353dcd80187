//! The stream of changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use podcache::{Cache, Change, Changes, DefaultFor, Timestamp, WaitError, WritePolicy};

fn t(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

fn take(changes: &mut Changes<u64, u64>) -> Vec<(u64, Option<u64>)> {
    let next = || {
        Some(match changes.try_next()? {
            Change::Set { key, snapshot } => (key, Some(*snapshot)),
            Change::Deleted { key } => (key, None),
            _ => unreachable!("no other changes"),
        })
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn what_is_there_comes_first() {
    let cache = Cache::<u64, u64>::new();
    for key in 0..100 {
        cache.set(&key, key, t(1));
    }
    let mut changes = cache.changes();
    assert!(!changes.in_sync());
    let mut there = take(&mut changes);
    there.sort_unstable();
    assert_eq!(
        there,
        (0..100).map(|key| (key, Some(key))).collect::<Vec<_>>()
    );
    assert!(changes.in_sync());
    assert_eq!(changes.lag(), 0);
}

#[test]
fn only_the_newest_change_of_a_key_is_given() {
    let cache = Cache::<u64, u64>::new();
    let mut changes = cache.changes();
    assert_eq!(take(&mut changes), []);
    for value in 0..1000 {
        cache.set(&1, value, t(value));
    }
    cache.set(&2, 7, t(1));
    assert_eq!(changes.lag(), 2);
    assert_eq!(take(&mut changes), [(1, Some(999)), (2, Some(7))]);
    cache.delete(&1);
    cache.set(&2, 8, t(0));
    cache.delete(&2);
    assert_eq!(take(&mut changes), [(1, None), (2, None)]);
    assert_eq!(changes.lag(), 0);
}

#[test]
fn what_changes_no_record_is_no_change() {
    struct Value;
    impl DefaultFor<u64> for Value {
        fn default_for(_: &u64) -> Self {
            Value
        }
    }
    let cache = Cache::<u64, Value>::new();
    cache.set(&1, Value, t(1));
    let mut changes = cache.changes();
    assert!(changes.try_next().is_some());
    let waits = [1, 2].map(|key| cache.subscribe(&key, t(7)));
    cache.set_observed_time(&1, t(5));
    cache.update_time(t(6));
    cache.delete(&2);
    drop(waits);
    assert!(changes.try_next().is_none());
    assert_eq!(changes.lag(), 0);
}

#[test]
fn a_refused_set_is_no_change() {
    for policy in [WritePolicy::RejectOlder, WritePolicy::Monotonic] {
        let cache = Cache::<u64, u64>::builder().write_policy(policy).build();
        cache.set(&1, 1, t(5));
        let mut changes = cache.changes();
        assert_eq!(take(&mut changes), [(1, Some(1))]);
        assert!(!cache.set(&1, 2, t(4)));
        assert_eq!(take(&mut changes), []);
        assert!(cache.set(&1, 3, t(5)));
        assert_eq!(take(&mut changes), [(1, Some(3))]);
    }
}

#[test]
fn deleted_and_set_again_is_set() {
    let cache = Cache::<u64, u64>::new();
    cache.set(&1, 1, t(1));
    let mut changes = cache.changes();
    take(&mut changes);
    cache.delete(&1);
    cache.set(&1, 2, t(2));
    let given = take(&mut changes);
    assert!(
        given.iter().all(|change| *change == (1, Some(2))),
        "{given:?}"
    );
    assert!(!given.is_empty());
}

#[test]
fn ends_when_closed_and_everything_given() {
    let cache = Cache::<u64, u64>::new();
    let mut changes = cache.changes();
    cache.set(&1, 1, t(1));
    drop(cache);
    let given = take(&mut changes);
    assert!(
        !given.is_empty() && given.iter().all(|change| *change == (1, Some(1))),
        "{given:?}"
    );
    assert_eq!(changes.wait_next().unwrap_err(), WaitError::Closed);
    assert!(changes.next().is_none());
}

#[test]
fn times_out() {
    let cache = Cache::<u64, u64>::new();
    let mut changes = cache.changes();
    let end = changes.wait_next_timeout(Duration::from_millis(1));
    assert_eq!(end.unwrap_err(), WaitError::TimedOut);
    cache.set(&1, 1, t(1));
    assert!(changes.wait_next_timeout(Duration::from_secs(60)).is_ok());
}

#[test]
fn there_is_an_end_to_streams_and_their_places_are_used_again() {
    let cache = Cache::<u64, u64>::new();
    cache.set(&1, 0, t(0));
    let mut all: Vec<_> = (0..32).map(|_| cache.changes()).collect();
    assert!(cache.try_changes().is_none());
    cache.set(&1, 1, t(1)); // marks the slot for all
    all.clear();
    // Each place is free again when no guard is left that could know it.
    let mut again = None;
    for round in 0..1_000_000 {
        cache.set(&(2 + round % 2), round, t(1));
        cache.delete(&(2 + round % 2));
        again = cache.try_changes();
        if again.is_some() {
            break;
        }
    }
    let mut again = again.expect("a place is free in the end");
    take(&mut again);
    cache.set(&1, 2, t(2));
    assert_eq!(take(&mut again), [(1, Some(2))]);
}

/// Whatever the reader has been given last of each key is in the end what the cache has.
#[test]
fn readers_arrive_where_the_cache_is() {
    for policy in [WritePolicy::Overwrite, WritePolicy::Monotonic] {
        let cache = Cache::<u64, u64>::builder().write_policy(policy).build();
        let follow = |mut changes: Changes<u64, u64>| {
            let mut seen = HashMap::new();
            for change in &mut changes {
                match change {
                    Change::Set { key, snapshot } => seen.insert(key, *snapshot),
                    Change::Deleted { key } => seen.remove(&key),
                    _ => unreachable!("no other changes"),
                };
            }
            seen
        };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let mut readers = vec![scope.spawn({
                let changes = cache.changes();
                move || follow(changes)
            })];
            let writers: Vec<_> = (0..3u64)
                .map(|writer| {
                    let (cache, stop) = (&cache, &stop);
                    scope.spawn(move || {
                        let mut n = writer + 1;
                        while !stop.load(Ordering::Relaxed) {
                            n = n
                                .wrapping_mul(6364136223846793005)
                                .wrapping_add(1442695040888963407);
                            let key = n >> 40 & 63;
                            if n >> 33 & 3 == 0 {
                                cache.delete(&key);
                            } else {
                                cache.set(&key, n, t(n >> 50));
                            }
                        }
                    })
                })
                .collect();
            for _ in 0..20 {
                let changes = cache.changes();
                readers.push(scope.spawn(move || follow(changes)));
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
            for writer in writers {
                writer.join().unwrap();
            }
            cache.close();
            let there: HashMap<_, _> = cache.iter().map(|(key, value)| (key, *value)).collect();
            for reader in readers {
                assert_eq!(reader.join().unwrap(), there);
            }
        });
    }
}
