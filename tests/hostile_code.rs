//! User code that panics: the cache stays usable, nobody else's wait is lost, and the panic reaches
//! the caller who ran that code.

mod common;

use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use common::rng::Rng;
use common::trap::{self, Action, Place, caught, panics};
use common::values::{Live, SameHash, TrapKey, TrapVal, Val};
use common::wakers::{TestWaker, is_closed, ready};
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, eventually, t};
use podcache::{Cache, Subscription};

type Hostile = Cache<TrapKey, TrapVal>;
type Lookup = fn(&Hostile, &TrapKey);
type Call = fn(&Hostile);

const PRESENT: TrapKey = TrapKey(1);
const MISSING: TrapKey = TrapKey(2);

/// Every call that looks a key up, on a key that may be present or missing.
const LOOKUPS: [(&str, Lookup); 13] = [
    ("get", |c, k| drop(c.get(k))),
    ("try_get_newer_than", |c, k| {
        drop(c.try_get_newer_than(k, t(9)))
    }),
    ("subscribe", |c, k| drop(c.subscribe(k, t(9)))),
    ("get_newer_than, fresh", |c, k| {
        if c.contains(k) {
            drop(c.get_newer_than(k, t(1)));
        } else {
            drop(c.subscribe(k, t(9)));
        }
    }),
    ("get_newer_than_timeout", |c, k| {
        drop(c.get_newer_than_timeout(k, t(9), Duration::ZERO));
    }),
    ("set", |c, k| _ = c.set(k, TrapVal::new(8), t(8))),
    ("older set", |c, k| _ = c.set(k, TrapVal::new(8), t(1))),
    ("set_observed_time", |c, k| c.set_observed_time(k, t(8))),
    ("delete", |c, k| _ = c.delete(k)),
    ("delete_at", |c, k| _ = c.delete_at(k, t(8))),
    ("contains", |c, k| _ = c.contains(k)),
    ("pin", |c, k| _ = c.pin().get(k)),
    ("read-only get", |c, k| drop(c.read_only().get(k))),
];

/// A cache with a record, and waiters that no lookup of the list above is to disturb.
fn inhabited(policy: podcache::WritePolicy) -> (Hostile, Vec<Subscription<TrapVal>>) {
    let cache = cache_with(policy);
    cache.set(&PRESENT, TrapVal::new(7), t(5));
    let waits = [PRESENT, MISSING, TrapKey(3)].map(|key| cache.subscribe(&key, t(50)));
    (cache, waits.into())
}

/// Everything works, and the waits of [`inhabited`] are served.
fn still_works(cache: &Hostile, waits: Vec<Subscription<TrapVal>>, case: &str) {
    const KEYS: [TrapKey; 4] = [PRESENT, MISSING, TrapKey(3), TrapKey(9)];
    assert_eq!(cache.waiters(), waits.len(), "{case}");
    assert!(waits.iter().all(|wait| wait.try_get().is_none()), "{case}");
    for key in &KEYS {
        cache.delete(key);
        assert!(!cache.contains(key), "{case}");
        assert!(cache.set(key, TrapVal::new(key.0), t(40)), "{case}");
        assert_eq!(cache.get(key).number, key.0, "{case}");
        let wait = cache.subscribe(key, t(45));
        cache.set_observed_time(key, t(45));
        assert_eq!(ready(&wait).unwrap().number, key.0, "{case}");
    }
    assert_eq!(cache.len(), KEYS.len(), "{case}");
    cache.set(&PRESENT, TrapVal::new(77), t(50));
    assert_eq!(ready(&waits[0]).unwrap().number, 77, "{case}");
    cache.update_time(t(50));
    assert!(waits.iter().all(|wait| ready(wait).is_some()), "{case}");
    assert_eq!(cache.waiters(), 0, "{case}");
}

/// Runs every lookup into a trap at `place`, on a key with a record and on one without.
fn run_every_lookup_into(place: Place, must: impl Fn(&str, bool) -> bool) {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        for (name, lookup) in LOOKUPS {
            for key in [PRESENT, MISSING, TrapKey(9)] {
                let case = format!("{place:?} in {name} of {key:?} under {policy:?}");
                let (cache, waits) = inhabited(policy);
                let came_out = panics(place, 0, || lookup(&cache, &key)).is_none();
                if must(name, key.0 == 1) {
                    assert!(came_out, "{case}: the panic is the caller's");
                }
                still_works(&cache, waits, &case);
            }
        }
    }
}

