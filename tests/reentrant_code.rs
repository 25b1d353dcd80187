//! User code that calls the cache from inside the cache, and values that are forgotten.

mod common;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};

use common::model::Seen;
use common::values::{Live, TrapVal, Val};
use common::wakers::{TestWaker, ready};
use common::watchdog::Watchdog;
use common::{eventually, t, traffic};
use podcache::{Cache, DefaultFor};

#[test]
fn a_waker_calls_every_operation_on_its_own_and_on_other_keys() {
    let _dog = Watchdog::start();
    let inside: [fn(&Cache<u64, Val>); 9] = [
        |c| drop(c.get(&1)),
        |c| assert!(c.set(&1, Val(99), t(1))),
        |c| assert!(c.set(&1, Val(99), t(9))),
        |c| _ = c.delete(&1),
        |c| c.set_observed_time(&1, t(9)),
        |c| c.update_time(t(9)),
        |c| drop(c.subscribe(&1, t(20))),
        |c| (10..200).for_each(|key| _ = c.set(&key, Val(key), t(1))),
        |c| c.close(),
    ];
    for (n, inside) in inside.into_iter().enumerate() {
        let calls: [fn(&Cache<u64, Val>); 4] = [
            |c| _ = c.set(&1, Val(1), t(5)),
            |c| c.set_observed_time(&1, t(5)),
            |c| c.update_time(t(5)),
            |c| c.close(),
        ];
        for (m, call) in calls.into_iter().enumerate() {
            let cache: Cache<u64, Val> = Cache::new();
            let mut waits: Vec<_> = (0..5)
                .map(|k| cache.subscribe(&(1 + k % 2), t(5)))
                .collect();
            let waker = TestWaker::calling({
                let cache = cache.clone();
                move || inside(&cache)
            });
            for wait in &mut waits {
                assert!(waker.poll(wait).is_pending());
            }
            call(&cache);
            let named = waits.iter().filter(|wait| wait.try_get().is_some()).count();
            assert!(named >= 3, "calls {n} and {m}: the waits on key 1 are over");
            assert_eq!(waker.wakes(), named);
            assert_eq!(cache.waiters(), 5 - named);
            // A set is what its waiters get, whatever their wakers do.
            if m == 0 {
                assert_eq!(Seen::of(&ready(&waits[0]).unwrap()), Seen::set(1, 5));
            }
        }
    }
}

#[test]
fn a_waker_wakes_a_chain() {
    const LENGTH: u64 = 200;
    let cache: Cache<u64, Val> = Cache::new();
    let wakers: Vec<_> = (0..LENGTH)
        .map(|key| {
            let cache = cache.clone();
            TestWaker::calling(move || assert!(cache.set(&(key + 1), Val(key + 1), t(5))))
        })
        .collect();
    let mut waits: Vec<_> = (0..LENGTH).map(|key| cache.subscribe(&key, t(5))).collect();
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(waker.poll(wait).is_pending());
    }
    cache.set(&0, Val(0), t(5));
    assert!(waits.iter().all(|wait| ready(wait).is_some()));
    assert_eq!(cache.get(&LENGTH).value(), &Val(LENGTH));
}

#[test]
fn a_waker_drops_the_waits_of_others() {
    let cache: Cache<u64, Val> = Cache::new();
    let others = Arc::new(std::sync::Mutex::new(Vec::new()));
    let waker = TestWaker::calling({
        let others = Arc::clone(&others);
        move || others.lock().unwrap().clear()
    });
    for _ in 0..3 {
        others.lock().unwrap().push(cache.subscribe(&1, t(5)));
    }
    let mut wait = cache.subscribe(&1, t(5));
    assert!(waker.poll(&mut wait).is_pending());
    others.lock().unwrap().push(cache.subscribe(&1, t(5)));
    cache.set(&1, Val(1), t(5));
    assert!(ready(&wait).is_some());
    assert_eq!(cache.waiters(), 0);
}

/// A value that does something when it dies.
struct LastWill(Option<fn()>);

impl DefaultFor<u64> for LastWill {
    fn default_for(_: &u64) -> Self {
        Self(None)
    }
}

impl Drop for LastWill {
    fn drop(&mut self) {
        if let Some(will) = self.0 {
            will();
        }
    }
}

