//! `cargo xtask deny`: what the dependencies bring with them.

use std::process::Command;

use anyhow::Context;

use crate::Verdict;
use crate::cargo::root;
use crate::tool::Tool;

/// Check the dependencies: advisories, licences, sources, duplicates (needs cargo-deny).
///
/// What is allowed stands in `deny.toml`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Leave out the advisories, which are fetched from the network
    #[arg(long)]
    offline: bool,
}

const DENY: Tool = Tool {
    command: "deny",
    does: "looks at the dependencies' advisories, licences and sources",
    toolchain: None,
};

pub(crate) fn run(args: Args) -> Verdict {
    DENY.demand()?;
    let checks: &[&str] = if args.offline {
        &["bans", "licenses", "sources"]
    } else {
        &["all"]
    };
    let status = Command::new("cargo")
        .current_dir(root())
        .args(["deny", "--workspace", "--all-features", "check"])
        .args(checks)
        .status()
        .context("cargo does not start")?;
    Ok(status.success())
}
