//! Explores programs under loom: one job per line on stdin, events as JSON lines on stdout.
//!
//! A failed model cannot be left behind cleanly (a panic within loom leaves objects that panic
//! again), so the process ends with the first one, and whoever feeds it starts another.

#[cfg(not(podcache_loom))]
compile_error!(
    "these are loom models: build with RUSTFLAGS=\"--cfg podcache_loom\", or run `cargo xtask loom`"
);

use std::collections::HashSet;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::process;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use podcache_loom_tests::execute::{execute, trace};
use podcache_loom_tests::generate;
use podcache_loom_tests::index;
use podcache_loom_tests::judge::History;
use podcache_loom_tests::program::{self, Program};
use podcache_loom_tests::subject::{Spread, Status};
use serde::{Deserialize, Serialize};

/// A program to explore.
#[derive(Deserialize)]
struct Job {
    program: String,
    /// Whether all keys hash alike.
    #[serde(default)]
    alike: bool,
    /// The most preemptions; none: no bound.
    #[serde(default)]
    preemptions: Option<usize>,
    /// Give up after so long.
    #[serde(default)]
    seconds: Option<f64>,
    /// Give up after so many executions.
    #[serde(default)]
    limit: Option<usize>,
    /// Where loom notes how far it is, and from where it goes on.
    #[serde(default)]
    checkpoint: Option<PathBuf>,
    /// After how many executions it does.
    #[serde(default)]
    interval: Option<usize>,
    /// Log every step of every execution.
    #[serde(default)]
    log: bool,
}

#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event {
    Progress {
        executions: usize,
    },
    Done {
        executions: usize,
        outcomes: usize,
        seconds: f64,
        exhausted: bool,
        /// The places of the source that were passed, in a build that notes them.
        passed: Vec<u32>,
    },
    Failed {
        executions: usize,
        seconds: f64,
        why: String,
        trace: Vec<String>,
    },
}

static EXECUTIONS: AtomicUsize = AtomicUsize::new(0);
static START: Mutex<Option<Instant>> = Mutex::new(None);

fn say(event: &Event) {
    let line = serde_json::to_string(event).expect("plain data");
    let mut out = io::stdout().lock();
    // If nobody listens any more there is nobody to tell.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn seconds() -> f64 {
    START
        .lock()
        .expect("never held by a panic")
        .map_or(0.0, |start| start.elapsed().as_secs_f64())
}

fn fail(why: String) -> ! {
    say(&Event::Failed {
        executions: EXECUTIONS.load(Relaxed),
        seconds: seconds(),
        why,
        trace: trace(),
    });
    process::exit(1);
}

#[cfg(podcache_mutants)]
fn passed() -> Vec<u32> {
    let mut passed = podcache::mutant::passed();
    passed.extend(podcache_loom_tests::mutant::passed());
    passed
}

#[cfg(not(podcache_mutants))]
fn passed() -> Vec<u32> {
    Vec::new()
}

/// What one execution does.
enum Subject {
    /// A program on the cache, judged.
    Program(Program),
    /// A model of the index, which judges itself.
    Index(fn()),
}

impl FromStr for Subject {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(name) = text.strip_prefix("index: ") {
            let model = index::model(name).ok_or_else(|| format!("{name:?} is no model"))?;
            return Ok(Subject::Index(model.execute));
        }
        text.parse()
            .map(Subject::Program)
            .map_err(|error: program::ParseError| error.to_string())
    }
}

fn explore(job: &Job) {
    let subject: Subject = match job.program.parse() {
        Ok(subject) => subject,
        Err(why) => fail(why),
    };
    let spread = if job.alike {
        Spread::Alike
    } else {
        Spread::Apart
    };
    EXECUTIONS.store(0, Relaxed);
    let start = Instant::now();
    *START.lock().expect("never held by a panic") = Some(start);

    let mut builder = loom::model::Builder::new();
    builder.max_branches = 20_000;
    builder.preemption_bound = job.preemptions;
    builder.max_duration = job.seconds.map(Duration::from_secs_f64);
    builder.checkpoint_file = job.checkpoint.clone();
    builder.max_permutations = job.limit;
    // Also how often loom looks whether it is to give up.
    let often = if job.seconds.is_some() { 50 } else { 250 };
    builder.checkpoint_interval = job.interval.unwrap_or(often);
    builder.location = true;
    builder.log = job.log;

    let explained: Arc<Mutex<HashSet<History>>> = Arc::default();
    let seen = Arc::clone(&explained);
    let told = Mutex::new(start);
    builder.check(move || {
        let n = EXECUTIONS.fetch_add(1, Relaxed) + 1;
        // With real reclamation the last values of an execution go after its end.
        assert_eq!(
            Status::alive(),
            0,
            "values leaked in the execution before this"
        );
        match &subject {
            Subject::Index(execute) => execute(),
            Subject::Program(program) => {
                let history = execute(program, spread);
                let mut seen = seen.lock().expect("loom threads share one system thread");
                if !seen.contains(&history) {
                    if !history.is_explained() {
                        fail(format!("no order explains this:\n{history}"));
                    }
                    seen.insert(history);
                }
            }
        }
        if n.is_multiple_of(64) {
            let mut told = told.lock().expect("loom threads share one system thread");
            if told.elapsed() > Duration::from_millis(200) {
                *told = Instant::now();
                say(&Event::Progress { executions: n });
            }
        }
    });
    if Status::alive() != 0 {
        fail("values leaked in the last execution".into());
    }
    let executions = EXECUTIONS.load(Relaxed);
    let outcomes = explained.lock().expect("no panic").len();
    let seconds = seconds();
    // loom gives up without a word.
    let exhausted = job.seconds.is_none_or(|limit| seconds < limit)
        && job.limit.is_none_or(|limit| executions + 1 < limit);
    say(&Event::Done {
        executions,
        outcomes,
        seconds,
        exhausted,
        passed: passed(),
    });
}

fn main() {
    if let Some(set) = std::env::args().nth(1) {
        match generate::listed(&set) {
            Some(models) => {
                for model in &models {
                    println!("{}", serde_json::to_string(model).expect("plain data"));
                }
            }
            None => {
                eprintln!("no set of programs is called {set:?}");
                process::exit(2);
            }
        }
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let payload = panic.payload();
        let message = payload.downcast_ref::<&str>().copied();
        let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        let message = message.unwrap_or("a panic without a message");
        let place = panic
            .location()
            .map_or(String::new(), |place| format!(" ({place})"));
        fail(format!("{message}{place}"));
    }));
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        match serde_json::from_str(&line) {
            Ok(job) => explore(&job),
            Err(error) => fail(format!("not a job: {error}: {line}")),
        }
    }
}
