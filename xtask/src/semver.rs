//! `cargo xtask semver`: whether a change breaks users without saying so.

use std::process::Command;

use anyhow::Context;

use crate::Verdict;
use crate::cargo::root;
use crate::tool::Tool;

/// Compare the public face with that of an earlier revision by the rules of semantic versioning
/// (needs cargo-semver-checks).
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The revision to compare with [default: the last tag]
    #[arg(long, value_name = "REVISION")]
    since: Option<String>,
}

const SEMVER_CHECKS: Tool = Tool {
    command: "semver-checks",
    does: "compares the public face of two revisions",
    toolchain: None,
};

pub(crate) fn run(args: Args) -> Verdict {
    SEMVER_CHECKS.demand()?;
    let since = match args.since {
        Some(since) => since,
        None => last_tag()?,
    };
    println!("compared with {since}:");
    let status = Command::new("cargo")
        .current_dir(root())
        .args(["semver-checks", "--package", "podcache", "--all-features"])
        .args(["--baseline-rev", &since])
        .status()
        .context("cargo does not start")?;
    Ok(status.success())
}

fn last_tag() -> anyhow::Result<String> {
    let described = Command::new("git")
        .current_dir(root())
        .args(["describe", "--tags", "--abbrev=0"])
        .output()
        .context("git does not start")?;
    let tag = String::from_utf8(described.stdout)?.trim().to_owned();
    let tag = (described.status.success() && !tag.is_empty()).then_some(tag);
    tag.context("there is no tag yet: name a revision with `--since`")
}