#[test]
fn hash_panics() {
    run_every_lookup_into(Place::Hash, |_, _| true);
}

#[test]
fn eq_panics() {
    // A missing key is compared with nobody, or with a neighbour in the table.
    run_every_lookup_into(Place::Eq, |_, present| present);
}

#[test]
fn clone_of_a_key_panics() {
    run_every_lookup_into(Place::CloneKey, |_, _| false);
    let cache: Hostile = Cache::new();
    let set = || cache.set(&PRESENT, TrapVal::new(7), t(5));
    assert!(
        panics(Place::CloneKey, 0, set).is_none(),
        "a new key has to be cloned"
    );
    assert!(!cache.contains(&PRESENT));
    let subscribe = || cache.subscribe(&PRESENT, t(5));
    assert!(panics(Place::CloneKey, 0, subscribe).is_none());
    assert_eq!(cache.waiters(), 0);
    assert!(set());
}

#[test]
fn default_panics_in_a_read() {
    run_every_lookup_into(Place::Default, |_, _| false);
    let cache: Hostile = Cache::new();
    assert!(panics(Place::Default, 0, || cache.get(&MISSING)).is_none());
    cache.update_time(t(5));
    let fresh = || cache.try_get_newer_than(&MISSING, t(1));
    assert!(panics(Place::Default, 0, fresh).is_none());
    let fresh = || cache.get_newer_than(&MISSING, t(1));
    assert!(panics(Place::Default, 0, fresh).is_none());
    let fresh = || cache.subscribe(&MISSING, t(1));
    assert!(panics(Place::Default, 0, fresh).is_none());
    assert_eq!(cache.waiters(), 0);
    assert_eq!(cache.get(&MISSING).number, Val::DEFAULTS + 2);
}

/// The calls that wake, with a time of 5.
const WAKING: [(&str, Call); 3] = [
    ("set", |c| _ = c.set(&PRESENT, TrapVal::new(8), t(5))),
    ("set_observed_time", |c| c.set_observed_time(&PRESENT, t(5))),
    ("update_time", |c| c.update_time(t(5))),
];

#[test]
fn default_panics_in_a_waking_call_and_its_waiter_stays() {
    let _dog = Watchdog::start();
    // Which of the defaults panics: the first that is asked for, or a later one.
    for passes in 0..4 {
        let cache: Hostile = Cache::new();
        let waits: Vec<_> = (10..14)
            .map(|key| cache.subscribe(&TrapKey(key), t(5)))
            .collect();
        let update = || cache.update_time(t(5));
        assert!(panics(Place::Default, passes, update).is_none());
        assert_eq!(cache.global_time(), t(5), "the call has taken effect");
        let left: Vec<_> = waits
            .iter()
            .filter(|wait| wait.try_get().is_none())
            .collect();
        assert_eq!(left.len(), 1, "everybody else is served first");
        assert_eq!(cache.waiters(), 1, "it stays registered");
        cache.update_time(t(5));
        assert_eq!(cache.waiters(), 0);
        for (key, wait) in (10..14).zip(&waits) {
            assert_eq!(ready(wait).unwrap().number, Val::DEFAULTS + key);
        }
    }
}

#[test]
fn default_panics_in_an_observation_and_its_waiter_stays() {
    let cache: Hostile = Cache::new();
    let wait = cache.subscribe(&MISSING, t(5));
    let observe = || cache.set_observed_time(&MISSING, t(5));
    assert!(panics(Place::Default, 0, observe).is_none());
    assert!(wait.try_get().is_none());
    assert_eq!(cache.waiters(), 1);
    // A set needs no default.
    cache.set(&MISSING, TrapVal::new(8), t(5));
    assert_eq!(ready(&wait).unwrap().number, 8);
}

#[test]
fn every_default_panics_and_every_waiter_stays() {
    let cache: Cache<u64, Never> = Cache::new();
    struct Never;
    impl podcache::DefaultFor<u64> for Never {
        fn default_for(_: &u64) -> Self {
            panic!("{}", trap::MESSAGE)
        }
    }
    let waits: Vec<_> = (0..5).map(|key| cache.subscribe(&key, t(5))).collect();
    for _ in 0..3 {
        assert!(caught(|| cache.update_time(t(5))).is_none());
        assert_eq!(cache.waiters(), 5);
    }
    for key in 0..5 {
        cache.set(&key, Never, t(5));
    }
    assert!(waits.iter().all(|wait| ready(wait).is_some()));
}

