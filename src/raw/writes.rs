//! The moves that writers make.

use std::borrow::Borrow;
use std::cell::Cell;
use std::hash::{BuildHasher, Hash};
use std::mem;
use std::time::Instant;

use super::cache::{AT_ONCE, Calling, Later, RawCache};
use super::clock::Tick;
use super::counters::Count;
use super::feed::Marked;
use super::index::Entry;
use super::list::List;
use super::node::{Aux, Current, Handed, Node, OPEN, Proposal, SERVED, Standing, Waiters};
use super::reclaim::{Guard, Shared, pin};
use super::slot::Slot;
use super::sync::{Arc, Ordering, fence};
use super::waiter::{Outcome, Panics, Waiter};
use super::waiting::Listing;
use crate::{WritePolicy, trace};

impl<V> Handed<V> {
    fn to(waiters: List<Arc<Waiter<V>>>, outcome: Option<Outcome<V>>) -> Option<Self> {
        (!waiters.is_empty()).then_some(Handed { waiters, outcome })
    }
}

/// Makes an unpublished node ready for its slot. A listing is kept for as long as there is a
/// reason to be visited; a node with nothing to say is none, and the slot retires.
pub(super) fn seal<V>(mut node: Arc<Node<V>>, mut aux: Aux<V>) -> Option<Arc<Node<V>>> {
    let told = aux.handed.is_none() && aux.owed.is_empty();
    let idle = aux.waiters.list.is_empty() && told && aux.tomb.is_none();
    if idle {
        aux.listing = None;
        if !node.is_record() && aux.proposal.is_none() {
            return None;
        }
    }
    Node::equip(&mut node, aux);
    Some(node)
}

/// What a move has made ready before it succeeds; what is not used in the end is taken back.
pub(super) struct Ready<'a, K, V, S> {
    cache: &'a RawCache<K, V, S>,
    /// A slot that lost its place in the index to another of the same key.
    spare: Option<Arc<Slot<K, V>>>,
    /// The bare slot that was put into the index.
    opened: Option<Arc<Slot<K, V>>>,
    /// A listing of a slot that had none.
    listing: Option<(*const Slot<K, V>, Arc<Listing>)>,
}

impl<'a, K, V, S> Ready<'a, K, V, S> {
    pub(super) fn nothing(cache: &'a RawCache<K, V, S>) -> Self {
        Ready {
            cache,
            spare: None,
            opened: None,
            listing: None,
        }
    }

    /// A slot that holds `node`.
    fn slot(&mut self, node: Arc<Node<V>>, hash: u64, key: impl FnOnce() -> K) -> Arc<Slot<K, V>> {
        match self.spare.take() {
            None => Slot::new(key(), hash, node),
            Some(mut slot) => {
                drop(Slot::exchange(&mut slot, node));
                slot
            }
        }
    }

    /// Sees to it that the key has a slot: a bare one, for the move to follow.
    pub(super) fn open<Q>(&mut self, key: &Q, hash: u64, guard: &Guard)
    where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
    {
        let slot = self.slot(Node::absent(), hash, || key.to_owned());
        let opened = Arc::clone(&slot);
        match self
            .cache
            .index
            .insert(slot, |slot| slot.key().borrow() == key, guard)
        {
            Ok(_) => self.opened = Some(opened),
            Err((_, unused)) => {
                drop(opened);
                self.spare = Some(unused);
            }
        }
    }

    /// A listing for a slot that has none.
    pub(super) fn listing(&mut self, slot: Shared<'_, Slot<K, V>>, guard: &Guard) -> Arc<Listing> {
        if self
            .listing
            .as_ref()
            .is_none_or(|(of, _)| !std::ptr::eq(*of, slot.as_ptr()))
        {
            self.take_back_listing(guard);
            let member = slot.to_arc();
            let listing = self.cache.waiting.enlist(&member, slot.hash(), guard);
            self.listing = Some((slot.as_ptr(), listing));
        }
        Arc::clone(&self.listing.as_ref().expect("made above").1)
    }

