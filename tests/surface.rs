//! The public face: every name as programs spell it, and what may cross threads. Most of this is
//! checked by compiling.

mod common;

use std::borrow::Borrow;
use std::fmt::{Debug, Display};
use std::hash::{BuildHasher, Hash};
use std::ops::{Add, Deref};
use std::time::{Duration, Instant};

use common::t;
use common::values::Val;
use podcache::{
    Builder, Cache, DefaultFor, Entry, Pinned, RandomState, ReadCache, Snapshot, Subscription,
    Timestamp, WaitError, WritePolicy,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

// Who may cross threads.

assert_impl_all!(Cache<String, Val>: Send, Sync, Unpin, Clone, Default, Debug);
assert_impl_all!(ReadCache<String, Val>: Send, Sync, Unpin, Clone, Debug);
assert_impl_all!(Snapshot<Val>: Send, Sync, Unpin, Clone, Deref<Target = Val>, Debug);
assert_impl_all!(Subscription<Val>: Send, Sync, Unpin, Future<Output = Waited<Val>>, Debug);
assert_impl_all!(Timestamp: Send, Sync, Unpin, Copy, Ord, Hash, Debug, Display, Add<Duration>);
assert_impl_all!(WaitError: Send, Sync, Unpin, std::error::Error, Debug, Display);
assert_impl_all!(WritePolicy: Send, Sync, Unpin, Copy, Eq, Default, Debug);
assert_impl_all!(RandomState: Send, Sync, Unpin, Clone, Default, BuildHasher);
assert_not_impl_any!(Pinned<'static, String, Val, RandomState>: Send);
assert_not_impl_any!(Subscription<Val>: Clone);

// A value that is only `Send + Sync`, or not unwind-safe, spoils nothing.
struct Plain(#[allow(dead_code)] std::sync::Mutex<Box<dyn FnMut() + Send>>);
assert_impl_all!(Cache<u8, Plain>: Send, Sync, Unpin, Clone);
assert_impl_all!(Snapshot<Plain>: Send, Sync, Unpin, Clone);
assert_impl_all!(Subscription<Plain>: Send, Sync, Unpin);

type Waited<V> = Result<Snapshot<V>, WaitError>;

/// Every method of `Cache` under its name, with its bounds: a user's generic code.
fn writes<K, Q, V, S>(cache: &Cache<K, V, S>, q: &Q, value: V)
where
    K: Borrow<Q> + Hash + Eq + Send + Sync + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    V: DefaultFor<K> + DefaultFor<Q> + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    let stored: bool = cache.set(q, value, t(5));
    assert!(stored);
    let (): () = cache.set_observed_time(q, t(6));
    let (): () = cache.update_time(t(7));
    let time: Timestamp = cache.global_time();
    assert_eq!(time, t(7));
    let was: bool = cache.delete(q);
    assert!(was);
    let was: bool = cache.delete_at(q, t(8));
    assert!(!was);
    let (): () = cache.close();
    let closed: bool = cache.is_closed();
    assert!(closed);
}

fn reads<K, Q, V, S>(cache: &Cache<K, V, S>, q: &Q)
where
    K: Borrow<Q> + Hash + Eq + Clone + Send + Sync + 'static,
    Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    V: DefaultFor<K> + DefaultFor<Q> + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    let zero = Timestamp::ZERO;
    let _: Snapshot<V> = cache.get(q);
    let _: Waited<V> = cache.get_newer_than_timeout(q, zero, Duration::ZERO);
    let _: Waited<V> = cache.get_newer_than_deadline(q, zero, Instant::now());
    let _: Option<Snapshot<V>> = cache.try_get_newer_than(q, zero);
    let subscription: Subscription<V> = cache.subscribe(q, zero);
    let _: Option<Waited<V>> = subscription.try_get();
    let _: Waited<V> = subscription.wait_timeout(Duration::ZERO);
    let _: Waited<V> = subscription.wait_deadline(Instant::now());
    let _: usize = cache.len() + cache.waiters();
    let _: bool = cache.is_empty() | cache.contains(q);
    let _: Vec<(K, Snapshot<V>)> = cache.iter().collect();
    let _: Vec<K> = cache.keys().collect();
    let reader: ReadCache<K, V, S> = cache.read_only();
    let _: Snapshot<V> = reader.get(q);
    let _: Option<Snapshot<V>> = reader.try_get_newer_than(q, zero);
    let _: Waited<V> = reader.get_newer_than_timeout(q, zero, Duration::ZERO);
    let _: Waited<V> = reader.get_newer_than_deadline(q, zero, Instant::now());
    drop::<Subscription<V>>(reader.subscribe(q, zero));
    let _: Vec<(K, Snapshot<V>)> = reader.iter().collect();
    // Those without an end, on a wait that has one.
    cache.close();
    let _: Waited<V> = cache.get_newer_than(q, zero);
    let _: Waited<V> = reader.get_newer_than(q, zero);
    let _: Waited<V> = subscription.wait();
}

/// `pin` lends: what it gives lives as long as the guard.
fn pinned<K, V, S>(cache: &Cache<K, V, S>, key: &K) -> usize
where
    K: Hash + Eq + Send + Sync + 'static,
    V: AsRef<[u8]> + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    let pinned: Pinned<'_, K, V, S> = cache.pin();
    let entries: [Option<Entry<'_, V>>; 2] = [pinned.get(key), pinned.get(key)];
    entries
        .iter()
        .flatten()
        .map(|entry| {
            let value: &V = entry.value();
            assert!(entry.modified() <= entry.observed());
            value.as_ref().len()
        })
        .sum()
}

#[test]
fn generic_code_reaches_every_method() {
    writes(&Cache::<String, Val>::new(), "pod", Val(1));
    writes(&Cache::<String, Val>::new(), &"pod".to_owned(), Val(1));
    writes(&Cache::<u8, Val>::with_capacity(64), &1, Val(1));
    reads(&Cache::<String, Val>::new(), "pod");
    reads(&Cache::<u8, Val>::new(), &1);
}

impl DefaultFor<u8> for Bytes {
    fn default_for(_: &u8) -> Self {
        Self(Vec::new())
    }
}

struct Bytes(Vec<u8>);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

#[test]
fn pinned_entries_borrow_from_the_guard() {
    let cache: Cache<u8, Bytes> = Cache::new();
    assert_eq!(pinned(&cache, &1), 0);
    cache.set(&1, Bytes(vec![7; 5]), t(5));
    assert_eq!(pinned(&cache, &1), 10);
}

#[test]
fn what_needs_no_default_asks_for_none() {
    // A value without `DefaultFor` can be deleted, counted, listed, pinned and closed.
    struct Bare;
    let cache: Cache<String, Bare> = Cache::new();
    assert!(!cache.contains("pod"));
    assert!(!cache.delete("pod"));
    assert_eq!(
        (cache.len(), cache.waiters(), cache.is_empty()),
        (0, 0, true)
    );
    assert_eq!(cache.global_time(), Timestamp::ZERO);
    assert!(cache.pin().get("pod").is_none());
    assert_eq!(cache.iter().count() + cache.keys().count(), 0);
    cache.close();
    assert!(cache.is_closed());
}

#[test]
fn builder_takes_policy_capacity_and_hasher_in_any_order() {
    let std = std::hash::RandomState::new;
    let built: Cache<u8, Val, std::hash::RandomState> = Cache::builder()
        .write_policy(WritePolicy::RejectOlder)
        .capacity(1000)
        .hasher(std())
        .build();
    built.set(&1, Val(1), t(5));
    assert!(!built.set(&1, Val(2), t(4)));
    let built: Cache<u8, Val, std::hash::RandomState> = Cache::builder()
        .hasher(std())
        .capacity(0)
        .write_policy(WritePolicy::Monotonic)
        .build();
    built.update_time(t(5));
    assert!(
        !built.set(&1, Val(2), t(4)),
        "the hasher does not lose the policy"
    );
    let plain: Cache<u8, Val> = Cache::builder().build();
    plain.set(&1, Val(1), t(5));
    let builder: Builder<u8, Val> = Cache::builder();
    assert!(builder.build().set(&1, Val(1), t(5)));
}

#[test]
fn a_capacity_that_no_allocation_can_have_is_refused_at_once() {
    let built = std::panic::catch_unwind(|| Cache::<u64, Val>::with_capacity(usize::MAX));
    assert!(built.is_err());
    // A large one that can be had is no more than a hint.
    let cache: Cache<u64, Val> = Cache::with_capacity(100_000);
    assert!(cache.is_empty());
    assert!(cache.set(&1, Val(1), t(5)));
}

#[test]
fn a_users_hasher_is_the_one_that_is_used() {
    use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static MADE: AtomicUsize = AtomicUsize::new(0);

    struct Noting(DefaultHasher);
    impl Default for Noting {
        fn default() -> Self {
            MADE.fetch_add(1, Relaxed);
            Self(DefaultHasher::new())
        }
    }
    impl Hasher for Noting {
        fn finish(&self) -> u64 {
            self.0.finish()
        }
        fn write(&mut self, bytes: &[u8]) {
            self.0.write(bytes);
        }
    }
    let cache: Cache<u8, Val, BuildHasherDefault<Noting>> = Cache::builder()
        .hasher(BuildHasherDefault::default())
        .build();
    cache.set(&1, Val(1), t(5));
    assert!(cache.contains(&1));
    assert!(MADE.load(Relaxed) >= 2);
}

#[test]
fn a_snapshot_reads_as_its_value() {
    let cache: Cache<String, Val> = Cache::new();
    cache.set("pod", Val(7), t(5));
    let snapshot = cache.get("pod");
    let through: &Val = &snapshot;
    assert_eq!(through, snapshot.value());
    assert_eq!(snapshot.0, 7);
    fn kept_for_ever(_: impl Send + Sync + 'static) {}
    kept_for_ever(snapshot);
}

#[test]
fn errors_say_what_happened() {
    assert_ne!(WaitError::Closed, WaitError::TimedOut);
    let told = [WaitError::Closed, WaitError::TimedOut].map(|error| error.to_string());
    assert!(told.iter().all(|s| !s.is_empty()) && told[0] != told[1]);
    let boxed: Box<dyn std::error::Error + Send + Sync> = WaitError::TimedOut.into();
    assert_eq!(boxed.to_string(), told[1]);
}

#[test]
fn debug_shows_and_never_blocks() {
    let cache: Cache<String, Val> = Cache::new();
    cache.set("pod", Val(7), t(5));
    let waiting = cache.subscribe("pod", t(9));
    let pinned = cache.pin();
    let told = [
        format!("{cache:?}"),
        format!("{:?}", cache.read_only()),
        format!("{:?}", cache.get("pod")),
        format!("{waiting:?}"),
        format!("{pinned:?}"),
        format!("{:?}", pinned.get("pod")),
        format!("{:?}", Cache::<String, Val>::builder()),
        format!("{:?}", cache.iter()),
        format!("{:?}", cache.keys()),
    ];
    for text in told {
        assert!(!text.is_empty());
    }
    let snapshot = format!("{:?}", cache.get("pod"));
    assert!(
        snapshot.contains('7'),
        "a snapshot shows its value: {snapshot}"
    );
}
