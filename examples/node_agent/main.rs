//! A node agent in small: it follows this machine's own processes as pods, the way the kubelet
//! follows its containers.
//!
//! ```text
//! cargo run --release --example node_agent
//! cargo run --release --example node_agent -- --churn 50 --for 10s
//! ```
//!
//! A pod is a session and its containers are the session's processes; beside those, the agent
//! starts short-lived children of its own (`--churn`), each a pod with one container and a real
//! exit code. Who does what:
//!
//! * [`lister`]: one thread, the only writer. It lists the node every period and writes what it
//!   found: `set` what changed, `set_observed_time` what did not, `delete` what is gone,
//!   `update_time` last, all under the time taken *before* the listing.
//! * [`worker`]: one thread per pod, a reader. It waits with `get_newer_than` for a status newer
//!   than the last one it saw, and ends when its pod is gone or the cache is closed.
//! * [`agent`]: the main thread. It shows what the others report and ends it all in order.
//!
//! Every exit code must reach the worker of its pod, also of a child that came and went between two
//! listings and whose pod is deleted in the same breath; [`ledger`] keeps the books, and the agent
//! fails if a code is missing.

mod agent;
mod args;
mod children;
mod churn;
mod diff;
mod event;
mod ledger;
mod lister;
mod node;
mod picture;
mod pod;
mod summary;
mod table;
mod view;
mod worker;

use std::process::ExitCode;

use clap::Parser;

fn main() -> anyhow::Result<ExitCode> {
    let args = args::Args::parse();
    if let Some(orders) = args.be_child {
        orders.carry_out();
    }
    agent::run(&args)
}