/// Wakers of which some panic, on one key or on several: everybody is served and woken, then the
/// caller gets the panic.
fn some_wakers_panic(bad: impl Fn(usize) -> bool) {
    const WAITS: usize = 7;
    let _dog = Watchdog::start();
    let calls = WAKING
        .iter()
        .copied()
        .chain([("close", (|c| c.close()) as Call)]);
    for (name, call) in calls {
        let cache: Hostile = Cache::new();
        let spread = ["update_time", "close"].contains(&name);
        let mut waits: Vec<_> = (0..WAITS as u64)
            .map(|n| cache.subscribe(&TrapKey(if spread { 1 + n % 3 } else { 1 }), t(5)))
            .collect();
        let wakers: Vec<_> = (0..WAITS)
            .map(|n| match bad(n) {
                true => TestWaker::calling(|| panic!("{}", trap::MESSAGE)),
                false => TestWaker::new(),
            })
            .collect();
        for (wait, waker) in waits.iter_mut().zip(&wakers) {
            assert!(waker.poll(wait).is_pending());
        }
        let came_out = caught(|| call(&cache)).is_none();
        assert_eq!(
            came_out,
            (0..WAITS).any(&bad),
            "{name}: the panic is the caller's"
        );
        assert_eq!(cache.waiters(), 0, "{name}");
        for (n, (wait, waker)) in waits.iter().zip(&wakers).enumerate() {
            assert!(wait.try_get().is_some(), "{name}: {n} is not served");
            assert_eq!(
                (waker.wakes(), waker.handles()),
                (1, 0),
                "{name}: waker {n}"
            );
        }
        // The call itself was done.
        match name {
            "set" => assert_eq!(cache.get(&PRESENT).number, 8),
            "update_time" => assert_eq!(cache.global_time(), t(5)),
            "close" => assert!(cache.is_closed()),
            _ => {}
        }
        cache.set(&PRESENT, TrapVal::new(9), t(9));
        assert_eq!(cache.get(&PRESENT).number, 9);
    }
}

#[test]
fn one_waker_panics() {
    for position in 0..7 {
        some_wakers_panic(|n| n == position);
    }
}

#[test]
fn several_wakers_panic() {
    some_wakers_panic(|n| n % 2 == 0);
    some_wakers_panic(|n| n % 2 == 1);
}

#[test]
fn all_wakers_panic() {
    some_wakers_panic(|_| true);
}

#[test]
fn a_waker_panics_beside_blocked_threads() {
    let _dog = Watchdog::start();
    for (name, call) in WAKING {
        let cache: Hostile = Cache::new();
        let mut task = cache.subscribe(&PRESENT, t(5));
        let waker = TestWaker::calling(|| panic!("{}", trap::MESSAGE));
        assert!(waker.poll(&mut task).is_pending());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| cache.get_newer_than(&PRESENT, t(5))))
                .collect();
            while cache.waiters() < 5 {
                std::thread::yield_now();
            }
            assert!(caught(|| call(&cache)).is_none(), "{name}");
            for thread in threads {
                assert!(thread.join().unwrap().is_ok(), "{name}");
            }
        });
    }
}

#[test]
fn a_waker_panics_when_the_last_cache_is_dropped() {
    let cache: Hostile = Cache::new();
    let mut waits: Vec<_> = (0..3)
        .map(|key| cache.subscribe(&TrapKey(key), t(5)))
        .collect();
    let waker = TestWaker::calling(|| panic!("{}", trap::MESSAGE));
    for wait in &mut waits {
        assert!(waker.poll(wait).is_pending());
    }
    assert!(caught(|| drop(cache)).is_none());
    assert!(waits.iter().all(|wait| is_closed(&wait.wait())));
    assert_eq!((waker.wakes(), waker.handles()), (3, 0));
}

#[test]
fn a_waker_and_a_default_panic_in_one_call() {
    let cache: Hostile = Cache::new();
    let mut waits: Vec<_> = (10..16)
        .map(|key| cache.subscribe(&TrapKey(key), t(5)))
        .collect();
    let wakers: Vec<_> = (0..6)
        .map(|n| match n % 2 {
            0 => TestWaker::calling(|| panic!("{}", trap::MESSAGE)),
            _ => TestWaker::new(),
        })
        .collect();
    for (wait, waker) in waits.iter_mut().zip(&wakers) {
        assert!(waker.poll(wait).is_pending());
    }
    assert!(panics(Place::Default, 2, || cache.update_time(t(5))).is_none());
    assert_eq!(cache.waiters(), 1);
    let served = waits.iter().filter(|wait| wait.try_get().is_some()).count();
    assert_eq!(served, 5);
    let _ = caught(|| cache.update_time(t(5)));
    assert_eq!(cache.waiters(), 0);
    assert!(
        wakers
            .iter()
            .all(|waker| (waker.wakes(), waker.handles()) == (1, 0))
    );
}

