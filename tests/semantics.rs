//! What each operation does, one after the other, in one thread.

mod common;

use std::task::Poll;

use common::model::{Outcome, Seen};
use common::t;
use common::values::Val;
use common::wakers::{TestWaker, is_timed_out, ready};
use common::watchdog::Watchdog;
use podcache::{Cache, Subscription, Timestamp};
use std::time::Duration;

type Call = fn(&Cache<u8, Val>);

fn seen(cache: &Cache<u8, Val>, key: u8) -> Seen {
    Seen::of(&cache.get(&key))
}

fn come_to(subscription: &Subscription<Val>) -> Option<Seen> {
    ready(subscription).as_ref().map(Seen::of)
}

// get

#[test]
fn get_of_a_missing_key_is_its_default_and_no_record() {
    let cache: Cache<u8, Val> = Cache::new();
    let snapshot = cache.get(&7);
    assert_eq!(*snapshot.value(), Val::default_of(7));
    assert!(!snapshot.is_present());
    assert_eq!((snapshot.modified(), snapshot.observed()), (None, None));
    assert!(cache.is_empty(), "reading stores nothing");
    assert!(!cache.contains(&7));
    assert_eq!(cache.iter().count(), 0);
}

#[test]
fn get_of_a_missing_key_is_a_default_however_new_the_global_time() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.update_time(t(10));
    assert_eq!(seen(&cache, 7), Seen::default_of(7));
}

#[test]
fn each_missing_key_has_its_own_default() {
    let cache: Cache<u8, Val> = Cache::new();
    assert_eq!(seen(&cache, 1), Seen::default_of(1));
    assert_eq!(seen(&cache, 2), Seen::default_of(2));
}

// set

#[test]
fn set_stores_value_and_both_times() {
    let cache: Cache<u8, Val> = Cache::new();
    assert!(cache.set(&1, Val(11), t(5)));
    assert_eq!(seen(&cache, 1), Seen::set(11, 5));
    assert!(cache.contains(&1));
    assert_eq!(cache.len(), 1);
    assert!(!cache.contains(&2), "other keys are other keys");
    assert_eq!(cache.global_time(), Timestamp::ZERO);
}

#[test]
fn set_replaces_the_record_whole_also_with_an_older_one() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    cache.set_observed_time(&1, t(9));
    assert!(cache.set(&1, Val(12), t(3)));
    assert_eq!(
        seen(&cache, 1),
        Seen::set(12, 3),
        "observed is not kept across a set"
    );
    assert_eq!(cache.len(), 1);
}

#[test]
fn set_wakes_this_keys_waiters_that_it_satisfies_and_no_others() {
    let cache: Cache<u8, Val> = Cache::new();
    let older = cache.subscribe(&1, t(4));
    let equal = cache.subscribe(&1, t(5));
    let newer = cache.subscribe(&1, t(6));
    let other = cache.subscribe(&2, t(4));
    cache.set(&1, Val(11), t(5));
    assert_eq!(come_to(&older), Some(Seen::set(11, 5)));
    assert_eq!(come_to(&equal), Some(Seen::set(11, 5)));
    assert_eq!(come_to(&newer), None);
    assert_eq!(come_to(&other), None);
    assert_eq!(cache.waiters(), 2);
}

// set_observed_time

#[test]
fn observed_time_moves_alone_forwards_and_backwards() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    for observed in [8, 5, 2] {
        cache.set_observed_time(&1, t(observed));
        let expected = Seen {
            value: 11,
            times: Some((5, observed)),
        };
        assert_eq!(seen(&cache, 1), expected);
    }
}

#[test]
fn observing_a_missing_key_wakes_with_the_default_and_stores_nothing() {
    let cache: Cache<u8, Val> = Cache::new();
    let equal = cache.subscribe(&1, t(5));
    let newer = cache.subscribe(&1, t(6));
    let other = cache.subscribe(&2, t(5));
    cache.set_observed_time(&1, t(5));
    assert_eq!(come_to(&equal), Some(Seen::default_of(1)));
    assert_eq!(come_to(&newer), None);
    assert_eq!(come_to(&other), None);
    assert!(cache.is_empty());
    assert!(
        cache.try_get_newer_than(&1, t(4)).is_none(),
        "the observation left nothing"
    );
}