    /// The move succeeded with this node.
    pub(super) fn used(&mut self, new: Option<Current<'_, V>>) {
        let used = new.and_then(Current::listing);
        self.listing
            .take_if(|(_, made)| used.is_some_and(|used| Arc::ptr_eq(made, used)));
    }

    fn take_back_listing(&mut self, guard: &Guard) {
        if let Some((_, listing)) = self.listing.take() {
            self.cache.waiting.delist(&listing, guard);
        }
    }
}

impl<K, V, S> Drop for Ready<'_, K, V, S> {
    fn drop(&mut self) {
        if self.listing.is_some() {
            self.take_back_listing(&pin());
        }
        if let Some(slot) = self.opened.take() {
            self.cache.retire_bare(Shared::of(&slot));
        }
    }
}

/// Whom a visit is to end the wait of.
pub(super) enum Call<'a, K, V> {
    /// Those with `min <=` the time; a missing key reads as what the function makes of it.
    Time(u64, &'a dyn Fn(&K) -> V),
    /// The same, but only as long as there is no record.
    Missing(u64, &'a dyn Fn(&K) -> V),
    /// Everybody: the cache is closed.
    Close,
    /// Nobody: only clear away what is no longer needed.
    Tidy,
}

enum Claim<'g, V> {
    Claimed(Current<'g, V>),
    Nobody,
    /// Needs a closer look.
    Visit,
}

/// What came of a visit.
enum Visited {
    /// There is a record where none should be.
    Record,
    /// Somebody is to get what a missing key reads as.
    NeedsDefault,
    Done,
    /// The same, and when the tasks have been called there may be nothing left in the slot.
    ToTidy,
}

impl<K, V> Clone for Call<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K, V> Copy for Call<'_, K, V> {}

impl<K, V, S> RawCache<K, V, S> {
    /// What takes the place of a node that nothing is left of: nothing, and the slot retires; but
    /// while somebody has yet to read that it was deleted, a bare slot for the key to come back to.
    /// So a feed has one slot for each key, however often it comes and goes.
    pub(super) fn or_bare(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        new: Option<Arc<Node<V>>>,
    ) -> Option<Arc<Node<V>>> {
        new.or_else(|| slot.marks().is_marked().then(Node::absent))
    }

    /// A bare slot may have been left for a feed that has just read it.
    pub(super) fn unless_marked(&self, slot: Shared<'_, Slot<K, V>>, node: Option<Current<'_, V>>) {
        if node.is_some_and(|node| !node.is_record() && node.aux().is_none()) {
            self.let_go(slot);
        }
    }

    /// A slot may have been left for tasks that have just been called. Calls none.
    pub(super) fn unless_owed(&self, slot: Shared<'_, Slot<K, V>>, later: &mut Later<V>) {
        self.on_slot(slot, |old, guard| {
            if old.kept_for().is_none() {
                return Some(());
            }
            let inherited = later.inherit(old);
            // Between our swap before this and the look at the wakers, with the one in
            // `Later::run_all` between their calls and the look at the slot. If ours comes first,
            // who calls the tasks finds what we left; if its does, we see that they have been
            // called. And between giving them results and that look, with the one in the pin
            // between a task's registering and its own look: if ours comes first, it finds its
            // result, and need not be called; if its does, we find its waker. (A pin under a
            // `Pinned` has no fence; there the task has its locked instruction alone, and at worst
            // only who named it calls it.)
            fence(Ordering::SeqCst);
            // Of many, some may be left: who calls them tidies up, or the next call that wakes.
            let many = inherited.owed.len() > AT_ONCE;
            if many || inherited.owed.iter().any(|waiter| waiter.bell.has_task()) {
                return Some(());
            }
            let aux = Aux {
                tomb: old.tomb(),
                owed: List::EMPTY,
                ..Aux::after(inherited)
            };
            let new = self.or_bare(slot, seal(old.same_record(), aux));
            let new = self.replace(slot, old, new, guard).ok()?;
            self.unless_marked(slot, new);
            Some(())
        });
    }

    /// A feed has read that a slot has no record.
    pub(crate) fn let_go(&self, slot: Shared<'_, Slot<K, V>>) {
        // Between the reader's clearing of the mark and its look at the node, and between the swap
        // of a bare node and the look at the mark. If the reader's comes first, the other sees that
        // the mark is gone; if the other's does, the reader finds the bare node.
        fence(Ordering::SeqCst);
        if !slot.marks().is_marked() {
            self.retire_bare(slot);
        }
    }

    /// Retires a slot that was opened for a move that did not come. Another's move that was about
    /// to come opens its own.
    fn retire_bare(&self, slot: Shared<'_, Slot<K, V>>) {
        let guard = pin();
        if let Some(old) = self.current(slot, &guard)
            && !old.is_record()
            && old.aux().is_none()
        {
            // If it fails somebody has come.
            let _ = self.replace(slot, old, None, &guard);
        }
    }

    /// Ends waits on one slot, and clears away what nobody needs there any more. Runs no user code.
    fn visit(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        call: Call<'_, K, V>,
        default: Option<&Arc<Node<V>>>,
        later: &mut Later<V>,
    ) -> Visited {
        let visited = self.on_slot(slot, |old, guard| {
            if old.is_record() {
                if matches!(call, Call::Missing(..)) {
                    return Some(Visited::Record);
                }
                if old.aux().is_none() {
                    return Some(Visited::Done);
                }
            }
            if old.aux().is_none() && slot.marks().is_marked() {
                return Some(Visited::Done);
            }
            let inherited = later.inherit(old);
            let (meant, rest) = match call {
                Call::Time(time, _) | Call::Missing(time, _) => inherited.waiters.split(time),
                Call::Close => (inherited.waiters.list, Waiters::none()),
                Call::Tidy => (List::EMPTY, inherited.waiters),
            };
            let reached = self.clock.tick(guard).time;
            let tomb = old.tomb().filter(|tomb| *tomb > reached);
            let needed = tomb.is_some() || !rest.list.is_empty();
            // Whoever is needed now may have given up by the time.
            let after = match old.is_record() {
                true => Visited::Done,
                false => Visited::ToTidy,
            };
            if meant.is_empty() && !inherited.owed.is_empty() {
                later.hand_over(old);
                return Some(after);
            }
            if meant.is_empty() && needed && tomb == old.tomb() {
                return Some(Visited::Done);
            }
            let outcome = match call {
                Call::Close => Some(Outcome::Closed),
                _ if old.is_record() || meant.is_empty() => None,
                _ => match default {
                    Some(default) => Some(Outcome::Snapshot(Arc::clone(default))),
                    None => return Some(Visited::NeedsDefault),
                },
            };
            let aux = Aux {
                handed: Handed::to(meant, outcome),
                waiters: rest,
                owed: inherited.owed,
                listing: inherited.listing,
                tomb,
                ..Aux::none()
            };
            let new = self.or_bare(slot, seal(old.same_record(), aux));
            let new = self.replace(slot, old, new, guard).ok()?;
            self.unless_marked(slot, new);
            Some(match new {
                Some(new) if later.hand_over(new) => after,
                _ => Visited::Done,
            })
        });
        visited.unwrap_or(Visited::Done)
    }

    /// The same with a default for those who get one.
    fn visit_with_default(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        call: Call<'_, K, V>,
        later: &mut Later<V>,
    ) -> Visited {
        let visited = self.visit(slot, call, None, later);
        let (Visited::NeedsDefault, Call::Time(_, default_for) | Call::Missing(_, default_for)) =
            (&visited, call)
        else {
            return visited;
        };
        let Some(value) = later.panics.catch(|| default_for(slot.key())) else {
            return Visited::Done; // its waiters stay registered
        };
        let default = Node::default(value);
        let visited = self.visit(slot, call, Some(&default), later);
        later.panics.catch(|| drop(default));
        visited
    }

    /// The same with all that belongs to it. False if there was a record where none should be.
    pub(super) fn visit_wholly(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        call: Call<'_, K, V>,
        later: &mut Later<V>,
    ) -> bool {
        let mut call = call;
        loop {
            let visited = self.visit_with_default(slot, call, later);
            later.run(self);
            match visited {
                Visited::Record => return false,
                // The tasks are still to be called: the next visit tidies up.
                Visited::ToTidy if Calling::is_under_way() => return true,
                Visited::ToTidy => call = Call::Tidy,
                Visited::Done | Visited::NeedsDefault => return true,
            }
        }
    }

    /// What a visit comes to in the usual cases: there is a record, and all who wait are meant, or
    /// nobody is.
    fn claim_all<'g>(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        call: Call<'_, K, V>,
        guard: &'g Guard,
    ) -> Claim<'g, V> {
        let Call::Time(time, _) = call else {
            return Claim::Visit;
        };
        let Some(node) = self.current(slot, guard) else {
            return Claim::Nobody;
        };
        let Some(aux) = node.aux() else {
            return Claim::Visit;
        };
        let waiters = &aux.waiters.list;
        let plain = node.is_record() && !waiters.is_empty() && aux.tomb.is_none();
        match aux.fate.glance() {
            _ if !plain || node.unfinished().is_some() => Claim::Visit,
            OPEN if time < waiters.least() => Claim::Nobody,
            OPEN if time >= waiters.greatest() && node.claim() => Claim::Claimed(node),
            SERVED => {
                aux.fate.idle();
                Claim::Nobody
            }
            _ => Claim::Visit,
        }
    }

    /// Replaces the tick, then visits the slots that are listed.
    ///
    /// Everybody who is meant has his result, and threads are awake, before the first task is
    /// called: that is user code, which may take its time. So are defaults, which come just before.
    fn advance(&self, change: impl Fn(&mut Tick), call: Call<'_, K, V>, later: &mut Later<V>) {
        let rolls: Vec<_> = {
            let guard = pin();
            self.clock.advance(&guard, change);
            // With the fences in `subscribe`, `delete` and `settle`. If ours comes first, they see
            // the new tick when they look again; if theirs does, we see their listing and their
            // node.
            fence(Ordering::SeqCst);
            self.waiting.rolls(&guard).collect()
        };
        if rolls.is_empty() {
            return;
        }
        let mut members = rolls.iter().flat_map(List::iter);
        let mut others = Vec::new();
        loop {
            // Some at a time under one guard.
            let guard = pin();
            let mut claimed = Vec::with_capacity(AT_ONCE);
            let some: Vec<_> = members.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                break;
            }
            for member in &some {
                if let Some(aux) = member.slot.load(&guard).and_then(Current::aux) {
                    aux.preload();
                }
            }
            for member in some {
                match self.claim_all(Shared::of(&member.slot), call, &guard) {
                    Claim::Claimed(node) => claimed.push(node),
                    Claim::Nobody => {}
                    Claim::Visit if member.listing.is_gone() => {}
                    Claim::Visit => others.push(member),
                }
            }
            for node in claimed {
                later.hand_over(node);
            }
        }
        let (mut defaulted, mut untidy) = (Vec::new(), Vec::new());
        for member in others {
            match self.visit(Shared::of(&member.slot), call, None, later) {
                Visited::NeedsDefault => defaulted.push(member),
                Visited::ToTidy => untidy.push(member),
                Visited::Done | Visited::Record => {}
            }
        }
        for member in defaulted {
            if let Visited::ToTidy = self.visit_with_default(Shared::of(&member.slot), call, later)
            {
                untidy.push(member);
            }
        }
        later.run(self);
        for member in untidy {
            self.visit_wholly(Shared::of(&member.slot), Call::Tidy, later);
        }
        drop(members);
        later.panics.catch(|| drop(rolls));
    }

    pub(crate) fn update_time(
        &self,
        time: u64,
        default_for: &dyn Fn(&K) -> V,
        panics: &mut Panics,
    ) {
        let mut later = Later::nothing();
        let monotonic = self.settings.policy == WritePolicy::Monotonic;
        let change = |tick: &mut Tick| {
            if !monotonic || time >= tick.time {
                tick.time = time;
                tick.number += 1;
            }
        };
        self.advance(change, Call::Time(time, default_for), &mut later);
        later.finish_into(self, panics);
    }

    pub(crate) fn close(&self) {
        let mut later = Later::nothing();
        let was_closed = Cell::new(false);
        let change = |tick: &mut Tick| was_closed.set(mem::replace(&mut tick.closed, true));
        self.advance(change, Call::Close, &mut later);
        self.feeds.ring_all(&mut later.panics, pin);
        if !was_closed.get() {
            later.panics.catch(|| trace::closed(&self.settings));
        }
        later.finish(self);
    }

    /// Waiters that are registered and neither told nor gone, and since when the oldest is.
    pub(crate) fn waiters(&self) -> (usize, Option<Instant>) {
        let rolls: Vec<_> = self.waiting.rolls(&pin()).collect();
        let mut waiting = 0;
        let mut oldest: Option<Instant> = None;
        for member in rolls.iter().flat_map(List::iter) {
            let guard = pin();
            let Some(aux) = self
                .current(Shared::of(&member.slot), &guard)
                .and_then(Current::aux)
            else {
                continue;
            };
            // A slot may be listed twice for a moment.
            if aux
                .listing
                .as_ref()
                .is_some_and(|l| Arc::ptr_eq(l, &member.listing))
            {
                let handed = aux.handed.as_ref().map(|handed| &handed.waiters);
                let all = handed
                    .into_iter()
                    .chain([&aux.waiters.list])
                    .flat_map(List::iter);
                for waiter in all.filter(|waiter| waiter.is_waiting()) {
                    waiting += 1;
                    oldest = Some(oldest.map_or(waiter.since, |since| since.min(waiter.since)));
                }
            }
        }
        super::reclaim::contain(|| drop(rolls));
        (waiting, oldest)
    }
}

