//! The immutable contents of a slot.
//!
//! A [`Node`] is at once the record that readers get (a [`Snapshot`](crate::Snapshot) is a counted
//! reference to a node) and the state of its slot. What concerns the slot alone (waiters,
//! hand-over, tombstone) stands in an [`Aux`] beside the record: most nodes have none, so a plain
//! `set` is one allocation, and it can be dropped when the slot moves on while somebody still
//! keeps the record.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use super::counters::Ended;
use super::list::List;
use super::reclaim::{Guard, Shared, contain};
use super::sync::{Arc, AtomicBool, AtomicU8, Ordering, counted};
use super::waiter::{Outcome, Waiter};
use super::waiting::Listing;

pub(crate) struct Node<V> {
    pub(crate) modified: u64,
    pub(crate) observed: u64,
    body: Body<V>,
    /// Where a node stands that is valid only if the global time has not passed it.
    standing: AtomicU8,
    /// Read only through [`Current`]; taken out only by [`Node::leave_slot`].
    aux: UnsafeCell<Option<Arc<Aux<V>>>>,
}

enum Body<V> {
    /// The record that the node itself brought.
    Own(V),
    /// The record of another node, which is `Own`.
    Shared(Arc<Node<V>>),
    /// What a missing key reads as. Never in a slot.
    Default(V),
    /// No record.
    Absent,
}

/// What a slot has to remember beside its record.
pub(crate) struct Aux<V> {
    /// To be had by [`Current::inherit`], which says whether they are still waiting here.
    pub(crate) waiters: Waiters<V>,
    pub(crate) fate: Fate,
    /// Waiters that this node satisfies and that may not have been told yet.
    pub(crate) handed: Option<Handed<V>>,
    /// Waiters that a node before this one satisfied. They have their results, but the tasks among
    /// them may not have been called yet.
    pub(crate) owed: List<Arc<Waiter<V>>>,
    /// Whether all of both have been told.
    pub(crate) done: AtomicBool,
    /// The slot's place in the waiting set.
    pub(crate) listing: Option<Arc<Listing>>,
    /// The time of a deletion that the global time has not reached yet.
    pub(crate) tomb: Option<u64>,
    pub(crate) proposal: Option<Proposal<V>>,
}

/// What becomes of a node's waiters, decided once.
///
/// A successor carries on those that it does not satisfy: it *seals* them before its swap. Or an
/// `update_time` that satisfies them all *claims* them where they are, without a swap: as long as
/// they are not sealed, nobody has replaced the node, so at that instant its record is the slot's.
///
/// ```text
/// open ──► sealed
///   └────► claimed ──► served ──► idle
/// ```
///
/// A node whose waiters have been served is left for the next waiter of the key, listed as it is;
/// only a visit that finds it *idle* clears it away.
pub(crate) struct Fate(AtomicU8);

pub(crate) const OPEN: u8 = 0;
const SEALED: u8 = 1;
const CLAIMED: u8 = 2;
pub(crate) const SERVED: u8 = 3;
const IDLE: u8 = 4;

impl Fate {
    pub(crate) fn open() -> Self {
        Fate(AtomicU8::new(OPEN))
    }

    /// What it is, as far as can be seen. To claim on it, claim it.
    pub(crate) fn glance(&self) -> u8 {
        // Relaxed: `decide` looks again, and who leaves a node alone takes nothing from it.
        self.0.load(Ordering::Relaxed)
    }

    fn decide(&self, fate: u8) -> Result<u8, u8> {
        // AcqRel: the seal comes before the swap that it stands for; whoever finds a claim finds
        // what the claimer saw.
        self.0
            .compare_exchange(OPEN, fate, Ordering::AcqRel, Ordering::Acquire)
    }

    /// Whether the waiters are a successor's from now on, or were another's before.
    fn seal(&self) -> bool {
        // Relaxed: once it is decided it says the same. Who finds it claimed asks `is_claimed`, and
        // waiters that were another's came with the node.
        let fate = match self.0.load(Ordering::Relaxed) {
            OPEN => self.decide(SEALED).map_or_else(|fate| fate, |_| SEALED),
            fate => fate,
        };
        fate == SEALED
    }

    /// Claims all; linearization point of `update_time` for them.
    pub(crate) fn claim(&self) -> bool {
        self.decide(CLAIMED).is_ok()
    }

    pub(crate) fn is_claimed(&self) -> bool {
        // Acquire, with the release in `served` and `decide`: whoever finds them served need not
        // serve them again.
        self.0.load(Ordering::Acquire) == CLAIMED
    }