#[test]
fn observing_a_record_wakes_with_the_record_as_observed() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(3));
    let equal = cache.subscribe(&1, t(5));
    let newer = cache.subscribe(&1, t(6));
    cache.set_observed_time(&1, t(5));
    let expected = Seen {
        value: 11,
        times: Some((3, 5)),
    };
    assert_eq!(come_to(&equal), Some(expected));
    assert_eq!(come_to(&newer), None);
}

// delete

#[test]
fn delete_removes_the_record_and_says_whether_there_was_one() {
    let cache: Cache<u8, Val> = Cache::new();
    assert!(!cache.delete(&1));
    cache.set(&1, Val(11), t(5));
    cache.set(&2, Val(12), t(5));
    assert!(cache.delete(&1));
    assert!(!cache.delete(&1));
    assert_eq!(seen(&cache, 1), Seen::default_of(1));
    assert_eq!(seen(&cache, 2), Seen::set(12, 5));
    assert_eq!(cache.len(), 1);
    assert!(cache.try_get_newer_than(&1, t(1)).is_none());
}

#[test]
fn delete_wakes_nobody_and_its_waiters_stay() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    let waiting = cache.subscribe(&1, t(7));
    cache.delete(&1);
    assert_eq!(come_to(&waiting), None);
    assert_eq!(cache.waiters(), 1);
    cache.set(&1, Val(12), t(7));
    assert_eq!(come_to(&waiting), Some(Seen::set(12, 7)));
}

#[test]
fn a_waiter_on_a_deleted_key_gets_the_default_from_the_global_time() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    let waiting = cache.subscribe(&1, t(7));
    cache.delete(&1);
    cache.update_time(t(7));
    assert_eq!(come_to(&waiting), Some(Seen::default_of(1)));
}

// update_time

#[test]
fn global_time_is_zero_while_unset_then_as_told_also_backwards() {
    let cache: Cache<u8, Val> = Cache::new();
    assert_eq!(cache.global_time(), Timestamp::ZERO);
    for ts in [5, 9, 2, 0] {
        cache.update_time(t(ts));
        assert_eq!(cache.global_time(), t(ts));
    }
}

#[test]
fn update_time_wakes_whom_it_satisfies_on_every_key() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(3));
    let on_record = cache.subscribe(&1, t(5));
    let on_nothing = cache.subscribe(&2, t(5));
    let older = cache.subscribe(&2, t(4));
    let newer = [cache.subscribe(&1, t(6)), cache.subscribe(&3, t(6))];
    cache.update_time(t(5));
    assert_eq!(
        come_to(&on_record),
        Some(Seen::set(11, 3)),
        "times of the record stay"
    );
    assert_eq!(come_to(&on_nothing), Some(Seen::default_of(2)));
    assert_eq!(come_to(&older), Some(Seen::default_of(2)));
    assert!(newer.iter().all(|w| come_to(w).is_none()));
    assert_eq!(cache.waiters(), 2);
    assert_eq!(cache.len(), 1, "waking stores nothing");
}

#[test]
fn update_time_backwards_wakes_too_whom_it_names() {
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(20));
    cache.update_time(t(10));
    let equal = cache.subscribe(&1, t(10));
    cache.update_time(t(9));
    assert_eq!(come_to(&equal), None);
    cache.update_time(t(10));
    assert_eq!(come_to(&equal), Some(Seen::default_of(1)));
    assert_eq!(come_to(&waiting), None);
}

#[test]
fn a_set_under_an_older_global_time_is_read_as_it_is() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.update_time(t(10));
    assert!(cache.set(&1, Val(11), t(3)));
    let got = cache
        .try_get_newer_than(&1, t(9))
        .expect("the global time vouches for it");
    assert_eq!(Seen::of(&got), Seen::set(11, 3));
}

// waits

#[test]
fn zero_is_newer_than_nothing() {
    let cache: Cache<u8, Val> = Cache::new();
    assert!(
        cache.try_get_newer_than(&1, Timestamp::ZERO).is_none(),
        "nothing is vouched for"
    );
    cache.set(&1, Val(11), Timestamp::ZERO);
    assert!(cache.try_get_newer_than(&1, Timestamp::ZERO).is_none());
    let waiting = cache.subscribe(&1, Timestamp::ZERO);
    assert_eq!(come_to(&waiting), None);
    cache.set(&1, Val(12), Timestamp::ZERO);
    assert_eq!(
        come_to(&waiting),
        Some(Seen::set(12, 0)),
        "yet zero wakes who waits for zero"
    );
}

