//! The whole node at once: what a view holds, when it is made anew, by whom, and against writers.

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use common::model::Seen;
use common::race::{Race, StartLine};
use common::values::Val;
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, rounds, t};
use podcache::{Cache, DefaultFor, View, ViewReader};
use proptest::collection::vec;
use proptest::prelude::*;

type Pods = Cache<u8, Val>;

fn seen(view: &View<u8, Val>) -> Vec<(u8, Seen)> {
    view.iter()
        .map(|(key, snapshot)| (*key, Seen::of(snapshot)))
        .collect()
}

#[test]
fn a_sorted_map_of_all_records() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        for key in [7, 3, 9, 1, 5] {
            cache.set(&key, Val(u64::from(key)), t(5));
        }
        cache.delete(&9);
        let _waited_for = cache.subscribe(&8, t(9));
        cache.update_time(t(6));
        let view = cache.view();
        assert_eq!(view.timestamp(), t(6));
        let expected = [1, 3, 5, 7].map(|key| (key, Seen::set(u64::from(key), 5)));
        assert_eq!(seen(&view), expected, "{policy:?}");
        assert_eq!((view.len(), view.is_empty()), (4, false));
        assert!(view.keys().copied().eq([1, 3, 5, 7]));
        assert!(view.iter().rev().map(|(key, _)| *key).eq([7, 5, 3, 1]));
        assert!(view.into_iter().len() == 4 && view.iter().clone().count() == 4);
        assert_eq!(view.get(&3).map(Seen::of), Some(Seen::set(3, 5)));
        assert_eq!((view.contains(&7), view.contains(&9)), (true, false));
        assert!(view.get(&8).is_none(), "waited for is not there");
        assert!(format!("{view:?}").contains("Val(7)"));
    }
}

#[test]
fn an_empty_cache_has_an_empty_view() {
    let cache: Pods = Cache::new();
    let view = cache.view();
    assert_eq!((view.len(), view.is_empty()), (0, true));
    assert_eq!(view.timestamp(), cache.global_time());
    assert!(Arc::ptr_eq(&view, &cache.view()));
}

#[test]
fn borrowed_forms_of_the_key() {
    let cache: Cache<String, Val> = Cache::new();
    cache.set("pod", Val(1), t(5));
    let view = cache.view();
    assert_eq!(view.get("pod").unwrap().value(), &Val(1));
    assert!(view.contains("pod") && !view.contains("dop"));
}

#[test]
fn the_same_until_the_next_update_time() {
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        cache.set(&1, Val(1), t(5));
        cache.update_time(t(5));
        let view = cache.view();
        cache.set(&1, Val(2), t(6));
        cache.set(&2, Val(2), t(6));
        cache.delete(&2);
        cache.set_observed_time(&1, t(7));
        cache.close();
        assert!(Arc::ptr_eq(&view, &cache.view()), "{policy:?}");
        cache.update_time(t(7));
        let next = cache.view();
        assert!(!Arc::ptr_eq(&view, &next));
        assert_eq!(
            seen(&view),
            [(1, Seen::set(1, 5))],
            "the old one stays as it was"
        );
        assert_eq!(view.timestamp(), t(5));
        assert_eq!(next.timestamp(), t(7));
        assert_eq!(next.get(&1).unwrap().value(), &Val(2));
        assert!(Arc::ptr_eq(&next, &cache.view()));
    }
}

#[test]
fn a_restated_or_older_time_makes_a_new_view() {
    let cache: Pods = Cache::new();
    cache.update_time(t(5));
    let first = cache.view();
    cache.set(&1, Val(1), t(5));
    cache.update_time(t(5));
    let second = cache.view();
    assert_eq!((first.len(), second.len()), (0, 1));
    cache.update_time(t(3));
    let third = cache.view();
    assert_eq!(third.timestamp(), t(3));
    assert!(!Arc::ptr_eq(&second, &third));
}

#[test]
fn outlives_the_cache() {
    let cache: Pods = Cache::new();
    cache.set(&1, Val(1), t(5));
    let view = cache.view();
    let mut reader = cache.view_reader();
    drop(cache);
    assert_eq!(seen(&view), [(1, Seen::set(1, 5))]);
    assert!(Arc::ptr_eq(reader.load(), &view));
}