    pub(crate) fn served(&self) {
        // Release, with the acquire in `is_claimed`.
        self.0.store(SERVED, Ordering::Release);
    }

    /// Nobody has come since they were served.
    pub(crate) fn idle(&self) {
        // Relaxed: a hint for the next visit.
        self.0.store(IDLE, Ordering::Relaxed);
    }
}

/// The waiters of a slot, the ones that have given up included.
pub(crate) struct Waiters<V> {
    pub(crate) list: List<Arc<Waiter<V>>>,
    /// At least as many as have given up, counted from the last time they were thrown out.
    pub(crate) dead: usize,
}

pub(crate) struct Handed<V> {
    pub(crate) waiters: List<Arc<Waiter<V>>>,
    /// What they get; `None` is the snapshot of the node that carries them.
    pub(crate) outcome: Option<Outcome<V>>,
}

/// What a node leaves to its successor.
pub(crate) struct Inherited<V> {
    pub(crate) waiters: Waiters<V>,
    pub(crate) owed: List<Arc<Waiter<V>>>,
    pub(crate) listing: Option<Arc<Listing>>,
}

/// A node that takes effect only if the global time is not past `time`.
pub(crate) struct Proposal<V> {
    /// What the slot holds if the proposal is refused.
    pub(crate) before: NonNull<Node<V>>,
    pub(crate) time: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Standing {
    Settled,
    Proposed,
    Refused,
}

impl Standing {
    fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Standing::Settled,
            1 => Standing::Proposed,
            _ => Standing::Refused,
        }
    }
}

// SAFETY: a node is shared between threads as an `Arc` is: values are read from several threads
// and dropped on any. The `aux` cell is only written while nobody can read it (see its methods),
// and the pointer in a proposal is followed only by its owner, the slot.
unsafe impl<V: Send + Sync> Send for Node<V> {}
// SAFETY: as above.
unsafe impl<V: Send + Sync> Sync for Node<V> {}
// Nobody is pinned here; triomphe's `Arc` is `Unpin` only if its contents are.
impl<V> Unpin for Node<V> {}

impl<V> Node<V> {
    fn make(body: Body<V>, modified: u64, observed: u64) -> Arc<Self> {
        Arc::new(Node {
            modified,
            observed,
            body,
            standing: AtomicU8::new(Standing::Settled as u8),
            aux: UnsafeCell::new(None),
        })
    }

    /// A new record.
    pub(crate) fn own(value: V, time: u64) -> Arc<Self> {
        Self::make(Body::Own(value), time, time)
    }

    /// What a missing key reads as.
    pub(crate) fn default(value: V) -> Arc<Self> {
        Self::make(Body::Default(value), 0, 0)
    }

    pub(crate) fn absent() -> Arc<Self> {
        Self::make(Body::Absent, 0, 0)
    }

    pub(crate) fn is_record(&self) -> bool {
        matches!(self.body, Body::Own(_) | Body::Shared(_))
    }

    pub(crate) fn value(&self) -> Option<&V> {
        match &self.body {
            Body::Own(value) | Body::Default(value) => Some(value),
            Body::Shared(node) => node.value(),
            Body::Absent => None,
        }
    }

    /// Whether both have the record that one `set` brought, or both have none.
    pub(crate) fn same_value(&self, other: Option<Current<'_, V>>) -> bool {
        let value = |node: &Self| node.value().map(ptr::from_ref);
        value(self) == other.and_then(|other| value(other.node()))
    }

    /// The newest time at which the record was known to be right; zero without one.
    pub(crate) fn newest(&self) -> u64 {
        self.modified.max(self.observed)
    }

    /// Whether it takes effect without question: neither proposed nor refused.
    #[inline]
    pub(crate) fn is_settled(&self) -> bool {
        // Relaxed: nothing is published by settling, the node was by the swap that brought it.
        self.standing.load(Ordering::Relaxed) == Standing::Settled as u8
    }

    /// Gives an unpublished node what it needs beside its record. An empty aux is left away.
    pub(crate) fn equip(node: &mut Arc<Self>, aux: Aux<V>) {
        let proposed = aux.proposal.is_some();
        let node = Arc::get_mut(node).expect("an unpublished node has one owner");
        let standing = if proposed {
            Standing::Proposed
        } else {
            Standing::Settled
        };
        node.standing = AtomicU8::new(standing as u8);
        *node.aux.get_mut() = (!aux.is_empty()).then(|| Arc::new(aux));
    }

