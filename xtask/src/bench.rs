//! The benchmarks: a program of their own, built optimised and run from the root.

use std::env;
use std::process::Command;

use anyhow::Context;

use crate::Verdict;
use crate::cargo::root;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A few minutes: enough to see the order of the peers.
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// All thread counts and sizes (the default).
    #[arg(long)]
    full: bool,
    /// Only what this pattern is found in the name of.
    #[arg(long, value_name = "PATTERN")]
    filter: Option<String>,
    /// Write the charts, the page BENCHMARKS.md and the goals in README.md at the end.
    #[arg(long)]
    report: bool,
    /// Rounds, as a multiple of the usual number.
    #[arg(long, value_name = "FACTOR")]
    effort: Option<String>,
    /// Where the raw figures go [default: target/bench].
    #[arg(long, value_name = "DIRECTORY")]
    out: Option<String>,
    /// Instead of a run: which quotients of two earlier ones differ by more than 15 %.
    #[arg(long, num_args = 2, value_names = ["DIRECTORY", "DIRECTORY"])]
    compare: Option<Vec<String>>,
    /// Instead of a run: are the places there that the ablations replace in the sources?
    #[arg(long)]
    check_ablations: bool,
    /// Only a part: goals, mixes, ablations, instructions, list, or report (from the last run).
    part: Option<String>,
}

pub(crate) fn run(args: Args) -> Verdict {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut bench = Command::new(cargo);
    bench
        .current_dir(root())
        .args(["run", "--release", "--package", "podcache-benches", "--"]);
    for (flag, wanted) in [
        ("--quick", args.quick),
        ("--full", args.full),
        ("--report", args.report),
    ] {
        if wanted {
            bench.arg(flag);
        }
    }
    for (option, value) in [
        ("--filter", args.filter),
        ("--effort", args.effort),
        ("--out", args.out),
    ] {
        if let Some(value) = value {
            bench.args([option, &value]);
        }
    }
    if let Some(runs) = args.compare {
        bench.arg("compare").args(runs);
    }
    if args.check_ablations {
        bench.arg("check-ablations");
    }
    bench.args(&args.part);
    Ok(bench.status().context("cargo does not start")?.success())
}
