//! One listing as one call: against the same done by hand, under every policy, with waiters.

mod common;

use std::collections::BTreeMap;

use common::model::Seen;
use common::trap::{self, Place};
use common::values::Val;
use common::wakers::{TestWaker, ready};
use common::{POLICIES, cache_with, t};
use podcache::{Cache, RelistSummary, Subscription, WritePolicy};
use proptest::collection::vec;
use proptest::prelude::*;

type Pods = Cache<u8, Val>;

fn pods<const N: usize>(listing: [(u8, u64); N]) -> [(u8, Val); N] {
    listing.map(|(key, value)| (key, Val(value)))
}

fn seen(cache: &Pods) -> BTreeMap<u8, Seen> {
    let records = cache.iter();
    records
        .map(|(key, snapshot)| (key, Seen::of(&snapshot)))
        .collect()
}

#[test]
fn sets_what_changed_leaves_the_rest_and_deletes_what_is_gone() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        let first = cache.relist(t(5), pods([(1, 10), (2, 20), (3, 30)]));
        assert_eq!((first.set, first.unchanged, first.deleted), (3, 0, 0));

        let second = cache.relist(t(8), pods([(1, 10), (3, 31), (4, 40)]));
        assert_eq!((second.set, second.unchanged, second.deleted), (2, 1, 1));
        assert_eq!((second.refused, second.duplicates), (0, 0));
        let expected = [
            (1, Seen::set(10, 5)),
            (3, Seen::set(31, 8)),
            (4, Seen::set(40, 8)),
        ];
        assert_eq!(seen(&cache), expected.into(), "{policy:?}");
        assert_eq!(cache.global_time(), t(8));
    }
}

#[test]
fn an_unchanged_record_is_the_same_snapshot() {
    let cache: Pods = Cache::new();
    cache.set(&1, Val(10), t(5));
    let before = cache.get(&1);
    cache.relist(t(8), pods([(1, 10)]));
    assert!(cache.get(&1).same_value(&before));
    assert!(cache.try_get_newer_than(&1, t(7)).is_some(), "vouched for");
}

#[test]
fn of_duplicates_the_last_one_counts() {
    let cache: Pods = Cache::new();
    let summary = cache.relist(t(5), pods([(1, 10), (2, 20), (1, 11), (1, 12), (2, 20)]));
    assert_eq!((summary.set, summary.duplicates), (2, 3));
    assert_eq!(
        seen(&cache),
        [(1, Seen::set(12, 5)), (2, Seen::set(20, 5))].into()
    );
    // A duplicate is not compared with the one before it: only the last one is there.
    let summary = cache.relist(t(6), pods([(1, 99), (2, 20), (1, 12)]));
    assert_eq!(
        (summary.set, summary.unchanged, summary.duplicates),
        (0, 2, 1)
    );
}

#[test]
fn an_empty_listing_is_taken_for_a_fault() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        cache.relist(t(5), pods([(1, 10)]));
        let wait = cache.subscribe(&2, t(6));

        let summary = cache.relist(t(8), []);
        assert!(summary.ignored_empty);
        let mut expected = RelistSummary::default();
        expected.ignored_empty = true;
        assert_eq!(summary, expected);
        assert_eq!(cache.relist_results::<()>(t(8), []), (expected, Vec::new()));
        assert_eq!(seen(&cache), [(1, Seen::set(10, 5))].into());
        assert_eq!(cache.global_time(), t(5));
        assert!(ready(&wait).is_none());

        let summary = cache.relist_or_clear(t(8), []);
        assert!(!summary.ignored_empty);
        assert_eq!(summary.deleted, 1);
        assert!(cache.is_empty(), "{policy:?}");
        assert_eq!(cache.global_time(), t(8));
        assert_eq!(Seen::of(&ready(&wait).unwrap()), Seen::default_of(2));
    }
}

#[test]
fn relist_or_clear_of_something_is_relist() {
    let cache: Pods = Cache::new();
    cache.set(&2, Val(20), t(1));
    let summary = cache.relist_or_clear(t(5), pods([(1, 10)]));
    assert_eq!((summary.set, summary.deleted), (1, 1));
    assert_eq!(seen(&cache), [(1, Seen::set(10, 5))].into());
}

