//! What the cache counts about itself, and the timestamps that it refuses to believe.

mod common;

use std::time::Duration;

use common::race::Race;
use common::values::Val;
use common::wakers::{TestWaker, is_closed, is_timed_out, ready};
use common::watchdog::Watchdog;
use common::{POLICIES, rounds, t};
use podcache::{Cache, Stats, Timestamp, WritePolicy};

type Pods = Cache<u8, Val>;

/// Every wait that was registered has ended in one of the ways, or is there.
#[track_caller]
fn assert_balanced(stats: &Stats) {
    let accounted =
        stats.wake_ups + stats.closed_waits + stats.cancellations + stats.waiters as u64;
    assert_eq!(stats.waits, accounted, "{stats:?}");
}

#[test]
fn a_new_cache_has_counted_nothing() {
    let stats = Pods::new().stats();
    let counts = [
        stats.sets,
        stats.refused_sets,
        stats.refused_future,
        stats.deletes,
        stats.observations,
        stats.time_updates,
        stats.waits,
        stats.wake_ups,
        stats.closed_waits,
        stats.cancellations,
        stats.time_outs,
    ];
    assert_eq!(counts, [0; 11]);
    assert_eq!((stats.records, stats.waiters, stats.index_slots), (0, 0, 0));
    assert_eq!((stats.longest_wait, stats.global_time_age), (None, None));
    assert_eq!((stats.global_time, stats.name()), (Timestamp::ZERO, None));
    assert!(stats.index_bytes >= stats.index_buckets * size_of::<usize>());
    assert!(stats.index_buckets > 0);
}

#[test]
fn writes_are_counted_by_what_came_of_them() {
    let cache: Pods = Cache::builder()
        .write_policy(WritePolicy::RejectOlder)
        .name("node 7")
        .build();
    assert!(cache.set(&1, Val(1), t(5)));
    assert!(cache.set(&2, Val(2), t(5)));
    assert!(cache.set(&1, Val(3), t(6)));
    assert!(!cache.set(&1, Val(4), t(4)));
    cache.set_observed_time(&1, t(7));
    cache.set_observed_time(&9, t(7));
    assert!(cache.delete(&2));
    assert!(!cache.delete(&2));
    cache.update_time(t(7));
    cache.update_time(t(8));

    let stats = cache.stats();
    assert_eq!((stats.records, cache.len()), (1, 1));
    assert_eq!((stats.sets, stats.refused_sets), (3, 1));
    assert_eq!((stats.observations, stats.deletes), (2, 1));
    assert_eq!((stats.time_updates, stats.global_time), (2, t(8)));
    assert_eq!((stats.index_slots, stats.name()), (1, Some("node 7")));
    assert_eq!(cache.read_only().stats().sets, 3);
    assert!(format!("{cache:?}").contains("node 7"));
}

#[test]
fn under_monotonic_an_older_time_is_no_update() {
    let cache: Pods = Cache::builder()
        .write_policy(WritePolicy::Monotonic)
        .build();
    cache.update_time(t(8));
    cache.update_time(t(7));
    cache.update_time(t(8));
    let stats = cache.stats();
    assert_eq!((stats.time_updates, stats.global_time), (2, t(8)));
    assert!(!cache.set(&1, Val(1), t(7)));
    assert!(cache.set(&1, Val(1), t(9)));
    assert!(!cache.delete_at(&1, t(8)));
    assert!(cache.delete_at(&1, t(9)));
    let stats = cache.stats();
    assert_eq!((stats.sets, stats.refused_sets, stats.deletes), (1, 1, 1));
    assert_eq!((stats.records, stats.index_slots), (0, 1), "remembered");
}

