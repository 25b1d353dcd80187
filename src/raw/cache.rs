//! The cache below its public face: its parts, its reads, and what all writes share.
//!
//! Every write is a *move*: look at a slot's node, make the one that should follow, swap it in.
//! Before that it does what the last move may have left undone (results and threads to wake, a
//! proposal, a retired slot in the index), so a thread that was stopped half way holds up nobody.
//! To call tasks is user code, and may take its time. It is left for [`Later`], without a guard,
//! and to the calls that wake anyway: other moves hand it on with the node.

use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::hash::{BuildHasher, Hash};

use super::clock::{Clock, Tick};
use super::counters::{Count, Counters, Ended};
use super::feed::{Feed, Feeds};
use super::index::{Entry, Index};
use super::node::{Aux, Current, Inherited, Node, Standing};
use super::reclaim::{Guard, Shared, pin};
use super::slot::Slot;
use super::sync::{Arc, Ordering, fence, thread_local};
use super::view_cell::ViewCell;
use super::waiter::Panics;
use super::waiting::WaitingSet;
use crate::settings::Settings;
use crate::{View, WritePolicy};

pub(crate) struct RawCache<K, V, S> {
    pub(super) index: Index<Slot<K, V>>,
    pub(super) clock: Clock,
    pub(super) waiting: WaitingSet<Slot<K, V>>,
    pub(super) feeds: Feeds<Slot<K, V>>,
    pub(super) settings: Settings,
    /// Counted after the fact, so they may lag for a moment.
    pub(super) counters: Counters,
    view: ViewCell<View<K, V>>,
    hasher: S,
}

/// A slot and the record it had.
pub(crate) type Found<K, V> = (Arc<Slot<K, V>>, Arc<Node<V>>);

/// A slot found under a guard, with its node.
pub(super) type Place<'g, K, V> = (Shared<'g, Slot<K, V>>, Current<'g, V>);

/// How many slots a call that wakes deals with at once.
pub(super) const AT_ONCE: usize = 32;

/// What a call has to do when it holds no guard any more, since it is user code or may run some.
pub(super) struct Later<V> {
    /// Hand-overs in which everybody has a result, and whether they were claimed: tasks to call.
    tasks: Vec<(Arc<Aux<V>>, bool)>,
    ended: Ended,
    pub(super) panics: Panics,
}

/// A slot, and the node it had.
pub(crate) struct Watched<K, V> {
    slot: Arc<Slot<K, V>>,
    node: Arc<Node<V>>,
}

/// This thread calls tasks.
///
/// A task may call the cache and wake others. If those were called from there, and so on, thousands
/// would use up the stack. So a call in a task leaves them to the call that called the task.
pub(super) struct Calling;

/// A hand-over whose tasks are left to be called, of whatever cache.
struct Left {
    aux: *const (),
    claimed: bool,
    finish: unsafe fn(*const (), bool, &mut Panics),
}

thread_local! {
    /// What is left to the call that calls tasks, if there is one.
    // loom has no form for a constant.
    #[allow(clippy::missing_const_for_thread_local)]
    static CALLING: RefCell<Option<VecDeque<Left>>> = RefCell::new(None);
}

impl Calling {
    /// Nothing if this is a call in a task.
    fn begin() -> Option<Self> {
        let begun = CALLING.try_with(|left| match &mut *left.borrow_mut() {
            Some(_) => None,
            left => {
                *left = Some(VecDeque::new());
                Some(Calling)
            }
        });
        // A thread on its way out leaves nothing to anybody.
        begun.unwrap_or_else(|_| Some(Calling))
    }

    /// Whether this is a call in a task.
    pub(super) fn is_under_way() -> bool {
        let is_some = CALLING.try_with(|left| left.borrow().is_some());
        is_some.unwrap_or(false)
    }

    fn leave<V>(aux: Arc<Aux<V>>, claimed: bool) {
        let left = Left {
            aux: Arc::into_raw(aux).cast(),
            claimed,
            finish: |aux, claimed, panics| {
                // SAFETY: the reference that was put in, taken out once. Values live as long as
                // they like: a cache cannot be made of others.
                let aux = unsafe { Arc::from_raw(aux.cast::<Aux<V>>()) };
                // Several may have left it.
                if aux.is_handing() || aux.fate.is_claimed() {
                    aux.finish(claimed, panics);
                }
                panics.catch(|| drop(aux));
            },
        };
        CALLING.with(|all| {
            all.borrow_mut()
                .as_mut()
                .expect("under way")
                .push_back(left)
        });
    }

