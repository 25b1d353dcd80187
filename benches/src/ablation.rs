//! The choices behind the design, each measured against what could have been done instead.

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use serde::{Deserialize, Serialize};

use crate::cells::{ArcSwapCell, Cell, EpochCell, MutexCell};
use crate::data::{Order, Pick, Record, Status};
use crate::harness::{Case, Member, NANOS, Runner, SLICE, Samples, nanos_alone, together};
use crate::units::{bytes, significant, time};

/// One thing measured of one alternative. Less is better in all of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Line {
    /// What there is to choose.
    pub choice: String,
    /// What was measured.
    pub what: String,
    /// One of the alternatives; the first of a choice is what was chosen.
    pub alternative: String,
    /// The median of the rounds, in nanoseconds or bytes.
    pub value: f64,
    /// The quotient of this alternative and what was chosen: its median,
    pub ratio: f64,
    /// lower quartile
    pub low: f64,
    /// and upper quartile.
    pub high: f64,
}

/// The file in which a run leaves its lines.
pub const LINES: &str = "ablations.csv";

/// The lines of one figure of some alternatives.
pub fn lines(
    choice: &str,
    what: &str,
    alternatives: &[&str],
    samples: &Samples,
    figure: &str,
) -> Vec<Line> {
    let line = |alternative: &&str| {
        let ratio = samples.ratio(figure, alternative, alternatives[0]);
        Line {
            choice: choice.to_owned(),
            what: what.to_owned(),
            alternative: (*alternative).to_owned(),
            value: samples.median(alternative, figure),
            ratio: ratio.median,
            low: ratio.low,
            high: ratio.high,
        }
    };
    alternatives.iter().map(line).collect()
}

/// How many other threads live beside the one that is measured.
const LIVE: [usize; 4] = [0, 8, 64, 256];

/// How long [`cells`] takes about.
pub const SECONDS: f64 = 8.0;

/// How many cells there are.
const CELLS: usize = 1024;

fn cells_of<C: Cell>() -> Vec<C> {
    (0..CELLS)
        .map(|at| C::new(Record::new(Status::new(at as u64), 1)))
        .collect()
}

/// A slot's cell: by epoch, as an `ArcSwap`, or a mutex.
pub fn cells(runner: &mut Runner) -> Vec<Line> {
    const CHOICE: &str = "the cell of a slot";
    const ALTERNATIVES: [&str; 3] = [EpochCell::NAME, ArcSwapCell::NAME, MutexCell::NAME];
    let epoch = cells_of::<EpochCell>();
    let arc_swap = cells_of::<ArcSwapCell>();
    let mutex = cells_of::<MutexCell>();
    let mut all = Vec::new();
    let mut keep = |what: &str, samples: &Samples, figure| {
        all.extend(lines(CHOICE, what, &ALTERNATIVES, samples, figure));
    };

    let samples = runner.interleave(
        "a cell is read",
        60,
        vec![load_case(&epoch), load_case(&arc_swap), load_case(&mutex)],
    );
    keep("read, with an Arc clone", &samples, NANOS);

    for threads in LIVE {
        let (ready, over) = (Barrier::new(threads + 1), Barrier::new(threads + 1));
        let samples = thread::scope(|scope| {
            for _ in 0..threads {
                let (ready, over) = (&ready, &over);
                let (epoch, arc_swap, mutex) = (&epoch[0], &arc_swap[0], &mutex[0]);
                scope.spawn(move || {
                    // Threads that have used all three and live on.
                    drop((epoch.load(), arc_swap.load(), mutex.load()));
                    ready.wait();
                    over.wait();
                });
            }
            ready.wait();
            let samples = runner.interleave(
                &format!("a cell is written beside {threads} threads"),
                30,
                vec![
                    store_case(&epoch),
                    store_case(&arc_swap),
                    store_case(&mutex),
                ],
            );
            over.wait();
            samples
        });
        let what = format!("write beside {threads} live threads");
        keep(&what, &samples, NANOS);
    }

    const READ: &str = "read";
    const WRITE: &str = "write";
    const FIGURES: &[&str] = &[READ, WRITE];
    let samples = runner.interleave(
        "cells are read beside a writer",
        30,
        vec![
            Case::new(EpochCell::NAME, FIGURES, || beside_a_writer(&epoch)),
            Case::new(ArcSwapCell::NAME, FIGURES, || beside_a_writer(&arc_swap)),
            Case::new(MutexCell::NAME, FIGURES, || beside_a_writer(&mutex)),
        ],
    );
    keep("read beside one writer", &samples, READ);
    keep("write beside one reader", &samples, WRITE);
    all
}

