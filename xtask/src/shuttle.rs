//! `cargo xtask shuttle`: longer programs under random schedules.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Deserialize;

use crate::Verdict;
use crate::cargo::{Build, processors, root};

/// Run longer programs under shuttle's random schedulers.
///
/// What loom cannot reach: four to six threads, twenty calls. Every seed is a program; each is run
/// under random schedules and under PCT's, and judged by the same specification. All accesses count
/// as sequentially consistent here, so this looks for mistakes of the protocol, not of the orderings.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// So many programs.
    #[arg(long, default_value_t = 2_000)]
    programs: u64,
    /// So many schedules of each kind for a program.
    #[arg(long, default_value_t = 100)]
    schedules: u64,
    /// So many threads.
    #[arg(long, default_value_t = 5)]
    threads: u64,
    /// About so many calls a thread.
    #[arg(long, default_value_t = 4)]
    calls: u64,
    /// As many processes at once.
    #[arg(long, value_name = "N", default_value_t = processors())]
    jobs: usize,
    /// One JSON object per program, nothing else.
    #[arg(long)]
    json: bool,
}

#[derive(Deserialize)]
struct Line {
    program: String,
    seed: u64,
    executions: usize,
    outcomes: usize,
    failure: Option<Failure>,
}

#[derive(Deserialize)]
struct Failure {
    scheduler: String,
    why: String,
    trace: Vec<String>,
}

pub(crate) fn run(args: Args) -> Verdict {
    let binary = Build {
        workspace: &root().join("loom-tests"),
        bin: "shuttle",
        cfgs: &["podcache_loom", "podcache_shuttle"],
        features: &["shuttle"],
        target: "shuttle",
    }
    .run()?;
    let bar = ProgressBar::new(args.programs).with_style(
        ProgressStyle::with_template(
            "{bar:30} {pos}/{len} programs, {msg} [{elapsed}, {eta} to go]",
        )
        .expect("a template that is written here"),
    );
    if args.json {
        bar.set_draw_target(indicatif::ProgressDrawTarget::hidden());
    }
    let jobs = (args.jobs.max(1) as u64).min(args.programs.max(1));
    let share = args.programs.div_ceil(jobs);
    let results: Vec<anyhow::Result<(usize, usize, bool)>> = std::thread::scope(|scope| {
        let part = |job: u64| {
            let (binary, bar, args) = (&binary, &bar, &args);
            scope.spawn(move || {
                let first = args.seed + job * share;
                let programs = share.min((args.seed + args.programs).saturating_sub(first));
                let numbers = [first, programs, args.schedules, args.threads, args.calls];
                let mut child = Command::new(binary)
                    .args(numbers.map(|n| n.to_string()))
                    // Its warning about orderings is said above.
                    .env("SHUTTLE_SILENCE_WARNINGS", "1")
                    .stdout(Stdio::piped())
                    .spawn()
                    .context("shuttle's binary does not start")?;
                let (mut executions, mut outcomes) = (0, 0);
                for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
                    let line = line?;
                    if args.json {
                        println!("{line}");
                    }
                    let Ok(line) = serde_json::from_str::<Line>(&line) else {
                        continue;
                    };
                    executions += line.executions;
                    outcomes += line.outcomes;
                    bar.inc(1);
                    bar.set_message(format!("seed {}", line.seed));
                    if let Some(failure) = line.failure.filter(|_| !args.json) {
                        bar.suspend(|| {
                            println!("failed: seed {}: {}", line.seed, line.program);
                            println!("under {}: {}", failure.scheduler, failure.why.trim_end());
                            failure.trace.iter().for_each(|line| println!("    {line}"));
                        });
                    }
                }
                Ok((executions, outcomes, child.wait()?.success()))
            })
        };
        let parts: Vec<_> = (0..jobs).map(part).collect();
        parts
            .into_iter()
            .map(|part| part.join().expect("it does not panic"))
            .collect()
    });
    bar.finish_and_clear();
    let (mut executions, mut outcomes, mut right) = (0, 0, true);
    for result in results {
        let (e, o, r) = result?;
        executions += e;
        outcomes += o;
        right &= r;
    }
    if !args.json {
        println!(
            "{} programs of {} threads with {} calls each: {executions} schedules, {outcomes} different histories, {}",
            args.programs,
            args.threads,
            args.calls,
            if right { "all explained" } else { "failed" }
        );
    }
    Ok(right)
}
