//! The slots that `update_time` and `close` have to visit: those with waiters or a tombstone.
//!
//! A few shards, each an immutable list behind one pointer. A slot is put on it *before* the swap
//! that gives it its first waiter: the node that a second waiter finds then says that the listing
//! is there already. It stays while it is visited, so that two visits cannot take waiters from
//! each other, and for the next waiter of the same key. A listing is given up by a swap of the
//! slot's node first; it is then marked, and thrown out of its shard when the marked outnumber
//! the others.

use std::ptr;

use crossbeam_utils::CachePadded;

use super::list::{Keyed, List};
use super::reclaim::{Guard, drop_box};
use super::sync::{Arc, AtomicBool, AtomicPtr, Ordering};

#[cfg(not(podcache_loom))]
const SHARDS: usize = 16;
#[cfg(podcache_loom)]
const SHARDS: usize = 1;

/// One place of a slot in the waiting set.
pub(crate) struct Listing {
    gone: AtomicBool,
    shard: usize,
}

pub(crate) struct Member<T> {
    pub(crate) listing: Arc<Listing>,
    pub(crate) slot: Arc<T>,
}

struct Roll<T> {
    members: List<Member<T>>,
    gone: usize,
}

pub(crate) struct WaitingSet<T> {
    shards: Box<[CachePadded<AtomicPtr<Roll<T>>>]>,
}

impl<T> WaitingSet<T> {
    pub(crate) fn new() -> Self {
        let shard = |_| CachePadded::new(AtomicPtr::new(ptr::null_mut()));
        WaitingSet {
            shards: (0..SHARDS).map(shard).collect(),
        }
    }

    /// Puts a slot on the list, until [`delist`](Self::delist).
    pub(crate) fn enlist(&self, slot: &Arc<T>, hash: u64, guard: &Guard) -> Arc<Listing> {
        // A slot's hash has its entropy in the upper half.
        let shard = (hash >> 32) as usize % SHARDS;
        let listing = Arc::new(Listing {
            gone: AtomicBool::new(false),
            shard,
        });
        self.change(shard, guard, |roll| {
            let (members, gone) = roll.map_or((List::EMPTY, 0), |r| (r.members.clone(), r.gone));
            let member = Member {
                listing: Arc::clone(&listing),
                slot: Arc::clone(slot),
            };
            Some(Roll {
                members: members.push(member),
                gone,
            })
        });
        listing
    }

    /// Gives up a listing that no node refers to any more. Once for each.
    pub(crate) fn delist(&self, listing: &Listing, guard: &Guard) {
        // Release, with the acquire in `is_gone`, though nothing hangs on it: a listing that is
        // thrown out late is a visit for nothing.
        listing.gone.store(true, Ordering::Release);
        self.change(listing.shard, guard, |roll| {
            let roll = roll?;
            let gone = roll.gone + 1;
            if gone * 2 <= roll.members.len() {
                return Some(Roll {
                    members: roll.members.clone(),
                    gone,
                });
            }
            let mut members = List::EMPTY;
            for member in roll
                .members
                .iter()
                .filter(|member| !member.listing.is_gone())
            {
                members = members.push(member.clone());
            }
            (!members.is_empty()).then_some(Roll { members, gone: 0 })
        });
    }

    /// One swap of a shard's list; `None` is the empty one. Lock-free.
    fn change(
        &self,
        shard: usize,
        guard: &Guard,
        mut next: impl FnMut(Option<&Roll<T>>) -> Option<Roll<T>>,
    ) {
        let head = &*self.shards[shard];
        let mut old = head.load(Ordering::Acquire);
        loop {
            // SAFETY: loaded under the guard.
            let new = next(unsafe { old.as_ref() });
            let new = new.map_or(ptr::null_mut(), |roll| Box::into_raw(Box::new(roll)));
            // Release, with the acquire of whoever loads the head.
            match head.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) if old.is_null() => return,
                // SAFETY: unreachable from now on for new guards, and ours to free.
                Ok(_) => return unsafe { guard.retire(old, drop_box) },
                Err(other) => {
                    if !new.is_null() {
                        // SAFETY: never published.
                        drop(unsafe { Box::from_raw(new) });
                    }
                    old = other;
                }
            }
        }
    }

    /// The members of each shard as they are now, kept without a guard.
    pub(crate) fn rolls<'a>(
        &'a self,
        guard: &'a Guard,
    ) -> impl Iterator<Item = List<Member<T>>> + 'a {
        self.shards.iter().filter_map(|head| {
            // Acquire, with the release in `change`.
            let roll = head.load(Ordering::Acquire);
            let _ = guard;
            // SAFETY: loaded under the guard.
            unsafe { roll.as_ref() }.map(|roll| roll.members.clone())
        })
    }
}

impl Listing {
    pub(crate) fn is_gone(&self) -> bool {
        // Acquire, with the release in `delist`.
        self.gone.load(Ordering::Acquire)
    }
}

impl<T> Keyed for Member<T> {
    fn key(&self) -> u64 {
        0 // they are visited all
    }
}

impl<T> Clone for Member<T> {
    fn clone(&self) -> Self {
        Member {
            listing: Arc::clone(&self.listing),
            slot: Arc::clone(&self.slot),
        }
    }
}

impl<T> Drop for WaitingSet<T> {
    fn drop(&mut self) {
        for head in &self.shards {
            // Relaxed: `&mut self` has seen everything.
            let roll = head.load(Ordering::Relaxed);
            if !roll.is_null() {
                // SAFETY: the set owns its rolls, and nobody else is here.
                drop(unsafe { Box::from_raw(roll) });
            }
        }
    }
}
