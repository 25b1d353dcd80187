//! The default hasher.

use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// The default hasher: foldhash (its fast variant), seeded anew for every cache.
///
/// Chosen over std's SipHash since hashing a pod UID is a good part of a `get` (about a quarter
/// with this one). The seed makes accidental and blind collisions unlikely; it is not a defence
/// against somebody who can watch the cache's timing and choose keys at will. Who takes keys from
/// an adversary passes `std::hash::RandomState` to [`Builder::hasher`](crate::Builder::hasher).
#[derive(Clone, Default)]
pub struct RandomState(Seed);

#[cfg(not(podcache_loom))]
type Seed = foldhash::fast::RandomState;

/// Always the same: an exploration has to begin in the same way every time.
#[cfg(podcache_loom)]
type Seed = foldhash::fast::FixedState;

impl fmt::Debug for RandomState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RandomState").finish_non_exhaustive() // the seed is nobody's business
    }
}

impl BuildHasher for RandomState {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher(self.0.build_hasher())
    }
}

/// The hasher that [`RandomState`] builds.
pub struct DefaultHasher(foldhash::fast::FoldHasher<'static>);

impl fmt::Debug for DefaultHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefaultHasher").finish_non_exhaustive()
    }
}

macro_rules! forward {
    ($($write:ident: $int:ty),*) => {
        $(#[inline]
        fn $write(&mut self, i: $int) {
            self.0.$write(i);
        })*
    };
}

impl Hasher for DefaultHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }

    forward!(write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_u128: u128,
             write_usize: usize);
}