#[test]
fn under_monotonic_what_is_newer_stays() {
    let cache: Pods = cache_with(WritePolicy::Monotonic);
    cache.set(&1, Val(10), t(9)); // newer, and listed as it was before
    cache.set(&2, Val(20), t(9)); // newer, and not listed
    cache.set(&3, Val(30), t(3)); // gone
    cache.set(&4, Val(40), t(8)); // as old as the listing: gone
    let summary = cache.relist(t(8), pods([(1, 1), (5, 50)]));
    assert_eq!((summary.set, summary.deleted, summary.refused), (1, 2, 2));
    let expected = [
        (1, Seen::set(10, 9)),
        (2, Seen::set(20, 9)),
        (5, Seen::set(50, 8)),
    ];
    assert_eq!(seen(&cache), expected.into());

    // A listing older than what is vouched for changes nothing at all.
    let summary = cache.relist(t(7), pods([(6, 60)]));
    assert_eq!((summary.set, summary.deleted, summary.refused), (0, 0, 4));
    assert_eq!(seen(&cache), expected.into());
    assert_eq!(cache.global_time(), t(8));
}

#[test]
fn under_reject_older_a_newer_record_is_not_overwritten() {
    let cache: Pods = cache_with(WritePolicy::RejectOlder);
    cache.set(&1, Val(10), t(9));
    let summary = cache.relist(t(8), pods([(1, 1)]));
    assert_eq!((summary.set, summary.refused), (0, 1));
    assert_eq!(seen(&cache), [(1, Seen::set(10, 9))].into());
}

#[test]
fn waiters_get_what_the_listing_found() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        cache.relist(t(5), pods([(1, 10), (2, 20), (3, 30)]));
        let waits: Vec<Subscription<Val>> =
            (1..=4).map(|key| cache.subscribe(&key, t(8))).collect();
        let later = cache.subscribe(&1, t(9));
        cache.relist(t(8), pods([(1, 10), (2, 21)]));
        let got: Vec<Seen> = waits
            .iter()
            .map(|wait| Seen::of(&ready(wait).expect("served")))
            .collect();
        let expected = [
            Seen::set(10, 5),
            Seen::set(21, 8),
            Seen::default_of(3),
            Seen::default_of(4),
        ];
        assert_eq!(got, expected, "{policy:?}");
        assert!(ready(&later).is_none());
    }
}

#[test]
fn an_error_keeps_its_record_and_the_global_time() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        cache.relist(t(5), pods([(1, 10), (2, 20), (3, 30), (4, 40)]));
        let waits: Vec<Subscription<Val>> =
            (1..=5).map(|key| cache.subscribe(&key, t(8))).collect();
        let listing = [
            (1, Ok(Val(10))),
            (2, Err("no answer")),
            (3, Ok(Val(31))),
            (5, Err("no answer either")),
        ];
        let (summary, mut errors) = cache.relist_results(t(8), listing);
        errors.sort_unstable();
        assert_eq!(errors, [(2, "no answer"), (5, "no answer either")]);
        assert_eq!(
            (
                summary.set,
                summary.unchanged,
                summary.deleted,
                summary.refused
            ),
            (1, 1, 1, 0)
        );
        let confirmed = Seen {
            value: 10,
            times: Some((5, 8)),
        };
        let expected = [(1, confirmed), (2, Seen::set(20, 5)), (3, Seen::set(31, 8))];
        assert_eq!(seen(&cache), expected.into(), "{policy:?}");
        assert_eq!(cache.global_time(), t(5), "it would vouch for pod 2");
        let got: Vec<Option<Seen>> = waits
            .iter()
            .map(|wait| ready(wait).map(|snapshot| Seen::of(&snapshot)))
            .collect();
        let expected = [
            Some(confirmed),
            None,
            Some(Seen::set(31, 8)),
            Some(Seen::default_of(4)),
            None,
        ];
        assert_eq!(got, expected, "{policy:?}");
    }
}

