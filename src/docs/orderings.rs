//! Which fence or ordering pairs with which, and what goes wrong without it.
//!
//! Every ordering and every fence of the crate is below `src/raw/`, each with its partner named at
//! the line. This page is the overview. Three kinds of pairing occur:
//!
//! 1. *publication*: a release that hands over an object, an acquire that receives it;
//! 2. *one word*: two read-modify-writes of the same atomic, of which one must come first;
//! 3. *fences*: each side writes one place and reads another, and a `fence(SeqCst)` stands between.
//!
//! There are no `SeqCst` accesses. What has to be ordered is a store before a load of *another*
//! location, which is the business of a fence; and loom models such fences faithfully, while it
//! takes a `SeqCst` access for an acquire-release one.
//!
//! # Publication
//!
//! | place | released by | acquired by | what the reader then relies on |
//! |---|---|---|---|
//! | node pointer of a slot | the swap of every move | every load of it | the node is complete; so is all that its writer did before |
//! | tick | `update_time`, `close` | every look at the clock | whoever sees a time sees all writes that came before it |
//! | result of a waiter | the compare-and-swap that ends the wait | `try_get`, `poll`, a thread that wakes | the snapshot is complete |
//! | verdict on a proposal | the one who decides | those who find it refused | they put back the node before it |
//! | "done" flag of a hand-over | the first who is through | every later move | all results are there and all tasks called; it may skip the hand-over |
//! | ripe batch of retired objects | whoever sees that its time has come | the thread that retired them | all who could see the objects are through with them |
//! | shard of the waiting set | listing, delisting | `update_time`, `close` | the list is complete |
//! | current table of the index | the installer | every lookup | the table is complete, its words uninitialised |
//! | word of a bucket | a change, or a migration | every lookup | the array and the slots behind it are complete |
//! | frozen word | the freezer | a writer who meets it | the next table is current |
//! | `prev` of a table, null | whoever completes the migration | whoever finds it null | all words of the table are initialised |
//!
//! Replacing a tick is a read-modify-write, so each tick also carries on what the ones before it
//! published: a reader of the third `update_time` sees what preceded the first.
//!
//! # One word
//!
//! * **A thread parks ‖ it is told.** Both set a bit of the waiter's futex word by `fetch_or`. If
//!   the teller's comes first, the thread finds *notified* set, and with it the result, and does
//!   not sleep. If the thread's comes first, the teller finds *parked* and wakes it. (The kernel
//!   compares the word again before it puts a thread to sleep, which covers the time in between.)
//! * **A task registers its waker ‖ it is told.** The task puts its waker in by a compare-and-swap, the
//!   teller takes it out by a swap. If the task's comes first, the teller calls the waker; if the
//!   teller's comes first, the task's acquires what the teller did before, so the look at the result
//!   that follows finds it. (The teller of a wait leaves a mark: from then on nobody registers, and
//!   whoever asks sees that the task was called.)
//! * **A waker is taken from its place ‖ the next is put there.** The taker releases *free* when he
//!   is through, and who registers acquires it. If the taker's store comes first, the place is
//!   empty; else the next waker goes into a box.
//! * **Serving ‖ cancelling.** Both compare-and-swap the result from empty. One wins.
//! * **Replacing a node ‖ claiming its waiters.** A move seals the node's waiters before its swap,
//!   an `update_time` that satisfies them all claims them; both from *open*, by a compare-and-swap.
//!   One wins.
//! * **A batch ripens ‖ its thread gives it up.** Both exchange the batch's state. Whoever comes
//!   second destroys the objects.
//! * **A push to a feed ‖ its reader leaves.** The reader exchanges the top of the stack for a mark,
//!   the writer compare-and-swaps it. If the push comes first, the reader takes the slot with the
//!   others; if the reader's exchange does, the writer finds the mark and takes back the slot's bit.
//! * **A removal ‖ a new table.** One takes a slot out, counts it, and looks at the table; the
//!   other installs a table and then reads the count by a read-modify-write. If the removal counts
//!   first, the installer reads the new number; if the installer reads first, its release is
//!   acquired by the count, and the other finds the new table. So no table too large is left over.
//!   (One too small is found by the next insertion.)
//!
//! # Fences
//!
//! ## Registering ‖ the clock
//!
//! ```text
//!  subscribe                              update_time, close
//!    list the slot                          replace the tick
//!    swap the waiter into the slot          fence(SeqCst)
//!    fence(SeqCst)                          read the waiting set
//!    look at the tick again                 visit what is listed
//! ```
//!
//! Fences of this kind stand in one order. If *subscribe*'s comes first, the reads after
//! `update_time`'s fence see the listing and the waiter, and serve it. If `update_time`'s comes
//! first, the second look at the tick sees the new one, and the subscriber serves itself. Without
//! either fence, both sides may read the old state: the waiter sleeps, and the `update_time` that
//! names it has returned.
//!
//! ## A tombstone ‖ the clock
//!
//! `delete` and `delete_at` under [`Monotonic`](crate::WritePolicy::Monotonic) list the slot, swap
//! the tombstone in, fence, and look at the tick again. If the fence of `update_time` comes second,
//! its visit clears the tombstone away; if it comes first, the deleter sees that the time has
//! passed and clears it away himself. Without a fence the tombstone could stay until the next
//! `update_time`: memory, not a wrong answer.
//!
//! ## A proposal ‖ the clock, as a third thread sees them
//!
//! ```text
//!  the decider of a proposal      update_time            a reader
//!    (it is in the slot)            replace the tick       look at the tick
//!    fence(SeqCst)                  fence(SeqCst)          fence(SeqCst)
//!    look at the tick                                      look at the slot
//!    accept, if not passed
//! ```
//!
//! Nobody may see a global time and after that the slot as it was before a set which is then
//! accepted as older. If the decider's fence comes before the reader's, the reader finds the
//! proposal in the slot, or what became of it. If the reader's comes first, the decider's look
//! finds the tick that the reader knew, and refuses. Where one call looks at both, the reader's
//! fence is its own (under `Monotonic` only); where they are two calls, it is that of the second
//! one's pin. The fence of `update_time` does the same for a reader that was told of the new time
//! by its caller instead of reading it.
//!
//! ## A new record ‖ a stream that begins
//!
//! A slot that did not exist when the stream looked at the index cannot have been touched. So a
//! writer who brings a *new* record fences between putting it in and looking at the streams, and
//! the stream fences between joining and looking at the index. If the writer's fence comes first,
//! the stream finds the slot; if the stream's does, the writer finds the stream.
//!
//! ## A bare slot ‖ the reader it was left for
//!
//! A key that is removed while a stream has yet to read that keeps a bare slot, for the next record
//! of the key. Who leaves a slot bare swaps its node in, fences, and looks at the marks again; the
//! reader clears its mark, fences, and looks at the node. If the reader's fence comes first, the
//! other sees that the mark is gone; if the other's does, the reader finds the bare node. Whoever
//! sees it retires the slot. Without a fence it could stay for ever: memory, not a wrong answer.
//!
//! ## A slot that is left for tasks ‖ who calls them
//!
//! A wait that is given up on a key without a record, while others are being handed something there,
//! leaves a node that is kept only for their tasks. It swaps that in, fences, and looks whether
//! they have been called; who calls them does that, fences, and looks at the slot once more. One of
//! the two sees what the other did, and retires the slot.
//!
//! ## Timed parking where there is no futex with a deadline
//!
//! The sleeper enrols, fences, and looks at the word; the waker changes the word, fences, and looks
//! at who is enrolled. Either the sleeper sees the changed word, or the waker sees the sleeper.
//!
//! ## The fence in a pin
//!
//! Every call of the cache pins the epoch before its first look at shared memory, and
//! crossbeam-epoch's `pin` contains a `SeqCst` fence, for its own sake: an announcement of the
//! epoch has to precede the loads that it protects. The crate relies on that fence in one more way:
//! between any two calls of a thread that touch different keys, or a key and the clock, there is a
//! full fence. So two threads cannot each set one key and miss the other's set, and two readers
//! cannot see two sets in opposite orders, although each access by itself is only an acquire or a
//! release.
//!
//! Two fast paths do without:
//!
//! * A pin under a pin has no fence. Reads through one [`Pinned`](crate::Pinned), and calls that a
//!   thread makes while it holds one, are acquire loads: on *one* key as good as ever, and never
//!   without what happened before what they see, but without a common order of *different* keys.
//! * [`Tracker::load`](crate::Tracker::load) compares a pointer by a relaxed load and follows
//!   nothing. What it must not miss, a change that happened before the call, it cannot miss: a
//!   relaxed load, too, never goes back behind what its thread already knows of that location.
//!
//! # Relaxed
//!
//! * Counts for people ([`len`](crate::Cache::len)): nothing hangs on them.
//! * The failure side of a compare-and-swap whose caller loads again.
//! * `is_settled`: what it guards was published by the swap that brought the node.
//! * The claiming of chunks in a migration: it shares out work, the words carry the data.
//! * A glance at the flag of a node's waiters: whoever would act on it decides by compare-and-swap.
//! * "The sleepers have been woken": says only that waking them again is not needed.
//! * Everything in a `drop` with `&mut self`.
//!
//! Reference counts are triomphe's (std's under loom, and no part of the models): they guard no
//! protocol of the crate, reclamation does.
//!
//! # What the hardware gives anyway
//!
//! **x86-64** reorders only a store with a later load of another location, and no locked
//! instruction with anything. Each of the fences above follows a compare-and-swap or stands between
//! two loads, so there it costs an `mfence` and only stops the compiler. crossbeam-epoch goes one
//! step further and pins with a locked compare-and-swap in place of the fence: the language does
//! not promise that this is a fence, the processor does.
//!
//! **AArch64** makes a store visible to all other cores at once, so the readers that see two sets
//! in opposite orders do not exist there even without fences, but it reorders loads and stores
//! freely unless told not to. A fence is a `dmb ish`. That a release is not overtaken by a later
//! acquire holds for `stlr` and `ldar` and not for `ldapr`, which compilers may use: nothing here
//! rests on it.
//!
//! Testing on x86-64 alone would therefore show next to nothing of this page. That is what loom is
//! for, within its limits: it explores executions of the C11 model up to a bound, does not load
//! ahead of program order, and a green run is evidence, not a proof.
