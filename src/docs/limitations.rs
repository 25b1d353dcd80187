//! What to know before relying on it, each with a way out.
//!
//! # Memory
//!
//! ## A pinned thread holds back everybody's garbage
//!
//! Replaced records, removed keys and old tables are freed when every thread that could see them
//! has unpinned. Whatever keeps a thread pinned, keeps all of that alive, for every cache of the
//! process and every other user of crossbeam-epoch's default collector: a [`Pinned`](crate::Pinned)
//! held for long, or one that is leaked; a `Pinned` held while waiting; a thread that is stopped
//! inside a call; a key's `Eq` or `Clone`, or the `Drop` of a value, that does not return. It holds
//! back *memory*, never a reader, writer or waiter. A forgotten `Pinned` holds it back for the rest
//! of the process: what it lent may have been leaked with it, and be read by any thread.
//!
//! *Way out:* hold a `Pinned` for a batch of reads, not for a request. To keep a record, take
//! [`Entry::to_snapshot`](crate::Entry::to_snapshot).
//!
//! ## A quiet thread keeps its last garbage
//!
//! A thread destroys itself what it has replaced: an object for each that it replaces later, in
//! batches of 128 whose time has come when nobody can see them any more. A thread that sets values,
//! confirms them or waits for them, and then goes quiet, keeps the last nodes that it replaced, some
//! hundreds at most, and the values in them: though nobody can read them, and though the cache be
//! gone. (A wait replaces the node of its key by one that names it, and keeps the record.) When the
//! thread removes a key, or ends, it leaves all of them to whoever comes by (every 128th pin does,
//! of any thread).
//!
//! *Way out:* do not tie the release of a scarce resource (a file, a connection) to the drop of a
//! cached value. Cache a handle, and release what it stands for explicitly.
//!
//! ## A snapshot keeps its value, whatever becomes of the cache
//!
//! That is its purpose, and it costs what it keeps. A [`Tracker`](crate::Tracker) keeps the
//! snapshot that it loaded last, a finished [`Subscription`](crate::Subscription) its result, a
//! [`View`](crate::View) all records of one instant. The cache itself keeps the last view that
//! somebody asked for, until somebody asks for a newer one.
//!
//! ## A wait that is over leaves a trace until the key's next move
//!
//! The node that ended a key's waits knows whom it ended, until the next call on the key, or the
//! second `update_time` after that, replaces it. It is small and has no waker in it, but as many as
//! waited there.
//!
//! ## Deleted keys are remembered under Monotonic
//!
//! A deletion leaves the key and a tombstone in the cache until the global time has reached the
//! time of the deletion. Without an [`update_time`](crate::Cache::update_time) now and then, they
//! pile up.
//!
//! ## There is no bound, and nothing expires
//!
//! It is a cache as the kubelet means the word: the last known state of a set that somebody else
//! lists, not a store of recently used things. Nothing is evicted, nothing is written to disk, and
//! after a restart it is empty. *Way out:* a lister that deletes what is gone, or
//! [`relist`](crate::Cache::relist), which does.
//!
//! # Values
//!
//! ## A value is replaced whole
//!
//! `set` moves the value into a fresh allocation, so a `V` of several kilobytes is copied on each;
//! and every other move on the key (a wait, a confirmed time) allocates a node that has room for a
//! `V`, though it stays empty. *Way out:* put a box or an [`Arc`](std::sync::Arc) around the large
//! parts.
//!
//! ## There is no read-modify-write
//!
//! Two threads that read a record, change a copy and set it will lose one of the two changes. The
//! cache is made for *one* writer per key, which states what it saw. *Way out:* one writer per key;
//! or atomics inside of the value, if they are independent of its times.
//!
//! ## Drop runs late, and in the middle of something else
//!
//! A replaced value is dropped by the thread that replaced it, in the middle of some later write,
//! perhaps of another cache; or by another thread in the middle of any call, if the one that
//! replaced it removes keys, ends, or lags behind. So `Drop` must not block, must not expect thread-locals of the
//! thread that made the value, and has nobody to report a panic to: the panic hook prints it, and
//! it ends there (with `panic = "abort"`, the process does). It may call the cache.
//!
//! ## Everything is `Send + Sync + 'static`
//!
//! Keys, values and the hasher: a destructor that is put off may run on any thread, at any later
//! time, so they cannot borrow. *Way out:* own the data, or share it in an `Arc`.
//!
//! # Times
//!
//! ## The boundary has two sides
//!
//! A key is *fresh* on entry if something is `>` the time you ask for; a registered wait is ended
//! by a call with a time `>=` it. Both as in the kubelet. So the same question, asked again after
//! an equal time has answered it, waits. *Way out:* ask with the time you acted at, not with the
//! time you were answered with.
//!
//! ## A time from the future poisons
//!
//! Times are numbers and are believed. A `set` with a time an hour ahead makes its key look fresh
//! until it is set again. Under [`RejectOlder`](crate::WritePolicy::RejectOlder) it is not set
//! again: all honest sets of that key are refused for an hour (a `delete` cures it). Under
//! [`Monotonic`](crate::WritePolicy::Monotonic) a `delete` does not cure it either, since the
//! deletion takes over the time. Worst is an [`update_time`](crate::Cache::update_time) from the
//! future under `Monotonic`: it refuses every set of every key until then, and cannot be taken
//! back. *Way out:* take times from one clock, [`Timestamp::now`](crate::Timestamp::now) for
//! instance, and set [`Builder::max_future_skew`](crate::Builder::max_future_skew), which refuses
//! and counts what is further ahead than that.
//!
//! ## A timestamp is taken before the listing, not after
//!
//! `update_time(t)` states that everything is at least as new as `t`. If `t` was read after the
//! listing, a change in between is vouched for and missing. The cache cannot check that.
//!
//! ## Times of different processes do not compare
//!
//! [`Timestamp::now`](crate::Timestamp::now) does not follow the steps of the wall clock, which is
//! its point, so it drifts from other processes' clocks. *Way out:* one process takes the times;
//! the others pass them on as numbers.
//!
//! # Waiting
//!
//! ## One task per subscription
//!
//! Any number of threads may wait on one [`Subscription`](crate::Subscription), but it holds one
//! waker, that of the last poll. *Way out:* a subscription per task; they are independent and
//! cheap.
//!
//! ## A waker that was taken and not yet called
//!
//! A task's waker can be called by one thread only. If that thread is stopped between taking it out
//! of the waiter and calling it, or inside the waker, the task is not scheduled until it goes on:
//! the result is there (`try_get` gives it, and so does a poll for any other reason), only the
//! nudge is late. The next waking call cannot help, there is no second waker to call. For the same
//! reason a waker may still be called just after its task saw the result, or dropped the
//! subscription, if it was taken before. A task that was named and not called yet is called by the
//! next waking call on its key, if the one that named it does not go on; reads, waits, time-outs
//! and cancellations call nobody. *Threads* are never hostage in this way: whoever passes
//! wakes them again. The same goes for the one waker of a change stream. *Way out*, if a stopped
//! waker is a real prospect: wait in a thread, or with a time-out in the executor.
//!
//! ## A waker runs inside of a writer's call
//!
//! As everywhere in async Rust. Those of executors only push to a queue; one that blocks delays the
//! call that runs it, and the calls after that on the same key that wake (`set`,
//! `set_observed_time`, `delete`, `update_time`, `close`) may come to the next task that is left to
//! call. Likewise one that panics may do so in a later call on its key than the one that named it.
//! All results are there and all threads awake before the first waker runs. If a waker calls the
//! cache itself, whom that call names has his result when it returns, but is called, if he is a
//! task, only after the waker has returned.
//!
//! ## A forgotten subscription stays registered
//!
//! With [`std::mem::forget`] in place of a drop nobody cancels it: it counts in
//! [`waiters`](crate::Cache::waiters) until a call ends it. It holds up nobody.
//!
//! ## Many waiters on one key
//!
//! Registering is constant work, a call that ends all waits of a key or none does not copy the
//! list, and giving up is constant in the long run. But a call that ends *some* of a key's waits
//! copies the list of the rest. A thousand waiters of one key with a thousand different times,
//! ended one by one, are half a million steps.
//!
//! ## Lock-free is not wait-free
//!
//! Moves on *one* key compete, and a thread can lose again and again while others succeed. Moves on
//! different keys compete only where a key comes or goes (for a bucket of the index) and where its
//! first waiter comes or its last one goes (for a shard of the waiting set).
//!
//! # Looking at many keys
//!
//! ## Iteration and counts are weak
//!
//! [`iter`](crate::Cache::iter) gives every key that is there throughout exactly once, and each
//! item as it was at some instant of the iteration, but not all at the *same* instant; a key that
//! comes or goes meanwhile may be given or not. [`len`](crate::Cache::len) and
//! [`waiters`](crate::Cache::waiters) are exact when nothing moves. *Way out:* a
//! [`view`](crate::Cache::view) vouches for one time for all of its records.
//!
//! ## A view is as old as it is, and asking for one may wait
//!
//! It is built when first asked for after an `update_time` and stays the same until the next one
//! (under [`Monotonic`](crate::WritePolicy::Monotonic), the next that is not older):
//! sets in between do not show in it. Who asks while another thread is building it waits for that
//! thread; it is the one call besides the waits that can. It delays no writer and no other read.
//! *Way out:* `get`, `pin` or `iter` for what must be of this moment.
//!
//! ## No order across keys under one guard
//!
//! Reads of *different* keys through one [`Pinned`](crate::Pinned) are not ordered as separate
//! calls are; see [`orderings`](super::orderings#the-fence-in-a-pin).
//!
//! ## A change stream conflates, and what it has not read it keeps
//!
//! [`Changes`](crate::Changes) gives the newest state of what changed, not every change, so whoever
//! must see each one needs a channel. Until it is read, it keeps an entry of every key that
//! changed, also of one that is gone: for keys that do not come back that is memory by the number
//! of keys there have ever been. A forgotten one ([`std::mem::forget`]) is never read. *Way out:*
//! read it, or drop it; [`lag`](crate::Changes::lag) says how far it is behind.
//!
//! With more than 32 streams at once, of which those count that were dropped a moment ago, a slow
//! reader costs memory by changes, and is given a key as often as it changed. *Way out:* one stream
//! that passes on what it reads.
//!
//! A writer that is stopped between its write and the announcement of it delays the announcements
//! of that key until it goes on. *Way out:* to learn of one key without fail, wait for it.
//!
//! # Keys
//!
//! ## Keys that all hash alike
//!
//! They share a bucket, and a bucket is an immutable array: `n` of them cost `n` comparisons of
//! hashes to find one, and a copy of the array to add one. Slow, not wrong. The default hasher is
//! seeded per cache against accidents, not against somebody who can choose keys and watch the
//! clock. *Way out:* `std::hash::RandomState` through [`Builder::hasher`](crate::Builder::hasher).
//!
//! ## `Hash` and `Eq` have to agree, and stay so
//!
//! As for a `HashMap`. A key whose hash changes is not found again; nobody else's is harmed.
//!
//! ## Growing is shared, but not evenly
//!
//! A writer normally migrates a bounded piece of a growing or shrinking table. If a resize is due
//! before the last one is through, one writer completes the last one first, which takes time by the
//! number of buckets. Readers and other writers do not wait for it. *Way out:*
//! [`Cache::with_capacity`](crate::Cache::with_capacity), which also is the size below which the
//! table does not shrink.