#[test]
fn waits_are_counted_by_how_they_ended() {
    for policy in POLICIES {
        let cache: Pods = Cache::builder().write_policy(policy).build();
        cache.set(&1, Val(1), t(5));
        assert!(ready(&cache.subscribe(&1, t(4))).is_some());
        assert_eq!(cache.stats().waits, 0, "it was ready at once");

        let mut waits: Vec<_> = (0..6).map(|_| cache.subscribe(&1, t(6))).collect();
        let others: Vec<_> = (2..5).map(|key| cache.subscribe(&key, t(9))).collect();
        assert_eq!(cache.stats().waiters, 9);
        assert!(cache.stats().longest_wait.is_some());

        waits.truncate(4);
        assert!(is_timed_out(&waits[0].wait_timeout(Duration::ZERO)));
        assert!(is_timed_out(&waits[0].wait_timeout(Duration::ZERO)));
        let stats = cache.stats();
        assert_eq!((stats.cancellations, stats.time_outs), (2, 2));
        assert_eq!((stats.waiters, stats.wake_ups), (7, 0));
        assert_balanced(&stats);

        cache.set(&1, Val(2), t(6));
        assert_eq!(cache.stats().wake_ups, 4);
        cache.set_observed_time(&2, t(9));
        assert_eq!(cache.stats().wake_ups, 5);
        cache.update_time(t(8));
        assert_eq!(cache.stats().wake_ups, 5);
        assert!(waits[0].wait_timeout(Duration::ZERO).is_ok());
        cache.close();
        assert!(others.iter().skip(1).all(|wait| is_closed(&wait.wait())));
        let stats = cache.stats();
        assert_eq!((stats.wake_ups, stats.closed_waits), (5, 2));
        assert_eq!((stats.waiters, stats.longest_wait), (0, None));
        drop((waits, others));
        let stats = cache.stats();
        assert_eq!((stats.cancellations, stats.time_outs), (2, 2), "{policy:?}");
        assert_balanced(&stats);
    }
}

#[test]
fn the_longest_wait_is_that_of_the_oldest_there_is() {
    let cache: Pods = Cache::new();
    let first = cache.subscribe(&1, t(5));
    let before = cache.stats().longest_wait.unwrap();
    while cache.stats().longest_wait.unwrap() <= before {
        std::thread::yield_now();
    }
    let old = cache.stats().longest_wait.unwrap();
    let since = std::time::Instant::now();
    let second = cache.subscribe(&2, t(5));
    assert!(
        cache.stats().longest_wait.unwrap() >= old,
        "still the first"
    );
    drop(first);
    assert!(cache.stats().longest_wait.unwrap() <= since.elapsed());
    drop(second);
    assert_eq!(cache.stats().longest_wait, None);
}

#[test]
fn the_age_of_the_global_time() {
    let cache: Pods = Cache::new();
    let hour = Duration::from_secs(3600);
    cache.update_time(Timestamp::now().saturating_sub(hour));
    assert!(cache.stats().global_time_age.unwrap() >= hour);
    cache.update_time(Timestamp::MAX);
    assert_eq!(cache.stats().global_time_age, Some(Duration::ZERO));
}

#[test]
fn each_wait_is_counted_once_whoever_ends_it() {
    let _dog = Watchdog::start();
    let race = Race::new(rounds(2_000), |_| {
        let cache: Pods = Cache::new();
        let waits = (0..4).map(|_| cache.subscribe(&1, t(5))).collect();
        (cache, std::sync::Mutex::new(waits))
    });
    type State = (Pods, std::sync::Mutex<Vec<podcache::Subscription<Val>>>);
    race.run(
        &[
            &|(cache, _): &State| _ = cache.set(&1, Val(1), t(5)),
            &|(cache, _): &State| cache.update_time(t(5)),
            &|(_, waits): &State| drop(waits.lock().unwrap().split_off(2)),
            &|(cache, _): &State| {
                let mut wait = cache.subscribe(&1, t(5));
                let _ = TestWaker::new().poll(&mut wait);
                cache.close();
            },
        ],
        |_, (cache, waits)| {
            let stats = cache.stats();
            assert_balanced(&stats);
            assert!(stats.wake_ups + stats.closed_waits >= 2);
            assert_eq!((stats.sets, stats.records, stats.waiters), (1, 1, 0));
            drop(waits);
            assert_eq!(cache.stats().cancellations, stats.cancellations);
        },
    );
}

