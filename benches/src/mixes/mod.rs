//! The mixes: what users do with such a cache, by every peer in turn.

mod churn;
mod closed;
pub mod day;
mod memory;
mod paced;
mod storm;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::harness::{Case, Runner, Samples};
use crate::stats::{self, histogram};

/// How much is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A few minutes: enough to see the order of the peers.
    Quick,
    /// All thread counts and sizes.
    Full,
}

impl Scope {
    /// Picks by scope.
    pub fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    fn rounds(self) -> usize {
        self.pick(5, 7)
    }
}

/// One experiment: a mix in one size.
pub struct Experiment {
    /// The mix, by which charts and tables are made.
    pub mix: &'static str,
    /// What `size` counts.
    pub axis: &'static str,
    /// Threads, waiters, pods or keys.
    pub size: usize,
    /// How long it takes about.
    pub seconds: f64,
    run: Box<dyn Fn(&mut Bench<'_>)>,
}

impl std::fmt::Debug for Experiment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name())
    }
}

impl Experiment {
    fn new(
        mix: &'static str,
        axis: &'static str,
        size: usize,
        seconds: f64,
        run: impl Fn(&mut Bench<'_>) + 'static,
    ) -> Self {
        Self {
            mix,
            axis,
            size,
            seconds,
            run: Box::new(run),
        }
    }

    /// What `--filter` looks at.
    pub fn name(&self) -> String {
        format!("{}, {} {}", self.mix, self.size, self.axis)
    }
}

/// All experiments.
pub fn experiments(scope: Scope) -> Vec<Experiment> {
    [
        closed::experiments(scope),
        paced::experiments(scope),
        churn::experiments(scope),
        storm::experiments(scope),
        day::experiments(scope),
        memory::experiments(scope),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// As many threads as this are a crowd on any machine.
const CROWD: usize = 64;

/// Latencies by kind of operation.
type ByOperation = BTreeMap<&'static str, Histogram<u64>>;

/// What an experiment runs with.
#[derive(Debug)]
pub struct Bench<'a> {
    runner: &'a mut Runner,
    tables: &'a mut Tables,
    scope: Scope,
    mix: &'static str,
    axis: &'static str,
    size: usize,
}

impl Bench<'_> {
    fn experiment(&self) -> String {
        format!("{}, {} {}", self.mix, self.size, self.axis)
    }

    /// Runs cases in turn; each notes latencies in the place that it is given.
    fn run<'c>(&mut self, figures: &'static [&'static str], subjects: Vec<Subject<'c>>) -> Samples {
        // With so many threads a slice is long by itself: each waits for its turn to begin and to end.
        let crowded = matches!(self.axis, "threads" | "readers") && self.size >= CROWD;
        let rounds = if crowded { 4 } else { self.scope.rounds() };
        self.run_rounds(rounds, figures, subjects)
    }

    fn run_rounds<'c>(
        &mut self,
        rounds: usize,
        figures: &'static [&'static str],
        subjects: Vec<Subject<'c>>,
    ) -> Samples {
        let latencies: Vec<_> = subjects
            .iter()
            .map(|_| RefCell::<ByOperation>::default())
            .collect();
        let names: Vec<_> = subjects.iter().map(|subject| subject.name).collect();
        let cases = subjects
            .into_iter()
            .zip(&latencies)
            .map(|(mut subject, latencies)| {
                let slice = move || (subject.slice)(&mut latencies.borrow_mut());
                Case::new(subject.name, figures, slice)
            })
            .collect();
        let experiment = self.experiment();
        let samples = self.runner.interleave(&experiment, rounds, cases);
        for (peer, latencies) in names.iter().zip(latencies) {
            for figure in figures {
                self.figure(peer, figure, &samples.of(peer, figure));
            }
            for (operation, times) in latencies.into_inner() {
                self.latency(peer, operation, &times);
            }
        }
        samples
    }

    /// Writes down what a figure was over the rounds.
    fn figure(&mut self, peer: &str, figure: &str, values: &[f64]) {
        let row = [
            self.mix.to_owned(),
            self.axis.to_owned(),
            self.size.to_string(),
            peer.to_owned(),
            figure.to_owned(),
            format!("{:.2}", stats::median(values)),
            format!("{:.2}", stats::quantile(values, 0.25)),
            format!("{:.2}", stats::quantile(values, 0.75)),
            format!("{:.2}", stats::quantile(values, 0.0)),
            format!("{:.2}", stats::quantile(values, 1.0)),
        ];
        self.tables
            .figures
            .write_record(row)
            .expect("the figures can be written");
    }

    fn latency(&mut self, peer: &str, operation: &str, times: &Histogram<u64>) {
        let row = [
            self.mix.to_owned(),
            self.axis.to_owned(),
            self.size.to_string(),
            peer.to_owned(),
            operation.to_owned(),
            times.len().to_string(),
            times.value_at_quantile(0.5).to_string(),
            times.value_at_quantile(0.99).to_string(),
            times.value_at_quantile(0.999).to_string(),
            times.max().to_string(),
        ];
        self.tables
            .latencies
            .write_record(row)
            .expect("the latencies can be written");
    }
}

