//! Keys and values of unusual shape, and hashers that are poor.

mod common;

use std::hash::{BuildHasher, Hasher};

use common::t;
use common::values::Val;
use common::wakers::ready;
use podcache::{Cache, DefaultFor};

/// Sets, reads, lists, waits on and deletes these keys.
fn is_a_cache<K, V, S>(cache: &Cache<K, V, S>, keys: &[K], value: impl Fn(usize) -> V)
where
    K: std::hash::Hash + Eq + Clone + Send + Sync + 'static,
    V: DefaultFor<K> + PartialEq + std::fmt::Debug + Send + Sync + 'static,
    S: BuildHasher + Send + Sync + 'static,
{
    let waits: Vec<_> = keys.iter().map(|key| cache.subscribe(key, t(5))).collect();
    for (n, key) in keys.iter().enumerate() {
        assert!(!cache.contains(key));
        assert!(cache.set(key, value(n), t(5)));
    }
    assert_eq!(cache.len(), keys.len());
    assert_eq!(cache.iter().count(), keys.len());
    for (n, (key, wait)) in keys.iter().zip(&waits).enumerate() {
        assert_eq!(*cache.get(key), value(n));
        assert_eq!(*ready(wait).unwrap(), value(n));
        assert_eq!(cache.pin().get(key).unwrap().value(), &value(n));
    }
    for (n, key) in keys.iter().enumerate().step_by(2) {
        assert!(cache.delete(key));
        assert_eq!(*cache.get(key), V::default_for(key), "key {n}");
    }
    for (n, key) in keys.iter().enumerate().skip(1).step_by(2) {
        assert_eq!(*cache.get(key), value(n));
    }
    assert_eq!(cache.len(), keys.len() / 2);
}

#[derive(Debug, PartialEq)]
struct Nothing;

impl DefaultFor<u32> for Nothing {
    fn default_for(_: &u32) -> Self {
        Self
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Only;

impl DefaultFor<Only> for Val {
    fn default_for(_: &Only) -> Self {
        Self(0)
    }
}

#[test]
fn values_without_a_size() {
    let keys: Vec<u32> = (0..1_000).collect();
    is_a_cache(&Cache::<u32, Nothing>::new(), &keys, |_| Nothing);
}

#[test]
fn a_key_without_a_size() {
    is_a_cache(&Cache::<Only, Val>::new(), &[Only], |_| Val(7));
}

#[repr(align(256))]
#[derive(Debug, PartialEq)]
struct Aligned(u8);

impl DefaultFor<u32> for Aligned {
    fn default_for(_: &u32) -> Self {
        Self(0)
    }
}

#[test]
fn values_that_are_aligned() {
    let cache: Cache<u32, Aligned> = Cache::new();
    let keys: Vec<u32> = (0..100).collect();
    is_a_cache(&cache, &keys, |n| Aligned(n as u8));
    let place = std::ptr::from_ref(cache.get(&1).value()).addr();
    assert_eq!(place % 256, 0);
}

#[derive(Debug, PartialEq)]
struct Large([u64; 4_096]);

impl DefaultFor<u32> for Large {
    fn default_for(key: &u32) -> Self {
        Self([u64::from(*key); 4_096])
    }
}

#[test]
fn values_that_are_large() {
    let keys: Vec<u32> = (0..50).collect();
    is_a_cache(&Cache::new(), &keys, |n| Large([n as u64 + 100; 4_096]));
}

#[test]
fn values_behind_a_pointer_to_anything() {
    struct Boxed(Box<dyn Fn() -> u32 + Send + Sync>);
    impl DefaultFor<u32> for Boxed {
        fn default_for(key: &u32) -> Self {
            let key = *key;
            Self(Box::new(move || key))
        }
    }
    let cache: Cache<u32, Boxed> = Cache::new();
    assert_eq!((cache.get(&7).0)(), 7);
    cache.set(&7, Boxed(Box::new(|| 70)), t(5));
    assert_eq!((cache.get(&7).0)(), 70);
}

impl DefaultFor<[u8]> for Val {
    fn default_for(key: &[u8]) -> Self {
        Self(key.len() as u64)
    }
}

impl DefaultFor<Vec<u8>> for Val {
    fn default_for(key: &Vec<u8>) -> Self {
        Self::default_for(key.as_slice())
    }
}

#[test]
fn slices_are_looked_up_by_their_borrowed_form() {
    let cache: Cache<Vec<u8>, Val> = Cache::new();
    assert!(cache.set(&b"pod"[..], Val(7), t(5)));
    assert_eq!(*cache.get(&b"pod"[..]), Val(7));
    assert_eq!(*cache.get(&b"missing"[..]), Val(7));
    assert!(cache.contains(&b"pod".to_vec()));
    assert!(cache.subscribe(&b"pod"[..], t(4)).try_get().is_some());
}

/// Gives what `finish` makes of the last number that was hashed.
#[derive(Clone)]
struct Poor(fn(u64) -> u64);

struct PoorHasher(fn(u64) -> u64, u64);

impl BuildHasher for Poor {
    type Hasher = PoorHasher;

    fn build_hasher(&self) -> PoorHasher {
        PoorHasher(self.0, 0)
    }
}

impl Hasher for PoorHasher {
    fn finish(&self) -> u64 {
        (self.0)(self.1)
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("the keys are numbers")
    }

    fn write_u64(&mut self, number: u64) {
        self.1 = number;
    }
}

#[test]
fn poor_hashers_are_slow_and_right() {
    let hashers: [fn(u64) -> u64; 8] = [
        |n| n,
        |n| n << 32,
        |n| n << 52,
        |n| n.reverse_bits(),
        |n| !n,
        |n| n % 7,
        |_| 0,
        |_| u64::MAX,
    ];
    let keys: Vec<u64> = (0..1_000).collect();
    for hasher in hashers {
        let cache: Cache<u64, Val, Poor> = Cache::builder().hasher(Poor(hasher)).build();
        is_a_cache(&cache, &keys, |n| Val(n as u64));
    }
}
