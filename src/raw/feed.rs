//! Who reads the changes, and what has changed since they last looked.
//!
//! A [`Feed`] is a stack of slots whose record has changed. A slot has one bit for each feed that
//! says whether it is on its stack: so a slot is there at most once, a slow reader costs memory by
//! keys and not by events, and a writer never waits. The reader takes the whole stack, clears each
//! slot's bit, and only then reads its node: the newest.
//!
//! With nobody listening a writer pays one load.
//!
//! A mark is free for the next feed only when nobody can set it for the last one any more, which is
//! when memory is reclaimed. A feed that finds none does without: its slots may be on its stack as
//! often as they change.

use std::ptr;

use super::bell::Bell;
use super::reclaim::{Guard, discard, drop_box, take_out};
use super::sync::{Arc, AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence};
use super::waiter::Panics;

/// The marks that a slot carries for the feeds.
pub(crate) struct Marks(AtomicU32);

pub(crate) trait Marked {
    fn marks(&self) -> &Marks;
}

pub(crate) struct Feeds<T: Marked> {
    /// Null while nobody listens.
    roster: AtomicPtr<Vec<Arc<Feed<T>>>>,
    /// The bits in use. A bit is free again only when no slot can be marked with it any more.
    taken: Arc<AtomicU32>,
}

pub(crate) struct Feed<T: Marked> {
    /// Its mark; zero if it has none.
    bit: u32,
    taken: Arc<AtomicU32>,
    /// [`left`] when its reader is gone.
    top: AtomicPtr<Entry<T>>,
    behind: AtomicUsize,
    pub(crate) bell: Bell,
}

struct Entry<T> {
    slot: Arc<T>,
    next: *mut Entry<T>,
}

// SAFETY: slots are shared between threads as an `Arc` shares them; entries are owned by whoever
// took them off the stack.
unsafe impl<T: Marked + Send + Sync> Send for Feed<T> {}
// SAFETY: as above.
unsafe impl<T: Marked + Send + Sync> Sync for Feed<T> {}

/// The top of a stack that nothing is pushed to any more.
fn left<T>() -> *mut Entry<T> {
    ptr::without_provenance_mut(1)
}

impl Marks {
    pub(crate) fn none() -> Self {
        Marks(AtomicU32::new(0))
    }