#[test]
fn clone_of_a_waker_panics() {
    let cache: Hostile = Cache::new();
    let mut wait = cache.subscribe(&PRESENT, t(5));
    let neighbour = cache.subscribe(&PRESENT, t(5));
    let waker = TestWaker::new();
    assert!(panics(Place::CloneWaker, 0, || waker.poll(&mut wait)).is_none());
    assert_eq!(cache.waiters(), 2, "still registered");
    let second = TestWaker::new();
    assert!(second.poll(&mut wait).is_pending());
    assert!(panics(Place::CloneWaker, 0, || waker.poll(&mut wait)).is_none());
    cache.set(&PRESENT, TrapVal::new(7), t(5));
    assert!(ready(&wait).is_some() && ready(&neighbour).is_some());
    assert_eq!((waker.wakes(), waker.handles()), (0, 0));
    assert_eq!(second.handles(), 0);
}

#[test]
fn drop_of_a_waker_panics() {
    let cache: Hostile = Cache::new();
    let [first, second] = [TestWaker::new(), TestWaker::new()];
    let neighbour = cache.subscribe(&PRESENT, t(5));

    // As the wait gives up.
    let mut wait = cache.subscribe(&PRESENT, t(5));
    assert!(first.poll(&mut wait).is_pending());
    let _ = panics(Place::DropWaker, 0, || drop(wait));
    assert_eq!(first.handles(), 0);
    assert_eq!(cache.waiters(), 1, "gone all the same");

    // As another poll replaces it. The first visit is that of the poll's own waker.
    for passes in 0..2 {
        let mut wait = cache.subscribe(&PRESENT, t(5));
        assert!(first.poll(&mut wait).is_pending());
        let _ = panics(Place::DropWaker, passes, || second.poll(&mut wait));
        assert!(second.poll(&mut wait).is_pending());
        assert_eq!((first.handles(), second.handles()), (0, 1));
    }
    assert_eq!(second.handles(), 0);

    // As it is woken.
    let mut wait = cache.subscribe(&PRESENT, t(5));
    assert!(first.poll(&mut wait).is_pending());
    let set = || cache.set(&PRESENT, TrapVal::new(7), t(5));
    let _ = panics(Place::DropWaker, 0, set);
    assert!(ready(&wait).is_some() && ready(&neighbour).is_some());
    assert_eq!((first.wakes(), first.handles()), (1, 0));
    assert_eq!(cache.waiters(), 0);
}

#[test]
fn drop_of_values_panics_and_no_value_is_lost_or_dropped_twice() {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        let cache: Cache<u64, TrapVal> = cache_with(policy);
        let live = Live::default();
        let mut rng = Rng::new(1);
        let mut newest = [0; 8];
        for n in 1..5_000 {
            let key = rng.below(8);
            let wait = cache.subscribe(&key, t(n));
            // A value dies at some later time, in a call that has nothing to do with it.
            trap::set(Place::DropValue, rng.below(3) as usize, Action::Panic);
            let stored = caught(|| cache.set(&key, TrapVal::counted(n, &live), t(n)));
            trap::clear();
            assert_ne!(stored, Some(false));
            assert_eq!(ready(&wait).expect("the wait is served").number, n);
            newest[key as usize] = n;
        }
        for (key, newest) in (0..8).zip(newest) {
            assert_eq!(cache.get(&key).number, newest);
        }
        let churn = || {
            cache.set(&99, TrapVal::new(0), t(9_999));
        };
        eventually(churn, || live.load(SeqCst) == 8);
    }
}

#[test]
fn drop_of_a_refused_value_panics_to_its_caller() {
    let cache: Cache<u64, TrapVal> = cache_with(podcache::WritePolicy::RejectOlder);
    cache.set(&1, TrapVal::new(7), t(5));
    let refused = || cache.set(&1, TrapVal::new(8), t(4));
    let _ = panics(Place::DropValue, 0, refused);
    assert_eq!(cache.get(&1).number, 7);
    assert!(cache.set(&1, TrapVal::new(9), t(6)));
}

