//! Contention benchmarks of podcache and its peers.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::ensure;
use clap::{Parser, Subcommand};
use regex::Regex;

use podcache_benches::harness::Runner;
use podcache_benches::machine::{Machine, Noise};
use podcache_benches::mixes::Scope;
use podcache_benches::progress::Progress;
use podcache_benches::units::{minutes, significant};
use podcache_benches::{ablation, compare, goals, instructions, mixes, peers, report, variants};

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
    /// Writes the charts, the page BENCHMARKS.md and the goals in README.md at the end.
    #[arg(long, global = true)]
    report: bool,
    /// Rounds, as a multiple of the usual number.
    #[arg(long, global = true, default_value_t = 1.0)]
    effort: f64,
    /// Where the raw figures go.
    #[arg(long, global = true, default_value = "target/bench")]
    out: PathBuf,
    /// Where README.md is, and BENCHMARKS.md goes, if not to the repository.
    #[arg(long, global = true, hide = true)]
    root: Option<PathBuf>,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// What would be run.
    List,
    /// Only what `--report` does, from the figures of the last run.
    Report,
    /// The quotients of two runs that differ by more than a share.
    Compare {
        /// Where the figures of one run went.
        before: PathBuf,
        /// And those of another.
        after: PathBuf,
        /// In percent.
        #[arg(long, default_value_t = 15.0)]
        beyond: f64,
    },
    /// Every figure that the project demands of itself, as a quotient measured in one run.
    Goals,
    /// Every mix by every peer.
    Mixes,
    /// The choices behind the design against what could have been done instead.
    Ablations,
    /// Whether the places are there that the alternatives replace in the sources.
    CheckAblations,
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

/// What can be run by itself.
#[derive(Debug, Clone, Copy)]
enum Part {
    Goals,
    Mixes,
    Ablations,
    Instructions,
}

impl Part {
    const ALL: &[Self] = &[
        Self::Goals,
        Self::Mixes,
        Self::Ablations,
        Self::Instructions,
    ];

    /// How long it takes about.
    fn seconds(self, options: &Options) -> f64 {
        match self {
            Self::Goals => {
                let wanted = goals::experiments().filter(|(name, _)| options.wants(name));
                wanted.map(|(_, seconds)| seconds).sum::<f64>() * options.effort
            }
            Self::Mixes => {
                let wanted = options.experiments();
                wanted.iter().map(|e| e.seconds).sum::<f64>() * options.effort
            }
            Self::Ablations => {
                ablation::SECONDS * options.effort + variants::seconds(options.effort)
            }
            Self::Instructions => {
                let wanted = instructions::paths().filter(|path| options.wants_path(*path));
                wanted.count() as f64 * instructions::SECONDS
            }
        }
    }

    fn run(self, options: &Options, progress: &Rc<Progress>) -> anyhow::Result<()> {
        match self {
            Self::Goals => goals(options, progress),
            Self::Mixes => mixes(options, progress),
            Self::Ablations => ablations(options, progress),
            Self::Instructions => instructions(options, progress),
        }
    }
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

    fn wants_path(&self, (peer, operation): (&str, &str)) -> bool {
        self.wants(&format!("{peer}: {operation}"))
    }

    fn experiments(&self) -> Vec<mixes::Experiment> {
        let mut experiments = mixes::experiments(self.scope());
        experiments.retain(|experiment| self.wants(&experiment.name()));
        experiments
    }

    fn runner(&self, part: &str, progress: &Rc<Progress>) -> anyhow::Result<Runner> {
        let raw = self.out.join(format!("{part}-raw.csv"));
        Runner::new(self.effort, &raw, progress)
    }

    /// The command that does this again.
    fn command(&self) -> String {
        let scope = if self.quick { "--quick" } else { "--full" };
        format!("cargo xtask bench {scope} --report")
    }
}

fn main() -> anyhow::Result<()> {
    let Arguments { options, command } = Arguments::parse();
    let parts = match &command {
        Some(Command::Path {
            peer,
            operation,
            calls,
        }) => return instructions::run(peer, operation, *calls),
        Some(Command::List) => {
            list(&options);
            return Ok(());
        }
        Some(Command::Report) => return report(&options),
        Some(Command::CheckAblations) => return variants::check(),
        Some(Command::Compare {
            before,
            after,
            beyond,
        }) => return compare::print(before, after, *beyond),
        Some(Command::Goals) => &[Part::Goals][..],
        Some(Command::Mixes) => &[Part::Mixes],
        Some(Command::Ablations) => &[Part::Ablations],
        Some(Command::Instructions) => &[Part::Instructions],
        None => Part::ALL,
    };
    ensure!(
        !options.report || (command.is_none() && options.filter.is_none()),
        "a report is of everything: without --filter, and without naming a part"
    );
    fs::create_dir_all(&options.out)?;
    let mut machine = Machine::look();
    if parts.iter().any(|part| matches!(part, Part::Mixes)) {
        machine.go = peers::go::build(&options.out)?;
        if machine.go.is_none() {
            eprintln!("There is no Go tool here: the peer in Go is left out.");
        }
    }
    eprintln!("{machine}");
    let noise = Noise::watch();
    let total = parts.iter().map(|part| part.seconds(&options)).sum();
    let progress = Rc::new(Progress::new(total));
    for part in parts {
        part.run(&options, &progress)?;
    }
    let took = progress.finish();
    let verdict = noise.to_string();
    eprintln!("{verdict}");
    let text = format!(
        "{machine}.\nThe run took {}. {verdict}\n",
        minutes(took.as_secs_f64())
    );
    fs::write(options.out.join(report::MACHINE), text)?;
    fs::write(options.out.join(report::COMMAND), options.command())?;
    if options.report {
        report(&options)?;
    }
    Ok(())
}

