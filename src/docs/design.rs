//! How it works, and why it is built that way.
//!
//! # Where it comes from
//!
//! The semantics are those of the kubelet's pod status cache (Kubernetes,
//! `pkg/kubelet/container/cache.go`): one relist goroutine writes what the container runtime
//! reports, and one worker per pod waits there for a status newer than the one it acted on. The
//! original does this under one lock: a `set` walks the pod's subscribers inside it, an
//! `UpdateTime` walks everybody's, and every reader queues up with them.
//!
//! The critical section under that lock does three things at once: it publishes a record, decides
//! which waiters the record satisfies, and removes them. Here all three are **one
//! compare-and-swap**, and everything else on this page follows from that.
//!
//! # One compare-and-swap per move
//!
//! ```text
//!  index ──► slot ──► node  (immutable)
//!            key      ├ value, modified, observed       the record: what a Snapshot refers to
//!            hash     └ aux, usually absent             what concerns the slot alone
//!                       ├ waiters                       who waits, and for what
//!                       ├ handed                        who was just served, and with what
//!                       ├ listing                       the slot's place in the waiting set
//!                       └ tombstone, proposal           Monotonic only
//! ```
//!
//! A key that has a record or waiters has a *slot*; a slot is a key and one atomic pointer to an
//! immutable *node*. Every change of a key is a *move*: read the node, build its successor, swap
//! the pointer. `set` builds a node with a new record and without the waiters that the record
//! satisfies; [`subscribe`](crate::Cache::subscribe), one with the same record and one waiter more;
//! `set_observed_time`, `delete`, a visit of `update_time` and a cancelled wait are moves too. If
//! the swap fails, another move has succeeded, and the loser looks again: the system as a whole
//! always makes progress.
//!
//! Since the record and the waiters are replaced together, there is no instant between "published"
//! and "notified". A lost wake-up, a value beside another value's times, a waiter that is woken by
//! one record and reads the next: none of these has a state in which it could happen. The waiter's
//! snapshot is chosen by the very swap that removed it from the list, so a pod's last status
//! reaches its waiter even if the pod is deleted a nanosecond later.
//!
//! A [`Snapshot`](crate::Snapshot) is a counted reference to a node, and the record is stored in
//! the node that brought it: a `set` of a known key on which nobody waits allocates once (twice
//! under `Monotonic`). Moves that keep the record make a node that refers to its owner.
//!
//! A slot whose next node would have neither record nor waiter nor anything else to remember gets a
//! null pointer instead: it is *retired*, for good, and whoever meets it helps to take it out of
//! the index. Mark first, unlink afterwards, by anybody: the scheme of Harris's and Michael's
//! lists.
//!
//! # A hand-over that everybody takes part in
//!
//! Claiming waiters (the swap) and giving them their snapshot are different steps, and a thread can
//! be stopped between them. Its waiters would then be hostages: removed from the list, so that
//! nobody else wakes them, and not served. A second `update_time` could return while a waiter that
//! it names is still without a result.
//!
//! So the new node carries the claimed waiters and what they get, in `handed`, and **every later
//! move on the slot first gives them their results and wakes the threads among them**. That may be
//! done by any number of threads any number of times: a waiter's result goes from empty to final by
//! one compare-and-swap, telling it twice is harmless, and a flag on the hand-over says when nobody
//! need bother any more. Helping of this kind is the standard road to lock-freedom (Herlihy;
//! Barnes); here it also gives the guarantee *ready when the waking call returns*, whoever claimed
//! the waiter.
//!
//! To call the *tasks* among them is another matter: a waker is foreign code, which may panic or
//! not come back. Only calls that wake do that, as their last step, without an epoch guard, and
//! after everybody whom they name has his result. A move that wakes nobody (a wait, a time-out, a
//! cancellation) carries on who may not have been called yet, in `owed`, to the next that does. So
//! a fresh read never runs a stranger's waker, and a task is not hostage to the one before it.
//!
//! It does not even take a later move: a subscription that is asked for its result looks into its
//! slot first, and takes what it was named for.
//!
//! `update_time` often satisfies *all* waiters of a key that has a record. Then no new node is
//! needed: it claims them where they are, by a flag of the node. A move *seals* that flag before
//! its swap, so of the two exactly one decides what becomes of the waiters; and as long as they are
//! not sealed, nobody has replaced the node, so its record is the key's at that instant. A claim is
//! a hand-over like any other.
//!
//! A panic in a waker is kept until everybody else is served.
//!
//! # A waiter
//!
//! A waiter is a result pointer and a *bell*: a futex word and a cell for a task's waker. The
//! result decides: empty, then a snapshot, closed, or cancelled, by one compare-and-swap.
//! Cancelling competes for the same transition as serving, so a wait is either given up or served,
//! never both, and a cancelled one cannot take anything from its neighbours. It then counts itself
//! dead in the slot; when the dead outnumber the living the list is rebuilt, which makes giving up
//! a constant number of steps, amortized, and keeps what lingers below a multiple of the live
//! waiters.
//!
//! A thread parks on the word through atomic-wait, which has no time-out; a wait with a deadline
//! uses the same word through rustix with the kernel's absolute deadline on Linux, and
//! `park_timeout` elsewhere. The word says whether anybody is parked (a wake-up call into the
//! kernel for nobody costs more than a whole `set`) and whether the sleepers have been woken, so
//! that a helper wakes them again if the thread that should have was stopped just before.
//!
//! ## Why a waker cell of its own
//!
//! The kept crates do not fit this use. A cell of *atomic-waker* stays locked for ever when cloning
//! or dropping a waker panics inside it, and later wake-ups of that wait are lost; *diatomic-waker*
//! keeps the waker after the wait is over, which pins the task it belongs to; and neither switches
//! to loom's atomics when it is a dependency, so that the models would not check the cell that
//! ships. Here only one task at a time registers, and the result is re-read afterwards anyway. That
//! reduces the cell to a pointer that is swapped: put in, taken out, and owned by whoever took it
//! out. Mostly it points at nothing but says that the waker stands in the waiter itself, at a place
//! that whoever took the waker out marks free when he is through; if it is not free, the next waker
//! gets a box.
//!
//! ## Why a wait costs what it does
//!
//! Registering a task makes a node, its aux, and a waiter: three allocations, where a list under a
//! lock needs about as many. But they are scattered, so `update_time` looks at some dozens of slots
//! before it changes the first: their cache misses overlap, which they do not across locked
//! instructions. A list of one stands in its owner, without a link.
//!
//! # The waiting set
//!
//! `update_time` and `close` concern every key, but only waiters have to hear of them. So slots
//! with waiters (or a tombstone) stand in a set of sixteen shards, each an immutable list behind
//! one pointer. A call visits the slots that are listed: with nobody waiting it costs a look at
//! each shard, otherwise it costs in proportion to the keys waited for, never to all keys.
//!
//! A slot is listed *before* the swap that adds its first waiter. In the other order a second
//! waiter would find the first one's node, take it that the slot is listed, and be missed. A
//! listing stays while the slot is visited: a call that took the list away would hide these slots
//! from the next one. It also stays for the next waiter of the key, until an `update_time` finds it
//! idle. And it is given up by a move first, then marked, then thrown out when the marked outnumber
//! the rest.
//!
//! # The clock
//!
//! The global time and the closed flag are one immutable *tick* behind one pointer. Registering and
//! advancing race, since the time is in one place and the waiters in another; it is Dekker's
//! problem, and each side writes, fences, and looks at what the other wrote (see
//! [`orderings`](super::orderings)): `update_time` replaces the tick, then looks at the waiting
//! set; `subscribe` lists itself, swaps itself in, then looks at the tick once more. One of the two
//! sees the other. A subscriber that finds another tick asks its question anew, as if it had come
//! only now; if the answer is there, it gives up the registration, which nobody else knows yet.
//!
//! The clock is read before the record, never after: in the other order an old record could be
//! passed off as globally fresh. And what rests on both the time and the record is answered only
//! when the same tick stood on both sides of the look at the record. The same *tick*, not the same
//! time: times may go back and come again, but an address cannot be re-used while a guard protects
//! it.
//!
//! # Monotonic: a write that the clock may refuse
//!
//! Under [`Monotonic`](crate::WritePolicy::Monotonic) a set must be refused if the global time has
//! passed it, a condition on a second location at the instant of the swap. So the set is swapped in
//! as a *proposal* that remembers the node before it. Whoever meets a proposal decides it: look at
//! the clock, then one compare-and-swap from proposed to settled or refused; a refused one is
//! swapped out for the node before. This is the restricted double-compare single-swap (RDCSS) of
//! Harris, Fraser and Pratt. It is why reads under this policy are lock-free instead of wait-free.
//! `delete_at` is a proposal too; a plain `delete` leaves what the record vouched for as a
//! *tombstone* until the global time has reached it.
//!
//! # The index
//!
//! From keys to slots leads a hash table whose buckets are single words: empty, one slot, or an
//! immutable array of slots, changed by compare-and-swap. A lookup takes no part in changes: a load
//! of the table, a load of the word, and a walk over slots whose hashes are compared before their
//! keys.
//!
//! Resizing installs a new table beside the old. A group of old words is *frozen*, copied, and its
//! new words initialised once; any thread may do that for any group, all come to the same, and each
//! writer does a bounded piece in passing. A reader that meets an uninitialised word reads the old
//! one. Copying with help from a frozen source is Cliff Click's idea. The high bits of the hash
//! choose the bucket, so that growing splits a bucket into neighbours and shrinking joins
//! neighbours; Shalev and Shavit get the same property from bit-reversed order. An iteration is
//! therefore a position in the space of hashes, which means the same in every table, and can go on
//! across a resize without missing or repeating a key that stays.
//!
//! The high bits have to be good, and some hashers neglect them: the hash is folded with a
//! multiplication first.
//!
//! # Trackers, views and change streams
//!
//! A [`Tracker`](crate::Tracker) keeps its key's slot and the node that it saw last. As long as the
//! slot holds that node nothing has changed, and comparing two pointers is all that a `load` does;
//! no guard is needed, since the tracker's own reference keeps the address from being re-used.
//!
//! A [`View`](crate::View) is built at most once per `update_time`, by the first who asks, and
//! shared through arc-swap: read often, replaced rarely, kept for long. Writers take no part in it.
//! Those who ask while it is being built wait for the builder: building it once and not waiting
//! exclude each other.
//!
//! A change stream ([`Changes`](crate::Changes)) is a stack of *slots* whose record has changed,
//! not of changes. Each slot has one bit per stream that says whether it is on the stack. A writer
//! sets the bit and pushes the slot only if the bit was clear; the reader takes the whole stack,
//! clears a slot's bit, and then reads its newest record. So a writer never waits for a reader, and
//! a hundred sets of one key between two looks are one entry. The slot of a deleted key stays until
//! every stream has read that it was deleted, so that a key which comes and goes is one entry too.
//! With no stream open a writer pays for one load, and for a fence if the record is new.
//!
//! # Reclamation
//!
//! Readers follow pointers to nodes that a writer may be replacing. They pin the epoch meanwhile
//! (crossbeam-epoch, after Fraser's thesis): what was taken out of its last shared place is freed
//! only when every guard that could have seen it is gone. A reader that wants to keep a record
//! takes a counted reference to the node under the guard; a [`Pinned`](crate::Pinned) lends it
//! without. The crate itself is not pinned while a thread is parked or a waker is called. (A
//! destructor of a value runs under the guard of the call that destroys it, and so does what it
//! calls.)
//!
//! crossbeam-epoch runs destructors on whichever thread comes by. Then readers pay for writers, and
//! the allocator for memory that one thread takes and another gives back. So a thread keeps what it
//! retires, tells crossbeam-epoch of 128 objects at a time, is told when their time has come, and
//! destroys one for each that it retires from then on. What it cannot come back for, since it
//! removes keys, ends, or lags behind, it gives up, and whoever collects destroys it. On two cores
//! this made reads beside a writer at full speed several times faster, and a `set` a fifth.
//!
//! ## Why not arc-swap in every slot
//!
//! It looks like the natural cell for a snapshot, but a slot is written often. Readers of an
//! `ArcSwap` announce what they use in a list of *debts* per thread, and a store must settle the
//! debts of every thread the process has had at once: stores to unrelated keys meet in those lists,
//! and the cost of one grows with the number of threads, idle ones included.
//!
//! | other live threads | `ArcSwap::store` | epoch swap, deferred drop |
//! |--:|--:|--:|
//! | 0 | 80 ns | 65 ns |
//! | 8 | 243 ns | 84 ns |
//! | 64 | 1,620 ns | 95 ns |
//! | 256 | 6,660 ns | 117 ns |
//! | 512 | 16,400 ns | 266 ns |
//!
//! (One store of a new `Arc`, beside sleeping threads that have used the cell once; arc-swap 1.9,
//! crossbeam-epoch 0.9, a virtual machine with two x86-64 cores, when the design was chosen. What
//! counts is the slope; `cargo xtask bench ablations` measures it anew.) A load is 20 to 22 ns
//! there, and 13 ns for the pin here, which the index needs anyway. And arc-swap does not run under
//! loom, while crossbeam-epoch does: the swap that is checked is the swap that ships.
//!
//! # How it is checked
//!
//! * The sources that ship run under loom (`--cfg podcache_loom`): small programs, all
//!   interleavings up to a bound, each execution judged against a sequential model of the cache;
//!   under shuttle, longer programs with random schedules. Every ordering is weakened and every
//!   step of the protocol left out in turn, to see which model notices.
//! * Histories recorded on real threads are checked for linearizability with the algorithm of Wing
//!   and Gong as improved by Lowe (WGL): `tests/linearizability.rs`.
//! * Random programs in one thread are compared with the model step by step
//!   (`tests/sequential_model.rs`); races are run tens of thousands of times (`tests/races.rs`).
//! * User code that panics, stops, or calls back: `tests/hostile_code.rs` and
//!   `tests/reentrant_code.rs`.
//!
//! # Sources
//!
//! * Kubernetes, `pkg/kubelet/container/cache.go` and `pkg/kubelet/pleg/`: the semantics.
//! * M. Herlihy, J. Wing: *Linearizability: a correctness condition for concurrent objects*. ACM
//!   TOPLAS 12(3), 1990.
//! * M. Herlihy: *Wait-free synchronization*. ACM TOPLAS 13(1), 1991. G. Barnes: *A method for
//!   implementing lock-free shared data structures*. SPAA 1993. (Helping.)
//! * J. Wing, C. Gong: *Testing and verifying concurrent objects*. J. Parallel and Distributed
//!   Computing 17, 1993. G. Lowe: *Testing for linearizability*. Concurrency and Computation 29(4),
//!   2017. (WGL.)
//! * T. Harris: *A pragmatic implementation of non-blocking linked-lists*. DISC 2001. M. Michael:
//!   *High performance dynamic lock-free hash tables and list-based sets*. SPAA 2002. (Marking,
//!   then unlinking.)
//! * T. Harris, K. Fraser, I. Pratt: *A practical multi-word compare-and-swap operation*. DISC
//!   2002. (RDCSS.)
//! * K. Fraser: *Practical lock-freedom*. PhD thesis, University of Cambridge, 2004. (Epochs.)
//! * O. Shalev, N. Shavit: *Split-ordered lists: lock-free extensible hash tables*. J. ACM 53(3),
//!   2006. C. Click: *A lock-free wait-free hash table*. Talk, 2007. (Resizing.)
