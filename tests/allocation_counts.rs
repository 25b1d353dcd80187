//! What each operation asks of the allocator.

mod common;

use common::alloc::{Asked, Counting, alone, asked_by};
use common::t;
use common::values::Val;
use podcache::{Cache, Timestamp, WritePolicy};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TIMES: u64 = 10_000;

fn keys() -> Vec<String> {
    (0..64)
        .map(|n| format!("2d0c1f5e-0b1a-4c3d-9e8f-{n:012}"))
        .collect()
}

/// A cache with records of many keys, on which all lazy beginnings are over.
fn warm(keys: &[String]) -> Cache<String, Val> {
    let cache: Cache<String, Val> = Cache::new();
    for n in 1..200 {
        for key in keys {
            cache.set(key.as_str(), Val(n), t(n));
            let _ = cache.get(key.as_str());
        }
    }
    cache
}

/// What `f` asks for in many runs, given the number of the run and a key.
fn asked(keys: &[String], mut f: impl FnMut(u64, &str)) -> Asked {
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let run = || (0..TIMES).for_each(|n| f(n, keys[n as usize % keys.len()]));
    asked_by(run).0
}

const NOTHING: Asked = Asked { calls: 0, bytes: 0 };

#[test]
fn reads_of_what_is_there_ask_for_nothing() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let old = t(5);
    assert_eq!(asked(&keys, |_, key| drop(cache.get(key))), NOTHING);
    assert_eq!(asked(&keys, |_, key| assert!(cache.contains(key))), NOTHING);
    assert_eq!(
        asked(&keys, |_, key| drop(cache.try_get_newer_than(key, old))),
        NOTHING
    );
    let read_only = cache.read_only();
    assert_eq!(asked(&keys, |_, key| drop(read_only.get(key))), NOTHING);
    assert_eq!(asked(&keys, |_, _| assert_eq!(cache.len(), 64)), NOTHING);
    assert_eq!(asked(&keys, |_, _| assert_eq!(cache.waiters(), 0)), NOTHING);
    assert_eq!(
        asked(&keys, |_, _| assert!(
            cache.global_time() == Timestamp::ZERO
        )),
        NOTHING
    );
    let snapshot = cache.get(keys[0].as_str());
    assert_eq!(asked(&keys, |_, _| drop(snapshot.clone())), NOTHING);
}

#[test]
fn waits_on_a_fresh_key_ask_for_nothing_beyond_get() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let old = t(5);
    let hour = std::time::Duration::from_secs(3_600);
    let end = std::time::Instant::now() + hour;
    assert_eq!(
        asked(&keys, |_, key| drop(cache.get_newer_than(key, old))),
        NOTHING
    );
    assert_eq!(
        asked(&keys, |_, key| drop(
            cache.get_newer_than_timeout(key, old, hour)
        )),
        NOTHING
    );
    assert_eq!(
        asked(&keys, |_, key| drop(
            cache.get_newer_than_deadline(key, old, end)
        )),
        NOTHING
    );
    // Also when it is the global time that makes it so.
    cache.update_time(t(1_000));
    let new = t(500);
    assert_eq!(
        asked(&keys, |_, key| drop(cache.get_newer_than(key, new))),
        NOTHING
    );
    assert_eq!(
        asked(&keys, |_, key| drop(cache.try_get_newer_than(key, new))),
        NOTHING
    );
}

#[test]
fn an_answer_of_not_yet_asks_for_nothing() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let not_yet = |key: &str| assert!(cache.try_get_newer_than(key, t(500)).is_none());
    assert_eq!(asked(&keys, |_, key| not_yet(key)), NOTHING);
    // A missing key needs no default for that.
    assert_eq!(asked(&keys, |_, _| not_yet("missing")), NOTHING);
    assert_eq!(
        asked(&keys, |_, _| assert!(!cache.contains("missing"))),
        NOTHING
    );
}

#[test]
fn pinned_reads_ask_for_nothing() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let pinned = cache.pin();
    let read = |key: &str| assert_eq!(pinned.get(key).unwrap().value().0, 199);
    assert_eq!(asked(&keys, |_, key| read(key)), NOTHING);
    assert_eq!(asked(&keys, |_, _| drop(cache.pin())), NOTHING);
}

#[test]
fn a_missing_key_asks_for_its_snapshot_and_no_more() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let asked = asked(&keys, |_, _| drop(cache.get("missing")));
    assert!(asked.calls as u64 <= TIMES, "{asked:?}");
}

/// So often per operation; what reclamation asks for now and then is spread over many.
fn about(times: f64, asked: Asked) {
    let calls = asked.calls as f64 / TIMES as f64;
    assert!(
        (times - 0.01..times + 0.1).contains(&calls),
        "{calls} per operation"
    );
}

#[test]
fn a_set_asks_for_one_snapshot() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    about(
        1.0,
        asked(&keys, |n, key| assert!(cache.set(key, Val(n), t(n)))),
    );
}

#[test]
fn a_set_under_a_policy_asks_for_one_snapshot_and_for_what_decides_it() {
    let _alone = alone();
    let keys = keys();
    for policy in common::POLICIES {
        let cache = common::cache_with::<String, Val>(policy);
        for key in &keys {
            cache.set(key.as_str(), Val(0), t(0));
        }
        // Under `Monotonic` the global time has a say at the instant of the swap.
        let times = match policy {
            WritePolicy::Monotonic => 2.0,
            _ => 1.0,
        };
        about(
            times,
            asked(&keys, |n, key| assert!(cache.set(key, Val(n), t(n)))),
        );
    }
}

#[test]
fn an_observation_asks_for_one_snapshot() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    about(
        1.0,
        asked(&keys, |n, key| cache.set_observed_time(key, t(n))),
    );
}

#[test]
fn a_refused_set_does_not_outweigh_a_stored_one() {
    let _alone = alone();
    let keys = keys();
    let cache = common::cache_with::<String, Val>(WritePolicy::RejectOlder);
    for key in &keys {
        cache.set(key.as_str(), Val(0), t(9));
    }
    let asked = asked(&keys, |n, key| assert!(!cache.set(key, Val(n), t(5))));
    assert!(asked.calls as u64 <= TIMES, "{asked:?}");
}

#[test]
fn update_time_with_nobody_waiting_asks_for_little() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let asked = asked(&keys, |n, _| cache.update_time(t(n)));
    assert!((asked.calls as f64) < 1.1 * TIMES as f64, "{asked:?}");
    assert!((asked.bytes as f64) < 128.0 * TIMES as f64, "{asked:?}");
}

#[test]
fn a_wait_that_comes_and_goes_asks_for_little() {
    let _alone = alone();
    let keys = keys();
    let cache = warm(&keys);
    let asked = asked(&keys, |_, key| drop(cache.subscribe(key, t(500))));
    assert!(asked.calls as u64 <= 12 * TIMES, "{asked:?}");
    assert!(asked.bytes as u64 <= 1_024 * TIMES, "{asked:?}");
}

#[test]
fn iteration_asks_by_the_table_and_not_by_the_key() {
    let _alone = alone();
    let cache: Cache<u64, Val> = Cache::new();
    for key in 0..10_000 {
        cache.set(&key, Val(key), t(1));
    }
    let (asked, count) = asked_by(|| cache.iter().count());
    assert_eq!(count, 10_000);
    assert!(asked.calls < 100, "{asked:?}");
}