#[test]
fn results_without_an_error_are_a_relist() {
    let cache: Pods = Cache::new();
    cache.set(&2, Val(20), t(1));
    let (summary, errors) = cache.relist_results::<()>(t(8), [(1, Ok(Val(10)))]);
    assert_eq!((summary.set, summary.deleted), (1, 1));
    assert!(errors.is_empty());
    assert_eq!(cache.global_time(), t(8));
}

#[test]
fn of_duplicates_the_last_one_counts_be_it_an_error_or_not() {
    let cache: Pods = Cache::new();
    let listing = [
        (1, Err("first")),
        (1, Ok(Val(10))),
        (2, Ok(Val(20))),
        (2, Err("last")),
    ];
    let (summary, errors) = cache.relist_results(t(8), listing);
    assert_eq!((summary.set, summary.duplicates), (1, 2));
    assert_eq!(errors, [(2, "last")]);
    assert_eq!(seen(&cache), [(1, Seen::set(10, 8))].into());
}

#[test]
fn takes_maps() {
    let cache: Pods = Cache::new();
    let map: BTreeMap<u8, Val> = pods([(1, 10), (2, 20)]).into();
    assert_eq!(cache.relist(t(5), map).set, 2);
}

#[test]
fn a_comparison_that_panics_leaves_the_global_time() {
    #[derive(Debug)]
    struct Touchy(u8);
    impl PartialEq for Touchy {
        fn eq(&self, other: &Self) -> bool {
            assert_ne!(other.0, 13, "not that one");
            self.0 == other.0
        }
    }
    impl podcache::DefaultFor<u8> for Touchy {
        fn default_for(_: &u8) -> Self {
            Touchy(0)
        }
    }
    let cache: Cache<u8, Touchy> = Cache::new();
    cache.relist(t(5), [(1, Touchy(1))]);
    let bad = std::panic::AssertUnwindSafe(|| cache.relist(t(8), [(1, Touchy(13))]));
    assert!(std::panic::catch_unwind(bad).is_err());
    assert_eq!(cache.global_time(), t(5));
    assert_eq!(cache.relist(t(9), [(1, Touchy(2))]).set, 1);
    assert_eq!(cache.get(&1).value().0, 2);
}