    fn next(&self) -> Option<Left> {
        let next = CALLING.try_with(|left| left.borrow_mut().as_mut()?.pop_front());
        next.ok().flatten()
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        let _ = CALLING.try_with(|left| left.take());
    }
}

impl Left {
    fn finish(self, panics: &mut Panics) {
        // SAFETY: made for this very object, and called once.
        unsafe { (self.finish)(self.aux, self.claimed, panics) }
    }
}

impl<K, V> Watched<K, V> {
    /// Whether the slot still has that node. One load.
    #[inline]
    pub(crate) fn is_current(&self) -> bool {
        self.slot.still_holds(&self.node)
    }

    /// The record that the node is, if it is one.
    pub(crate) fn record(&self) -> Option<Arc<Node<V>>> {
        self.node.is_record().then(|| Arc::clone(&self.node))
    }
}

impl<V> Later<V> {
    pub(super) fn nothing() -> Self {
        Later {
            tasks: Vec::new(),
            ended: Ended::default(),
            panics: Panics::default(),
        }
    }

    /// What a successor of `old` takes over. The tasks that are left to call are called by who
    /// hands the successor over, if somebody does.
    pub(super) fn inherit(&mut self, old: Current<'_, V>) -> Inherited<V> {
        old.inherit(&mut self.ended)
    }

    /// Gives a result to everybody whom `node` names, but leaves it to others to call tasks.
    pub(super) fn offer(&mut self, node: Current<'_, V>) {
        if let Some(aux) = node.unfinished() {
            aux.offer(node, &mut self.ended);
        }
    }

    /// The same, to call the tasks too. Says whether there is anything to do.
    pub(super) fn hand_over(&mut self, node: Current<'_, V>) -> bool {
        let unfinished = node.unfinished();
        if let Some(aux) = unfinished {
            let claimed = aux.offer(node, &mut self.ended);
            self.tasks.push((Arc::clone(aux), claimed));
        }
        unfinished.is_some()
    }

    /// Calls tasks, counts, and keeps the first panic. Without a guard.
    #[inline]
    pub(super) fn run<K, S>(&mut self, cache: &RawCache<K, V, S>) {
        if !self.tasks.is_empty() || !self.ended.is_empty() {
            self.run_all(cache);
        }
    }

    fn run_all<K, S>(&mut self, cache: &RawCache<K, V, S>) {
        if !self.tasks.is_empty() {
            self.call_tasks();
        }
        // With the fence in `unless_owed`: what is looked at after this is as left by whoever saw
        // that a task was still to be called.
        fence(Ordering::SeqCst);
        cache.count_ended(&std::mem::take(&mut self.ended), &mut self.panics);
    }

    fn call_tasks(&mut self) {
        let mut tasks = std::mem::take(&mut self.tasks).into_iter();
        let Some(calling) = Calling::begin() else {
            // Tasks that a call before this has named, it will call itself.
            for (aux, claimed) in tasks {
                if aux.names(claimed) {
                    Calling::leave(aux, claimed);
                } else {
                    self.panics.catch(|| drop(aux));
                }
            }
            return;
        };
        while let Some(first) = tasks.next() {
            let rest = tasks.by_ref().take(AT_ONCE - 1);
            let some: Vec<_> = std::iter::once(first).chain(rest).collect();
            some.iter().for_each(|(aux, _)| aux.preload());
            for (aux, claimed) in some {
                aux.finish(claimed, &mut self.panics);
                self.panics.catch(|| drop(aux)); // may be the last owner of a value
            }
        }
        while let Some(left) = calling.next() {
            left.finish(&mut self.panics);
        }
    }

    /// The same, as the last thing that a call does, and leaves what panicked to the caller.
    #[inline]
    pub(super) fn finish_into<K, S>(mut self, cache: &RawCache<K, V, S>, panics: &mut Panics) {
        self.run(cache);
        panics.add(self.panics);
    }

    /// The same, and passes on what panicked.
    #[inline]
    pub(super) fn finish<K, S>(self, cache: &RawCache<K, V, S>) {
        Panics::passing_on(|panics| self.finish_into(cache, panics));
    }
}

