//! The one-lock design in Go: a process of its own that takes its turn among the peers.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, ensure};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use crate::stats::histogram;

/// Its name in tables and charts.
pub const NAME: &str = "one lock (Go)";

/// The running peer.
#[derive(Debug)]
pub struct Go {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What it measured.
#[derive(Debug, Default)]
pub struct Answer {
    /// Single figures by name.
    pub figures: HashMap<String, f64>,
    /// Latencies by operation.
    pub latencies: HashMap<String, Histogram<u64>>,
}

static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Builds the peer into `directory`, if there is a Go tool, and gives the tool's version; `GO` names
/// another than the one that is found first.
pub fn build(directory: &Path) -> anyhow::Result<Option<String>> {
    let tool = std::env::var_os("GO").unwrap_or_else(|| "go".into());
    let version = Command::new(&tool).arg("version").output();
    let Some(version) = version.ok().filter(|out| out.status.success()) else {
        let _ = PROGRAM.set(None);
        return Ok(None);
    };
    let program = std::path::absolute(directory)?.join("one-lock-go");
    let status = Command::new(&tool)
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("go"))
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "-mod=mod")
        .status()?;
    ensure!(status.success(), "the Go peer could not be built");
    let _ = PROGRAM.set(Some(program));
    let version = String::from_utf8_lossy(&version.stdout);
    Ok(version.split_whitespace().nth(2).map(str::to_owned))
}

/// A fresh process of the peer, if it was built.
pub fn start() -> Option<Mutex<Go>> {
    let program = PROGRAM.get()?.as_ref()?;
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a program that was just built can be started");
    let orders = child.stdin.take().expect("piped");
    let answers = BufReader::new(child.stdout.take().expect("piped"));
    Some(Mutex::new(Go {
        child,
        orders,
        answers,
    }))
}

impl Go {
    /// Has it do something for a moment.
    pub fn ask(
        &mut self,
        what: &str,
        size: usize,
        sets: f64,
        pick: &str,
        length: Duration,
    ) -> anyhow::Result<Answer> {
        writeln!(
            self.orders,
            "{what} {size} {sets} {pick} {}",
            length.as_millis()
        )?;
        let mut answer = Answer::default();
        loop {
            let mut line = String::new();
            ensure!(self.answers.read_line(&mut line)? > 0, "the Go peer ended");
            let mut words = line.split_whitespace();
            let name = words.next().context("an empty line")?;
            if name == "end" {
                return Ok(answer);
            }
            let mut times = histogram();
            for word in words {
                match word.split_once(':') {
                    Some((nanos, count)) => {
                        times.saturating_record_n(nanos.parse()?, count.parse()?)
                    }
                    None => _ = answer.figures.insert(name.to_owned(), word.parse()?),
                }
            }
            if !times.is_empty() {
                answer.latencies.insert(name.to_owned(), times);
            }
        }
    }
}

impl Drop for Go {
    fn drop(&mut self) {
        // It has nothing to lose.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