/// What comes before and between the relists.
#[derive(Clone, Debug)]
enum Step {
    Set(u8, u64, u64),
    Observe(u8, u64),
    Delete(u8),
    Subscribe(u8, u64),
    Relist(u64, Vec<(u8, Result<u64, u16>)>, bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..5_u8;
    let value = 0..3_u64;
    let time = 1..12_u64;
    // Errors are rare: a listing with one is another path.
    let pod = prop_oneof![
        12 => value.clone().prop_map(Ok),
        1 => any::<u16>().prop_map(Err),
    ];
    let listing = vec((key.clone(), pod), 0..7);
    vec(
        prop_oneof![
            3 => (key.clone(), value, time.clone()).prop_map(|(k, v, t)| Step::Set(k, v, t)),
            1 => (key.clone(), time.clone()).prop_map(|(k, t)| Step::Observe(k, t)),
            1 => key.clone().prop_map(Step::Delete),
            4 => (key, time.clone()).prop_map(|(k, t)| Step::Subscribe(k, t)),
            3 => (time, listing, any::<bool>()).prop_map(|(t, l, c)| Step::Relist(t, l, c)),
        ],
        1..25,
    )
}

/// The relist as a user would write it, with the calls there are without it.
fn by_hand(
    cache: &Pods,
    policy: WritePolicy,
    time: u64,
    listing: &[(u8, Result<u64, u16>)],
    may_be_empty: bool,
) -> (RelistSummary, BTreeMap<u8, u16>) {
    let mut summary = RelistSummary::default();
    let last: BTreeMap<u8, Result<u64, u16>> = listing.iter().copied().collect();
    summary.duplicates = listing.len() - last.len();
    if last.is_empty() && !may_be_empty {
        summary.ignored_empty = true;
        return (summary, BTreeMap::new());
    }
    let errors: BTreeMap<u8, u16> = last
        .iter()
        .filter_map(|(key, pod)| pod.err().map(|error| (*key, error)))
        .collect();
    for (key, pod) in &last {
        let Ok(value) = *pod else { continue };
        let present = cache.get(key);
        if present.is_present() && present.value().0 == value {
            summary.unchanged += 1;
            if !errors.is_empty() {
                cache.set_observed_time(key, t(time));
            }
        } else if cache.set(key, Val(value), t(time)) {
            summary.set += 1;
        } else {
            summary.refused += 1;
        }
    }
    for key in cache.keys().collect::<Vec<_>>() {
        if last.contains_key(&key) {
            continue;
        }
        let deleted = match policy {
            WritePolicy::Monotonic => cache.delete_at(&key, t(time)),
            _ => cache.delete(&key),
        };
        if deleted {
            summary.deleted += 1;
            if !errors.is_empty() {
                cache.set_observed_time(&key, t(time));
            }
        } else {
            summary.refused += 1;
        }
    }
    if errors.is_empty() {
        cache.update_time(t(time));
    }
    (summary, errors)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(common::rounds(400) as u32))]

    #[test]
    fn as_by_hand(policy in 0..POLICIES.len(), steps in steps()) {
        let policy = POLICIES[policy];
        let (ours, hand): (Pods, Pods) = (cache_with(policy), cache_with(policy));
        let mut waits = Vec::new();
        for step in steps {
            match step {
                Step::Set(key, value, time) => {
                    for cache in [&ours, &hand] {
                        cache.set(&key, Val(value), t(time));
                    }
                }
                Step::Observe(key, time) => {
                    for cache in [&ours, &hand] {
                        cache.set_observed_time(&key, t(time));
                    }
                }
                Step::Delete(key) => {
                    for cache in [&ours, &hand] {
                        cache.delete(&key);
                    }
                }
                Step::Subscribe(key, min) => {
                    waits.push([&ours, &hand].map(|cache| cache.subscribe(&key, t(min))));
                }
                Step::Relist(time, listing, may_be_empty) => {
                    let pods = listing.iter().map(|(key, pod)| (*key, pod.map(Val)));
                    let all_well = listing.iter().all(|(_, pod)| pod.is_ok());
                    let (done, errors) = if all_well {
                        let pods = pods.map(|(key, pod)| (key, pod.unwrap()));
                        let done = match may_be_empty {
                            true => ours.relist_or_clear(t(time), pods),
                            false => ours.relist(t(time), pods),
                        };
                        (done, Vec::new())
                    } else {
                        ours.relist_results(t(time), pods)
                    };
                    let expected = by_hand(&hand, policy, time, &listing, may_be_empty);
                    prop_assert_eq!((done, errors.into_iter().collect()), expected);
                }
            }
            prop_assert_eq!(seen(&ours), seen(&hand));
            prop_assert_eq!(ours.global_time(), hand.global_time());
            for [ours, hand] in &waits {
                let seen = |wait| ready(wait).map(|snapshot| Seen::of(&snapshot));
                prop_assert_eq!(seen(ours), seen(hand));
            }
        }
        prop_assert_eq!(ours.waiters(), hand.waiters());
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_from_what_was_listed() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        for key in 0..10 {
            cache.set(&key, Val(1), t(1));
        }
        let [woken, others] = [TestWaker::new(), TestWaker::new()];
        let mut wait = cache.subscribe(&3, t(5));
        assert!(woken.poll(&mut wait).is_pending());
        let mut waits: Vec<_> = (0..20).map(|key| cache.subscribe(&key, t(5))).collect();
        for wait in &mut waits {
            assert!(others.poll(wait).is_pending());
        }
        let listing = (0..9).map(|key| (key, Val(2)));
        let relisted = trap::panics(Place::Wake, 0, || cache.relist(t(10), listing));
        assert!(relisted.is_none(), "the panic is passed on");
        assert!(waits.iter().all(|wait| ready(wait).is_some()));
        assert_eq!(cache.global_time(), t(10));
        let expected = (0..9).map(|key| (key, Seen::set(2, 10)));
        assert_eq!(seen(&cache), expected.collect(), "{policy:?}");
        assert_eq!(cache.waiters(), 0);
    }
}