impl<K, V, S> RawCache<K, V, S> {
    pub(crate) fn new(capacity: usize, settings: Settings, hasher: S) -> Self {
        RawCache {
            index: Index::new(capacity),
            clock: Clock::new(),
            waiting: WaitingSet::new(),
            feeds: Feeds::new(),
            view: ViewCell::new(),
            settings,
            counters: Counters::new(),
            hasher,
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The state in a few words, for `Debug`.
    pub(crate) fn describe(&self, f: &mut std::fmt::DebugStruct<'_, '_>) -> std::fmt::Result {
        let tick = self.tick();
        if let Some(name) = &self.settings.name {
            f.field("name", name);
        }
        f.field("len", &self.len())
            .field("global_time", &crate::Timestamp::from_nanos(tick.time))
            .field("waiters", &self.waiters().0)
            .field("closed", &tick.closed)
            .field("write_policy", &self.settings.policy)
            .finish()
    }

    pub(crate) fn tick(&self) -> Tick {
        *self.clock.tick(&pin())
    }

    pub(crate) fn len(&self) -> usize {
        self.count(Count::Records) as usize
    }

    pub(crate) fn count(&self, what: Count) -> u64 {
        self.counters.sum(what)
    }

    pub(crate) fn add(&self, what: Count, n: i64) {
        self.counters.add(what, n);
    }

    /// Counts waits that this call has ended, and tells how long they took.
    #[cfg_attr(not(feature = "metrics"), expect(unused_variables))]
    pub(super) fn count_ended(&self, ended: &Ended, panics: &mut Panics) {
        if ended.woken > 0 {
            self.counters.add(Count::WakeUps, ended.woken);
            #[cfg(feature = "metrics")]
            panics.catch(|| crate::measure::satisfied(&self.settings, &ended.waited));
        }
        if ended.closed > 0 {
            self.counters.add(Count::ClosedWaits, ended.closed);
        }
    }

    /// The slots, buckets and bytes of the index.
    pub(crate) fn index_size(&self) -> (usize, usize, usize) {
        let guard = pin();
        let (buckets, bytes) = (self.index.buckets(&guard), self.index.bytes(&guard));
        (self.index.len(), buckets, bytes)
    }

    /// The node of a slot, once it stands; `None` if the slot is retired. Lock-free.
    #[inline]
    pub(super) fn current<'g>(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        guard: &'g Guard,
    ) -> Option<Current<'g, V>> {
        loop {
            let node = slot.load(guard)?;
            if node.is_settled() || self.settle(slot, node, guard) == Standing::Settled {
                return Some(node);
            }
        }
    }

    /// Decides a proposal by the global time, and clears it away if it is refused.
    ///
    /// The proposal has been swapped in, but counts only if the global time has not passed it. So
    /// whoever meets it decides before going on; the instant of an accepted one is the look at
    /// the clock of him who decided. (RDCSS, in Harris, Fraser, Pratt: A practical multi-word
    /// compare-and-swap operation, DISC 2002.)
    #[cold]
    pub(super) fn settle(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        node: Current<'_, V>,
        guard: &Guard,
    ) -> Standing {
        let proposal = node.aux().and_then(|aux| aux.proposal.as_ref());
        let proposal = proposal.expect("only a node with a proposal is not settled");
        let mut standing = node.standing();
        if standing == Standing::Proposed {
            // With the fence in `update_time`. If ours comes first, whoever learns of the new time
            // from it finds the proposal in the slot, or what became of it. If its does, we see
            // the new time.
            fence(Ordering::SeqCst);
            let in_time = self.clock.tick(guard).time <= proposal.time;
            let verdict = if in_time {
                Standing::Settled
            } else {
                Standing::Refused
            };
            let mine;
            (standing, mine) = node.decide(verdict);
            if mine && standing == Standing::Settled {
                // SAFETY: who accepts a proposal owns the slot's reference to the node before it,
                // which therefore is as it was in the slot.
                let before = unsafe { Current::new(proposal.before.as_ptr(), guard) };
                let before = before.expect("not null");
                self.moved(slot, before, Some(node), guard);
            }
        }
        if standing == Standing::Refused && slot.put_back(node.as_ptr(), proposal.before.as_ptr()) {
            self.discard(node, guard);
        }
        standing
    }