#[test]
fn nothing_is_newer_than_the_last_time_but_it_wakes_who_waits_for_it() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), Timestamp::MAX);
    cache.update_time(Timestamp::MAX);
    assert!(cache.try_get_newer_than(&1, Timestamp::MAX).is_none());
    let waiting = cache.subscribe(&1, Timestamp::MAX);
    assert_eq!(come_to(&waiting), None);
    cache.update_time(Timestamp::MAX);
    assert!(come_to(&waiting).is_some());
}

#[test]
fn try_get_newer_than_registers_nothing() {
    let cache: Cache<u8, Val> = Cache::new();
    assert!(cache.try_get_newer_than(&1, t(5)).is_none());
    assert_eq!(cache.waiters(), 0);
    assert!(cache.is_empty());
    cache.set(&1, Val(11), t(6));
    let got = cache.try_get_newer_than(&1, t(5)).unwrap();
    assert_eq!(Seen::of(&got), Seen::set(11, 6));
}

#[test]
fn a_subscription_is_registered_when_subscribe_returns() {
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(5));
    assert_eq!(cache.waiters(), 1);
    assert_eq!(come_to(&waiting), None);
    drop(waiting);
    assert_eq!(cache.waiters(), 0);
}

#[test]
fn a_subscription_on_a_fresh_key_is_ready_and_not_registered() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(6));
    let waiting = cache.subscribe(&1, t(5));
    assert_eq!(cache.waiters(), 0);
    assert_eq!(come_to(&waiting), Some(Seen::set(11, 6)));
    cache.set(&1, Val(12), t(7));
    assert_eq!(
        come_to(&waiting),
        Some(Seen::set(11, 6)),
        "chosen at the entry"
    );
}

#[test]
fn waiters_counts_those_neither_woken_nor_gone() {
    let cache: Cache<u8, Val> = Cache::new();
    let mut waits: Vec<_> = (0..10).map(|n| cache.subscribe(&(n % 3), t(5))).collect();
    assert_eq!(cache.waiters(), 10);
    waits.truncate(7);
    assert_eq!(cache.waiters(), 7);
    cache.set(&0, Val(1), t(5));
    assert_eq!(cache.waiters(), 4, "waits 0, 3 and 6 are over");
    cache.update_time(t(5));
    assert_eq!(cache.waiters(), 0);
    assert!(waits.iter().all(|w| come_to(w).is_some()));
}

// the points that are easy to lose

#[test]
fn the_same_question_after_an_equal_time_wake_waits_again() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let wakes: [(&str, Call); 3] = [
        ("set", |c| assert!(c.set(&1, Val(1), t(5)))),
        ("set_observed_time", |c| c.set_observed_time(&1, t(5))),
        ("update_time", |c| c.update_time(t(5))),
    ];
    for (name, wake) in wakes {
        let first = cache.subscribe(&1, t(5));
        assert_eq!(come_to(&first), None, "before {name}");
        wake(&cache);
        assert!(come_to(&first).is_some(), "{name} wakes by an equal time");
        assert!(
            cache.try_get_newer_than(&1, t(5)).is_none(),
            "{name} is not newer"
        );
        let again = cache.subscribe(&1, t(5));
        assert_eq!(come_to(&again), None, "the entry is strict after {name}");
        let timed = cache.get_newer_than_timeout(&1, t(5), Duration::ZERO);
        assert!(is_timed_out(&timed));
    }
}

#[test]
fn what_comes_after_the_wake_does_not_change_what_the_waiter_gets() {
    let after: [Call; 5] = [
        |c| assert!(c.delete(&1)),
        |c| assert!(c.set(&1, Val(99), t(1))),
        |c| assert!(c.set(&1, Val(99), t(9))),
        |c| c.set_observed_time(&1, t(9)),
        |c| c.update_time(t(9)),
    ];
    for (n, after) in after.into_iter().enumerate() {
        let cache: Cache<u8, Val> = Cache::new();
        let waiting = cache.subscribe(&1, t(5));
        cache.set(&1, Val(137), t(5));
        after(&cache);
        assert_eq!(come_to(&waiting), Some(Seen::set(137, 5)), "after call {n}");
        assert_eq!(
            Outcome::of(&waiting.wait()),
            Some(Outcome::Ready(Seen::set(137, 5)))
        );
    }
}