#[test]
fn counts_of_many_threads_add_up() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    let each = rounds(200) as u64;
    let threads = 80; // more than have a place of their own
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let cache = &cache;
            scope.spawn(move || {
                for n in 0..each {
                    let key = thread * each + n;
                    cache.set(&key, Val(n), t(1));
                    if n % 2 == 0 {
                        cache.delete(&key);
                    }
                }
            });
        }
    });
    let stats = cache.stats();
    let deleted = threads * each.div_ceil(2);
    assert_eq!((stats.sets, stats.deletes), (threads * each, deleted));
    assert_eq!(stats.records as u64, threads * each - deleted);
}

// Timestamps too far in the future.

const SKEW: Duration = Duration::from_secs(3600);

/// Ahead of any clock that the test could reach.
fn ahead() -> Timestamp {
    Timestamp::now() + 2 * SKEW
}

fn wary(policy: WritePolicy) -> Pods {
    Cache::builder()
        .write_policy(policy)
        .max_future_skew(SKEW)
        .build()
}

#[test]
fn a_timestamp_too_far_ahead_changes_nothing_and_wakes_nobody() {
    for policy in POLICIES {
        let cache = wary(policy);
        let now = Timestamp::now();
        cache.set(&1, Val(1), now);
        cache.update_time(now);
        let waits = [1, 2].map(|key| cache.subscribe(&key, now));

        assert!(!cache.set(&1, Val(2), ahead()));
        assert!(!cache.set(&2, Val(2), ahead()));
        cache.set_observed_time(&1, ahead());
        cache.set_observed_time(&2, ahead());
        cache.update_time(ahead());
        assert!(!cache.delete_at(&1, ahead()));
        let summary = cache.relist(ahead(), [(1, Val(2)), (3, Val(3)), (3, Val(4))]);
        assert!(summary.ignored_future && !summary.ignored_empty);
        assert_eq!((summary.set, summary.refused), (0, 0));
        assert!(cache.relist_or_clear(ahead(), []).ignored_future);
        let (summary, errors) = cache.relist_results(ahead(), [(1, Ok(Val(2))), (2, Err("bad"))]);
        assert!(summary.ignored_future);
        assert_eq!(errors, [(2, "bad")]);

        let record = cache.get(&1);
        assert_eq!((record.value(), cache.len()), (&Val(1), 1), "{policy:?}");
        assert_eq!(
            (record.modified(), record.observed()),
            (Some(now), Some(now))
        );
        assert_eq!(cache.global_time(), now);
        assert!(waits.iter().all(|wait| ready(wait).is_none()));
        let stats = cache.stats();
        assert_eq!((stats.refused_future, stats.refused_sets), (9, 0));
        assert_eq!(
            (stats.sets, stats.observations, stats.time_updates),
            (1, 0, 1)
        );

        // It is as if nothing had been: the next honest call goes through.
        assert!(cache.set(&1, Val(5), Timestamp::now()));
        assert!(ready(&waits[0]).is_some());
    }
}

#[test]
fn a_timestamp_within_the_skew_is_believed() {
    for policy in POLICIES {
        let cache = wary(policy);
        let soon = Timestamp::now() + SKEW / 2;
        assert!(cache.set(&1, Val(1), soon));
        cache.set_observed_time(&1, soon);
        cache.update_time(soon);
        assert!(cache.delete_at(&1, soon));
        assert!(!cache.relist(soon, [(1, Val(1))]).ignored_future);
        assert_eq!(cache.stats().refused_future, 0, "{policy:?}");
    }
}

#[test]
fn any_time_is_believed_unless_a_skew_is_set() {
    let cache: Pods = Cache::new();
    assert!(cache.set(&1, Val(1), Timestamp::MAX));
    cache.update_time(Timestamp::MAX);
    assert_eq!(cache.stats().refused_future, 0);
}

#[test]
fn a_skew_beyond_the_end_of_time_refuses_nothing() {
    let cache: Pods = Cache::builder().max_future_skew(Duration::MAX).build();
    assert!(cache.set(&1, Val(1), Timestamp::MAX));
    assert_eq!(cache.stats().refused_future, 0);
}

#[test]
fn a_wait_for_the_future_is_nobodys_harm() {
    let cache = wary(WritePolicy::Monotonic);
    let wait = cache.subscribe(&1, ahead());
    assert_eq!(cache.waiters(), 1);
    drop(wait);
    assert_eq!(cache.stats().refused_future, 0);
}
