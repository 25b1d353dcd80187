//! One pod's handle: what it sees, what it keeps alive, and against writers.

mod common;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use common::model::Seen;
use common::race::Race;
use common::values::{Live, SameHash, TrapVal, Val};
use common::wakers::{block_on, is_closed, ready};
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, eventually, rounds, t, traffic};
use podcache::{Cache, Tracker, WritePolicy};

type Pods = Cache<u8, Val>;

fn seen(tracker: &mut Tracker<u8, Val>) -> Seen {
    Seen::of(tracker.load())
}

#[test]
fn follows_sets_confirmations_deletion_and_re_creation() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        let mut tracker = cache.track(&1);
        assert_eq!(tracker.key(), &1);
        for life in 0..3 {
            let at = 10 * life;
            assert_eq!(seen(&mut tracker), Seen::default_of(1));
            cache.set(&1, Val(life), t(at + 5));
            assert_eq!(seen(&mut tracker), Seen::set(life, at + 5), "{policy:?}");
            cache.set(&1, Val(life + 100), t(at + 6));
            assert_eq!(seen(&mut tracker), Seen::set(life + 100, at + 6));
            cache.set_observed_time(&1, t(at + 7));
            let confirmed = Seen {
                value: life + 100,
                times: Some((at + 6, at + 7)),
            };
            assert_eq!(seen(&mut tracker), confirmed);
            assert!(cache.delete(&1));
        }
        assert_eq!(seen(&mut tracker), Seen::default_of(1));
    }
}

#[test]
fn deletion_and_re_creation_between_two_loads() {
    let cache: Pods = Cache::new();
    cache.set(&1, Val(1), t(5));
    let mut tracker = cache.track(&1);
    for n in 2..50 {
        cache.delete(&1);
        cache.set(&1, Val(n), t(5)); // a new slot, perhaps where the old one was
        assert_eq!(seen(&mut tracker), Seen::set(n, 5));
    }
}

#[test]
fn an_unchanged_record_is_the_same_snapshot() {
    let cache: Pods = Cache::new();
    cache.set(&1, Val(1), t(5));
    let mut tracker = cache.track(&1);
    let first = tracker.load().clone();
    cache.set(&2, Val(2), t(6));
    cache.update_time(t(7));
    let waits = [cache.subscribe(&1, t(8)), cache.subscribe(&1, t(9))];
    assert!(tracker.load().same_value(&first));
    drop(waits);
    assert!(tracker.load().same_value(&first));
    assert_eq!(seen(&mut tracker), Seen::set(1, 5));
}

#[test]
fn the_default_is_made_once_while_there_is_no_record() {
    let cache: Pods = Cache::new();
    let mut tracker = cache.track(&1);
    let first = tracker.load().clone();
    assert!(tracker.load().same_value(&first));
    let wait = cache.subscribe(&1, t(5)); // now there is a slot, still without a record
    assert!(tracker.load().same_value(&first));
    drop(wait);
    assert!(tracker.load().same_value(&first));
}

#[test]
fn last_is_what_was_loaded_last() {
    let cache: Pods = Cache::new();
    let mut tracker = cache.track(&1);
    cache.set(&1, Val(1), t(5));
    assert_eq!(Seen::of(tracker.last()), Seen::default_of(1));
    tracker.load();
    cache.set(&1, Val(2), t(6));
    assert_eq!(Seen::of(tracker.last()), Seen::set(1, 5));
}

#[test]
fn borrowed_keys_and_keys_that_hash_alike() {
    let cache: Cache<String, Val> = Cache::new();
    cache.set("pod", Val(1), t(5));
    assert_eq!(cache.track("pod").load().value(), &Val(1));

    let cache: Cache<SameHash, Val> = Cache::new();
    let mut trackers: Vec<_> = (0..20).map(|n| cache.track(&SameHash(n))).collect();
    for n in 0..20 {
        cache.set(&SameHash(n), Val(n), t(5));
    }
    for (n, tracker) in trackers.iter_mut().enumerate() {
        assert_eq!(tracker.load().value(), &Val(n as u64));
    }
}

#[test]
fn waits_from_a_tracker() {
    let cache: Pods = Cache::new();
    let mut tracker = cache.track(&1);
    let wait = tracker.changed_since(t(5));
    assert!(ready(&wait).is_none());
    cache.set(&1, Val(1), t(5));
    assert_eq!(Seen::of(&block_on(wait).unwrap()), Seen::set(1, 5));
    assert_eq!(
        Seen::of(&tracker.newer_than(t(4)).unwrap()),
        Seen::set(1, 5)
    );
    assert_eq!(seen(&mut tracker), Seen::set(1, 5));
}