#[test]
fn a_value_calls_the_cache_when_it_is_dropped() {
    static CACHE: OnceLock<Cache<u64, LastWill>> = OnceLock::new();
    static WILLS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static DEPTH: Cell<usize> = const { Cell::new(0) });
    fn will() {
        WILLS.fetch_add(1, SeqCst);
        // What it sets has a will of its own, and so on: not without an end.
        if DEPTH.get() > 3 {
            return;
        }
        DEPTH.set(DEPTH.get() + 1);
        let cache = CACHE.get().unwrap();
        let n = WILLS.load(SeqCst) as u64;
        cache.set(&(n % 7), LastWill(Some(will)), t(n));
        cache.set_observed_time(&1, t(n));
        cache.delete(&(n % 5));
        cache.update_time(t(n));
        drop(cache.get(&2));
        drop(cache.subscribe(&(100 + n), t(u64::MAX)));
        DEPTH.set(DEPTH.get() - 1);
    }
    let _dog = Watchdog::start();
    let cache = CACHE.get_or_init(Cache::new);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for n in 0..2_000 {
                    cache.set(&(n % 7), LastWill(Some(will)), t(n));
                }
            });
        }
    });
    let churn = || _ = cache.set(&1, LastWill(Some(will)), t(1));
    eventually(churn, || WILLS.load(SeqCst) > 2_000);
    // The threads may be on their way out yet, and destroy what they have left.
    eventually(std::thread::yield_now, || cache.waiters() == 0);
}

#[test]
fn a_value_drops_the_last_handle_of_another_cache() {
    struct Holder(#[allow(dead_code)] Option<Cache<u64, Val>>);
    impl DefaultFor<u64> for Holder {
        fn default_for(_: &u64) -> Self {
            Self(None)
        }
    }
    let outer: Cache<u64, Holder> = Cache::new();
    let inner: Cache<u64, Val> = Cache::new();
    let wait = inner.subscribe(&1, t(5));
    outer.set(&1, Holder(Some(inner)), t(1));
    assert!(wait.try_get().is_none());
    outer.delete(&1);
    eventually(|| traffic(&outer, &2), || wait.try_get().is_some());
    assert!(common::wakers::is_closed(&wait.wait()));
}

#[test]
fn a_default_calls_the_cache() {
    static CACHE: OnceLock<Cache<u64, Nested>> = OnceLock::new();
    struct Nested(u64);
    impl DefaultFor<u64> for Nested {
        fn default_for(key: &u64) -> Self {
            let cache = CACHE.get().unwrap();
            if *key == 0 {
                return Self(0);
            }
            // From the default of the key below, which it also sets.
            let below = cache.get(&(key - 1)).0;
            cache.set(&(key - 1), Self(below), t(1));
            Self(below + 1)
        }
    }
    let cache = CACHE.get_or_init(Cache::new);
    assert_eq!(cache.get(&20).0, 20);
    assert_eq!(cache.len(), 20);
    let wait = cache.subscribe(&40, t(5));
    cache.update_time(t(5));
    assert_eq!(ready(&wait).unwrap().0, 40);
}

#[test]
fn a_default_changes_the_very_key_it_is_for() {
    static CACHE: OnceLock<Cache<u64, Stubborn>> = OnceLock::new();
    #[derive(Debug, PartialEq)]
    struct Stubborn(u64);
    impl DefaultFor<u64> for Stubborn {
        fn default_for(key: &u64) -> Self {
            let cache = CACHE.get().unwrap();
            cache.set(key, Self(1), t(1));
            cache.delete(key);
            drop(cache.subscribe(key, t(99)));
            Self(2)
        }
    }
    let _dog = Watchdog::start();
    let cache = CACHE.get_or_init(Cache::new);
    assert_eq!(*cache.get(&1), Stubborn(2));
    let waits = [
        cache.subscribe(&1, t(5)),
        cache.subscribe(&1, t(6)),
        cache.subscribe(&2, t(5)),
    ];
    cache.set_observed_time(&1, t(5));
    assert_eq!(*ready(&waits[0]).unwrap(), Stubborn(2));
    cache.update_time(t(6));
    assert!(waits.iter().all(|wait| ready(wait).is_some()));
    assert_eq!(cache.waiters(), 0);
}

#[test]
fn iteration_meets_calls_from_its_own_body() {
    let cache: Cache<u64, Val> = Cache::new();
    for key in 0..100 {
        cache.set(&key, Val(key), t(1));
    }
    let mut listed = 0;
    for (key, _) in cache.iter() {
        listed += usize::from(key < 100);
        cache.delete(&key);
        cache.set(&(key + 1_000), Val(key), t(1));
        cache.update_time(t(key));
        if listed > 100 {
            break;
        }
    }
    assert_eq!(listed, 100);
}

#[test]
fn a_pinned_reader_calls_the_cache() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    cache.set(&1, Val(1), t(1));
    let outer = cache.pin();
    let entry = outer.get(&1).unwrap();
    for n in 0..5_000 {
        cache.set(&(n % 50), Val(n), t(n));
        cache.delete(&((n + 25) % 50));
        let inner = cache.pin();
        let _ = inner.get(&1);
    }
    assert_eq!((entry.value(), entry.modified()), (&Val(1), t(1)));
}

