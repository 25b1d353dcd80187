use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering::SeqCst};

use podcache::DefaultFor;

use super::trap::{self, Place};

/// A value that is told from every other by its number. Default values are numbered from
/// [`Val::DEFAULTS`] on, by their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Val(pub(crate) u64);

impl Val {
    pub(crate) const DEFAULTS: u64 = 1 << 40;

    pub(crate) const fn default_of(key: u64) -> Self {
        Self(Self::DEFAULTS.wrapping_add(key))
    }
}

impl DefaultFor<u8> for Val {
    fn default_for(key: &u8) -> Self {
        Self::default_of(u64::from(*key))
    }
}

impl DefaultFor<u64> for Val {
    fn default_for(key: &u64) -> Self {
        Self::default_of(*key)
    }
}

impl DefaultFor<String> for Val {
    fn default_for(key: &String) -> Self {
        Self::default_for(key.as_str())
    }
}

impl DefaultFor<str> for Val {
    fn default_for(key: &str) -> Self {
        Self::default_of(key.len() as u64)
    }
}

/// Keys that all hash alike.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SameHash(pub(crate) u64);

impl Hash for SameHash {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl DefaultFor<SameHash> for Val {
    fn default_for(key: &SameHash) -> Self {
        Self::default_of(key.0)
    }
}

/// A key whose every method may run into a trap.
#[derive(Debug)]
pub(crate) struct TrapKey(pub(crate) u64);

impl Hash for TrapKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        trap::hit(Place::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for TrapKey {
    fn eq(&self, other: &Self) -> bool {
        trap::hit(Place::Eq);
        self.0 == other.0
    }
}

impl Eq for TrapKey {}

impl Clone for TrapKey {
    fn clone(&self) -> Self {
        trap::hit(Place::CloneKey);
        Self(self.0)
    }
}

impl Drop for TrapKey {
    fn drop(&mut self) {
        trap::hit(Place::DropKey);
    }
}

/// A value whose every method may run into a trap, and that counts how many of it are alive.
#[derive(Debug)]
pub(crate) struct TrapVal {
    pub(crate) number: u64,
    live: Option<Live>,
}

/// How many values are alive.
pub(crate) type Live = Arc<AtomicIsize>;

impl TrapVal {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, live: None }
    }

    pub(crate) fn counted(number: u64, live: &Live) -> Self {
        live.fetch_add(1, SeqCst);
        Self {
            number,
            live: Some(Arc::clone(live)),
        }
    }
}

impl Drop for TrapVal {
    fn drop(&mut self) {
        if let Some(live) = &self.live {
            live.fetch_sub(1, SeqCst);
        }
        trap::hit(Place::DropValue);
    }
}

impl DefaultFor<TrapKey> for TrapVal {
    fn default_for(key: &TrapKey) -> Self {
        trap::hit(Place::Default);
        Self::new(Val::DEFAULTS + key.0)
    }
}

impl DefaultFor<u64> for TrapVal {
    fn default_for(key: &u64) -> Self {
        trap::hit(Place::Default);
        Self::new(Val::DEFAULTS + key)
    }
}
