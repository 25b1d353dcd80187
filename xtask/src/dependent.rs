//! `cargo xtask dependent`: the example of a crate that runs loom on itself.

use std::process::{Command, Output};

use anyhow::Context;

use crate::Verdict;
use crate::cargo::{root, target_dir};

/// Check the example of a dependent: its model passes, and finds the bug that is planted in it.
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_: Args) -> Verdict {
    let sound = test("--cfg podcache_loom", "loom")?;
    if !sound.status.success() {
        println!("the dependent's model fails:\n{}", text(&sound));
        return Ok(false);
    }
    let planted = test("--cfg podcache_loom --cfg planted_bug", "loom-planted")?;
    let found = text(&planted).contains("the last request was lost");
    if planted.status.success() || !found {
        println!(
            "the dependent's model does not find the planted bug:\n{}",
            text(&planted)
        );
        return Ok(false);
    }
    println!("the dependent's model passes, and finds the planted bug");
    Ok(true)
}

fn test(flags: &str, target: &str) -> anyhow::Result<Output> {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(root().join("loom-tests"))
        .env("RUSTFLAGS", flags)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env("CARGO_TARGET_DIR", target_dir().join(target))
        .args(["test", "--package", "podcache-dependent", "--test", "loom"])
        .output()
        .context("cargo does not start")
}

fn text(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    format!(
        "{}{}",
        String::from_utf8_lossy(out),
        String::from_utf8_lossy(err)
    )
}