#[test]
fn the_first_call_that_names_a_waiter_chooses_its_snapshot() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(10), t(1));
    let by_update = cache.subscribe(&1, t(5));
    cache.update_time(t(5));
    cache.set(&1, Val(11), t(6));
    assert_eq!(come_to(&by_update), Some(Seen::set(10, 1)));
}

#[test]
fn an_older_set_that_names_nobody_is_what_a_later_wake_hands_out() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(10), t(4));
    let waiting = cache.subscribe(&1, t(5));
    cache.set(&1, Val(11), t(2));
    assert_eq!(come_to(&waiting), None);
    cache.update_time(t(5));
    assert_eq!(come_to(&waiting), Some(Seen::set(11, 2)));
}

#[test]
fn a_snapshot_is_immutable_and_outlives_its_record_and_its_cache() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    let kept = cache.get(&1);
    cache.set_observed_time(&1, t(9));
    cache.set(&1, Val(12), t(10));
    cache.delete(&1);
    assert_eq!(Seen::of(&kept), Seen::set(11, 5));
    drop(cache);
    assert_eq!(Seen::of(&kept.clone()), Seen::set(11, 5));
}

#[test]
fn snapshots_of_one_record_share_its_value() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    let before = cache.get(&1);
    cache.set_observed_time(&1, t(9));
    let after = cache.get(&1);
    assert!(
        std::ptr::eq(before.value(), after.value()),
        "observing copies no value"
    );
    assert!(std::ptr::eq(before.value(), &*before.clone()));
}

#[test]
fn all_waiters_of_one_set_share_one_value() {
    let cache: Cache<u8, Val> = Cache::new();
    let waits: Vec<_> = (0..5).map(|_| cache.subscribe(&1, t(5))).collect();
    cache.set(&1, Val(11), t(5));
    let record = cache.get(&1);
    for wait in &waits {
        let got = ready(wait).unwrap();
        assert!(std::ptr::eq(got.value(), record.value()));
    }
}

#[test]
fn a_wake_calls_the_waker_once_and_lets_go_of_it() {
    let cache: Cache<u8, Val> = Cache::new();
    let mut waiting = cache.subscribe(&1, t(5));
    let waker = TestWaker::new();
    assert!(waker.poll(&mut waiting).is_pending());
    assert_eq!(waker.handles(), 1);
    cache.set(&1, Val(10), t(4));
    assert_eq!(waker.wakes(), 0, "not named, not woken");
    cache.set(&1, Val(11), t(5));
    cache.set(&1, Val(12), t(6));
    cache.update_time(t(7));
    assert_eq!(waker.wakes(), 1);
    assert_eq!(waker.handles(), 0);
    let Poll::Ready(Ok(got)) = waker.poll(&mut waiting) else {
        panic!("woken, but not ready");
    };
    assert_eq!(Seen::of(&got), Seen::set(11, 5));
}

#[test]
fn clones_are_the_same_cache() {
    let cache: Cache<u8, Val> = Cache::new();
    let clone = cache.clone();
    let waiting = clone.subscribe(&1, t(5));
    cache.set(&1, Val(11), t(5));
    assert_eq!(come_to(&waiting), Some(Seen::set(11, 5)));
    assert_eq!(seen(&clone, 1), Seen::set(11, 5));
    cache.update_time(t(9));
    assert_eq!(clone.global_time(), t(9));
    clone.delete(&1);
    assert!(cache.is_empty());
}

#[test]
fn caches_are_strangers_to_each_other() {
    let one: Cache<u8, Val> = Cache::new();
    let other: Cache<u8, Val> = Cache::new();
    let waiting = other.subscribe(&1, t(5));
    one.set(&1, Val(11), t(5));
    one.update_time(t(5));
    one.close();
    assert_eq!(come_to(&waiting), None);
    assert!(!other.is_closed());
    assert_eq!(other.global_time(), Timestamp::ZERO);
}

#[test]
fn pinned_reads_give_the_record_and_its_times() {
    let cache: Cache<u8, Val> = Cache::new();
    cache.set(&1, Val(11), t(5));
    cache.set_observed_time(&1, t(8));
    let pinned = cache.pin();
    let entry = pinned.get(&1).expect("a record");
    assert_eq!(*entry.value(), Val(11));
    assert_eq!((entry.modified(), entry.observed()), (t(5), t(8)));
    assert!(pinned.get(&2).is_none());
    // What a pinned reader has found stays as it is while he holds on.
    cache.set(&1, Val(12), t(9));
    cache.delete(&1);
    assert_eq!(*entry.value(), Val(11));
    assert_eq!((entry.modified(), entry.observed()), (t(5), t(8)));
    assert!(pinned.get(&1).is_none(), "each look is a new one");
}

