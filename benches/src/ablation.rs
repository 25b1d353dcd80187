//! The choices behind the design, each measured against what could have been done instead.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use crate::cells::{ArcSwapCell, Cell, EpochCell, MutexCell};
use crate::data::{Order, Pick, Record, Status};
use crate::harness::{Case, Member, NANOS, Runner, SLICE, Samples, nanos_alone, together};

/// How many cells there are.
const CELLS: usize = 1024;

/// A line of an ablation: what was measured, and the values in the order of [`Ablation::columns`].
#[derive(Debug)]
pub struct Line {
    /// What was measured.
    pub what: String,
    /// Medians.
    pub values: Vec<f64>,
}

/// One choice.
#[derive(Debug)]
pub struct Ablation {
    /// What is chosen.
    pub title: &'static str,
    /// The unit of all values.
    pub unit: &'static str,
    /// What there is to choose from; the first is what was chosen.
    pub columns: Vec<&'static str>,
    /// What was measured.
    pub lines: Vec<Line>,
}

impl Ablation {
    fn line(&mut self, what: impl Into<String>, samples: &Samples, figure: &str) {
        let values = self
            .columns
            .iter()
            .map(|column| samples.median(column, figure))
            .collect();
        self.lines.push(Line {
            what: what.into(),
            values,
        });
    }
}

/// How many other threads live beside the one that is measured.
const LIVE: [usize; 5] = [0, 8, 64, 256, 512];

/// How long all of it takes about.
pub const SECONDS: f64 = 10.0;

fn cells_of<C: Cell>() -> Vec<C> {
    (0..CELLS)
        .map(|at| C::new(Record::new(Status::new(at as u64), 1)))
        .collect()
}

/// A slot's cell: by epoch, as an `ArcSwap`, or a mutex.
pub fn cells(runner: &mut Runner) -> Ablation {
    let epoch = cells_of::<EpochCell>();
    let arc_swap = cells_of::<ArcSwapCell>();
    let mutex = cells_of::<MutexCell>();
    let mut ablation = Ablation {
        title: "the cell of a slot",
        unit: "ns",
        columns: vec![EpochCell::NAME, ArcSwapCell::NAME, MutexCell::NAME],
        lines: Vec::new(),
    };

    let samples = runner.interleave(
        "a cell is read",
        60,
        vec![load_case(&epoch), load_case(&arc_swap), load_case(&mutex)],
    );
    ablation.line("read (with an Arc clone)", &samples, NANOS);

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
        ablation.line(
            format!("write beside {threads} live threads"),
            &samples,
            NANOS,
        );
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
    ablation.line("read beside one writer", &samples, READ);
    ablation.line("write beside one reader", &samples, WRITE);
    ablation
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

impl Ablation {
    /// The table as Markdown.
    pub fn markdown(&self) -> String {
        let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let head = [format!("{}, {}", self.title, self.unit)];
        let head = head
            .into_iter()
            .chain(self.columns.iter().map(|&column| column.to_owned()));
        let mut table = cells(head.collect());
        table.push_str(&cells(vec!["--:".to_owned(); self.columns.len() + 1]));
        for line in &self.lines {
            let values = line.values.iter().map(|value| format!("{value:.1}"));
            table.push_str(&cells(
                [line.what.clone()].into_iter().chain(values).collect(),
            ));
        }
        table
    }
}

impl std::fmt::Display for Ablation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<34}", format!("{}, {}", self.title, self.unit))?;
        self.columns
            .iter()
            .try_for_each(|column| write!(f, "{column:>12}"))?;
        for line in &self.lines {
            write!(f, "\n{:<34}", line.what)?;
            line.values
                .iter()
                .try_for_each(|value| write!(f, "{value:>12.1}"))?;
        }
        Ok(())
    }
}