#[test]
fn a_reader_has_the_present_view() {
    let cache: Pods = Cache::new();
    let mut reader: ViewReader<u8, Val> = cache.view_reader();
    for n in 1..20 {
        cache.set(&1, Val(n), t(n));
        assert_eq!(reader.load().timestamp(), t(n - 1));
        cache.update_time(t(n));
        assert!(Arc::ptr_eq(&reader.load().clone(), &cache.view()));
        assert_eq!(seen(reader.load()), [(1, Seen::set(n, n))]);
    }
    assert!(format!("{reader:?}").contains("ViewReader"));
}

#[test]
fn a_view_keeps_its_records_and_nothing_newer() {
    let cache: Cache<u8, Arc<Val>> = Cache::new();
    let old = Arc::new(Val(1));
    cache.set(&1, Arc::clone(&old), t(5));
    let view = cache.view();
    let newer = Arc::new(Val(2));
    cache.set(&1, Arc::clone(&newer), t(6));
    cache.set(&1, Arc::new(Val(3)), t(7));
    assert!(Arc::ptr_eq(view.get(&1).unwrap().value(), &old));
    let traffic = || {
        cache.set(&9, Arc::new(Val(9)), t(7));
        cache.delete(&9);
    };
    common::eventually(traffic, || Arc::strong_count(&newer) == 1);
}

// What is different.

#[test]
fn diff_tells_added_changed_and_removed() {
    let cache: Pods = Cache::new();
    for key in [1, 2, 3, 4] {
        cache.set(&key, Val(u64::from(key)), t(5));
    }
    cache.update_time(t(5));
    let older = cache.view();
    cache.set(&2, Val(20), t(6));
    cache.set_observed_time(&3, t(6)); // only confirmed
    cache.delete(&4);
    cache.set(&0, Val(0), t(6));
    cache.set(&9, Val(9), t(6));
    cache.update_time(t(6));
    let newer = cache.view();
    let diff = newer.diff(&older);
    let keys = |part: &[(&u8, &podcache::Snapshot<Val>)]| -> Vec<u8> {
        part.iter().map(|(key, _)| **key).collect()
    };
    assert_eq!(keys(&diff.added), [0, 9]);
    assert_eq!(keys(&diff.removed), [4]);
    let [changed] = &diff.changed[..] else {
        panic!("one is changed: {diff:?}")
    };
    assert_eq!((changed.key, changed.old.value()), (&2, &Val(2)));
    assert_eq!(changed.new.value(), &Val(20));
    assert!(!diff.is_empty());
    assert!(newer.diff(&newer).is_empty());
    let back = older.diff(&newer);
    assert_eq!(
        (keys(&back.added), keys(&back.removed)),
        (vec![4], vec![0, 9])
    );
}

#[derive(Clone, Debug)]
enum Step {
    Set(u8, u64),
    Observe(u8),
    Delete(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..8_u8;
    let step = prop_oneof![
        4 => (key.clone(), 0..3_u64).prop_map(|(key, value)| Step::Set(key, value)),
        1 => key.clone().prop_map(Step::Observe),
        2 => key.prop_map(Step::Delete),
    ];
    vec(step, 0..20)
}

/// Which `set` brought each record, counted from one.
type Plain = BTreeMap<u8, usize>;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(300) as u32))]

    #[test]
    fn diff_is_that_of_two_maps(first in steps(), second in steps()) {
        let cache: Pods = Cache::new();
        let (mut sets, mut model) = (0, Plain::new());
        let mut apply = |steps: Vec<Step>| {
            for step in steps {
                match step {
                    Step::Set(key, value) => {
                        sets += 1;
                        cache.set(&key, Val(value), t(5));
                        model.insert(key, sets);
                    }
                    Step::Observe(key) => cache.set_observed_time(&key, t(6)),
                    Step::Delete(key) => {
                        cache.delete(&key);
                        model.remove(&key);
                    }
                }
            }
            cache.update_time(t(5));
            (cache.view(), model.clone())
        };
        let (older, old) = apply(first);
        let (newer, new) = apply(second);
        let diff = newer.diff(&older);
        let missing = |of: &Plain, from: &Plain| -> Vec<u8> {
            of.keys().filter(|key| !from.contains_key(key)).copied().collect()
        };
        let added: Vec<u8> = diff.added.iter().map(|(key, _)| **key).collect();
        let removed: Vec<u8> = diff.removed.iter().map(|(key, _)| **key).collect();
        let changed: Vec<u8> = diff.changed.iter().map(|changed| *changed.key).collect();
        prop_assert_eq!(added, missing(&new, &old));
        prop_assert_eq!(removed, missing(&old, &new));
        let expected: Vec<u8> = new
            .iter()
            .filter(|(key, set)| old.get(key).is_some_and(|old| old != *set))
            .map(|(key, _)| *key)
            .collect();
        prop_assert_eq!(changed, expected);
    }
}

