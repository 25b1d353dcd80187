//! `cargo xtask loom`: small programs, explored to their end.

mod budget;
mod journal;
mod mutants;
mod page;
mod report;
mod sites;
mod steps;
mod worker;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use anyhow::ensure;

use crate::Verdict;
use crate::cargo::{Build, processors, root, target_dir};
use budget::Budget;
use journal::Journal;
use report::{Screen, Tally};
use worker::{Event, Model, Report, Worker, explore_all, list};

/// Explore small programs exhaustively under loom.
///
/// Without a flag: the quick set, a few minutes on two processors. Every execution is judged by a
/// sequential specification; a program that fails is printed with its interleaving and the command
/// that shows every step of it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Everything: all pairs, all programs of two calls against one, the real collector at three
    /// preemptions; of each program the first 50,000 executions. A day, or as `--minutes` says.
    #[arg(long)]
    deep: bool,
    /// Weaken every ordering, remove every fence and every step of the protocol, one at a time, and
    /// see which model notices.
    #[arg(long)]
    mutants: bool,
    /// Only programs (or mutants) whose text contains this; may be repeated.
    #[arg(long, value_name = "TEXT")]
    filter: Vec<String>,
    /// One of the sets of programs (see `--list`); may be repeated.
    #[arg(long, value_name = "NAME")]
    set: Vec<String>,
    /// One program, as its text.
    #[arg(long, value_name = "PROGRAM", conflicts_with_all = ["deep", "set", "mutants"])]
    program: Option<String>,
    /// With `--program`: find the failing execution, then run it alone with every step logged.
    #[arg(long, requires = "program")]
    trace: bool,
    /// Explore on the real crossbeam-epoch, not the stand-in that never frees.
    #[arg(long)]
    epoch: bool,
    /// At most this many preemptions, whatever the set says; `none` for no bound.
    #[arg(long, value_name = "N", value_parser = bound)]
    preemptions: Option<Bound>,
    /// Give up on a program after so long.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// As many processes at once.
    #[arg(long, value_name = "N", default_value_t = processors())]
    jobs: usize,
    /// Only every n-th program.
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// One JSON object per model, nothing else.
    #[arg(long)]
    json: bool,
    /// Keep what came of the run, for the page of the docs; each program or mutant as it ends.
    #[arg(long)]
    record: bool,
    /// Leave out what an earlier run with `--record` of the same sources has done.
    #[arg(long)]
    resume: bool,
    /// Be done in about so long: each program gets a share of the time that is left.
    #[arg(long, value_name = "MINUTES", conflicts_with = "mutants")]
    minutes: Option<f64>,
    /// Explore so many of each set, picked at random, and say how long all of them would take.
    #[arg(long, value_name = "N", conflicts_with_all = ["mutants", "record", "minutes"])]
    estimate: Option<usize>,
    /// Write the tables of the docs from what was kept.
    #[arg(long, conflicts_with_all = ["deep", "mutants", "set", "program", "record"])]
    page: bool,
    /// With `--page`: write nothing, but say whether the tables are as they would be written.
    #[arg(long, requires = "page")]
    check: bool,
    /// Give up on a program after so many executions, whatever the set says.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// List the programs that would be explored.
    #[arg(long)]
    list: bool,
}

#[derive(Clone, Copy)]
struct Bound(Option<usize>);

fn bound(text: &str) -> Result<Bound, std::num::ParseIntError> {
    if text == "none" {
        Ok(Bound(None))
    } else {
        text.parse().map(|n| Bound(Some(n)))
    }
}

/// How the crate is built for loom.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// Nothing is freed during an execution.
    StandIn,
    /// The real crossbeam-epoch.
    Epoch,
}

impl Mode {
    fn build(self) -> anyhow::Result<PathBuf> {
        let (cfgs, target): (&[&str], _) = match self {
            Mode::StandIn => (&["podcache_loom"], "loom"),
            Mode::Epoch => (&["podcache_loom", "crossbeam_loom"], "loom-epoch"),
        };
        let workspace = &root().join("loom-tests");
        Build {
            workspace,
            bin: "loom",
            cfgs,
            features: &[],
            target,
        }
        .run()
    }

    fn name(self) -> &'static str {
        match self {
            Mode::StandIn => "stand-in",
            Mode::Epoch => "epoch",
        }
    }
}

