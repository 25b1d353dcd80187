//! Registering a wait, and giving it up.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::ptr;

use super::cache::{Later, RawCache, fresh};
use super::clock::Tick;
use super::counters::Count;
use super::node::{Aux, Current};
use super::reclaim::{Shared, pin};
use super::slot::Slot;
use super::sync::{Arc, Ordering, counted, fence};
use super::waiter::{Outcome, Waiter};
use super::writes::{Ready, seal};

/// What came of a wait when it was asked for.
pub(crate) enum Wait<V> {
    /// It is over: fresh, or closed.
    Over(Outcome<V>),
    /// Fresh, and the key has no record.
    Missing,
    Registered(Arc<Waiter<V>>),
}

impl<V> Wait<V> {
    /// How a wait for something newer than `min` ends that meets this time and this node at once,
    /// if it does.
    fn over(tick: &Tick, node: Option<Current<'_, V>>, min: u64) -> Option<Self> {
        match fresh(tick, node, min) {
            Some(Some(node)) => Some(Wait::Over(Outcome::Snapshot(node))),
            Some(None) => Some(Wait::Missing),
            None => tick.closed.then_some(Wait::Over(Outcome::Closed)),
        }
    }
}

/// The cache as a registered wait knows it.
pub(crate) trait Home<V>: Send + Sync {
    /// Gives up a wait.
    fn cancel(&self, waiter: &Waiter<V>);

    /// Sees to it that a waiter that some call has named already has its result, though that call
    /// may have been stopped before it came to it.
    fn claim(&self, waiter: &Waiter<V>);

    /// Counts that a thread ran out of time waiting.
    fn timed_out(&self);

    /// The name of the cache.
    #[cfg(feature = "tracing")]
    fn name(&self) -> Option<std::sync::Arc<str>>;
}

/// A registered wait that is given up unless it is handed on.
struct Registration<'a, K, V, S> {
    cache: &'a RawCache<K, V, S>,
    waiter: Option<Arc<Waiter<V>>>,
}

impl<K, V, S> Drop for Registration<'_, K, V, S> {
    fn drop(&mut self) {
        if let Some(waiter) = &self.waiter {
            // It is as if it had not been.
            self.cache.withdraw(waiter, Count::Waits, -1);
        }
    }
}

impl<K, V, S: BuildHasher> RawCache<K, V, S> {
    /// Registers a wait for something newer than `min`, unless that is there, or the cache closed.
    pub(crate) fn subscribe<Q>(&self, key: &Q, min: u64) -> Wait<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let mut later = Later::nothing();
        let mut ready = Ready::nothing(self);
        let mut registration = Registration {
            cache: self,
            waiter: None,
        };
        let hash = self.hash(key);
        // Nothing if it is registered.
        let over = self.on_key(key, hash, |tick, place, guard| {
            // What rests on the time and the record holds only if they were so at once.
            if !ptr::eq(tick, self.clock.tick(guard)) {
                return None;
            }
            if let over @ Some(_) = Wait::over(tick, place.map(|(_, node)| node), min) {
                return Some(over);
            }
            let Some((slot, old)) = place else {
                ready.open(key, hash, guard);
                return None;
            };
            let waiter = Waiter::new(min, slot.as_ptr().cast());
            let mut inherited = later.inherit(old);
            inherited.waiters = inherited.waiters.with(Arc::clone(&waiter));
            // Listed before the swap, so that whoever finds the waiter's node can rely on it.
            if inherited.listing.is_none() {
                inherited.listing = Some(ready.listing(slot, guard));
            }
            let aux = Aux {
                tomb: old.tomb(),
                ..Aux::after(inherited)
            };
            let new = self
                .replace(slot, old, seal(old.same_record(), aux), guard)
                .ok()?;
            ready.used(new);
            self.counters.add(Count::Waits, 1);
            registration.waiter = Some(waiter);
            // With the fence in `advance`. If ours comes first, it finds the listing and the
            // waiter; if its does, we find its tick. Then all is asked again, as if only now:
            // nobody else knows the waiter yet.
            fence(Ordering::SeqCst);
            if !ptr::eq(tick, self.clock.tick(guard)) {
                let (tick, node) = self.at_once(key, hash, guard);
                return Some(Wait::over(tick, node, min));
            }
            Some(None)
        });
        drop(ready);
        later.finish(self);
        over.unwrap_or_else(|| {
            let waiter = registration.waiter.take();
            Wait::Registered(waiter.expect("not over, so registered"))
        })
    }
}

impl<K, V, S> RawCache<K, V, S> {
    /// Ends a wait from the waiter's side, unless it is over: counts that, and tells the slot to
    /// count it among the dead.
    fn withdraw(&self, waiter: &Waiter<V>, what: Count, n: i64) {
        let slot = {
            let _guard = pin();
            if !waiter.is_waiting() {
                return;
            }
            // SAFETY: a slot does not retire while somebody waits in it, so under a guard that is
            // older than the look at the waiter it is there.
            unsafe { counted(waiter.slot.cast::<Slot<K, V>>()) }
        };
        if !waiter.cancel() {
            return;
        }
        self.counters.add(what, n);
        let mut later = Later::nothing();
        let slot = Shared::of(&slot);
        let left = self.on_slot(slot, |old, guard| {
            let mut inherited = later.inherit(old);
            inherited.waiters = inherited.waiters.bury();
            let aux = Aux {
                tomb: old.tomb(),
                ..Aux::after(inherited)
            };
            let new = self.or_bare(slot, seal(old.same_record(), aux));
            let new = self.replace(slot, old, new, guard).ok()?;
            self.unless_marked(slot, new);
            Some(new.and_then(Current::kept_for).is_some())
        });
        if left == Some(true) {
            self.unless_owed(slot, &mut later);
        }
        later.finish(self);
    }
}

impl<K: Send + Sync, V: Send + Sync, S: Send + Sync> Home<V> for RawCache<K, V, S> {
    fn cancel(&self, waiter: &Waiter<V>) {
        self.withdraw(waiter, Count::Cancellations, 1);
    }

    fn claim(&self, waiter: &Waiter<V>) {
        let guard = pin();
        if waiter.is_waiting() {
            // SAFETY: as in `withdraw`.
            let slot = unsafe { Shared::new(waiter.slot.cast::<Slot<K, V>>()) };
            if let Some(node) = slot.and_then(|slot| self.current(slot, &guard)) {
                let mut later = Later::nothing();
                later.offer(node);
                drop(guard);
                later.finish(self);
            }
        }
    }

    fn timed_out(&self) {
        self.counters.add(Count::TimeOuts, 1);
    }

    #[cfg(feature = "tracing")]
    fn name(&self) -> Option<std::sync::Arc<str>> {
        self.settings.name.clone()
    }
}
