//! Model checks: what is checked, what a green run means, and what it does not.
//!
//! The sources that ship are run under [loom](https://docs.rs/loom), which takes a small program
//! through all its interleavings, and through the values that each load may see under the C11
//! memory model. `cargo xtask loom` does it; `--help` says how to choose programs and bounds.
//!
//! # How it is done
//!
//! **Programs are generated, not chosen.** All programs of two threads with one call each, from an
//! alphabet of some forty calls and uses of a subscription (older, equal and newer times; dropped,
//! polled, timed and blocking waits), on one key and on two, before which there is nothing, a
//! record with a wait, or a wait alone, under each write policy; all programs of two calls against
//! one from the core of the alphabet; and some ninety programs of up to three threads that stand
//! for the ways in which caches, wait lists and wakers of this kind have failed elsewhere. A
//! relisting is in the alphabet as the calls that it stands for, of one pod at most. The text of a
//! program is its name:
//!
//! ```text
//! overwrite: [update(2); set(a,3); s0=sub(a,3)] set(a,4); get(a) || s0.wait
//! ```
//!
//! **Every execution is judged.** A search in the manner of Wing and Gong asks whether some order of
//! the calls, which keeps each thread's own order, explains everything that they returned under a
//! sequential specification of a few maps and numbers (`loom-tests/src/spec.rs`). When all threads
//! have come to rest, the final state has to be explained by the same order. Beyond that: no
//! deadlock, no value leaked, dropped twice or read after its drop; keys and values hold loom
//! cells, so that whoever reads them without being ordered after their making is found; the last
//! waker of an ended wait was called, a replaced or dropped one never is, none is kept; and a key
//! without record or wait is not remembered.
//!
//! **The index by itself**, too: twenty-four models of the hash table alone, in which tables of two to
//! eight buckets grow, shrink and are searched, scanned and changed meanwhile, and slots notice when
//! they are released too early, twice or never (`index: …` in the tables).
//!
//! **In every order of its threads.** loom remembers one access per object, so that a load before a
//! compare-and-swap hides an earlier load of another thread (loom#166): `get || set` has one
//! execution with the reader first, and six with the writer first. Each program is therefore run
//! with each of its threads first.
//!
//! **Reclamation twice.** Most programs run on a stand-in that frees nothing before the end of an
//! execution, but pins with the fence that crossbeam-epoch's pin has; those in which memory is freed
//! under somebody's hands also run on the real crossbeam-epoch.
//!
//! **A parked thread** sleeps in a table under loom's mutex. One wait of an execution may return for
//! no reason. A deadline passes when the model says so, at an instant that loom chooses.
//!
//! **The checks are checked.** Every ordering stronger than relaxed is weakened, one half at a time,
//! every fence weakened and removed, every step of the protocol left out, and the quick set run on
//! each of these mutants (`cargo xtask loom --mutants`). What no model notices needs a reason. Among
//! them are the mistakes that such caches are made with, each of which the quick set has to notice
//! (`--mutants --filter mistake`): to wake and look again, to wake strictly, to enter without being
//! strict, to subscribe without the second look, to publish after the hand-over, to lose a neighbour
//! in a cancellation, to keep the observed time across a set, to miss in a close who is registering.
//! A result belongs to the statement that was changed: when that changes, the table says "not run".
//!
//! **Three lengths.** The quick set takes a few minutes and ends each program after 2,000
//! executions. `--deep` explores each to its end or to 50,000 executions, which takes a day and more
//! (`--estimate 40` measures it); `--deep --minutes 45` gives each a share of that time instead. The
//! tables say how many were not explored to the end of their bound, and after how many executions
//! they were given up. `--record` keeps what came of it, each program as it ends, and `--resume`
//! goes on from there.
//!
//! # What a green run means
//!
//! That for the programs in the tables below, within their bounds, no execution that loom knows of
//! is at odds with the specification. That is not a proof:
//!
//! * Programs are small: three threads, three calls on one of them. What needs more is left to
//!   shuttle (random schedules of five threads, twenty calls), to histories of real threads, and to
//!   the stress tests under AddressSanitizer: `cargo xtask shuttle`, `histories`, `asan`.
//! * Most programs are bounded in preemptions, and where the table says so, in executions.
//! * loom does not load ahead of program order, remembers seven stores of an atomic, lets no
//!   `compare_exchange_weak` fail for no reason, and misses interleavings as said above.
//! * Reference counts are no part of the models: std's, where triomphe's ship. Nor is the look
//!   ahead of a waking call (`preload`), on which nothing depends. That a value is dropped after its last use, and the
//!   cache's own memory after its last user, rests on the counts: loom sees the last handle close the
//!   cache under a wait, while its memory is kept to the end of the execution. That it goes while
//!   waits end is left to shuttle, to the histories of real threads and to AddressSanitizer.
//! * What the end of a thread does for the real collector, a step of the thread has to do in a model,
//!   since loom drops a thread's locals after it was joined, and in no certain order.
//! * The cache's nodes are plain memory to loom. A publication is checked as far as keys and values
//!   show it.
//!
//! # For your own models
//!
//! A crate that uses podcache can run loom on itself: build with `RUSTFLAGS="--cfg podcache_loom"`,
//! take its own primitives from loom under the same cfg, and end each model with
//! `podcache::model::free_garbage()`, after all threads are joined and all handles dropped. With
//! `--cfg crossbeam_loom` beside it the real collector is explored too, at some ten times the
//! executions; then each thread ends with `podcache::model::end_thread()`.
//! Deadlines pass by `podcache::model::let_time_pass()`. A call of the cache is ten to forty steps to
//! loom: two threads with two or three calls each take a thousand executions and a tenth of a second
//! at three preemptions, six times that at four, and have no end without a bound.
//! `loom-tests/dependent` is a worked example: a pod worker whose model finds the bug planted in it.
//!
#![doc = include_str!("models.md")]