/// Measures for a slice: gives its figures, and notes latencies.
type Slice<'a> = Box<dyn FnMut(&mut ByOperation) -> Vec<f64> + 'a>;

/// A named way to measure for a slice.
pub struct Subject<'a> {
    name: &'static str,
    slice: Slice<'a>,
}

impl std::fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Subject")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<'a> Subject<'a> {
    fn new(name: &'static str, slice: impl FnMut(&mut ByOperation) -> Vec<f64> + 'a) -> Self {
        Self {
            name,
            slice: Box::new(slice),
        }
    }

    /// Measures for a slice, latencies left aside.
    pub fn slice(&mut self) -> Vec<f64> {
        (self.slice)(&mut ByOperation::new())
    }
}

/// Adds a thread's histogram to those of its case.
fn note(latencies: &mut ByOperation, operation: &'static str, times: &Histogram<u64>) {
    if !times.is_empty() {
        let all = latencies.entry(operation).or_insert_with(histogram);
        all.add(times).expect("histograms of one shape");
    }
}

/// How long a slice with so many threads is: long enough that the scheduler goes round them.
fn slice_length(threads: usize, scope: Scope) -> Duration {
    Duration::from_millis(scope.pick(10, 20).max(3 * threads as u64 / 2))
}

/// What slices of this length take about in seconds, by all peers over all rounds.
fn seconds(slice: Duration, scope: Scope) -> f64 {
    const PEERS: usize = 9;
    (slice.as_secs_f64() + 0.002) * (PEERS * (scope.rounds() + 1)) as f64
}

/// The files that charts and tables are made from.
#[derive(Debug)]
struct Tables {
    figures: csv::Writer<std::fs::File>,
    latencies: csv::Writer<std::fs::File>,
}

/// The names of the files that a run leaves.
pub const FIGURES: &str = "figures.csv";
/// As above.
pub const LATENCIES: &str = "latencies.csv";

/// Runs experiments and writes what they measured to `out`.
pub fn run(
    runner: &mut Runner,
    experiments: &[Experiment],
    scope: Scope,
    out: &Path,
) -> anyhow::Result<()> {
    let mut tables = Tables {
        figures: csv::Writer::from_path(out.join(FIGURES))?,
        latencies: csv::Writer::from_path(out.join(LATENCIES))?,
    };
    let head = ["mix", "axis", "size", "peer"];
    let figures = ["figure", "median", "q1", "q3", "min", "max"];
    let latencies = ["operation", "count", "p50", "p99", "p99.9", "max"];
    tables.figures.write_record(head.iter().chain(&figures))?;
    tables
        .latencies
        .write_record(head.iter().chain(&latencies))?;
    for experiment in experiments {
        let tables = &mut tables;
        runner.experiment(experiment.seconds, |runner| {
            (experiment.run)(&mut Bench {
                runner,
                tables,
                scope,
                mix: experiment.mix,
                axis: experiment.axis,
                size: experiment.size,
            });
        });
        tables.figures.flush()?;
        tables.latencies.flush()?;
    }
    Ok(())
}

/// The subjects that `$make` makes of every peer.
macro_rules! every_peer {
    ($make:ident ( $($argument:expr),* )) => {{
        use crate::peers::{
            CopyOnWrite, DashTable, OneLock, Ours, PapayaEvents, ParkingLot, SccTable, Std,
            TableWatch, WatchMap,
        };
        vec![
            $make::<Ours>($($argument),*),
            $make::<OneLock<Std>>($($argument),*),
            $make::<OneLock<ParkingLot>>($($argument),*),
            $make::<TableWatch<DashTable>>($($argument),*),
            $make::<PapayaEvents>($($argument),*),
            $make::<TableWatch<SccTable>>($($argument),*),
            $make::<CopyOnWrite>($($argument),*),
            $make::<WatchMap>($($argument),*),
        ]
    }};
}
use every_peer;

/// A peer that holds all keys.
pub fn filled<P: crate::peers::Peer>(keys: &[crate::data::Key]) -> std::sync::Arc<P> {
    let peer = P::with_capacity(keys.len());
    for (at, key) in keys.iter().enumerate() {
        peer.set(key, crate::data::Status::new(at as u64), 1);
    }
    std::sync::Arc::new(peer)
}
