//! `cargo xtask histories`: what real threads did, judged.

use std::process::Command;

use anyhow::Context;
use serde::Deserialize;

use crate::Verdict;
use crate::cargo::{Build, root};

/// Judge what real threads did.
///
/// Random programs on the machine's own threads and the real atomics. Here the clock counts: of two
/// calls of which one had returned before the other began, the first comes first.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How long.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// So many threads.
    #[arg(long, default_value_t = 4)]
    threads: u64,
    /// About so many calls a thread.
    #[arg(long, default_value_t = 12)]
    calls: u64,
    /// JSON lines, nothing else.
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event {
    Failed {
        seed: u64,
        program: String,
        history: String,
    },
    Done {
        histories: usize,
        calls: usize,
        overlapping: usize,
        failed: usize,
        seconds: f64,
    },
}

pub(crate) fn run(args: Args) -> Verdict {
    let binary = Build {
        workspace: &root().join("loom-tests"),
        bin: "histories",
        cfgs: &[],
        features: &["histories"],
        target: "histories",
    }
    .run()?;
    judge(&binary, &args, &[])
}

/// Runs the binary, in its own build or in that of a sanitizer.
pub(crate) fn judge(binary: &std::path::Path, args: &Args, env: &[(&str, &str)]) -> Verdict {
    let numbers = [args.seed, args.seconds, args.threads, args.calls];
    let output = Command::new(binary)
        .args(numbers.map(|n| n.to_string()))
        .envs(env.iter().copied())
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("the binary does not start")?;
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if args.json {
            println!("{line}");
            continue;
        }
        match serde_json::from_str(line)? {
            Event::Failed {
                seed,
                program,
                history,
            } => {
                println!("no order explains seed {seed}: {program}\n{history}");
            }
            Event::Done {
                histories,
                calls,
                overlapping,
                failed,
                seconds,
            } => println!(
                "{histories} histories with {calls} calls, {overlapping} of them overlapping another, in {seconds:.0} s: {failed} not explained"
            ),
        }
    }
    Ok(output.status.success())
}

impl Args {
    /// What a sanitizer's run takes.
    pub(crate) fn for_seconds(seconds: u64) -> Self {
        Args {
            seed: 1,
            seconds,
            threads: 4,
            calls: 12,
            json: false,
        }
    }
}
