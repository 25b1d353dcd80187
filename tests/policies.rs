//! The three write policies.

mod common;

use common::model::Seen;
use common::values::Val;
use common::wakers::ready;
use common::{cache_with, t};
use podcache::{Cache, Snapshot, WritePolicy};

fn seen(cache: &Cache<u8, Val>) -> Seen {
    Seen::of(&cache.get(&1))
}

fn overwrite() -> Cache<u8, Val> {
    cache_with(WritePolicy::Overwrite)
}

fn reject_older() -> Cache<u8, Val> {
    cache_with(WritePolicy::RejectOlder)
}

fn monotonic() -> Cache<u8, Val> {
    cache_with(WritePolicy::Monotonic)
}

#[test]
fn overwrite_is_the_default() {
    assert_eq!(WritePolicy::default(), WritePolicy::Overwrite);
    for cache in [
        Cache::new(),
        Cache::with_capacity(100),
        Cache::builder().build(),
    ] {
        cache.set(&1, Val(1), t(9));
        assert!(cache.set(&1, Val(2), t(1)));
        assert_eq!(seen(&cache), Seen::set(2, 1));
    }
}

// Overwrite

#[test]
fn overwrite_stores_every_set_and_times_go_back() {
    let cache = overwrite();
    cache.update_time(t(100));
    for (n, ts) in [(1, 9), (2, 9), (3, 1), (4, 0), (5, 50)] {
        assert!(cache.set(&1, Val(n), t(ts)));
        assert_eq!(seen(&cache), Seen::set(n, ts));
    }
    assert!(cache.delete(&1));
    assert!(
        cache.set(&1, Val(6), t(0)),
        "an old set brings a deleted key back"
    );
}

#[test]
fn overwrite_wakes_by_an_older_set_too() {
    let cache = overwrite();
    cache.set(&1, Val(1), t(9));
    cache.set_observed_time(&1, t(3));
    cache.set(&1, Val(2), t(4));
    let waiting = cache.subscribe(&1, t(4));
    cache.set(&1, Val(3), t(4));
    assert_eq!(
        ready(&waiting).as_ref().map(Seen::of),
        Some(Seen::set(3, 4))
    );
}

// RejectOlder

#[test]
fn reject_older_refuses_only_what_is_older_than_modified() {
    let cache = reject_older();
    assert!(cache.set(&1, Val(1), t(5)));
    assert!(!cache.set(&1, Val(2), t(4)));
    assert_eq!(
        seen(&cache),
        Seen::set(1, 5),
        "a refused set changes nothing"
    );
    assert!(cache.set(&1, Val(3), t(5)), "equal is stored");
    assert_eq!(seen(&cache), Seen::set(3, 5));
    assert!(cache.set(&1, Val(4), t(6)));
    assert_eq!(seen(&cache), Seen::set(4, 6));
}

#[test]
fn reject_older_cares_neither_for_observed_nor_for_the_global_time() {
    let cache = reject_older();
    cache.set(&1, Val(1), t(5));
    cache.set_observed_time(&1, t(90));
    cache.update_time(t(99));
    assert!(cache.set(&1, Val(2), t(6)));
    assert_eq!(seen(&cache), Seen::set(2, 6));
    cache.set_observed_time(&1, t(2));
    assert!(
        !cache.set(&1, Val(3), t(5)),
        "observed going back does not open the gate"
    );
}

#[test]
fn reject_older_forgets_a_deleted_key() {
    let cache = reject_older();
    cache.set(&1, Val(1), t(5));
    cache.delete(&1);
    assert!(cache.set(&1, Val(2), t(1)), "no record, no refusal");
}

#[test]
fn reject_older_moves_observed_and_global_time_backwards() {
    let cache = reject_older();
    cache.set(&1, Val(1), t(5));
    cache.set_observed_time(&1, t(3));
    let expected = Seen {
        value: 1,
        times: Some((5, 3)),
    };
    assert_eq!(seen(&cache), expected);
    cache.update_time(t(9));
    cache.update_time(t(4));
    assert_eq!(cache.global_time(), t(4));
}

// Monotonic

/// Under the other policies a waiter that a refused set's time would name cannot be: the record that
/// refuses the set is newer than it, and would have woken the waiter.
#[test]
fn monotonic_wakes_nobody_by_a_refused_set_even_whom_its_time_would_name() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(3));
    cache.delete_at(&1, t(9));
    let waiting = cache.subscribe(&1, t(5));
    assert!(!cache.set(&1, Val(2), t(7)));
    assert!(waiting.try_get().is_none());
    assert_eq!(cache.waiters(), 1);
    assert!(cache.set(&1, Val(3), t(9)));
    assert_eq!(
        ready(&waiting).as_ref().map(Seen::of),
        Some(Seen::set(3, 9))
    );
}

#[test]
fn monotonic_refuses_what_is_older_than_modified_observed_or_global() {
    let cache = monotonic();
    assert!(cache.set(&1, Val(1), t(5)));
    assert!(!cache.set(&1, Val(2), t(4)));
    assert!(cache.set(&1, Val(3), t(5)), "equal to modified is stored");
    cache.set_observed_time(&1, t(8));
    assert!(!cache.set(&1, Val(4), t(7)));
    let expected = Seen {
        value: 3,
        times: Some((5, 8)),
    };
    assert_eq!(seen(&cache), expected, "a refused set changes nothing");
    assert!(cache.set(&1, Val(5), t(8)), "equal to observed is stored");
    cache.update_time(t(10));
    assert!(!cache.set(&1, Val(6), t(9)));
    assert!(
        !cache.set(&2, Val(6), t(9)),
        "the global time speaks for missing keys too"
    );
    assert!(!cache.contains(&2));
    assert!(
        cache.set(&1, Val(7), t(10)),
        "equal to the global time is stored"
    );
    assert!(cache.set(&2, Val(8), t(10)));
}

