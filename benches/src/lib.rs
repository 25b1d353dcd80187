//! Contention benchmarks of podcache and its peers.

pub mod ablation;
pub mod alloc;
pub mod cells;
pub mod chart;
pub mod compare;
pub mod data;
pub mod goals;
pub mod harness;
pub mod instructions;
pub mod machine;
pub mod mixes;
pub mod peers;
pub mod progress;
pub mod readme;
pub mod report;
pub mod stats;
pub mod tasks;
pub mod units;
pub mod variants;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;
