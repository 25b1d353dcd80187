//! The lock-free core: everything `unsafe` and every memory ordering of the crate is below here.
mod reclaim;
mod sync;
