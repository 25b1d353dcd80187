//! The stream of changes.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use common::{rounds, t};
use podcache::{Cache, Change, Changes, DefaultFor, WaitError, WritePolicy};

/// Lets the other threads of a test end when it does, also by a failed assertion.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
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
    for policy in [
        WritePolicy::Overwrite,
        WritePolicy::RejectOlder,
        WritePolicy::Monotonic,
    ] {
        // There are these, and no others to come: whoever matches them says what he wants of each.
        let older_is_stored = match policy {
            WritePolicy::Overwrite => true,
            WritePolicy::RejectOlder | WritePolicy::Monotonic => false,
        };
        let cache = Cache::<u64, u64>::builder().write_policy(policy).build();
        cache.set(&1, 1, t(5));
        let mut changes = cache.changes();
        assert_eq!(take(&mut changes), [(1, Some(1))]);
        assert_eq!(cache.set(&1, 2, t(4)), older_is_stored);
        let given = take(&mut changes);
        assert_eq!(given, [(1, Some(2))][..usize::from(older_is_stored)]);
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

/// There are marks for 32; a stream more, and the next ones while memory is held back, go without.
#[test]
fn any_number_of_streams() {
    let cache = Cache::<u64, u64>::new();
    cache.set(&1, 0, t(0));
    let _held = cache.pin();
    for round in 1..=4 {
        let mut all: Vec<_> = (0..40).map(|_| cache.changes()).collect();
        for changes in &mut all {
            take(changes);
        }
        cache.set(&1, round, t(1));
        cache.set(&2, round, t(1));
        cache.delete(&2);
        for changes in &mut all {
            let mut last = take(changes);
            // Without a mark, a key may be given more than once.
            last.reverse();
            let of = |key| last.iter().find(|(k, _)| *k == key);
            assert_eq!(of(1), Some(&(1, Some(round))));
            assert!(of(2).is_none_or(|(_, value)| value.is_none()));
            assert_eq!(changes.lag(), 0);
        }
    }
    assert_eq!(cache.stats().index_slots, 1);
}

/// Only one at a time, but faster than marks become free: beside a guard that is held none does.
#[test]
fn one_stream_after_the_other() {
    for held in [false, true] {
        let cache = Cache::<u64, u64>::new();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                    cache.set(&(2 + n % 64), n, t(n));
                }
            });
            let _ends = Ends(&stop);
            let _held = held.then(|| cache.pin());
            for n in 0..500 {
                let mut changes = cache.changes();
                cache.set(&1, n, t(n));
                let given = take(&mut changes);
                let last = given.iter().rev().find(|(key, _)| *key == 1);
                assert_eq!(last, Some(&(1, Some(n))));
            }
        });
        let (slots, records) = (cache.stats().index_slots, cache.len());
        assert_eq!(slots, records, "held: {held}");
    }
}

/// More than there are marks, all asleep: each is called.
#[test]
fn many_sleepers_are_called() {
    const SLEEPERS: usize = 40;
    let cache = Cache::<u64, u64>::new();
    let (seen, all_seen) = mpsc::channel();
    let follow = |mut changes: Changes<u64, u64>| {
        let seen = seen.clone();
        move || {
            let mut last = None;
            while let Ok(change) = changes.wait_next() {
                if let Change::Set { snapshot, .. } = change
                    && last.replace(*snapshot) != Some(*snapshot)
                {
                    seen.send(*snapshot).unwrap();
                }
            }
        }
    };
    let sleepers: Vec<_> = (0..SLEEPERS)
        .map(|_| std::thread::spawn(follow(cache.changes())))
        .collect();
    for n in 0..50 {
        cache.set(&1, n, t(n));
        for _ in 0..SLEEPERS {
            let next = all_seen.recv_timeout(Duration::from_secs(60));
            assert_eq!(next, Ok(n));
        }
    }
    cache.close();
    for sleeper in sleepers {
        sleeper.join().unwrap();
    }
}

/// Runs `write` with one new key after the other on a thread of its own, and `read` on this one as
/// long. In the end there is no slot without a record.
fn leaves_no_slot(
    write: impl Fn(&Cache<u64, Absent>, u64) + Sync,
    mut read: impl FnMut(&Cache<u64, Absent>),
) {
    let cache = Cache::<u64, Absent>::new();
    let keys = rounds(20_000) as u64;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..keys).for_each(|key| write(&cache, key)));
        while !writer.is_finished() {
            read(&cache);
        }
    });
    // What the writer did last may not have been read.
    read(&cache);
    assert_eq!(cache.len(), 0);
    assert_eq!(cache.stats().index_slots, 0);
}

struct Absent;

impl DefaultFor<u64> for Absent {
    fn default_for(_: &u64) -> Self {
        Absent
    }
}

/// A writer had announced a change to a stream that had been dropped meanwhile.
#[test]
fn streams_dropped_beside_deletes_leave_no_slot() {
    let mut others = Vec::new();
    leaves_no_slot(
        |cache, key| {
            cache.set(&key, Absent, t(1));
            cache.delete(&key);
        },
        |cache| {
            // To tell them all takes a writer some time.
            others.resize_with(16, || cache.changes());
            drop(cache.changes());
            for changes in &mut others {
                while changes.try_next().is_some() {}
            }
        },
    );
}

/// A reader had read a deletion just before the last waiter of the key gave up.
#[test]
fn waits_given_up_beside_a_stream_leave_no_slot() {
    let mut changes = None;
    leaves_no_slot(
        |cache, key| {
            cache.set(&key, Absent, t(1));
            let wait = cache.subscribe(&key, t(5));
            cache.delete(&key);
            drop(wait);
        },
        |cache| {
            let changes = changes.get_or_insert_with(|| cache.changes());
            while changes.try_next().is_some() {}
        },
    );
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