fn load_case<C: Cell>(cells: &[C]) -> Case<'_> {
    let mut order = Order::new(Pick::Uniform, CELLS, 1);
    Case::alone(C::NAME, move || {
        black_box(cells[order.next()].load().status.generation);
    })
}

fn store_case<C: Cell>(cells: &[C]) -> Case<'_> {
    let mut order = Order::new(Pick::Uniform, CELLS, 2);
    let time = AtomicU64::new(1);
    Case::new(C::NAME, &[NANOS], move || {
        vec![nanos_alone(SLICE, || {
            let now = time.fetch_add(1, Relaxed);
            cells[order.next()].store(Record::new(Status::new(now), now));
        })]
    })
}

/// Wall nanoseconds per read and per write of two threads at the same cells.
fn beside_a_writer<C: Cell>(cells: &[C]) -> Vec<f64> {
    let members: Vec<Member<'_, u64>> = vec![
        Box::new(|run| {
            let mut order = Order::new(Pick::Uniform, CELLS, 3);
            run.count(|| {
                black_box(cells[order.next()].load().status.generation);
            })
        }),
        Box::new(|run| {
            let mut order = Order::new(Pick::Uniform, CELLS, 4);
            let mut time = 1;
            run.count(|| {
                time += 1;
                cells[order.next()].store(Record::new(Status::new(time), time));
            })
        }),
    ];
    let done = together(SLICE * 5, members);
    let nanos = done.took.as_nanos() as f64;
    done.results
        .iter()
        .map(|&count| nanos / count as f64)
        .collect()
}

/// Lines as groups of equal `name`, in their order.
fn groups(lines: &[Line], name: fn(&Line) -> &str) -> impl Iterator<Item = &[Line]> {
    lines.chunk_by(move |a, b| name(a) == name(b))
}

/// A quotient nearer to one than this, or on both sides of one, is not spoken of.
const NOTICEABLE: f64 = 1.1;

/// What is to be said of one choice, computed from its lines.
fn sentence(of_choice: &[Line]) -> String {
    let alternatives: Vec<_> = groups(of_choice, |l| &l.what)
        .next()
        .unwrap_or_default()
        .iter()
        .map(|line| line.alternative.as_str())
        .collect();
    let mut parts = Vec::new();
    for alternative in &alternatives[1..] {
        let of = || of_choice.iter().filter(|l| l.alternative == *alternative);
        let worse = of().filter(|l| l.low > 1.0 && l.ratio > NOTICEABLE);
        let worse = worse.map(|l| format!("{} ({} times)", l.what, significant(l.ratio)));
        let better = of().filter(|l| l.high < 1.0 && l.ratio < 1.0 / NOTICEABLE);
        let better = better.map(|l| format!("{} ({} times)", l.what, significant(1.0 / l.ratio)));
        let (worse, better): (Vec<_>, Vec<_>) = (worse.collect(), better.collect());
        let (worse, better) = (worse.join(", "), better.join(", "));
        parts.push(match (worse.as_str(), better.as_str()) {
            ("", "") => format!("*{alternative}* makes no clear difference."),
            (worse, "") => format!("*{alternative}* costs more: {worse}."),
            ("", better) => format!("*{alternative}* costs less: {better}."),
            (worse, better) => format!("*{alternative}* costs more: {worse}; and less: {better}."),
        });
    }
    parts.join(" ")
}

/// The lines as tables, with what is to be said of them.
pub fn markdown(lines: &[Line]) -> String {
    let mut text = String::new();
    for of_choice in groups(lines, |l| &l.choice) {
        let _ = write!(text, "### {}\n\n|  |", of_choice[0].choice);
        let mut columns = String::from("\n|---|");
        for (at, line) in groups(of_choice, |l| &l.what)
            .next()
            .unwrap_or_default()
            .iter()
            .enumerate()
        {
            let chosen = if at == 0 { " (chosen)" } else { "" };
            let _ = write!(text, " {}{chosen} |", line.alternative);
            columns.push_str("--:|");
        }
        text.push_str(&columns);
        for of_measure in groups(of_choice, |l| &l.what) {
            let _ = write!(text, "\n| {} |", of_measure[0].what);
            for (at, line) in of_measure.iter().enumerate() {
                let show = if line.what.contains("bytes") {
                    bytes
                } else {
                    time
                };
                let _ = write!(text, " {}", show(line.value));
                if at > 0 {
                    let _ = write!(text, ", {}×", significant(line.ratio));
                }
                text.push_str(" |");
            }
        }
        let _ = write!(text, "\n\n{}\n\n", sentence(of_choice));
    }
    text
}