fn report(options: &Options) -> anyhow::Result<()> {
    let repository = || Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let root = options.root.clone().unwrap_or_else(repository);
    report::write(&root, &options.out)?;
    println!("BENCHMARKS.md, its charts and the goals in README.md are written.");
    Ok(())
}

fn list(options: &Options) {
    for (name, _) in goals::experiments().filter(|(name, _)| options.wants(name)) {
        println!("goals: {name}");
    }
    for experiment in options.experiments() {
        println!("mixes: {}", experiment.name());
    }
    for path in instructions::paths().filter(|path| options.wants_path(*path)) {
        println!("instructions: {}: {}", path.0, path.1);
    }
}

fn goals(options: &Options, progress: &Rc<Progress>) -> anyhow::Result<()> {
    let mut runner = options.runner("goals", progress)?;
    let rows = goals::run(&mut runner, |name| options.wants(name));
    let mut kept = csv::Writer::from_path(options.out.join(goals::ROWS))?;
    let mut text = format!(
        "{:<72} {:>8} {:>8} {:>16} {:>8}  {:<4} figures (medians)\n",
        "what", "goal", "median", "quartiles", "minima", "met",
    );
    for row in &rows {
        kept.serialize(row)?;
        let quartiles = format!("{} .. {}", significant(row.low), significant(row.high));
        writeln!(
            text,
            "{:<72} {:>8} {:>8} {quartiles:>16} {:>8}  {:<4} {}",
            row.what,
            row.demanded,
            significant(row.measured),
            significant(row.of_minima),
            if row.met { "yes" } else { "NO" },
            row.figures,
        )?;
    }
    let met = rows.iter().filter(|row| row.met).count();
    progress.print(&format!("{text}{met} of {} met", rows.len()));
    kept.flush()?;
    Ok(())
}

fn mixes(options: &Options, progress: &Rc<Progress>) -> anyhow::Result<()> {
    let experiments = options.experiments();
    let mut runner = options.runner("mixes", progress)?;
    mixes::run(&mut runner, &experiments, options.scope(), &options.out)
}

fn ablations(options: &Options, progress: &Rc<Progress>) -> anyhow::Result<()> {
    variants::check()?;
    let mut runner = options.runner("cells", progress)?;
    let mut lines = runner.experiment(ablation::SECONDS, ablation::cells);
    lines.extend(variants::measure(&options.out, options.effort, progress)?);
    let mut kept = csv::Writer::from_path(options.out.join(ablation::LINES))?;
    lines.iter().try_for_each(|line| kept.serialize(line))?;
    kept.flush()?;
    progress.print(ablation::markdown(&lines).trim_end());
    Ok(())
}

fn instructions(options: &Options, progress: &Rc<Progress>) -> anyhow::Result<()> {
    if !instructions::available() {
        progress.print("Instructions are not counted: there is no valgrind here.");
        return Ok(());
    }
    let mut text = format!(
        "{:<28} {:<28} {:>13} {:>8} {:>12}\n",
        "peer", "operation", "instructions", "locked", "allocations"
    );
    let mut table = "| peer | operation | instructions | locked ones | allocations |\n\
        |---|---|--:|--:|--:|\n"
        .to_owned();
    let count = instructions::Counter::new(&options.out)?;
    for path in instructions::paths().filter(|path| options.wants_path(*path)) {
        let (peer, operation) = path;
        let cost = count.path(peer, operation)?;
        progress.next(instructions::SECONDS);
        progress.step("counting instructions", 0.0);
        let [instructions, locked, allocations] =
            [cost.instructions, cost.locked, cost.allocations];
        writeln!(
            text,
            "{peer:<28} {operation:<28} {instructions:>13.0} {locked:>8.2} {allocations:>12.2}"
        )?;
        let peer = report::code(peer);
        writeln!(
            table,
            "| {peer} | {operation} | {instructions:.0} | {locked:.1} | {allocations:.1} |"
        )?;
    }
    progress.print(text.trim_end());
    fs::write(options.out.join(report::INSTRUCTIONS), table)?;
    Ok(())
}