#[test]
fn outlives_the_cache() {
    let cache: Pods = Cache::new();
    cache.set(&1, Val(1), t(5));
    let mut known = cache.track(&1);
    let mut unknown = cache.track(&2);
    let wait = known.changed_since(t(5));
    drop(cache);
    assert!(is_closed(&wait.wait()), "it does not keep the cache open");
    assert_eq!(seen(&mut known), Seen::set(1, 5));
    assert_eq!(seen(&mut unknown), Seen::default_of(2));
    assert!(is_closed(&known.newer_than(t(5))));
    assert!(known.newer_than(t(4)).is_ok());
}

#[test]
fn keeps_at_most_one_old_snapshot_alive() {
    let live = Live::default();
    let cache: Cache<u64, TrapVal> = Cache::new();
    let set = |n| cache.set(&1, TrapVal::counted(n, &live), t(n));
    set(1);
    let mut tracker = cache.track(&1);
    for n in 2..100 {
        set(n);
        cache.set_observed_time(&1, t(n + 1));
    }
    // The one it loaded and the one that is there.
    eventually(|| traffic(&cache, &9), || live.load(SeqCst) <= 2);
    assert_eq!(tracker.last().number, 1);
    assert_eq!(tracker.load().number, 99);
    eventually(|| traffic(&cache, &9), || live.load(SeqCst) <= 1);
    cache.delete(&1);
    assert!(!tracker.load().is_present());
    eventually(|| traffic(&cache, &9), || live.load(SeqCst) == 0);
}

#[test]
fn a_tracker_moves_to_another_thread() {
    let cache: Pods = Cache::new();
    cache.set(&1, Val(1), t(5));
    let mut tracker = cache.track(&1);
    let tracker = std::thread::spawn(move || {
        assert_eq!(seen(&mut tracker), Seen::set(1, 5));
        tracker
    });
    let mut tracker = tracker.join().unwrap();
    cache.set(&1, Val(2), t(6));
    assert_eq!(seen(&mut tracker), Seen::set(2, 6));
}

#[test]
fn sees_what_it_was_told_of_and_never_goes_back() {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        let last = rounds(20_000) as u64;
        let set = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut tracker = cache.track(&1);
                    let mut newest = 0;
                    while newest < last {
                        let told = set.load(SeqCst);
                        let seen = seen(&mut tracker);
                        let Some((modified, observed)) = seen.times else {
                            // Deleted for a moment, or not there yet.
                            assert_eq!(seen, Seen::default_of(1));
                            continue;
                        };
                        assert_eq!((seen.value, observed), (modified, modified));
                        assert!(seen.value >= told.max(newest), "{policy:?}");
                        newest = seen.value;
                    }
                });
            }
            for n in 1..=last {
                cache.set(&1, Val(n), t(n));
                set.store(n, SeqCst);
                if n % 8 == 0 && n < last {
                    cache.delete(&1);
                }
                if n % 16 == 0 {
                    cache.update_time(t(n));
                }
            }
        });
    }
}

#[test]
fn the_last_of_two_writers_is_what_all_trackers_end_with() {
    let _dog = Watchdog::start();
    for policy in [WritePolicy::Overwrite, WritePolicy::Monotonic] {
        let race = Race::new(rounds(3_000), |_| {
            let cache: Pods = cache_with(policy);
            let tracker = std::sync::Mutex::new(cache.track(&1));
            (cache, tracker)
        });
        type State = (Pods, std::sync::Mutex<Tracker<u8, Val>>);
        race.run(
            &[
                &|(cache, _): &State| _ = cache.set(&1, Val(1), t(5)),
                &|(cache, _): &State| {
                    cache.delete(&1);
                    cache.set(&1, Val(2), t(5));
                },
                &|(cache, _): &State| cache.update_time(t(5)),
                &|(_, tracker): &State| {
                    let mut tracker = tracker.lock().unwrap();
                    for _ in 0..3 {
                        tracker.load();
                    }
                },
            ],
            |_, (cache, tracker)| {
                let mut tracker = tracker.into_inner().unwrap();
                let now = cache.get(&1);
                assert_eq!(Seen::of(tracker.load()), Seen::of(&now));
                assert!(!now.is_present() || tracker.load().same_value(&now));
            },
        );
    }
}

#[test]
fn one_for_each_worker() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    let pods = rounds(10_000) as u64;
    let mut trackers: Vec<_> = (0..pods).map(|pod| cache.track(&pod)).collect();
    for pod in 0..pods {
        cache.set(&pod, Val(pod), t(5));
    }
    cache.update_time(t(5));
    for (pod, tracker) in trackers.iter_mut().enumerate() {
        assert_eq!(tracker.load().value(), &Val(pod as u64));
        assert!(tracker.load().same_value(&cache.get(&(pod as u64))));
    }
}
