//! Model checks of podcache: every small program, on the sources that ship, judged by a sequential
//! specification.
//!
//! * [`spec`]: what the cache does when one thing happens at a time.
//! * [`program`]: programs of a few calls on a few threads, as text and as data.
//! * [`generate`]: all the programs of a size.
//! * [`subject`] and [`execute`]: a program run on the real cache.
//! * [`judge`]: whether some order explains what its calls returned.
//! * `index`: models of the index by itself, under loom only.
//!
//! The library is the same for loom, for shuttle and for real threads; the binaries choose.

pub mod execute;
pub mod generate;
#[cfg(all(podcache_loom, not(podcache_shuttle)))]
pub mod index;
pub mod judge;
pub mod program;
pub mod spec;
pub mod subject;

/// The index as it ships, and what it is built on.
#[cfg(all(podcache_loom, not(podcache_shuttle)))]
#[path = "../../src/raw"]
#[allow(dead_code, unused_imports, clippy::absurd_extreme_comparisons)]
mod raw {
    pub(crate) mod index;
    pub(crate) mod published;
    pub(crate) mod reclaim;
    pub(crate) mod sync;

    #[cfg(podcache_mutants)]
    pub(crate) use sync::Ordering as Order;
}