#[test]
fn monotonic_keeps_the_larger_observed_time() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    for (told, kept) in [(3, 5), (8, 8), (6, 8), (9, 9)] {
        cache.set_observed_time(&1, t(told));
        let expected = Seen {
            value: 1,
            times: Some((5, kept)),
        };
        assert_eq!(seen(&cache), expected);
    }
}

#[test]
fn monotonic_keeps_the_larger_global_time() {
    let cache = monotonic();
    for (told, kept) in [(5, 5), (3, 5), (5, 5), (8, 8), (0, 8)] {
        cache.update_time(t(told));
        assert_eq!(cache.global_time(), t(kept));
    }
}

#[test]
fn monotonic_times_that_change_nothing_still_wake_whom_they_name() {
    let cache = monotonic();
    cache.update_time(t(5));
    let by_update = cache.subscribe(&2, t(5));
    cache.update_time(t(5));
    assert!(ready(&by_update).is_some());

    cache.set(&1, Val(1), t(6));
    cache.set_observed_time(&1, t(8));
    let by_observed = cache.subscribe(&1, t(8));
    cache.set_observed_time(&1, t(7));
    assert!(
        by_observed.try_get().is_none(),
        "7 does not name who waits for 8"
    );
    cache.set_observed_time(&1, t(8));
    assert!(ready(&by_observed).is_some());
}

#[test]
fn monotonic_does_not_bring_a_deleted_key_back_by_a_late_set() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    cache.set_observed_time(&1, t(8));
    assert!(
        cache.delete(&1),
        "delete uses what the cache vouches for: 8"
    );
    assert!(!cache.contains(&1));
    assert!(!cache.set(&1, Val(2), t(7)));
    assert!(!cache.contains(&1));
    assert!(cache.set(&1, Val(3), t(8)), "equal is stored");
    assert_eq!(seen(&cache), Seen::set(3, 8));
}

#[test]
fn monotonic_delete_at_states_the_time_of_the_deletion() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    assert!(cache.delete_at(&1, t(9)));
    assert!(!cache.contains(&1));
    assert!(!cache.set(&1, Val(2), t(8)));
    assert!(cache.set(&1, Val(3), t(9)));
}

#[test]
fn monotonic_refuses_a_delete_at_that_is_older_than_what_it_vouches_for() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    assert!(!cache.delete_at(&1, t(4)), "older than modified");
    cache.set_observed_time(&1, t(8));
    assert!(!cache.delete_at(&1, t(7)), "older than observed");
    cache.update_time(t(10));
    assert!(!cache.delete_at(&1, t(9)), "older than the global time");
    let expected = Seen {
        value: 1,
        times: Some((5, 8)),
    };
    assert_eq!(seen(&cache), expected);
    assert!(cache.delete_at(&1, t(10)), "equal is done");
    assert!(!cache.contains(&1));
}

#[test]
fn monotonic_deletions_do_not_go_back_either() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    assert!(cache.delete_at(&1, t(9)));
    assert!(!cache.delete_at(&1, t(7)));
    assert!(!cache.delete(&1));
    assert!(!cache.set(&1, Val(2), t(8)), "still deleted as of 9");
    assert!(!cache.delete_at(&1, t(12)), "there is no record to remove");
    assert!(
        !cache.set(&1, Val(3), t(11)),
        "but it is now known to be gone as of 12"
    );
    assert!(cache.set(&1, Val(4), t(12)));
}

#[test]
fn monotonic_deletion_is_no_record_to_readers() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    cache.delete_at(&1, t(9));
    assert_eq!(seen(&cache), Seen::default_of(1));
    assert!(
        cache.try_get_newer_than(&1, t(1)).is_none(),
        "a deletion makes nothing fresh"
    );
    assert!(cache.is_empty());
    assert_eq!(cache.iter().count(), 0);
    assert_eq!(cache.keys().count(), 0);
    assert!(cache.pin().get(&1).is_none());
    let waiting = cache.subscribe(&1, t(1));
    assert!(waiting.try_get().is_none());
    cache.set_observed_time(&1, t(1));
    assert_eq!(
        ready(&waiting).as_ref().map(Seen::of),
        Some(Seen::default_of(1))
    );
}

#[test]
fn monotonic_deletion_keeps_the_waiters() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    let waiting = cache.subscribe(&1, t(7));
    cache.delete_at(&1, t(9));
    assert!(waiting.try_get().is_none());
    assert_eq!(cache.waiters(), 1);
    assert!(!cache.set(&1, Val(2), t(8)));
    assert!(waiting.try_get().is_none(), "refused: wakes nobody");
    cache.update_time(t(9));
    let got: Snapshot<Val> = ready(&waiting).unwrap();
    assert_eq!(Seen::of(&got), Seen::default_of(1));
}

#[test]
fn monotonic_remembers_no_deletion_that_the_global_time_has_passed() {
    let cache = monotonic();
    cache.set(&1, Val(1), t(5));
    cache.delete_at(&1, t(9));
    cache.update_time(t(9));
    assert!(
        !cache.set(&1, Val(2), t(8)),
        "the global time refuses it now"
    );
    assert!(cache.set(&1, Val(3), t(9)));
}

#[test]
fn delete_at_is_delete_under_the_other_policies() {
    for cache in [overwrite(), reject_older()] {
        assert!(!cache.delete_at(&1, t(9)));
        cache.set(&1, Val(1), t(5));
        cache.update_time(t(20));
        assert!(cache.delete_at(&1, t(1)), "its time plays no part");
        assert!(!cache.contains(&1));
        assert!(cache.set(&1, Val(2), t(0)), "nothing is remembered");
    }
}
