//! Runs random programs under shuttle's random schedulers.
//!
//! `shuttle SEED PROGRAMS SCHEDULES THREADS CALLS`: so many programs from the seed on, each under so
//! many random schedules and as many of PCT's, which change threads seldom but at the worst moments.
//! One JSON line per program. A program that fails is named with the schedule that fails it.

#[cfg(not(podcache_shuttle))]
compile_error!("these are shuttle's models: run `cargo xtask shuttle`");

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use podcache_loom_tests::execute::{execute, trace};
use podcache_loom_tests::generate;
use podcache_loom_tests::judge::History;
use podcache_loom_tests::program::Program;
use podcache_loom_tests::subject::Spread;
use serde::Serialize;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, FailurePersistence, Runner};

#[derive(Serialize)]
struct Line {
    seed: u64,
    program: String,
    executions: usize,
    outcomes: usize,
    /// Why it failed, and what had happened by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Failure>,
}

#[derive(Serialize)]
struct Failure {
    scheduler: &'static str,
    why: String,
    trace: Vec<String>,
}

/// Runs a program under a scheduler. What it returned is judged once per different outcome.
fn run(
    program: &Program,
    scheduler: impl Scheduler + 'static,
    seen: &Arc<Mutex<HashSet<History>>>,
    seed: u64,
) -> Result<usize, String> {
    let mut config = Config::new();
    config.failure_persistence = FailurePersistence::None;
    let spread = if seed.is_multiple_of(4) {
        Spread::Alike
    } else {
        Spread::Apart
    };
    let (program, seen) = (program.clone(), Arc::clone(seen));
    let runner = Runner::new(scheduler, config);
    catch_unwind(AssertUnwindSafe(|| {
        runner.run(move || {
            let history = execute(&program, spread);
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            if !seen.contains(&history) {
                assert!(history.is_explained(), "no order explains this:\n{history}");
                seen.insert(history);
            }
        })
    }))
    .map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        message
            .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_string()))
            .unwrap_or_default()
    })
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let &[first, programs, schedules, threads, calls] = &numbers[..] else {
        eprintln!("usage: shuttle SEED PROGRAMS SCHEDULES THREADS CALLS");
        std::process::exit(2);
    };
    // The failures are told in the lines; shuttle's own words about them come as panics.
    std::panic::set_hook(Box::new(|_| ()));
    let mut failed = false;
    for seed in first..first + programs {
        let program = generate::random(seed, threads as usize, calls as usize);
        let seen = Arc::default();
        let mut line = Line {
            seed,
            program: program.to_string(),
            executions: 0,
            outcomes: 0,
            failure: None,
        };
        let schedules = schedules as usize;
        let random = RandomScheduler::new_from_seed(seed, schedules);
        let pct = PctScheduler::new_from_seed(seed, 3, schedules);
        let results = [
            ("random", run(&program, random, &seen, seed)),
            ("pct", run(&program, pct, &seen, seed)),
        ];
        for (scheduler, result) in results {
            match result {
                Ok(executions) => line.executions += executions,
                Err(why) => {
                    line.failure = Some(Failure {
                        scheduler,
                        why,
                        trace: trace(),
                    })
                }
            }
        }
        line.outcomes = seen.lock().unwrap_or_else(PoisonError::into_inner).len();
        failed |= line.failure.is_some();
        println!("{}", serde_json::to_string(&line).expect("plain data"));
        if failed {
            // What a failed execution left behind would be counted in the next.
            break;
        }
    }
    std::process::exit(i32::from(failed));
}
