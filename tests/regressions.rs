//! Mistakes that were once made, each with the case that showed it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;

use podcache::{Cache, Change, DefaultFor, Timestamp, WritePolicy};

fn t(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A destructor that deletes ran the next one from inside the first, and so on.
#[test]
fn destructors_that_delete_do_not_nest() {
    static DEPTH: AtomicUsize = AtomicUsize::new(0);
    static DEEPEST: AtomicUsize = AtomicUsize::new(0);

    struct Deletes(Option<(Cache<u64, Deletes>, u64)>);
    impl Drop for Deletes {
        fn drop(&mut self) {
            if let Some((cache, key)) = &self.0 {
                DEEPEST.fetch_max(DEPTH.fetch_add(1, SeqCst) + 1, SeqCst);
                cache.delete(key);
                DEPTH.fetch_sub(1, SeqCst);
            }
        }
    }

    const KEYS: u64 = 20_000;
    let cache = Cache::<u64, Deletes>::new();
    for key in 0..KEYS {
        cache.set(&key, Deletes(Some((cache.clone(), key + KEYS))), t(1));
        cache.set(&(key + KEYS), Deletes(None), t(1));
    }
    let (pinned, is_pinned) = mpsc::channel();
    let (go_on, wait) = mpsc::channel::<()>();
    let other = std::thread::spawn({
        let cache = cache.clone();
        move || {
            let pin = cache.pin();
            pinned.send(()).unwrap();
            wait.recv().unwrap();
            drop(pin);
        }
    });
    is_pinned.recv().unwrap();
    for key in 0..KEYS {
        cache.delete(&key);
    }
    go_on.send(()).unwrap();
    other.join().unwrap();
    for key in 2 * KEYS..2 * KEYS + 100 {
        cache.set(&key, Deletes(None), t(1));
        cache.delete(&key);
    }
    assert!(DEEPEST.load(SeqCst) < 100, "{} deep", DEEPEST.load(SeqCst));
}

/// A change that a reader settled was announced, but nobody was called for it.
#[test]
fn what_a_reader_settles_is_rung_for() {
    let cache = Cache::<u64, u64>::builder()
        .write_policy(WritePolicy::Monotonic)
        .build();
    let stop = AtomicBool::new(false);
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    std::hint::black_box(cache.contains(&1));
                }
            });
        }
        let changes = cache.changes();
        scope.spawn(|| {
            for change in changes {
                if let Change::Set { snapshot, .. } = change {
                    seen.store(*snapshot, SeqCst);
                }
            }
        });
        // One that is not rung for is never seen: the test hangs.
        for n in 1..=30_000 {
            cache.set(&1, n, t(n));
            while seen.load(SeqCst) < n {
                std::thread::yield_now();
            }
        }
        stop.store(true, SeqCst);
        cache.close();
    });
}

/// Each return of a key was a change of its own.
#[test]
fn a_key_that_comes_and_goes_is_one_key_to_a_slow_reader() {
    let cache = Cache::<u64, u64>::new();
    let mut slow = cache.changes();
    let mut quick = cache.changes();
    for n in 0..10_000 {
        cache.set(&1, n, t(n));
        cache.delete(&1);
        if n % 3 == 0 {
            while quick.try_next().is_some() {}
        }
    }
    assert_eq!(slow.lag(), 1);
    assert!(matches!(slow.try_next(), Some(Change::Deleted { key: 1 })));
    assert!(slow.try_next().is_none());
    cache.set(&1, 7, t(1));
    assert!(matches!(slow.try_next(), Some(Change::Set { key: 1, .. })));
}

/// What had panicked once was not looked at again.
#[test]
fn a_tracker_whose_default_panicked_looks_again() {
    static TRAP: AtomicBool = AtomicBool::new(false);

    struct Value(u32);
    impl DefaultFor<u64> for Value {
        fn default_for(_: &u64) -> Self {
            assert!(!TRAP.swap(false, SeqCst), "the user's code panics here");
            Value(0)
        }
    }

    let cache = Cache::<u64, Value>::new();
    cache.set(&1, Value(7), t(1));
    let mut tracker = cache.track(&1);
    let wait = cache.subscribe(&1, t(9));
    cache.delete(&1);
    TRAP.store(true, SeqCst);
    assert!(catch_unwind(AssertUnwindSafe(|| tracker.load().0)).is_err());
    assert_eq!(tracker.load().0, 0);
    drop(wait);
}

/// What had been collected before a panic was collected again.
#[test]
fn a_key_whose_clone_panicked_is_still_given_once() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);

    #[derive(PartialEq, Eq)]
    struct Key(u64);
    impl std::hash::Hash for Key {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            state.write_u64(0); // all in one bucket
        }
    }
    impl Clone for Key {
        fn clone(&self) -> Self {
            assert_ne!(
                CLONES.fetch_add(1, SeqCst),
                8,
                "the user's code panics here"
            );
            Key(self.0)
        }
    }

    let cache = Cache::<Key, u32>::new();
    for key in 0..5 {
        cache.set(&Key(key), 0, t(1)); // clones 0 to 4
    }
    let mut iter = cache.iter();
    let mut given: Vec<_> = iter.by_ref().take(3).map(|(key, _)| key.0).collect();
    assert!(catch_unwind(AssertUnwindSafe(|| iter.next())).is_err());
    given.extend(iter.map(|(key, _)| key.0));
    given.sort_unstable();
    assert_eq!(given, [0, 1, 2, 3, 4]);
}