#[test]
fn a_read_only_handle_reads_waits_and_iterates() {
    let cache: Cache<u8, Val> = Cache::new();
    let reader = cache.read_only();
    assert_eq!(Seen::of(&reader.get(&1)), Seen::default_of(1));
    assert!(reader.try_get_newer_than(&1, t(4)).is_none());
    let waiting = reader.clone().subscribe(&1, t(5));
    cache.set(&1, Val(11), t(5));
    assert_eq!(come_to(&waiting), Some(Seen::set(11, 5)));
    let waited = reader.get_newer_than(&1, t(4)).unwrap();
    assert_eq!(Seen::of(&waited), Seen::set(11, 5));
    let timed = reader.get_newer_than_timeout(&1, t(5), Duration::ZERO);
    assert!(is_timed_out(&timed));
    let deadline = std::time::Instant::now();
    assert!(is_timed_out(&reader.get_newer_than_deadline(
        &1,
        t(5),
        deadline
    )));
    let items: Vec<_> = reader.iter().collect();
    assert_eq!(items.len(), 1);
    assert_eq!((items[0].0, Seen::of(&items[0].1)), (1, Seen::set(11, 5)));
}

#[test]
fn lookups_take_the_borrowed_form_of_a_key() {
    let cache: Cache<String, Val> = Cache::new();
    let waiting = cache.subscribe("pod", t(5));
    assert!(cache.set("pod", Val(11), t(5)));
    assert!(ready(&waiting).is_some());
    assert_eq!(cache.get("pod").value(), &Val(11));
    assert_eq!(cache.get("absent").value(), &Val::default_of(6));
    cache.set_observed_time("pod", t(6));
    assert!(cache.try_get_newer_than("pod", t(5)).is_some());
    assert!(cache.get_newer_than("pod", t(5)).is_ok());
    assert!(cache.contains("pod"));
    assert_eq!(cache.keys().collect::<Vec<_>>(), ["pod".to_owned()]);
    assert!(cache.pin().get("pod").is_some());
    assert!(cache.delete("pod"));
    // The owned form is a borrowed form of itself.
    let owned = "other".to_owned();
    cache.set(&owned, Val(12), t(5));
    assert_eq!(cache.get(&owned).value(), cache.get("other").value());
}

#[test]
fn a_missing_str_key_is_woken_with_the_default_of_the_owned_key() {
    let cache: Cache<String, Val> = Cache::new();
    let observed = cache.subscribe("pod", t(5));
    cache.set_observed_time("pod", t(5));
    let updated = cache.subscribe("pod", t(5));
    cache.update_time(t(5));
    for waiting in [observed, updated] {
        assert_eq!(ready(&waiting).unwrap().value(), &Val::default_of(3));
    }
}

#[test]
fn a_key_is_cloned_only_when_it_is_new() {
    use std::cell::Cell;
    use std::hash::{Hash, Hasher};
    thread_local!(static CLONES: Cell<usize> = const { Cell::new(0) });

    #[derive(PartialEq, Eq, Debug)]
    struct Key(u64);
    impl Hash for Key {
        fn hash<H: Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    impl Clone for Key {
        fn clone(&self) -> Self {
            CLONES.set(CLONES.get() + 1);
            Self(self.0)
        }
    }
    impl podcache::DefaultFor<Key> for Val {
        fn default_for(key: &Key) -> Self {
            Self::default_of(key.0)
        }
    }

    let cache: Cache<Key, Val> = Cache::new();
    let _ = cache.get(&Key(1));
    assert!(cache.try_get_newer_than(&Key(1), t(1)).is_none());
    cache.set_observed_time(&Key(1), t(1));
    cache.delete(&Key(1));
    assert_eq!(CLONES.get(), 0, "reads of a missing key make no slot");
    cache.set(&Key(1), Val(1), t(1));
    assert_eq!(CLONES.get(), 1, "the first set makes one");
    for n in 2..50 {
        cache.set(&Key(1), Val(n), t(n));
        cache.set_observed_time(&Key(1), t(n));
        let _ = cache.get(&Key(1));
        let waiting = cache.subscribe(&Key(1), t(n + 1));
        assert!(waiting.try_get().is_none());
    }
    assert_eq!(CLONES.get(), 1, "the slot is there");
}
