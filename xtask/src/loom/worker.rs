//! The processes that explore, and the programs that they are given.
//!
//! A model that fails takes its process along, so every processor has one process that is fed
//! model after model, and a new one after a failure.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::thread;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};

/// A program and how far it is explored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) program: String,
    #[serde(default)]
    pub(crate) alike: bool,
    #[serde(default)]
    pub(crate) preemptions: Option<usize>,
    #[serde(default)]
    pub(crate) limit: Option<usize>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) interval: Option<usize>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) log: bool,
}

impl Model {
    /// Whether it is the same but for how far it is explored.
    pub(crate) fn is_like(&self, other: &Model) -> bool {
        self.program == other.program
            && self.alike == other.alike
            && self.preemptions == other.preemptions
    }

    /// The bound in words.
    pub(crate) fn bound(&self) -> String {
        self.preemptions.map_or("none".into(), |n| n.to_string())
    }
}

/// What a process says about the model it explores.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum Event {
    Progress {
        executions: usize,
    },
    Done {
        executions: usize,
        outcomes: usize,
        seconds: f64,
        exhausted: bool,
        /// The places of the source that were passed, if the build notes them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        passed: Vec<u32>,
    },
    Failed {
        executions: usize,
        seconds: f64,
        why: String,
        trace: Vec<String>,
    },
}

/// A running process.
pub(crate) struct Worker {
    child: Child,
    jobs: Option<ChildStdin>,
    events: BufReader<ChildStdout>,
}

impl Worker {
    pub(crate) fn start(binary: &Path, env: &[(&str, String)]) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} does not start", binary.display()))?;
        let jobs = child.stdin.take();
        let events = BufReader::new(child.stdout.take().expect("piped"));
        Ok(Worker {
            child,
            jobs,
            events,
        })
    }

    /// Explores a model; the last event is not a progress. After a failure the process is gone.
    pub(crate) fn explore(
        &mut self,
        model: &Model,
        mut progress: impl FnMut(usize),
    ) -> anyhow::Result<Event> {
        let jobs = self
            .jobs
            .as_mut()
            .expect("open until the worker is dropped");
        // A process that cannot be written to says why on the way out.
        let _ = writeln!(jobs, "{}", serde_json::to_string(model)?);
        let mut executions = 0;
        loop {
            let mut line = String::new();
            if self.events.read_line(&mut line)? == 0 {
                let status = self.child.wait()?;
                let why = format!("the process ended: {status}");
                return Ok(Event::Failed {
                    executions,
                    seconds: 0.0,
                    why,
                    trace: Vec::new(),
                });
            }
            // loom's log, if it was asked for, comes between the events.
            match serde_json::from_str(&line) {
                Ok(Event::Progress { executions: n }) => {
                    executions = n;
                    progress(n);
                }
                Ok(event) => return Ok(event),
                Err(_) => print!("{line}"),
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The models of a set.
pub(crate) fn list(binary: &Path, set: &str) -> anyhow::Result<Vec<Model>> {
    let output = Command::new(binary).arg(set).output()?;
    ensure!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let lines = String::from_utf8(output.stdout)?;
    lines
        .lines()
        .map(|line| Ok(serde_json::from_str(line)?))
        .collect()
}

/// What comes from the pool.
pub(crate) enum Report {
    Started(usize, Model),
    Progress(usize, usize),
    Ended(Model, Event),
    /// There was no time for it.
    LeftOut,
    Broken(anyhow::Error),
}

/// Explores all models with as many processes as given; `report` hears from each by its number.
/// `share` says of each model how long it may take, or that it is left out.
pub(crate) fn explore_all(
    binary: &Path,
    models: Vec<Model>,
    processes: usize,
    share: impl Fn(Model) -> Option<Model> + Sync,
    mut report: impl FnMut(Report),
) {
    let open = Mutex::new(VecDeque::from(models));
    let next = || {
        let mut open = open.lock().expect("no panic under it");
        open.pop_front().map(&share)
    };
    let (sender, reports) = mpsc::channel();
    thread::scope(|scope| {
        for number in 0..processes {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                let say = |report| sender.send(report).expect("heard until the end");
                let mut worker = None;
                while let Some(model) = next() {
                    let Some(model) = model else {
                        say(Report::LeftOut);
                        continue;
                    };
                    say(Report::Started(number, model.clone()));
                    let ended = (|| {
                        if worker.is_none() {
                            worker = Some(Worker::start(binary, &[])?);
                        }
                        let running = worker.as_mut().expect("just started");
                        running.explore(&model, |n| say(Report::Progress(number, n)))
                    })();
                    match ended {
                        Ok(event) => {
                            if matches!(event, Event::Failed { .. }) {
                                worker = None;
                            }
                            say(Report::Ended(model, event));
                        }
                        Err(error) => return say(Report::Broken(error)),
                    }
                }
            });
        }
        drop(sender);
        reports.iter().for_each(&mut report);
    });
}
