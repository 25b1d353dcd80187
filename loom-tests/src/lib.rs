//! Model checks of podcache: every small program, on the sources that ship, judged by a sequential
//! specification.
//!
//! * [`spec`]: what the cache does when one thing happens at a time.
//! * [`program`]: programs of a few calls on a few threads, as text and as data.
//! * [`generate`]: all the programs of a size.
//! * [`subject`] and [`execute`]: a program run on the real cache.
//! * [`judge`]: whether some order explains what its calls returned.
//!
//! The library is the same for loom, for shuttle and for real threads; the binaries choose.

pub mod execute;
pub mod generate;
pub mod judge;
pub mod program;
pub mod spec;
pub mod subject;
