//! What the integration tests share.
#![allow(dead_code)] // every test binary compiles all of this and uses its own part

pub(crate) mod alloc;
pub(crate) mod gate;
pub(crate) mod linear;
pub(crate) mod model;
pub(crate) mod race;
pub(crate) mod rng;
pub(crate) mod trap;
pub(crate) mod values;
pub(crate) mod wakers;
pub(crate) mod watchdog;

use std::hash::Hash;

use podcache::{Cache, DefaultFor, Timestamp, WritePolicy};

pub(crate) const POLICIES: [WritePolicy; 3] = [
    WritePolicy::Overwrite,
    WritePolicy::RejectOlder,
    WritePolicy::Monotonic,
];

/// The time that is `n` nanoseconds after the epoch.
pub(crate) const fn t(n: u64) -> Timestamp {
    Timestamp::from_nanos(n)
}

pub(crate) fn cache_with<K, V>(policy: WritePolicy) -> Cache<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Send + Sync + 'static,
{
    Cache::builder().write_policy(policy).build()
}

/// `n` rounds, times what `PODCACHE_STRESS` says.
pub(crate) fn rounds(n: usize) -> usize {
    let factor = std::env::var("PODCACHE_STRESS").ok().map_or(1.0, |s| {
        s.parse::<f64>().expect("PODCACHE_STRESS: a number")
    });
    ((n as f64 * factor) as usize).max(1)
}

/// Runs `step` until `done`. Destruction is deferred until no reader can hold on, and it is later
/// calls that drive it: so whoever asks whether memory went away lets some calls go by.
#[track_caller]
pub(crate) fn eventually(mut step: impl FnMut(), mut done: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if done() {
            return;
        }
        (0..64).for_each(|_| step());
        std::thread::yield_now();
    }
    assert!(done(), "it never came to that");
}

/// Ordinary traffic on a key that nobody else uses.
pub(crate) fn traffic<K, V>(cache: &Cache<K, V>, spare: &K)
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: DefaultFor<K> + Send + Sync + 'static,
{
    cache.set(spare, V::default_for(spare), cache.global_time());
    cache.delete(spare);
}
