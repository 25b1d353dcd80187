//! The lock-free core: everything `unsafe` and every memory ordering of the crate is below here.
//!
//! From the ground up: [`sync`] (std or loom), [`reclaim`] (crossbeam-epoch), [`park`]
//! (atomic-wait); [`list`], [`node`] and [`slot`] (what a key holds), [`index`] (from keys to
//! slots), [`clock`] (the global time), [`bell`], [`waiter`] and [`waiting`] (who waits, and where),
//! [`feed`] (who reads the changes), [`view_cell`] (the view of it all), [`counters`];
//! [`cache`] ties them together, [`writes`] and [`waits`] are the moves.

mod bell;
mod cache;
mod clock;
mod counters;
mod feed;
mod index;
mod list;
mod node;
mod park;
#[cfg(podcache_loom)]
mod park_loom;
#[cfg(all(podcache_loom, not(podcache_shuttle)))]
mod published;
mod reclaim;
mod slot;
mod sync;
mod view_cell;
mod waiter;
mod waiting;
mod waits;
mod writes;

pub(crate) use bell::Bell;
pub(crate) use cache::{Found, RawCache, Watched};
pub(crate) use counters::Count;
pub(crate) use feed::Feed;
pub(crate) use node::{Current, Node};
pub(crate) use reclaim::{Guard, Shared, contain, contain_pairs, pin};
pub(crate) use slot::Slot;
pub(crate) use sync::Arc;
pub(crate) use waiter::{Outcome, Panics, Waiter};
pub(crate) use waits::{Home, Wait};

#[cfg(podcache_loom)]
pub(crate) use reclaim::{end_thread, free_garbage};

#[cfg(podcache_loom)]
pub(crate) use park_loom::let_time_pass;