/// What is explored without `--set`.
const QUICK: &[(&str, Mode)] = &[("quick", Mode::StandIn), ("quick-freeing", Mode::Epoch)];
const DEEP: &[(&str, Mode)] = &[
    ("chosen", Mode::StandIn),
    ("resizing", Mode::StandIn),
    ("freeing", Mode::Epoch),
    ("index", Mode::StandIn),
    ("index-freeing", Mode::Epoch),
    ("pairs", Mode::StandIn),
    ("pairs-two-keys", Mode::StandIn),
    ("two-and-one", Mode::StandIn),
];

/// How much longer than another a program of a set may take of the time that there is.
fn weight(set: &str) -> f64 {
    match set {
        "index" | "index-freeing" => 100.0,
        "chosen" | "freeing" => 40.0,
        "resizing" => 20.0,
        "pairs" | "pairs-two-keys" => 2.0,
        _ => 1.0,
    }
}

/// Where the deep run gives up on a program, unless `--limit` says otherwise.
const DEEP_LIMIT: usize = 50_000;

pub(crate) fn run(args: Args) -> Verdict {
    ensure!(
        args.every > 0 && args.jobs > 0,
        "zero of nothing is nothing"
    );
    let whole = args.filter.is_empty() && args.set.is_empty() && args.every == 1;
    ensure!(
        whole || args.mutants || !args.record,
        "what is kept of a run is kept of all of it: no --record with --filter, --set or --every"
    );
    if args.page {
        return page::write(&mutants::copy("page")?, args.check);
    }
    if args.mutants {
        return mutants::run(&args);
    }
    if let Some(program) = &args.program {
        return one(&args, program);
    }
    let named: Vec<(&str, Mode)> = args
        .set
        .iter()
        .map(|set| (set.as_str(), args.mode(set)))
        .collect();
    let sets = match (named.is_empty(), args.deep) {
        (false, _) => &named[..],
        (true, true) => DEEP,
        (true, false) => QUICK,
    };
    let mut runs = Vec::new();
    for (set, mode) in sets {
        let binary = mode.build()?;
        let mut models = args.choose(list(&binary, set)?);
        if args.deep {
            models
                .iter_mut()
                .for_each(|model| _ = model.limit.get_or_insert(DEEP_LIMIT));
            // So that the part that is done says how long the rest takes.
            shuffle(&mut models);
        }
        runs.push((*set, *mode, binary, models));
    }
    if args.list {
        for model in runs.iter().flat_map(|(.., models)| models) {
            println!("{} [{}]", model.program, model.bound());
        }
        return Ok(true);
    }
    if let Some(n) = args.estimate {
        return estimate(&args, runs, n);
    }
    let name = if args.deep { "deep" } else { "quick" };
    let weights = runs
        .iter()
        .map(|(set, _, _, models)| weight(set) * models.len() as f64);
    let budget = Budget::new(args.minutes, weights.sum(), args.jobs);
    let mut all_right = true;
    let mut tallies: Vec<Tally> = Vec::new();
    for (set, mode, binary, models) in runs {
        let mut tally = Tally::new(set, mode.name());
        let mut screen = Screen::new(set, models.len(), args.jobs, args.json);
        let mut journal = args
            .record
            .then(|| {
                Journal::open(
                    &format!("{name}-{set}-{}", mode.name()),
                    &binary,
                    args.resume,
                )
            })
            .transpose()?;
        let mut broken = None;
        let mut left = Vec::new();
        for model in models {
            match journal.as_ref().and_then(|journal| journal.of(&model)) {
                Some(event) => {
                    budget.leave_out(weight(set));
                    screen.show(Report::Ended(model, event), &mut tally, &mut broken);
                }
                None => left.push(model),
            }
        }
        let share = |model: Model| budget.share(model, weight(set));
        explore_all(&binary, left, args.jobs, share, |report| {
            if let (Some(journal), Report::Ended(model, event)) = (&mut journal, &report)
                && let Err(error) = journal.note(model, event)
            {
                broken = Some(error);
            }
            screen.show(report, &mut tally, &mut broken);
        });
        screen.clear();
        if let Some(error) = broken {
            return Err(error);
        }
        all_right &= tally.failed.is_empty();
        if !args.json {
            tally.print_failures(mode == Mode::Epoch);
        }
        tallies.push(tally);
        if args.record {
            page::keep(name, &tallies)?;
        }
    }
    if !args.json {
        println!("{}", report::table(&tallies));
    }
    Ok(all_right)
}

