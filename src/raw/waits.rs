//! Registering a wait, and giving it up.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::ptr;

use super::cache::{RawCache, Work};
use super::node::{Aux, Current, Node};
use super::reclaim::pin;
use super::slot::Slot;
use super::sync::{Arc, Ordering, fence};
use super::waiter::{Outcome, Panics, Waiter};
use super::writes::{Ready, seal};

/// What came of a wait when it was asked for.
pub(crate) enum Wait<V> {
    /// It is over: fresh, or closed.
    Over(Outcome<V>),
    /// Fresh, and the key has no record.
    Missing,
    Registered(Arc<Waiter<V>>),
}

/// The cache as a registered wait knows it.
pub(crate) trait Home<V>: Send + Sync {
    /// Gives up a wait.
    fn cancel(&self, waiter: &Waiter<V>);

    /// Sees to it that a waiter that some call has named already has its result, though that call
    /// may have been stopped before it came to it.
    fn claim(&self, waiter: &Waiter<V>);
}

/// How a wait that has just been registered turns out to be over.
enum Late<K, V> {
    Over(Outcome<V>),
    Missing(Arc<Slot<K, V>>),
}

/// A wait that is given up on the way out of a panic.
struct Registration<'a, K, V, S> {
    cache: &'a RawCache<K, V, S>,
    waiter: Option<Arc<Waiter<V>>>,
}

impl<K, V, S> Drop for Registration<'_, K, V, S> {
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            self.cache.end(waiter, || waiter.cancel());
        }
    }
}

impl<K, V, S: BuildHasher> RawCache<K, V, S> {
    /// Registers a wait for something newer than `min`, unless that is there, or the cache closed.
    pub(crate) fn subscribe<Q>(
        &self,
        key: &Q,
        min: u64,
        default_for: impl FnOnce(&K) -> V,
    ) -> Wait<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut panics = Panics::default();
        let mut ready = Ready::nothing(self);
        let hash = self.hash(key);
        let (wait, late) = self.on_key(key, hash, &mut panics, |tick, place, guard| {
            let record = place.map(|(_, node)| node).filter(|node| node.is_record());
            if Self::is_fresh(tick, record, min) {
                let wait = match record {
                    Some(record) => Wait::Over(Outcome::Snapshot(record.to_arc())),
                    None => Wait::Missing,
                };
                return Some((wait, None));
            }
            if tick.closed {
                return Some((Wait::Over(Outcome::Closed), None));
            }
            let Some((slot, old)) = place else {
                ready.open(key, hash, guard);
                return None;
            };
            // Listed before the swap, so that whoever finds the waiter's node can rely on it.
            let listing = ready.listing(slot, old, guard);
            let waiter = Waiter::new(min, ptr::from_ref(slot).cast());
            let aux = Aux {
                waiters: old.waiters().with(Arc::clone(&waiter)),
                handed: None,
                listing: Some(Arc::clone(&listing)),
                tomb: old.tomb(),
                proposal: None,
            };
            self.replace(slot, old, seal(old.same_record(), aux), guard)
                .ok()?;
            ready.used(&listing);
            // With the fence in `advance`. If ours comes first, it finds the listing and the
            // waiter; if its does, we find its tick, and what it did not give us we take.
            fence(Ordering::SeqCst);
            let again = self.clock.tick(guard);
            let late = if again.number != tick.number && again.time >= min {
                // Not retired: it has our waiter, or has handed us something.
                let node = self.current(slot, guard).filter(|node| node.is_record());
                Some(match node.map(Current::to_arc) {
                    Some(node) => Late::Over(Outcome::Snapshot(node)),
                    // SAFETY: found in the index under the guard.
                    None => Late::Missing(unsafe { Slot::to_arc(slot) }),
                })
            } else {
                again.closed.then_some(Late::Over(Outcome::Closed))
            };
            Some((Wait::Registered(waiter), late))
        });
        let mut registration = Registration {
            cache: self,
            waiter: None,
        };
        if let Wait::Registered(waiter) = &wait {
            registration.waiter = Some(Arc::clone(waiter));
        }
        drop(ready);
        if let (Some(waiter), Some(late)) = (&registration.waiter, late) {
            let outcome = match late {
                Late::Over(outcome) => outcome,
                Late::Missing(slot) => Outcome::Snapshot(Node::default(default_for(slot.key()))),
            };
            // Nobody but us knows the waiter yet: it is as if the call had named it that moved the
            // clock, at the instant at which we looked.
            self.end(waiter, || waiter.offer(outcome));
        }
        panics.resume();
        registration.waiter = None;
        wait
    }
}

impl<K, V, S> RawCache<K, V, S> {
    /// Ends a wait from the waiter's side: `decide` decides it, and if it did, the slot is told to
    /// count it among the dead.
    fn end(&self, waiter: &Waiter<V>, decide: impl FnOnce() -> bool) {
        let slot = {
            let _guard = pin();
            if !waiter.is_waiting() {
                return;
            }
            // SAFETY: a slot does not retire while somebody waits in it, so under a guard that is
            // older than the look at the waiter it is there.
            unsafe { Slot::<K, V>::to_arc(waiter.slot.cast()) }
        };
        if !decide() {
            return;
        }
        let mut panics = Panics::default();
        self.on_slot(&slot, &mut panics, |old, guard| {
            let aux = Aux {
                waiters: old.waiters().bury(),
                handed: None,
                listing: old.listing().cloned(),
                tomb: old.tomb(),
                proposal: None,
            };
            self.replace(&slot, old, seal(old.same_record(), aux), guard)
                .ok()
                .map(drop)
        });
        panics.resume();
    }
}

impl<K: Send + Sync, V: Send + Sync, S: Send + Sync> Home<V> for RawCache<K, V, S> {
    fn cancel(&self, waiter: &Waiter<V>) {
        self.end(waiter, || waiter.cancel());
    }

    fn claim(&self, waiter: &Waiter<V>) {
        let guard = pin();
        if waiter.is_waiting() {
            // SAFETY: as in `end`.
            let slot = unsafe { &*waiter.slot.cast::<Slot<K, V>>() };
            if let Some(work) = self.current(slot, &guard).and_then(Work::of) {
                work.offer();
            }
        }
    }
}