// What is forgotten leaks itself, and nothing else.

/// Replaces values many times; all but the newest go away in the end.
fn garbage_still_goes(cache: &Cache<u64, TrapVal>, forgotten: isize) {
    let live = Live::default();
    for n in 0..1_000 {
        cache.set(&(n % 10), TrapVal::counted(n, &live), t(n));
    }
    eventually(
        || traffic(cache, &99),
        || live.load(SeqCst) <= 10 + forgotten,
    );
}

#[test]
fn a_forgotten_snapshot_leaks_itself() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, TrapVal> = Cache::new();
    cache.set(&1, TrapVal::new(1), t(1));
    std::mem::forget(cache.get(&1));
    std::mem::forget(cache.get(&2));
    garbage_still_goes(&cache, 0);
}

#[test]
fn a_forgotten_iterator_leaks_itself() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, TrapVal> = Cache::new();
    for n in 0..100 {
        cache.set(&n, TrapVal::new(n), t(1));
    }
    let mut iter = cache.iter();
    iter.next();
    std::mem::forget(iter);
    let mut keys = cache.keys();
    keys.next();
    std::mem::forget(keys);
    garbage_still_goes(&cache, 0);
}

#[test]
fn forgotten_waits_leak_themselves() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, TrapVal> = Cache::new();
    for key in 0..5 {
        std::mem::forget(cache.subscribe(&key, t(u64::MAX)));
        let mut polled = cache.subscribe(&key, t(u64::MAX));
        let waker = TestWaker::new();
        assert!(waker.poll(&mut polled).is_pending());
        std::mem::forget(polled);
    }
    garbage_still_goes(&cache, 0);
    assert_eq!(cache.waiters(), 10);
}

#[test]
fn a_forgotten_wait_that_was_served_holds_its_snapshot_only() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, TrapVal> = Cache::new();
    let wait = cache.subscribe(&1, t(1));
    cache.set(&1, TrapVal::new(1), t(1));
    std::mem::forget(wait);
    assert_eq!(cache.waiters(), 0);
    garbage_still_goes(&cache, 0);
}

#[test]
fn a_forgotten_cache_stays_open() {
    let cache: Cache<u64, TrapVal> = Cache::new();
    let reader = cache.read_only();
    let wait = reader.subscribe(&1, t(5));
    std::mem::forget(cache.clone());
    drop(cache);
    assert!(wait.try_get().is_none());
    drop(wait);
    assert_eq!(reader.get(&1).number, Val::DEFAULTS + 1);
}

/// A task that calls the cache wakes others, and they others: not from within each other.
#[test]
fn thousands_of_tasks_that_call_the_cache() {
    let _dog = Watchdog::start();
    for one_key in [true, false] {
        for call in 0..3 {
            let run = move || {
                let cache: Cache<u64, Val> = Cache::new();
                let [calls, depth, deepest] = [0; 3].map(|n| Arc::new(AtomicUsize::new(n)));
                let waker = {
                    let (cache, calls) = (cache.clone(), calls.clone());
                    let (depth, deepest) = (depth.clone(), deepest.clone());
                    TestWaker::calling(move || {
                        calls.fetch_add(1, SeqCst);
                        deepest.fetch_max(depth.fetch_add(1, SeqCst) + 1, SeqCst);
                        match call {
                            0 => _ = cache.set(&0, Val(1), t(5)),
                            1 => cache.set_observed_time(&0, t(5)),
                            _ => cache.update_time(t(5)),
                        }
                        depth.fetch_sub(1, SeqCst);
                    })
                };
                // Each looks at all keys that are waited for.
                let tasks: u64 = if one_key { 2_000 } else { 300 };
                let key = |n| if one_key { 0 } else { n };
                let mut waits: Vec<_> =
                    (0..tasks).map(|n| cache.subscribe(&key(n), t(5))).collect();
                for wait in &mut waits {
                    assert!(waker.poll(wait).is_pending());
                }
                cache.update_time(t(5));
                assert!(waits.iter().all(|wait| ready(wait).is_some()));
                assert_eq!(calls.load(SeqCst), tasks as usize);
                assert_eq!(deepest.load(SeqCst), 1);
                drop(waits);
                cache.delete(&0);
                cache.update_time(t(6));
                cache.update_time(t(7));
                assert_eq!((cache.waiters(), waker.handles()), (0, 0));
                assert_eq!(cache.stats().index_slots, 0);
            };
            let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(run);
            thread.unwrap().join().unwrap();
        }
    }
}