/// In an order that looks like none and is always the same.
fn shuffle(models: &mut [Model]) {
    models.sort_by_cached_key(|model| {
        let mut hasher = DefaultHasher::new();
        (&model.program, model.alike, model.preemptions).hash(&mut hasher);
        hasher.finish()
    });
}

/// Explores `n` models of each set, and says how long all of them would take.
fn estimate(args: &Args, runs: Vec<(&str, Mode, PathBuf, Vec<Model>)>, n: usize) -> Verdict {
    let mut total = 0.0;
    let mut all = 0;
    for (set, mode, binary, mut models) in runs {
        shuffle(&mut models);
        let count = models.len();
        models.truncate(n);
        let mut tally = Tally::new(set, mode.name());
        let mut screen = Screen::new(set, models.len(), args.jobs, args.json);
        let mut broken = None;
        explore_all(&binary, models, args.jobs, Some, |report| {
            screen.show(report, &mut tally, &mut broken);
        });
        screen.clear();
        if let Some(error) = broken {
            return Err(error);
        }
        tally.print_failures(mode == Mode::Epoch);
        let each = tally.explored / tally.models.max(1) as f64;
        println!(
            "{set}: {count} programs; of {} picked at random, {} not to the end, {} executions and {each:.2} s each: {:.0} minutes of a processor for all",
            tally.models,
            tally.unfinished,
            tally.executions / tally.models.max(1),
            each * count as f64 / 60.0,
        );
        total += each * count as f64;
        all += count;
    }
    println!(
        "{all} programs: {:.0} minutes of a processor, {:.0} minutes with {} processes",
        total / 60.0,
        total / 60.0 / args.jobs as f64,
        args.jobs
    );
    Ok(true)
}

impl Args {
    fn mode(&self, set: &str) -> Mode {
        if self.epoch || set.ends_with("freeing") {
            Mode::Epoch
        } else {
            Mode::StandIn
        }
    }

    /// Whether a text passes the filter.
    fn means(&self, text: &str) -> bool {
        self.filter.is_empty() || self.filter.iter().any(|part| text.contains(part))
    }

    /// Every n-th, as they are asked for.
    fn choose_some(&self, models: Vec<Model>) -> Vec<Model> {
        let some = models.into_iter().step_by(self.every);
        some.map(|model| self.bounded(model)).collect()
    }

    /// Those that are asked for, as they are asked for.
    fn choose(&self, models: Vec<Model>) -> Vec<Model> {
        let meant = |model: &Model| self.means(&model.program);
        let chosen = models.into_iter().filter(meant).step_by(self.every);
        chosen.map(|model| self.bounded(model)).collect()
    }

    fn bounded(&self, mut model: Model) -> Model {
        if let Some(Bound(bound)) = self.preemptions {
            model.preemptions = bound;
        }
        model.seconds = self.seconds.or(model.seconds);
        model.limit = self.limit.or(model.limit);
        model
    }
}

/// One program; if it fails and `--trace` was given, its failing execution again, step by step.
fn one(args: &Args, program: &str) -> Verdict {
    let binary = if args.epoch {
        Mode::Epoch
    } else {
        Mode::StandIn
    }
    .build()?;
    let model = args.bounded(Model {
        program: program.into(),
        alike: false,
        preemptions: None,
        limit: None,
        seconds: None,
        checkpoint: None,
        interval: None,
        log: false,
    });
    let explore = |model: &Model| Worker::start(&binary, &[])?.explore(model, |_| ());
    let event = explore(&model)?;
    let Event::Failed {
        executions,
        ref why,
        ..
    } = event
    else {
        report::print_event(&model, &event, args.json)?;
        return Ok(true);
    };
    if args.trace {
        // The exploration is the same every time: loom's note of how far it is, made just before
        // the execution that fails, is where the second run begins.
        let path = target_dir().join("loom").join("checkpoint.json");
        let _ = std::fs::remove_file(&path);
        let checkpoint = Some(path.to_string_lossy().into_owned());
        let noting = Model {
            checkpoint,
            interval: Some(executions),
            ..model.clone()
        };
        explore(&noting)?;
        let logging = [("LOOM_LOG", "trace".to_string())];
        Worker::start(&binary, &logging)?.explore(
            &Model {
                log: true,
                ..noting
            },
            |_| (),
        )?;
    }
    eprintln!("{why}");
    report::print_event(&model, &event, args.json)?;
    Ok(false)
}
