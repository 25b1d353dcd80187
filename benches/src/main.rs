//! Contention benchmarks of podcache and its peers.

#![allow(
    unreachable_pub,
    reason = "a program has no public face: here `pub` is for its modules"
)]

mod ablation;
mod alloc;
mod cells;
mod chart;
mod data;
mod goals;
mod harness;
mod instructions;
mod machine;
mod mixes;
mod peers;
mod progress;
mod report;
mod stats;
mod tasks;
mod units;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use regex::Regex;

use crate::harness::Runner;
use crate::machine::{Machine, Noise};
use crate::mixes::Scope;
use crate::progress::Progress;
use crate::units::significant;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

#[derive(Debug, Parser)]
#[command(about, version)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    /// Everything, if it is left away.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, clap::Args)]
struct Options {
    /// A few minutes: enough to see the order of the peers.
    #[arg(long, global = true, conflicts_with = "full")]
    quick: bool,
    /// All thread counts and sizes (the default).
    #[arg(long, global = true)]
    full: bool,
    /// Only what this pattern is found in the name of.
    #[arg(long, global = true)]
    filter: Option<Regex>,
    /// Writes the charts and the page BENCHMARKS.md at the end.
    #[arg(long, global = true)]
    report: bool,
    /// Rounds, as a multiple of the usual number.
    #[arg(long, global = true, default_value_t = 1.0)]
    effort: f64,
    /// Where the raw figures go.
    #[arg(long, global = true, default_value = "target/bench")]
    out: PathBuf,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// What would be run.
    List,
    /// Only what `--report` does, from the figures of the last run.
    Report,
    /// Every figure that the project demands of itself, as a quotient measured in one run.
    Goals,
    /// Every mix by every peer.
    Mixes,
    /// The choices behind the design against what could have been done instead.
    Ablations,
    /// Instructions and locked operations of the uncontended paths, counted by callgrind.
    Instructions,
    /// Runs one of those paths.
    #[command(hide = true)]
    Path {
        peer: String,
        operation: String,
        #[arg(long)]
        calls: Option<u64>,
    },
}

impl Options {
    fn scope(&self) -> Scope {
        if self.quick {
            Scope::Quick
        } else {
            Scope::Full
        }
    }

    fn wants(&self, name: &str) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.is_match(name))
    }

    fn experiments(&self) -> Vec<mixes::Experiment> {
        let mut experiments = mixes::experiments(self.scope());
        experiments.retain(|experiment| self.wants(&experiment.name()));
        experiments
    }

    fn runner(&self, name: &str, experiments: usize) -> anyhow::Result<Runner> {
        let raw = self.out.join(format!("{name}.csv"));
        Runner::new(self.effort, Some(&raw), Progress::new(experiments))
    }

    /// Prints a table, and keeps it for the page.
    fn keep(&self, file: &str, text: &str, table: &str) -> anyhow::Result<()> {
        println!("{}", text.trim_end());
        fs::write(self.out.join(file), table)?;
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let Arguments { options, command } = Arguments::parse();
    match &command {
        Some(Command::Path {
            peer,
            operation,
            calls,
        }) => {
            return instructions::run(peer, operation, *calls);
        }
        Some(Command::List) => return list(&options),
        Some(Command::Report) => return report(&options),
        _ => {}
    }
    fs::create_dir_all(&options.out)?;
    let machine = Machine::look();
    eprintln!("{machine}");
    let noise = Noise::watch();
    match command {
        Some(Command::Goals) => goals(&options)?,
        Some(Command::Mixes) => mixes(&options)?,
        Some(Command::Ablations) => ablations(&options)?,
        Some(Command::Instructions) => instructions(&options)?,
        Some(Command::Path { .. } | Command::List | Command::Report) => {
            unreachable!("handled above")
        }
        None => {
            goals(&options)?;
            mixes(&options)?;
            ablations(&options)?;
            instructions(&options)?;
        }
    }
    let verdict = noise.to_string();
    eprintln!("{verdict}");
    fs::write(
        options.out.join("machine.md"),
        format!("{machine}. {verdict}\n"),
    )?;
    if options.report {
        report(&options)?;
    }
    Ok(())
}