    /// The node that a proposal still owns, if `node` is one whose thread was killed before it was
    /// decided.
    ///
    /// # Safety
    ///
    /// As for [`leave_slot`](Self::leave_slot).
    pub(crate) unsafe fn undecided(node: *const Self) -> Option<*const Self> {
        // SAFETY: the caller still owns the slot's reference, and nobody writes `aux`.
        let (settled, aux) = unsafe { ((*node).is_settled(), &*(*node).aux.get()) };
        let proposal = aux.as_ref()?.proposal.as_ref()?;
        (!settled).then_some(proposal.before.as_ptr())
    }

    /// Releases the slot's reference, and with it what concerned the slot alone.
    ///
    /// # Safety
    ///
    /// `node` came from [`Arc::into_raw`] for a slot, has left that slot, and no guard is left
    /// that could have found it there.
    pub(crate) unsafe fn leave_slot(node: *const Self) {
        // SAFETY: the reference that the slot owned is handed back; `aux` is read only by those
        // who found the node in its slot, and nobody of them is left.
        unsafe {
            let node = Arc::from_raw(node);
            let aux = (*node.aux.get()).take();
            // Either may be the last owner of a value.
            contain(|| drop(aux));
            contain(|| drop(node));
        }
    }
}

impl<V> Aux<V> {
    pub(crate) fn none() -> Self {
        Aux {
            waiters: Waiters::none(),
            fate: Fate::open(),
            handed: None,
            owed: List::EMPTY,
            done: AtomicBool::new(false),
            listing: None,
            tomb: None,
            proposal: None,
        }
    }

    /// With what follows from the node before.
    #[inline]
    pub(crate) fn after(inherited: Inherited<V>) -> Self {
        Aux {
            waiters: inherited.waiters,
            owed: inherited.owed,
            listing: inherited.listing,
            ..Self::none()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiters.list.is_empty()
            && self.handed.is_none()
            && self.owed.is_empty()
            && self.listing.is_none()
            && self.tomb.is_none()
            && self.proposal.is_none()
    }
}

impl<V> Waiters<V> {
    pub(crate) fn none() -> Self {
        Waiters {
            list: List::EMPTY,
            dead: 0,
        }
    }

    #[must_use]
    pub(crate) fn with(&self, waiter: Arc<Waiter<V>>) -> Self {
        Waiters {
            list: self.list.clone().push(waiter),
            dead: self.dead,
        }
    }

    /// Those with `min <= time`, and the others. The dead fall away wherever a list is remade.
    pub(crate) fn split(&self, time: u64) -> (List<Arc<Waiter<V>>>, Self) {
        if time >= self.list.greatest() {
            return (self.list.clone(), Waiters::none());
        }
        if time < self.list.least() {
            return (List::EMPTY, self.clone());
        }
        let mut meant = List::EMPTY;
        let mut others = List::EMPTY;
        for waiter in self.list.iter().filter(|waiter| waiter.is_waiting()) {
            let to = if waiter.min <= time {
                &mut meant
            } else {
                &mut others
            };
            *to = std::mem::replace(to, List::EMPTY).push(Arc::clone(waiter));
        }
        (
            meant,
            Waiters {
                list: others,
                dead: 0,
            },
        )
    }

    /// One more has given up: they are thrown out when they outnumber the others, so that giving
    /// up costs a constant number of steps each, however many do.
    #[must_use]
    pub(crate) fn bury(&self) -> Self {
        let dead = self.dead + 1;
        if dead * 2 <= self.list.len() {
            return Waiters {
                list: self.list.clone(),
                dead,
            };
        }
        let mut living = List::EMPTY;
        for waiter in self.list.iter().filter(|waiter| waiter.is_waiting()) {
            living = living.push(Arc::clone(waiter));
        }
        Waiters {
            list: living,
            dead: 0,
        }
    }
}

impl<V> Clone for Waiters<V> {
    fn clone(&self) -> Self {
        Waiters {
            list: self.list.clone(),
            dead: self.dead,
        }
    }
}

/// A node as it was found in its slot, under a guard: the proof that its aux may be read.
pub(crate) struct Current<'g, V>(Shared<'g, Node<V>>);

impl<V> Clone for Current<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<V> Copy for Current<'_, V> {}

impl<V> Deref for Current<'_, V> {
    type Target = Node<V>;
    fn deref(&self) -> &Node<V> {
        self.0.get()
    }
}