// Who builds it, and how often.

/// A key that counts how often it is cloned, in a place of its own test.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Counted(u64, Clones);

#[derive(Clone, Copy)]
struct Clones(&'static AtomicUsize);

impl PartialEq for Clones {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Clones {}
impl PartialOrd for Clones {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Clones {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
impl std::hash::Hash for Clones {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}

thread_local! {
    /// Cloning panics on this thread.
    static BROKEN: Cell<bool> = const { Cell::new(false) };
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        assert!(!BROKEN.get(), "this thread cannot clone");
        self.1.0.fetch_add(1, SeqCst);
        Counted(self.0, self.1)
    }
}

impl DefaultFor<Counted> for Val {
    fn default_for(key: &Counted) -> Self {
        Val::default_of(key.0)
    }
}

/// A cache with so many pods.
fn counted(pods: u64, clones: &'static AtomicUsize) -> Cache<Counted, Val> {
    let cache = Cache::new();
    for pod in 0..pods {
        cache.set(&Counted(pod, Clones(clones)), Val(pod), t(5));
    }
    clones.store(0, SeqCst);
    cache
}

#[test]
fn is_built_when_it_is_asked_for() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    let cache = counted(100, &CLONES);
    for n in 6..20 {
        cache.update_time(t(n));
    }
    assert_eq!(CLONES.load(SeqCst), 0, "nobody asked");
    let view = cache.view();
    assert_eq!((view.len(), CLONES.load(SeqCst)), (100, 100));
    let reader = &mut cache.view_reader();
    (0..10).for_each(|_| drop((cache.view(), reader.load().len())));
    assert_eq!(CLONES.load(SeqCst), 100);
}

#[test]
fn is_built_once_however_many_ask_at_once() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    const ASKERS: usize = 6;
    let _dog = Watchdog::start();
    let cache = counted(200, &CLONES);
    let line = StartLine::new(ASKERS);
    let rounds = rounds(200);
    std::thread::scope(|scope| {
        for asker in 0..ASKERS {
            let (cache, line) = (&cache, &line);
            scope.spawn(move || {
                let mut reader = cache.view_reader();
                for round in 1..=rounds {
                    line.wait();
                    if asker == 0 {
                        CLONES.store(0, SeqCst);
                        cache.update_time(t(10 + round as u64));
                    }
                    line.wait();
                    let view = match asker % 2 {
                        0 => cache.view(),
                        _ => Arc::clone(reader.load()),
                    };
                    line.wait();
                    assert_eq!(view.timestamp(), t(10 + round as u64));
                    assert_eq!(CLONES.load(SeqCst), 200, "one of them built it");
                    assert!(Arc::ptr_eq(&view, &cache.view()));
                }
            });
        }
    });
}

#[test]
fn is_built_at_most_once_per_update_time_beside_a_lister() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    let _dog = Watchdog::start();
    let pods = 50;
    let cache = counted(pods, &CLONES);
    let updates = rounds(2_000) as u64;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| while cache.view().timestamp() < t(updates) {});
        }
        for n in 1..=updates {
            cache.update_time(t(n));
        }
    });
    // One more for the time before the first update.
    assert!(CLONES.load(SeqCst) as u64 <= (updates + 1) * pods);
}