    /// Whether a feed has yet to read the slot. One that says no may have been marked since.
    pub(crate) fn is_marked(&self) -> bool {
        // Relaxed: a hint, to keep a slot for the next record of its key or not.
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl<T: Marked> Feeds<T> {
    pub(crate) fn new() -> Self {
        Feeds {
            roster: AtomicPtr::new(ptr::null_mut()),
            taken: Arc::new(AtomicU32::new(0)),
        }
    }

    /// A new feed. It gets what changes from now on; what is there has to be looked at after this,
    /// with [`Slot::touch`](super::slot::Slot::touch).
    pub(crate) fn join(&self, guard: &Guard) -> Arc<Feed<T>> {
        let mut taken = self.taken.load(Ordering::Relaxed);
        let bit = loop {
            // The lowest that is free.
            let bit = !taken & taken.wrapping_add(1);
            if bit == 0 {
                break bit;
            }
            // Acquire, with the release in `Feed::drop`: no slot has this mark.
            match self.taken.compare_exchange(
                taken,
                taken | bit,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => break bit,
                Err(other) => taken = other,
            }
        };
        let feed = Arc::new(Feed {
            bit,
            taken: Arc::clone(&self.taken),
            top: AtomicPtr::new(ptr::null_mut()),
            behind: AtomicUsize::new(0),
            bell: Bell::new(),
        });
        self.change(guard, |roster| roster.push(Arc::clone(&feed)));
        // With the fence in `announce`.
        fence(Ordering::SeqCst);
        feed
    }

    /// Ends a feed, and gives what its reader has not taken. A writer that still pushes to it finds
    /// it closed, and takes back its mark.
    pub(crate) fn leave(&self, feed: &Arc<Feed<T>>, guard: &Guard) -> Vec<Arc<T>> {
        self.change(guard, |roster| {
            roster.retain(|other| !Arc::ptr_eq(other, feed))
        });
        guard.flush();
        feed.swap_top(left())
    }

    fn change(&self, guard: &Guard, change: impl Fn(&mut Vec<Arc<Feed<T>>>)) {
        let mut old = self.roster.load(Ordering::Acquire);
        loop {
            // SAFETY: loaded under the guard.
            let mut roster = unsafe { old.as_ref() }.cloned().unwrap_or_default();
            change(&mut roster);
            let new = match roster.is_empty() {
                true => ptr::null_mut(),
                false => Box::into_raw(Box::new(roster)),
            };
            // Release, with the acquire of whoever loads the roster.
            match self
                .roster
                .compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire)
            {
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

    fn roster<'g>(&self, _guard: &'g Guard) -> Option<&'g Vec<Arc<Feed<T>>>> {
        // Acquire, with the release in `change`.
        let roster = self.roster.load(Ordering::Acquire);
        // SAFETY: loaded under the guard.
        unsafe { roster.as_ref() }
    }

    /// A slot's record has changed, by a swap of its node just before this. `is_new`: there was
    /// none.
    ///
    /// No feed that joins meanwhile misses it. If the slot is one that it finds, its touch is a
    /// read-modify-write of the same pointer as our swap: if the touch comes first, our swap
    /// acquired it and we see the feed; if ours does, it sees our node. Only a slot with a new
    /// record may not be found: there the two fences see to it. If the joiner's comes first, we see
    /// the feed; if ours does, it finds the slot.
    #[inline]
    pub(crate) fn announce(&self, is_new: bool, slot: impl FnOnce() -> Arc<T>, guard: &Guard) {
        if is_new {
            // With the fence in `join`.
            fence(Ordering::SeqCst);
        }
        if let Some(roster) = self.roster(guard) {
            let slot = slot();
            for feed in roster {
                feed.push(&slot);
            }
        }
    }

    /// Whether anybody listens. One that says no may have been joined since.
    pub(crate) fn is_empty(&self) -> bool {
        // Relaxed: what a writer must not miss, its swap has acquired; see `announce`.
        self.roster.load(Ordering::Relaxed).is_null()
    }

    /// Rings for what was pushed and not rung for: by us, or by somebody who was stopped before.
    /// Runs wakers: not under a guard.
    pub(crate) fn ring(&self, panics: &mut Panics, pin: impl FnOnce() -> Guard) {
        // Acquire for symmetry; if the feeds that we pushed to are gone, nobody is to be woken.
        if self.roster.load(Ordering::Acquire).is_null() {
            return;
        }
        let waiting: Vec<_> = {
            let guard = pin();
            let roster = self.roster(&guard).into_iter().flatten();
            roster.filter(|feed| feed.is_waiting()).cloned().collect()
        };
        for feed in waiting {
            feed.bell.ring_threads();
            panics.catch(|| feed.bell.ring_task());
        }
    }

    /// Rings all: the cache is closed.
    pub(crate) fn ring_all(&self, panics: &mut Panics, pin: impl FnOnce() -> Guard) {
        let all: Vec<_> = self.roster(&pin()).into_iter().flatten().cloned().collect();
        for feed in all {
            feed.bell.ring_threads();
            panics.catch(|| feed.bell.ring_task());
        }
    }
}

impl<T: Marked> Drop for Feeds<T> {
    fn drop(&mut self) {
        // Relaxed: `&mut self` has seen everything.
        let roster = self.roster.load(Ordering::Relaxed);
        if !roster.is_null() {
            // SAFETY: owned by the feeds, and nobody else is here.
            drop(unsafe { Box::from_raw(roster) });
        }
    }
}

impl<T: Marked> Feed<T> {
    fn push(&self, slot: &Arc<T>) {
        // AcqRel, with the same in `clear`: on one word, one of the two comes first. If the mark
        // was there, the reader clears it after this, and then sees our node.
        if slot.marks().0.fetch_or(self.bit, Ordering::AcqRel) & self.bit != 0 {
            return;
        }
        // Relaxed: a count for people.
        self.behind.fetch_add(1, Ordering::Relaxed);
        let mut next = self.top.load(Ordering::Relaxed);
        let entry = Box::into_raw(Box::new(Entry {
            slot: Arc::clone(slot),
            next: ptr::null_mut(),
        }));
        loop {
            if next == left() {
                // SAFETY: never published.
                drop(unsafe { Box::from_raw(entry) });
                return self.clear(slot);
            }
            // SAFETY: not published yet.
            unsafe { (*entry).next = next };
            // AcqRel, with the same in `swap_top`: on one word, one of the two comes first. If ours
            // does, the reader finds the slot; if its does, we see that it waits (`is_waiting`).
            match self
                .top
                .compare_exchange(next, entry, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(other) => next = other,
            }
        }
    }

    /// Whether there is something to take that its reader may not know of.
    fn is_waiting(&self) -> bool {
        // Relaxed: who has pushed finds that, or what came after it.
        !self.top.load(Ordering::Relaxed).is_null() && self.bell.is_wanted()
    }

    /// Takes all slots that have changed, in the order in which they did. Before a slot is looked
    /// at, its mark is to be cleared.
    pub(crate) fn take(&self) -> Vec<Arc<T>> {
        self.swap_top(ptr::null_mut())
    }

    fn swap_top(&self, top: *mut Entry<T>) -> Vec<Arc<T>> {
        // AcqRel, with the same in `push`.
        let mut next = self.top.swap(top, Ordering::AcqRel);
        let mut slots = Vec::new();
        while !next.is_null() {
            // SAFETY: whoever swaps the stack out owns its entries.
            let (entry, room) = unsafe { take_out(next) };
            discard(room);
            next = entry.next;
            slots.push(entry.slot);
        }
        slots.reverse();
        slots
    }

    /// Lets a taken slot be pushed again. What is read from it after this is as new as every push
    /// that was left out.
    pub(crate) fn clear(&self, slot: &T) {
        // AcqRel, with the same in `push`.
        let marks = slot.marks().0.fetch_and(!self.bit, Ordering::AcqRel);
        if marks & self.bit == self.bit {
            // Relaxed: a count for people.
            self.behind.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// How many slots have changed and were not cleared.
    pub(crate) fn behind(&self) -> usize {
        self.behind.load(Ordering::Relaxed)
    }
}

impl<T: Marked> Drop for Feed<T> {
    // When the last is gone that could push.
    fn drop(&mut self) {
        debug_assert!(self.top.load(Ordering::Relaxed) == left());
        // Release, with the acquire in `join`: all marks are cleared.
        self.taken.fetch_and(!self.bit, Ordering::Release);
    }
}