    /// Swaps `new` in for `old`; on failure hands it back. `None` retires the slot.
    pub(super) fn replace<'g>(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        old: Current<'_, V>,
        new: Option<Arc<Node<V>>>,
        guard: &'g Guard,
    ) -> Result<Option<Current<'g, V>>, Option<Arc<Node<V>>>> {
        let new = slot.swap(old.as_ptr(), new, guard)?;
        // A proposal leaves `old` to whoever decides it.
        if new.is_none_or(|new| new.aux().is_none_or(|aux| aux.proposal.is_none())) {
            self.moved(slot, old, new, guard);
            self.announce(slot, old, new, guard);
        }
        Ok(new)
    }

    /// Tells the feeds of a move from `old` to `new`. A proposal is announced by who made it, and
    /// not by who decided it: he may be a reader, who rings for nobody.
    pub(super) fn announce(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        old: Current<'_, V>,
        new: Option<Current<'_, V>>,
        guard: &Guard,
    ) {
        if old.is_record() && self.feeds.is_empty() {
            return;
        }
        if !old.same_value(new.filter(|new| new.is_record())) {
            let slot = || slot.to_arc();
            self.feeds.announce(!old.is_record(), slot, guard);
        }
    }

    /// What follows a move from `old` to `new`. Once for each.
    fn moved(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        old: Current<'_, V>,
        new: Option<Current<'_, V>>,
        guard: &Guard,
    ) {
        match (old.is_record(), new.is_some_and(|new| new.is_record())) {
            (false, true) => self.counters.add(Count::Records, 1),
            (true, false) => self.counters.add(Count::Records, -1),
            _ => {}
        }
        if let Some(listing) = old.listing()
            && new
                .and_then(Current::listing)
                .is_none_or(|kept| !Arc::ptr_eq(kept, listing))
        {
            self.waiting.delist(listing, guard);
        }
        self.discard(old, guard);
        if new.is_none() {
            self.index.unlink(slot, guard);
        }
        if new.is_none_or(|new| old.is_record() && !new.is_record()) {
            // Retiring is rare, and a quiet thread would keep its garbage until it ends.
            guard.flush();
        }
    }

    /// Releases the slot's reference to a node that has left it, when all guards are gone.
    fn discard(&self, node: Current<'_, V>, guard: &Guard) {
        let node = node.as_ptr();
        // SAFETY: out of the slot, so unreachable for new guards; the reference is ours to give.
        unsafe { guard.retire(node, |node| Node::leave_slot(node)) };
    }

    /// What follows the insertion of a slot that brought its record.
    pub(super) fn added(&self, slot: Shared<'_, Slot<K, V>>, guard: &Guard) {
        self.counters.add(Count::Records, 1);
        let slot = || slot.to_arc();
        self.feeds.announce(true, slot, guard);
    }

    /// Tries `attempt` on a slot until it gives something; `None` if the slot is retired.
    pub(super) fn on_slot<R>(
        &self,
        slot: Shared<'_, Slot<K, V>>,
        mut attempt: impl for<'g> FnMut(Current<'g, V>, &'g Guard) -> Option<R>,
    ) -> Option<R> {
        loop {
            let guard = pin();
            let node = self.current(slot, &guard)?;
            if let Some(result) = attempt(node, &guard) {
                return Some(result);
            }
        }
    }

    /// Who is told of changes from now on. What is there by now is to be had from
    /// [`scan`](Self::scan) with `touch`.
    pub(crate) fn join(&self) -> Arc<Feed<Slot<K, V>>> {
        self.feeds.join(&pin())
    }

    /// Ends a feed, and gives what was not taken from it.
    pub(crate) fn leave(&self, feed: &Arc<Feed<Slot<K, V>>>) -> Vec<Arc<Slot<K, V>>> {
        self.feeds.leave(feed, &pin())
    }

    /// Adds the records of the bucket at `cursor` to `found`, and gives the position to go on
    /// from: every slot is met once.
    ///
    /// With `touch` a feed that was joined before misses no change that is not seen here.
    pub(crate) fn scan(
        &self,
        cursor: u64,
        touch: bool,
        found: &mut Vec<Found<K, V>>,
    ) -> Option<u64> {
        let guard = pin();
        self.index.scan(cursor, &guard, |slot| {
            if touch {
                slot.touch();
            }
            if let Some(node) = self.current(slot, &guard)
                && node.is_record()
            {
                found.push((slot.to_arc(), node.to_arc()));
            }
        })
    }
}

impl<K: Ord + Clone, V, S> RawCache<K, V, S> {
    /// The view of the present tick, or a later one.
    #[inline]
    pub(crate) fn view(&self) -> std::sync::Arc<View<K, V>> {
        self.view.get(&self.clock, || View::build(self))
    }
}

impl<K, V, S: BuildHasher> RawCache<K, V, S> {
    #[inline]
    pub(crate) fn hash<Q: Hash + ?Sized>(&self, key: &Q) -> u64 {
        // The index goes by the high bits, which some hashers neglect: fold both halves of a
        // product with an odd constant (the golden ratio).
        let product = u128::from(self.hasher.hash_one(key)) * 0x9E37_79B9_7F4A_7C15;
        // A slot keeps the upper half.
        ((product >> 64) as u64 ^ product as u64) & (u64::MAX << 32)
    }