#[test]
fn a_builder_that_panics_leaves_it_to_the_next() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    let _dog = Watchdog::start();
    let cache = counted(10, &CLONES);
    for round in 0..rounds(50) as u64 {
        cache.update_time(t(10 + round));
        std::thread::scope(|scope| {
            let broken = scope.spawn(|| {
                BROKEN.set(true);
                let asked = std::panic::AssertUnwindSafe(|| cache.view());
                std::panic::catch_unwind(asked).is_err()
            });
            let view = cache.view();
            assert_eq!((view.len(), view.timestamp()), (10, t(10 + round)));
            // It may have come late, and found the view.
            broken.join().unwrap();
        });
    }
    BROKEN.set(true);
    cache.update_time(t(5));
    let asked = std::panic::AssertUnwindSafe(|| cache.view());
    assert!(std::panic::catch_unwind(asked).is_err());
    BROKEN.set(false);
    assert_eq!(cache.view().len(), 10);
}

#[test]
fn every_record_is_at_least_as_new_as_the_view() {
    let _dog = Watchdog::start();
    const PODS: u8 = 30;
    for policy in POLICIES {
        let cache: Pods = cache_with(policy);
        let last = rounds(2_000) as u64;
        std::thread::scope(|scope| {
            for reader in 0..3 {
                let cache = &cache;
                scope.spawn(move || {
                    let mut views = cache.view_reader();
                    let mut before = t(0);
                    while before < t(last) {
                        let view = match reader {
                            0 => cache.view(),
                            _ => Arc::clone(views.load()),
                        };
                        assert!(view.timestamp() >= before, "views never go back");
                        before = view.timestamp();
                        assert!(view.keys().is_sorted_by(|a, b| a < b));
                        for (pod, snapshot) in &*view {
                            let modified = snapshot.modified().unwrap();
                            assert!(modified >= view.timestamp(), "{policy:?}: {view:?}");
                            let value = modified.as_nanos() * 100 + u64::from(*pod);
                            assert_eq!(snapshot.value(), &Val(value), "never torn");
                        }
                        // All but the one that is deleted and set again, once there are any.
                        assert!(view.len() >= usize::from(PODS) - 1 || before == t(0));
                    }
                });
            }
            for n in 1..=last {
                for pod in 0..PODS {
                    cache.set(&pod, Val(n * 100 + u64::from(pod)), t(n));
                }
                cache.update_time(t(n));
                cache.delete(&0);
            }
        });
    }
}

#[test]
fn a_view_asked_for_after_an_update_is_of_that_update() {
    let _dog = Watchdog::start();
    let race = Race::new(rounds(3_000), |_| {
        let cache: Pods = Cache::new();
        cache.set(&1, Val(1), t(1));
        cache.update_time(t(1));
        cache
    });
    race.run(
        &[
            &|cache: &Pods| {
                cache.set(&1, Val(2), t(2));
                cache.update_time(t(2));
                let view = cache.view();
                assert!(view.timestamp() >= t(2));
                assert!(view.get(&1).unwrap().value().0 >= 2);
            },
            &|cache: &Pods| {
                cache.set(&2, Val(3), t(3));
                cache.update_time(t(3));
                assert!(cache.view().contains(&2));
            },
            &|cache: &Pods| drop((cache.view(), cache.view())),
        ],
        |_, cache| assert_eq!(cache.view().len(), 2),
    );
}

#[test]
fn a_value_that_asks_for_the_view_when_it_is_dropped() {
    // Old records are dropped by whoever comes by, who may be building the view at that moment.
    static CACHE: OnceLock<Cache<u64, Curious>> = OnceLock::new();
    static ASKED: AtomicUsize = AtomicUsize::new(0);

    struct Curious;
    impl Drop for Curious {
        fn drop(&mut self) {
            ASKED.fetch_add(1, SeqCst);
            assert!(CACHE.get().unwrap().view().len() <= 100);
        }
    }
    impl DefaultFor<u64> for Curious {
        fn default_for(_: &u64) -> Self {
            Curious
        }
    }
    let _dog = Watchdog::start();
    let cache = CACHE.get_or_init(Cache::new);
    for round in 0..rounds(100) as u64 {
        for key in 0..100 {
            cache.set(&key, Curious, t(round));
        }
        cache.update_time(t(round));
        assert_eq!(cache.view().len(), 100);
    }
    assert!(ASKED.load(SeqCst) > 0);
}