#[test]
fn drop_of_keys_panics() {
    let _dog = Watchdog::start();
    let cache: Hostile = Cache::new();
    let keys: Vec<_> = (10..200).map(TrapKey).collect();
    let wait = cache.subscribe(&PRESENT, t(5));
    for round in 0..20 {
        for key in &keys {
            trap::set(Place::DropKey, round % 3, Action::Panic);
            let _ = caught(|| cache.set(key, TrapVal::new(key.0), t(1)));
            trap::clear();
            assert_eq!(cache.get(key).number, key.0);
        }
        for key in &keys {
            trap::set(Place::DropKey, round % 3, Action::Panic);
            let _ = caught(|| cache.delete(key));
            trap::clear();
            assert!(!cache.contains(key));
        }
    }
    assert!(cache.is_empty());
    cache.set(&PRESENT, TrapVal::new(7), t(5));
    assert!(ready(&wait).is_some());
}

#[test]
fn a_thread_ends_with_values_whose_drop_panics() {
    let _dog = Watchdog::start();
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("{}", trap::MESSAGE);
            }
        }
    }
    impl podcache::DefaultFor<u64> for Bomb {
        fn default_for(_: &u64) -> Self {
            Self
        }
    }
    let cache: Cache<u64, Bomb> = Cache::new();
    for _ in 0..4 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..200 {
                    let _ = caught(|| cache.set(&(n % 3), Bomb, t(n)));
                    let _ = caught(|| cache.delete(&(n % 5)));
                }
            });
        });
    }
    // The others are none the wiser.
    let wait = cache.subscribe(&1, t(500));
    let _ = caught(|| cache.set(&1, Bomb, t(500)));
    let got = ready(&wait);
    assert!(
        got.as_ref()
            .is_some_and(|got| got.modified() == Some(t(500)))
    );
    // What is still held would go off at the end of the test.
    std::mem::forget((got, wait, cache));
}

#[test]
fn keys_that_all_hash_alike_are_slow_and_right() {
    let _dog = Watchdog::start();
    let cache: Cache<SameHash, Val> = Cache::new();
    let keys: Vec<_> = (0..300).map(SameHash).collect();
    let waits: Vec<_> = keys.iter().map(|key| cache.subscribe(key, t(5))).collect();
    for key in &keys {
        assert!(cache.set(key, Val(key.0), t(4)));
    }
    for key in &keys {
        assert_eq!(cache.get(key).value(), &Val(key.0));
    }
    for key in keys.iter().step_by(2) {
        assert!(cache.delete(key));
    }
    assert_eq!(cache.len(), 150);
    for (key, wait) in keys.iter().zip(&waits) {
        cache.set_observed_time(key, t(5));
        let expected = if key.0 % 2 == 0 {
            Val::default_of(key.0)
        } else {
            Val(key.0)
        };
        assert_eq!(ready(wait).unwrap().value(), &expected);
    }
    std::thread::scope(|scope| {
        for thread in 0..3_usize {
            let (cache, keys) = (&cache, &keys);
            scope.spawn(move || {
                for round in 0..20 {
                    for key in keys.iter().skip(thread).step_by(3) {
                        cache.set(key, Val(key.0 + round), t(round));
                        assert_eq!(cache.get(key).value(), &Val(key.0 + round));
                        if round % 4 == 1 {
                            assert!(cache.delete(key));
                        }
                    }
                }
            });
        }
    });
    assert_eq!(cache.len(), 300);
}

#[test]
fn a_hash_that_changes_its_mind_harms_nobody_else() {
    use std::cell::Cell;
    use std::hash::{Hash, Hasher};
    thread_local!(static NEXT: Cell<u64> = const { Cell::new(0) });

    #[derive(Clone, PartialEq, Eq)]
    struct Fickle;
    impl Hash for Fickle {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u64(NEXT.replace(NEXT.get() + 1));
        }
    }
    impl podcache::DefaultFor<Fickle> for Val {
        fn default_for(_: &Fickle) -> Self {
            Self(0)
        }
    }
    // Which answers come is nobody's guess; that they come, and no memory is harmed, is the test.
    let _dog = Watchdog::start();
    let cache: Cache<Fickle, Val> = Cache::new();
    for n in 0..2_000 {
        cache.set(&Fickle, Val(n), t(n));
        let _ = cache.get(&Fickle);
        let _ = cache.get_newer_than_timeout(&Fickle, t(n), Duration::ZERO);
        if n % 3 == 0 {
            cache.delete(&Fickle);
        }
        cache.update_time(t(n / 2));
    }
    assert_eq!(cache.iter().count(), cache.len());
    assert_eq!(cache.waiters(), 0);
}
