//! The runner: cases in short slices, one after the other, over many rounds.
//!
//! What disturbs the machine for longer than a slice disturbs all cases of a round alike, so the
//! quotient of two cases within a round is steadier than either; its median over the rounds is what
//! is reported, with its quartiles beside it.

use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::progress::Progress;
use crate::stats::{self, Ratio};

/// One case: each call of `slice` measures for a moment and gives one or more figures.
pub struct Case<'a> {
    name: &'static str,
    figures: &'static [&'static str],
    slice: Box<dyn FnMut() -> Vec<f64> + 'a>,
}

impl std::fmt::Debug for Case<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Case")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What [`Case::alone`] measures.
pub const NANOS: &str = "ns";

impl<'a> Case<'a> {
    /// A case whose every slice gives one value for each name in `figures`.
    pub fn new(
        name: &'static str,
        figures: &'static [&'static str],
        slice: impl FnMut() -> Vec<f64> + 'a,
    ) -> Self {
        Self {
            name,
            figures,
            slice: Box::new(slice),
        }
    }

    /// Nanoseconds that one `op` takes on a thread alone, in CPU time of that thread: what the
    /// machine does beside it then costs cache and clock rate, but not time.
    pub fn alone(name: &'static str, mut op: impl FnMut() + 'a) -> Self {
        Self::new(name, &[NANOS], move || vec![nanos_alone(SLICE, &mut op)])
    }
}

/// How long a thread alone is measured at a time.
pub const SLICE: Duration = Duration::from_millis(2);

/// CPU nanoseconds per `op`, measured for about `length`.
pub fn nanos_alone(length: Duration, mut op: impl FnMut()) -> f64 {
    let mut batch = 1_u64;
    let mut done = 0_u64;
    let start = cpu_time();
    loop {
        for _ in 0..batch {
            op();
        }
        done += batch;
        let spent = cpu_time() - start;
        if spent >= length {
            return spent.as_nanos() as f64 / done as f64;
        }
        // Grown until looks at the clock do not count.
        if spent * 16 < length {
            batch *= 2;
        }
    }
}

/// The CPU time that this thread has used.
pub fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Frees what earlier cases left to the shared epoch collector.
pub fn flush_epochs() {
    // Each flush seals this thread's bag and collects a few sealed ones; an epoch advances at most
    // once per call.
    for _ in 0..64 {
        crossbeam_epoch::pin().flush();
    }
}

/// What was measured: per round one value for every figure of every case.
#[derive(Debug)]
pub struct Samples {
    names: Vec<(&'static str, &'static str)>,
    rounds: Vec<Vec<f64>>,
}

impl Samples {
    /// The values of a figure of a case, in the order of the rounds.
    pub fn of(&self, case: &str, figure: &str) -> Vec<f64> {
        let at = self.names.iter().position(|&name| name == (case, figure));
        let at = at.unwrap_or_else(|| panic!("no case {case} has the figure {figure}"));
        self.rounds.iter().map(|round| round[at]).collect()
    }

    /// The median of a figure of a case.
    pub fn median(&self, case: &str, figure: &str) -> f64 {
        stats::median(&self.of(case, figure))
    }

    /// The quotient of a figure of two cases.
    pub fn ratio(&self, figure: &str, over: &str, under: &str) -> Ratio {
        Ratio::new(&self.of(over, figure), &self.of(under, figure))
    }
}

/// Runs experiments, tells how far it is, and writes down every figure.
#[derive(Debug)]
pub struct Runner {
    /// Scales the number of rounds.
    effort: f64,
    raw: csv::Writer<std::fs::File>,
    progress: Rc<Progress>,
    /// What the experiment that goes on is expected to take, in seconds.
    expected: f64,
}

impl Runner {
    /// A runner that writes its figures to `raw`.
    pub fn new(effort: f64, raw: &Path, progress: &Rc<Progress>) -> anyhow::Result<Self> {
        let mut raw = csv::Writer::from_path(raw)?;
        raw.write_record(["experiment", "round", "case", "figure", "value"])?;
        Ok(Self {
            effort,
            raw,
            progress: Rc::clone(progress),
            expected: 0.0,
        })
    }

    /// Runs an experiment that takes about so many seconds.
    pub fn experiment<R>(&mut self, seconds: f64, run: impl FnOnce(&mut Self) -> R) -> R {
        self.expected = seconds * self.effort;
        let result = run(self);
        self.progress.next(self.expected);
        result
    }

