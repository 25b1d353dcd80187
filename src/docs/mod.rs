//! The longer documentation: modules without code.
//!
//! * [`design`]: how it works and why it is built that way.
//! * [`orderings`]: which fence or ordering pairs with which, and what goes wrong without it.
//! * [`models`]: what is model-checked, what a green run means, and what it does not.
//! * [`cookbook`]: recipes, each of them a program that runs.
//! * [`limitations`]: what to know before relying on it, each with a way out.
//!
//! What a single method promises (progress, linearization point, errors, panics) is said at the
//! method; what holds for all of them, at [`Cache`](crate::Cache).

pub mod cookbook;
pub mod design;
pub mod limitations;
pub mod models;
pub mod orderings;

/// Keeps the README's example true.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
mod readme {}