impl<K, V, S: BuildHasher> RawCache<K, V, S> {
    pub(crate) fn set<Q>(&self, key: &Q, value: V, time: u64, panics: &mut Panics) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let hash = self.hash(key);
        match self.set_plain(key, hash, Node::own(value, time), panics) {
            Ok(()) => true,
            Err(new) => self.set_any(key, hash, new, time, panics),
        }
    }

    /// The usual case by itself, for speed: there is a record, and nothing beside it.
    #[inline]
    fn set_plain<Q>(
        &self,
        key: &Q,
        hash: u64,
        new: Arc<Node<V>>,
        panics: &mut Panics,
    ) -> Result<(), Arc<Node<V>>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        if self.settings.policy != WritePolicy::Overwrite {
            return Err(new);
        }
        let guard = pin();
        let place = self
            .find(key, hash, &guard)
            .and_then(|slot| Some((slot, slot.load(&guard)?)));
        match place.filter(|(_, old)| old.is_record() && old.aux().is_none()) {
            None => Err(new),
            Some((slot, old)) => match self.replace(slot, old, Some(new), &guard) {
                Err(new) => Err(new.expect("handed back")),
                Ok(_) => {
                    self.counters.add(Count::Sets, 1);
                    self.index.assist(&guard);
                    drop(guard);
                    self.feeds.ring(panics, pin);
                    Ok(())
                }
            },
        }
    }

    #[cold]
    fn set_any<Q>(
        &self,
        key: &Q,
        hash: u64,
        new: Arc<Node<V>>,
        time: u64,
        panics: &mut Panics,
    ) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        let monotonic = self.settings.policy == WritePolicy::Monotonic;
        let mut later = Later::nothing();
        let mut new = Some(new);
        let mut ready = Ready::nothing(self);
        let stored = self.on_key(key, hash, |tick, place, guard| {
            let Some((slot, old)) = place else {
                if monotonic {
                    // The clock's word is needed at the instant of the swap: in a slot of its own.
                    if time < tick.time {
                        return Some(false);
                    }
                    ready.open(key, hash, guard);
                    return None;
                }
                let node = new.take().expect("not stored yet");
                let slot = ready.slot(node, hash, || key.to_owned());
                match self
                    .index
                    .insert(slot, |slot| slot.key().borrow() == key, guard)
                {
                    Ok(slot) => {
                        self.added(slot, guard);
                        return Some(true);
                    }
                    Err((_, mut slot)) => {
                        new = Some(Slot::exchange(&mut slot, Node::absent()));
                        ready.spare = Some(slot);
                        return None;
                    }
                }
            };
            let refused = match self.settings.policy {
                WritePolicy::Overwrite => false,
                WritePolicy::RejectOlder => old.is_record() && old.modified > time,
                WritePolicy::Monotonic => {
                    time < tick.time || time < old.newest().max(old.tomb().unwrap_or(0))
                }
            };
            if refused {
                return Some(false);
            }
            let node = new.take().expect("not stored yet");
            let node = if old.aux().is_none() && !monotonic {
                node
            } else {
                let mut inherited = later.inherit(old);
                let (meant, rest) = inherited.waiters.split(time);
                inherited.waiters = rest;
                let aux = Aux {
                    handed: Handed::to(meant, None),
                    proposal: monotonic.then(|| Proposal {
                        before: old.as_non_null(),
                        time,
                    }),
                    ..Aux::after(inherited)
                };
                seal(node, aux).expect("a record is never sealed away")
            };
            match self.replace(slot, old, Some(node), guard) {
                Err(node) => {
                    new = node;
                    if let Some(node) = &mut new {
                        Node::equip(node, Aux::none());
                    }
                    None
                }
                Ok(node) => {
                    let node = node.expect("a record was swapped in");
                    if monotonic {
                        if self.settle(slot, node, guard) == Standing::Refused {
                            return Some(false);
                        }
                        self.announce(slot, old, Some(node), guard);
                    }
                    self.index.assist(guard);
                    later.hand_over(node);
                    Some(true)
                }
            }
        });
        let count = if stored {
            Count::Sets
        } else {
            Count::RefusedSets
        };
        self.counters.add(count, 1);
        drop(ready);
        later.run(self);
        self.feeds.ring(&mut later.panics, pin);
        later.finish_into(self, panics);
        stored
    }

    pub(crate) fn set_observed_time<Q>(
        &self,
        key: &Q,
        time: u64,
        default_for: &dyn Fn(&K) -> V,
        panics: &mut Panics,
    ) where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.counters.add(Count::Observations, 1);
        let mut later = Later::nothing();
        let hash = self.hash(key);
        // Gives the slot if there is no record: somebody may wait for one.
        let observe = |later: &mut Later<V>| {
            self.on_key(key, hash, |_, place, guard| {
                let Some((slot, old)) = place else {
                    return Some(None);
                };
                if !old.is_record() {
                    return Some(Some(slot.to_arc()));
                }
                let mut inherited = later.inherit(old);
                let (meant, rest) = inherited.waiters.split(time);
                inherited.waiters = rest;
                let observed = match self.settings.policy {
                    WritePolicy::Monotonic => old.observed.max(time),
                    _ => time,
                };
                if observed == old.observed && meant.is_empty() {
                    later.hand_over(old);
                    return Some(None);
                }
                let aux = Aux {
                    handed: Handed::to(meant, None),
                    ..Aux::after(inherited)
                };
                let new = seal(old.same_record_observed(observed), aux);
                let new = self.replace(slot, old, new, guard).ok()?;
                self.index.assist(guard);
                later.hand_over(new.expect("a record is never sealed away"));
                Some(None)
            })
        };
        while let Some(slot) = observe(&mut later) {
            if self.visit_wholly(
                Shared::of(&slot),
                Call::Missing(time, default_for),
                &mut later,
            ) {
                break;
            }
        }
        later.finish_into(self, panics);
    }

    pub(crate) fn delete<Q>(&self, key: &Q, panics: &mut Panics) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let mut later = Later::nothing();
        let mut ready = Ready::nothing(self);
        let (was_there, buried) = self.on_key(key, self.hash(key), |tick, place, guard| {
            let Some((slot, old)) = place.filter(|(_, old)| old.is_record()) else {
                return Some((false, None));
            };
            // Under `Monotonic` what the record vouched for outlives it, until the global time
            // has reached that too.
            let monotonic = self.settings.policy == WritePolicy::Monotonic;
            let tomb = Some(old.newest()).filter(|time| monotonic && *time > tick.time);
            let mut inherited = later.inherit(old);
            if tomb.is_some() && inherited.listing.is_none() {
                inherited.listing = Some(ready.listing(slot, guard));
            }
            let aux = Aux {
                tomb,
                ..Aux::after(inherited)
            };
            let new = seal(Node::absent(), aux);
            // Bare if somebody listens: see `or_bare`.
            let bare = new.is_none() && !self.feeds.is_empty();
            let new = new.or_else(|| bare.then(Node::absent));
            let new = self.replace(slot, old, new, guard).ok()?;
            ready.used(new);
            let owing = new.is_some_and(|new| later.hand_over(new));
            if bare || owing {
                return Some((true, Some(slot.to_arc())));
            }
            Some((
                true,
                tomb.and_then(|tomb| self.overtaken(slot, tomb, guard)),
            ))
        });
        if was_there {
            self.counters.add(Count::Deletes, 1);
        }
        drop(ready);
        later.run(self);
        if let Some(slot) = buried {
            self.visit_wholly(Shared::of(&slot), Call::Tidy, &mut later);
        }
        self.feeds.ring(&mut later.panics, pin);
        later.finish_into(self, panics);
        was_there
    }

    /// Deletes as of a time; only under `Monotonic` different from [`delete`](Self::delete).
    pub(crate) fn delete_at<Q>(&self, key: &Q, time: u64, panics: &mut Panics) -> bool
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
    {
        if self.settings.policy != WritePolicy::Monotonic {
            return self.delete(key, panics);
        }
        let mut later = Later::nothing();
        let mut ready = Ready::nothing(self);
        let hash = self.hash(key);
        let (was_there, buried) = self.on_key(key, hash, |tick, place, guard| {
            let now = tick.time;
            let Some((slot, old)) = place else {
                if time <= now {
                    return Some((false, None)); // refused, or nothing to remember
                }
                ready.open(key, hash, guard);
                return None;
            };
            if time < now.max(old.newest()).max(old.tomb().unwrap_or(0)) {
                return Some((false, None));
            }
            let mut inherited = later.inherit(old);
            if inherited.listing.is_none() {
                inherited.listing = Some(ready.listing(slot, guard));
            }
            let aux = Aux {
                tomb: Some(time),
                proposal: Some(Proposal {
                    before: old.as_non_null(),
                    time,
                }),
                ..Aux::after(inherited)
            };
            let new = self
                .replace(slot, old, seal(Node::absent(), aux), guard)
                .ok()?;
            let new = new.expect("a tombstone is never sealed away");
            if self.settle(slot, new, guard) == Standing::Refused {
                return None; // the global time has passed it
            }
            self.announce(slot, old, Some(new), guard);
            later.hand_over(new);
            ready.used(Some(new));
            Some((old.is_record(), self.overtaken(slot, time, guard)))
        });
        if was_there {
            self.counters.add(Count::Deletes, 1);
        }
        drop(ready);
        later.run(self);
        if let Some(slot) = buried {
            self.visit_wholly(Shared::of(&slot), Call::Tidy, &mut later);
        }
        self.feeds.ring(&mut later.panics, pin);
        later.finish_into(self, panics);
        was_there
    }

    /// The slot to tidy, if the global time has reached a tombstone just left in it.
    fn overtaken(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        tomb: u64,
        guard: &Guard,
    ) -> Option<Arc<Slot<K, V>>> {
        // With the fence in `advance`.
        fence(Ordering::SeqCst);
        (self.clock.tick(guard).time >= tomb).then(|| slot.to_arc())
    }
}
