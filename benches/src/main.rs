//! Contention benchmarks of podcache and its peers.

mod ablation;
mod alloc;
mod cells;
mod data;
mod goals;
mod harness;
mod instructions;
mod machine;
mod mixes;
mod peers;
mod progress;
mod stats;
mod tasks;
mod units;

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use crate::harness::Runner;
use crate::machine::{Machine, NOISY, Noise};
use crate::mixes::Scope;
use crate::progress::Progress;
use crate::units::significant;

#[global_allocator]
static ALLOCATOR: alloc::Counting = alloc::Counting;

#[derive(Debug, Parser)]
#[command(about, version)]
struct Arguments {
    /// Only what this pattern is found in.
    #[arg(long, global = true)]
    filter: Option<regex::Regex>,
    /// Rounds, as a multiple of the usual number.
    #[arg(long, global = true, default_value_t = 1.0)]
    effort: f64,
    /// Where the raw figures go.
    #[arg(long, global = true, default_value = "target/bench")]
    out: PathBuf,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Every figure that the project demands of itself, as a quotient measured in one run.
    Goals,
    /// Every mix by every peer.
    Mixes {
        /// A few minutes: enough to see the order of the peers.
        #[arg(long, conflicts_with = "full")]
        quick: bool,
        /// All thread counts and sizes (the default).
        #[arg(long)]
        full: bool,
        /// Only tells what would be run.
        #[arg(long)]
        list: bool,
    },
    /// The choices behind the design against what could have been done instead.
    Ablations,
    /// Instructions and locked operations of the uncontended paths, counted by callgrind.
    Instructions,
    /// Runs one of those paths.
    #[command(hide = true)]
    Path { peer: String, operation: String },
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if let Command::Path { peer, operation } = &arguments.command {
        return instructions::run(peer, operation);
    }
    std::fs::create_dir_all(&arguments.out)?;
    eprintln!("{}", Machine::look());
    let noise = Noise::watch();
    let wanted = |name: &str| arguments.filter.as_ref().is_none_or(|f| f.is_match(name));
    match &arguments.command {
        Command::Goals => goals(&arguments, wanted)?,
        Command::Mixes { quick, list, .. } => {
            let scope = if *quick { Scope::Quick } else { Scope::Full };
            let mut experiments = mixes::experiments(scope);
            experiments.retain(|experiment| wanted(&experiment.name()));
            if *list {
                experiments
                    .iter()
                    .for_each(|experiment| println!("{experiment:?}"));
                return Ok(());
            }
            if !peers::go::build(&arguments.out)? {
                eprintln!("There is no Go tool here: the peer in Go is left out.");
            }
            let raw = arguments.out.join("mixes.csv");
            let progress = Progress::new(experiments.len());
            let mut runner = Runner::new(arguments.effort, Some(&raw), progress)?;
            mixes::run(&mut runner, &experiments, scope, &arguments.out)?;
            runner.progress().finish();
        }
        Command::Ablations => {
            let raw = arguments.out.join("ablations.csv");
            let progress = Progress::new(ablation::EXPERIMENTS);
            let mut runner = Runner::new(arguments.effort, Some(&raw), progress)?;
            let ablation = ablation::cells(&mut runner);
            runner.progress().finish();
            println!("{ablation}");
        }
        Command::Instructions => instructions(&arguments.out, wanted)?,
        Command::Path { .. } => unreachable!("handled above"),
    }
    match noise.foreign() {
        Some(foreign) if foreign > NOISY => {
            println!(
                "Others used {:.0} % of this machine meanwhile: too noisy to trust.",
                foreign * 100.0
            );
        }
        Some(foreign) => println!(
            "Others used {:.0} % of this machine meanwhile.",
            foreign * 100.0
        ),
        None => println!("This system does not tell how much of it others used meanwhile."),
    }
    Ok(())
}

fn goals(arguments: &Arguments, wanted: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    let count = goals::experiments().filter(|name| wanted(name)).count();
    let raw = arguments.out.join("goals.csv");
    let mut runner = Runner::new(arguments.effort, Some(&raw), Progress::new(count))?;
    let rows = goals::run(&mut runner, wanted);
    runner.progress().finish();
    println!(
        "{:<64} {:>8} {:>8} {:>16} {:>8}  {:<4} figures (medians)",
        "what", "goal", "median", "quartiles", "minima", "met",
    );
    for row in &rows {
        let ratio = row.ratio;
        println!(
            "{:<64} {:>8} {:>8} {:>16} {:>8}  {:<4} {}",
            row.what,
            row.bound.to_string(),
            significant(ratio.median),
            format!("{} .. {}", significant(ratio.low), significant(ratio.high)),
            significant(ratio.of_minima),
            if row.met() { "yes" } else { "NO" },
            row.figures,
        );
    }
    let met = rows.iter().filter(|row| row.met()).count();
    println!("{met} of {} met", rows.len());
    Ok(())
}

fn instructions(out: &Path, wanted: impl Fn(&str) -> bool) -> anyhow::Result<()> {
    if !instructions::available() {
        println!("Instructions are not counted: there is no valgrind here.");
        return Ok(());
    }
    println!(
        "{:<24} {:<28} {:>13} {:>8} {:>12}",
        "peer", "operation", "instructions", "locked", "allocations"
    );
    for peer in instructions::PEERS {
        let own = (peer == instructions::PEERS[0]).then_some(instructions::OURS_ONLY);
        for operation in instructions::OPERATIONS
            .into_iter()
            .chain(own.into_iter().flatten())
        {
            if wanted(&format!("{peer}: {operation}")) {
                let cost = instructions::count(out, peer, operation)?;
                println!(
                    "{peer:<24} {operation:<28} {:>13.1} {:>8.2} {:>12.2}",
                    cost.instructions, cost.locked, cost.allocations
                );
            }
        }
    }
    Ok(())
}