    #[inline]
    pub(super) fn find<'g, Q>(
        &self,
        key: &Q,
        hash: u64,
        guard: &'g Guard,
    ) -> Option<Shared<'g, Slot<K, V>>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        self.index
            .find(hash, |slot| slot.key().borrow() == key, guard)
    }

    /// The slot of a key with the node that it has, to look at again later.
    pub(crate) fn watch<Q>(&self, key: &Q, hash: u64) -> Option<Watched<K, V>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let guard = pin();
        let slot = self.find(key, hash, &guard)?;
        let node = self.current(slot, &guard)?.to_arc();
        let slot = slot.to_arc();
        Some(Watched { slot, node })
    }

    /// The record of a changed slot's key: in this slot, or in the one that came after it.
    pub(crate) fn record_of(&self, slot: Shared<'_, Slot<K, V>>) -> Option<Arc<Node<V>>>
    where
        K: Eq + Hash,
    {
        let guard = pin();
        let node = self.current(slot, &guard).or_else(|| {
            let slot = self.find(slot.key(), slot.hash(), &guard)?;
            self.current(slot, &guard)
        });
        node.filter(|node| node.is_record()).map(Current::to_arc)
    }

    /// The node of a key's record.
    #[inline]
    pub(crate) fn lookup<'g, Q>(
        &self,
        key: &Q,
        hash: u64,
        guard: &'g Guard,
    ) -> Option<Current<'g, V>>
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let slot = self.find(key, hash, guard)?;
        self.current(slot, guard).filter(|node| node.is_record())
    }

    /// Tries `attempt` on the place of a key, or on its absence, until it gives something; with
    /// the tick as it was just before.
    pub(super) fn on_key<Q, R>(
        &self,
        key: &Q,
        hash: u64,
        mut attempt: impl for<'g> FnMut(&'g Tick, Option<Place<'g, K, V>>, &'g Guard) -> Option<R>,
    ) -> R
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        loop {
            let guard = pin();
            // The clock before the record, never after: the other order would pass off an old
            // record as globally fresh.
            let tick = self.clock.tick(&guard);
            self.after_the_clock();
            let place = self.find(key, hash, &guard).and_then(|slot| {
                let node = self.current(slot, &guard);
                if node.is_none() {
                    self.index.unlink(slot, &guard);
                }
                Some((slot, node?))
            });
            if let Some(result) = attempt(tick, place, &guard) {
                return result;
            }
        }
    }

    /// The time and the key's node, as both were at one instant. Lock-free: it looks again only if
    /// the tick has changed meanwhile.
    pub(super) fn at_once<'g, Q>(
        &self,
        key: &Q,
        hash: u64,
        guard: &'g Guard,
    ) -> (&'g Tick, Option<Current<'g, V>>)
    where
        K: Borrow<Q>,
        Q: Eq + ?Sized,
    {
        let mut tick = self.clock.tick(guard);
        loop {
            self.after_the_clock();
            let slot = self.find(key, hash, guard);
            let node = slot.and_then(|slot| self.current(slot, guard));
            let again = self.clock.tick(guard);
            if std::ptr::eq(tick, again) {
                return (tick, node);
            }
            tick = again;
        }
    }

    /// To stand between a look at the clock and the look at a slot that goes with it.
    ///
    /// With the fence in `settle`, under `Monotonic` only. If ours comes first, whoever settles a
    /// proposal that we do not find sees the time that we saw; if its does, we find the proposal.
    fn after_the_clock(&self) {
        if self.settings.policy == WritePolicy::Monotonic {
            fence(Ordering::SeqCst);
        }
    }

    /// What [`fresh`] says of a key.
    pub(crate) fn fresh<Q>(&self, key: &Q, min: u64) -> Option<Option<Arc<Node<V>>>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        let hash = self.hash(key);
        let guard = pin();
        let (tick, node) = self.at_once(key, hash, &guard);
        fresh(tick, node, min)
    }
}

/// The record that serves who asks for something newer than `min`, if this time and this node do:
/// `Some(None)` for a key without a record.
pub(super) fn fresh<V>(
    tick: &Tick,
    node: Option<Current<'_, V>>,
    min: u64,
) -> Option<Option<Arc<Node<V>>>> {
    let record = node.filter(|node| node.is_record());
    let fresh = tick.time > min || record.is_some_and(|record| record.newest() > min);
    fresh.then(|| record.map(Current::to_arc))
}