impl<'g, V> Current<'g, V> {
    /// Nothing if the pointer is null.
    ///
    /// # Safety
    ///
    /// `node` was loaded from its slot under `guard`, and is an `Arc`'s.
    #[inline]
    pub(crate) unsafe fn new(node: *const Node<V>, _guard: &'g Guard) -> Option<Self> {
        // SAFETY: the slot's reference is released only after the guard is gone.
        unsafe { Shared::new(node) }.map(Current)
    }

    #[inline]
    pub(crate) fn node(self) -> &'g Node<V> {
        self.0.get()
    }

    pub(crate) fn as_non_null(self) -> NonNull<Node<V>> {
        self.0.as_non_null()
    }

    pub(crate) fn as_ptr(self) -> *mut Node<V> {
        self.0.as_ptr()
    }

    pub(crate) fn aux(self) -> Option<&'g Arc<Aux<V>>> {
        // SAFETY: found in its slot under a guard that is still there, so `leave_slot` is to come.
        unsafe { (*self.node().aux.get()).as_ref() }
    }

    pub(crate) fn standing(self) -> Standing {
        // Acquire, with the release of `decide`: who sees a refusal may put back what was before.
        Standing::from_bits(self.0.standing.load(Ordering::Acquire))
    }

    /// Decides a proposal; the first decision stands. Gives it, and whether it was this one.
    pub(crate) fn decide(self, verdict: Standing) -> (Standing, bool) {
        let proposed = Standing::Proposed as u8;
        // Release, with the acquire of `standing`.
        match self.0.standing.compare_exchange(
            proposed,
            verdict as u8,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => (verdict, true),
            Err(bits) => (Standing::from_bits(bits), false),
        }
    }

    /// A counted reference, to keep beyond the guard.
    #[inline]
    pub(crate) fn to_arc(self) -> Arc<Node<V>> {
        // SAFETY: an `Arc`'s pointer, whose slot still owns a reference (see `new`).
        unsafe { counted(self.as_ptr()) }
    }

    /// An unpublished node with the same record.
    pub(crate) fn same_record(self) -> Arc<Node<V>> {
        self.same_record_observed(self.observed)
    }

    /// An unpublished node with the same record, confirmed at `observed`.
    pub(crate) fn same_record_observed(self, observed: u64) -> Arc<Node<V>> {
        let owner = match &self.node().body {
            Body::Own(_) => self.to_arc(),
            Body::Shared(owner) => Arc::clone(owner),
            Body::Absent | Body::Default(_) => return Node::absent(),
        };
        Node::make(Body::Shared(owner), self.modified, observed)
    }

    /// What a successor has to take over. The waiters are its own from now on. Whoever this node
    /// has named, by itself or by a claim, has his result before the successor is there, which
    /// could not say any more what that was.
    #[inline]
    pub(crate) fn inherit(self, ended: &mut Ended) -> Inherited<V> {
        let mut inherited = Inherited {
            waiters: Waiters::none(),
            owed: List::EMPTY,
            listing: self.listing().cloned(),
        };
        let Some(aux) = self.aux() else {
            return inherited;
        };
        if !aux.waiters.list.is_empty() && aux.fate.seal() {
            inherited.waiters = aux.waiters.clone();
        }
        if let Some(aux) = self.unfinished() {
            let claimed = aux.offer(self, ended);
            inherited.owed = aux.untold(claimed);
        }
        inherited
    }

    /// Whose tasks are still to be called, if a node without a record is there for that.
    pub(crate) fn kept_for(self) -> Option<&'g List<Arc<Waiter<V>>>> {
        let owed = self.aux().map(|aux| &aux.owed);
        owed.filter(|owed| !self.is_record() && !owed.is_empty())
    }

    /// Claims its waiters where they are; see [`Fate`].
    pub(crate) fn claim(self) -> bool {
        self.aux().is_some_and(|aux| aux.fate.claim())
    }

    pub(crate) fn listing(self) -> Option<&'g Arc<Listing>> {
        self.aux()?.listing.as_ref()
    }

    pub(crate) fn tomb(self) -> Option<u64> {
        self.aux()?.tomb
    }

    /// The aux of a node that carries a hand-over which is not known to be finished.
    pub(crate) fn unfinished(self) -> Option<&'g Arc<Aux<V>>> {
        let aux = self.aux()?;
        (aux.is_handing() || aux.fate.is_claimed()).then_some(aux)
    }
}