    /// Runs the cases in turn over `rounds` rounds after one that does not count.
    pub fn interleave(
        &mut self,
        experiment: &str,
        rounds: usize,
        mut cases: Vec<Case<'_>>,
    ) -> Samples {
        let rounds = ((rounds as f64 * self.effort) as usize).max(3);
        let names: Vec<_> = cases
            .iter()
            .flat_map(|case| case.figures.iter().map(|&figure| (case.name, figure)))
            .collect();
        let mut samples = Vec::with_capacity(rounds);
        for round in 0..=rounds {
            let mut values = vec![Vec::new(); cases.len()];
            // A new first case each round: what a case leaves behind does not always meet the same.
            for turn in 0..cases.len() {
                let at = (turn + round) % cases.len();
                flush_epochs();
                values[at] = (cases[at].slice)();
            }
            let values = values.concat();
            assert_eq!(
                names.len(),
                values.len(),
                "a slice gives a value for each of its figures"
            );
            // The first round warms up.
            if round > 0 {
                for ((case, figure), value) in names.iter().zip(&values) {
                    let (round, value) = (round.to_string(), format!("{value:.3}"));
                    self.raw
                        .write_record([experiment, &round, case, figure, &value])
                        .expect("the raw figures can be written");
                }
                samples.push(values);
            }
            let share = round as f64 / rounds as f64;
            self.progress.step(experiment, share * self.expected);
        }
        Samples {
            names,
            rounds: samples,
        }
    }
}

/// Tells the threads of a slice when to stop.
#[derive(Debug)]
pub struct Run {
    stop: CachePadded<AtomicBool>,
    start: Barrier,
}

impl Run {
    /// Whether the slice goes on.
    #[inline]
    pub fn goes_on(&self) -> bool {
        // A flag that nothing depends on but the loop.
        !self.stop.load(Relaxed)
    }

    /// Repeats `op` to the end of the slice; gives how often that was.
    #[inline]
    pub fn count(&self, mut op: impl FnMut()) -> u64 {
        let mut done = 0;
        while self.goes_on() {
            for _ in 0..16 {
                op();
            }
            done += 16;
        }
        done
    }
}

/// What one thread does in a slice.
pub type Member<'a, R> = Box<dyn FnOnce(&Run) -> R + Send + 'a>;

/// What the threads of a slice gave, and how long the slice was in the end.
#[derive(Debug)]
pub struct Together<R> {
    /// One result per thread.
    pub results: Vec<R>,
    /// From the first thread that began until the last was through.
    pub took: Duration,
    /// CPU time of all threads meanwhile.
    pub cpu: Duration,
}

impl<R> Together<R> {
    /// How many cores the threads had on average.
    pub fn cores(&self) -> f64 {
        self.cpu.as_secs_f64() / self.took.as_secs_f64()
    }
}

impl Together<u64> {
    /// Operations per second of these threads together.
    pub fn rate(&self, members: std::ops::Range<usize>) -> f64 {
        self.results[members].iter().sum::<u64>() as f64 / self.took.as_secs_f64()
    }
}

/// Releases one thread per member at once and stops them after `length`. They are pinned to the
/// cores in turn. What a thread does when it ends, after its member, is not looked at.
pub fn together<R: Send>(length: Duration, members: Vec<Member<'_, R>>) -> Together<R> {
    struct Done<R> {
        result: R,
        began: Instant,
        ended: Instant,
        cpu: Duration,
    }

    let run = Run {
        stop: CachePadded::new(AtomicBool::new(false)),
        start: Barrier::new(members.len() + 1),
    };
    let done: Vec<_> = thread::scope(|scope| {
        let run = &run;
        let start = |(at, member): (usize, Member<'_, R>)| {
            pin_to_core(at);
            run.start.wait();
            let (began, cpu_before) = (Instant::now(), cpu_time());
            let result = member(run);
            Done {
                result,
                began,
                ended: Instant::now(),
                cpu: cpu_time() - cpu_before,
            }
        };
        let threads: Vec<_> = members
            .into_iter()
            .enumerate()
            .map(|m| scope.spawn(move || start(m)))
            .collect();
        run.start.wait();
        thread::sleep(length);
        run.stop.store(true, Relaxed);
        threads
            .into_iter()
            .map(|t| t.join().expect("a member does not panic"))
            .collect()
    });
    let began = done
        .iter()
        .map(|d| d.began)
        .min()
        .expect("there are members");
    let ended = done
        .iter()
        .map(|d| d.ended)
        .max()
        .expect("there are members");
    Together {
        took: ended - began,
        cpu: done.iter().map(|d| d.cpu).sum(),
        results: done.into_iter().map(|d| d.result).collect(),
    }
}

/// The cores this process may use.
pub fn cores() -> &'static [core_affinity::CoreId] {
    // Asked once: a pinned thread would see its own core only.
    static CORES: OnceLock<Vec<core_affinity::CoreId>> = OnceLock::new();
    CORES.get_or_init(|| core_affinity::get_core_ids().unwrap_or_default())
}

/// Keeps this thread on one core, where the system lets it; the cores are given out in turn. The
/// threads that it starts begin on the same core, so the first thread is never pinned.
pub fn pin_to_core(at: usize) {
    if !cores().is_empty() {
        core_affinity::set_for_current(cores()[at % cores().len()]);
    }
}