fn report(options: &Options) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    report::write(&root, &options.out)?;
    println!("BENCHMARKS.md is written.");
    Ok(())
}

fn list(options: &Options) -> anyhow::Result<()> {
    for name in goals::experiments().filter(|name| options.wants(name)) {
        println!("goals: {name}");
    }
    for experiment in options.experiments() {
        println!("mixes: {}", experiment.name());
    }
    Ok(())
}

fn goals(options: &Options) -> anyhow::Result<()> {
    let count = goals::experiments()
        .filter(|name| options.wants(name))
        .count();
    let mut runner = options.runner("goals", count)?;
    let rows = goals::run(&mut runner, |name| options.wants(name));
    runner.progress().finish();
    let mut text = format!(
        "{:<68} {:>8} {:>8} {:>16} {:>8}  {:<4} figures (medians)\n",
        "what", "goal", "median", "quartiles", "minima", "met",
    );
    let mut table = "Quotients of figures that were measured in turn, in one run.\n\n\
        | what | goal | median | quartiles | met | figures (medians) |\n|---|--:|--:|--:|---|---|\n"
        .to_owned();
    for row in &rows {
        let ratio = row.ratio;
        let (bound, median) = (row.bound.to_string(), significant(ratio.median));
        let quartiles = format!("{} .. {}", significant(ratio.low), significant(ratio.high));
        let met = if row.met() { "yes" } else { "NO" };
        writeln!(
            text,
            "{:<68} {bound:>8} {median:>8} {quartiles:>16} {:>8}  {met:<4} {}",
            row.what,
            significant(ratio.of_minima),
            row.figures,
        )?;
        let bound = bound.replace("<=", "≤").replace(">=", "≥");
        let met = if row.met() { "yes" } else { "**no**" };
        let (what, figures) = (
            row.what.replace('<', "\\<"),
            row.figures.replace('<', "\\<"),
        );
        writeln!(
            table,
            "| {what} | {bound} | {median} | {quartiles} | {met} | {figures} |"
        )?;
    }
    let met = rows.iter().filter(|row| row.met()).count();
    writeln!(text, "{met} of {} met", rows.len())?;
    writeln!(table, "\n{met} of {} are met.", rows.len())?;
    options.keep("goals.md", &text, &table)
}

fn mixes(options: &Options) -> anyhow::Result<()> {
    if !peers::go::build(&options.out)? {
        eprintln!("There is no Go tool here: the peer in Go is left out.");
    }
    let experiments = options.experiments();
    let mut runner = options.runner("mixes", experiments.len())?;
    mixes::run(&mut runner, &experiments, options.scope(), &options.out)?;
    runner.progress().finish();
    Ok(())
}

fn ablations(options: &Options) -> anyhow::Result<()> {
    let mut runner = options.runner("ablations", ablation::EXPERIMENTS)?;
    let ablation = ablation::cells(&mut runner);
    runner.progress().finish();
    options.keep("ablations.md", &ablation.to_string(), &ablation.markdown())
}

fn instructions(options: &Options) -> anyhow::Result<()> {
    if !instructions::available() {
        println!("Instructions are not counted: there is no valgrind here.");
        return Ok(());
    }
    let mut text = format!(
        "{:<28} {:<28} {:>13} {:>8} {:>12}\n",
        "peer", "operation", "instructions", "locked", "allocations"
    );
    let mut table = "Per call, on one thread, after warming up.\n\n\
        | peer | operation | instructions | locked ones | allocations |\n|---|---|--:|--:|--:|\n"
        .to_owned();
    for (peer, operation) in instructions::paths() {
        if !options.wants(&format!("{peer}: {operation}")) {
            continue;
        }
        let cost = instructions::count(&options.out, peer, operation)?;
        let [instructions, locked, allocations] =
            [cost.instructions, cost.locked, cost.allocations];
        writeln!(
            text,
            "{peer:<28} {operation:<28} {instructions:>13.0} {locked:>8.2} {allocations:>12.2}"
        )?;
        let peer = peer.replace('<', "\\<");
        writeln!(
            table,
            "| {peer} | {operation} | {instructions:.0} | {locked:.1} | {allocations:.1} |"
        )?;
    }
    options.keep("instructions.md", &text, &table)
}
