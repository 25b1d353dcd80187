//! What the project demands of itself, measured as quotients.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use podcache::Timestamp;
use serde::{Deserialize, Serialize};

use crate::alloc::Count;
use crate::cells::{Cell, EpochCell};
use crate::data::{Hasher, KEYS, Key, Order, Pick, Record, Status, uuids};
use crate::harness::{
    Case, Member, NANOS, Run, Runner, Samples, cpu_time, flush_epochs, nanos_alone, pin_to_core,
    together,
};
use crate::mixes::{self, Scope, filled};
use crate::peers::{OneLock, Ours, ParkingLot, Peer, Snapshot, Std};
use crate::stats::{Ratio, histogram};
use crate::tasks;
use crate::units::{rate, significant, time};

/// Which side of its bound a quotient must keep to.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// Smaller is better.
    AtMost(f64),
    /// Larger is better.
    AtLeast(f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
        }
    }
}

impl std::fmt::Display for Bound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::AtMost(most) => write!(f, "≤ {}", significant(*most)),
            Self::AtLeast(least) => write!(f, "≥ {}", significant(*least)),
        }
    }
}

/// A demand and what was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// What is divided by what.
    pub what: String,
    /// The bound that was demanded.
    pub demanded: String,
    /// The median of the rounds' quotients.
    pub measured: f64,
    /// Their lower quartile.
    pub low: f64,
    /// Their upper quartile.
    pub high: f64,
    /// The quotient of the two smallest figures.
    pub of_minima: f64,
    /// Whether the median keeps to the bound.
    pub met: bool,
    /// The two figures behind the quotient.
    pub figures: String,
}

impl Row {
    fn new(what: &str, bound: Bound, ratio: Ratio, figures: String) -> Self {
        Self {
            what: what.to_owned(),
            demanded: bound.to_string(),
            measured: ratio.median,
            low: ratio.low,
            high: ratio.high,
            of_minima: ratio.of_minima,
            met: bound.holds(ratio.median),
            figures,
        }
    }
}

/// The file in which a run leaves its rows.
pub const ROWS: &str = "quotients.csv";

/// The rows of a run in the making.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds the quotient of a figure of two cases.
    fn row(
        &mut self,
        what: &'static str,
        bound: Bound,
        samples: &Samples,
        figure: &str,
        [over, under]: [&str; 2],
        show: fn(f64) -> String,
    ) {
        let figures = format!(
            "{over} {}, {under} {}",
            show(samples.median(over, figure)),
            show(samples.median(under, figure)),
        );
        let ratio = samples.ratio(figure, over, under);
        self.rows.push(Row::new(what, bound, ratio, figures));
    }
}

type Experiment = fn(&mut Runner, &mut Table);

/// What is measured together, with the seconds that it takes about.
const EXPERIMENTS: &[(&str, f64, Experiment)] = &[
    ("reads", 2.0, reads),
    ("sets", 2.0, sets),
    ("beside a writer", 6.0, beside_a_writer),
    ("beside live threads", 2.0, beside_live_threads),
    ("update_time", 3.0, update_time),
    ("round trip", 5.0, round_trip),
    ("eight threads", 13.0, eight_threads),
    ("waking tasks", 5.0, waking_tasks),
    ("reads during a wake-up", 4.0, reads_during_wake_up),
    ("memory", 1.0, memory),
    ("growth", 9.0, growth),
    ("compressed day", 4.0, compressed_day),
    ("beyond the kubelet", 2.0, beyond_the_kubelet),
];

/// The names of the experiments, with the seconds that each takes about.
pub fn experiments() -> impl Iterator<Item = (&'static str, f64)> {
    EXPERIMENTS
        .iter()
        .map(|&(name, seconds, _)| (name, seconds))
}

/// Runs the experiments whose name `wanted` accepts.
pub fn run(runner: &mut Runner, wanted: impl Fn(&str) -> bool) -> Vec<Row> {
    let mut table = Table::default();
    for &(name, seconds, experiment) in EXPERIMENTS {
        if wanted(name) {
            runner.experiment(seconds, |runner| experiment(runner, &mut table));
        }
    }
    table.rows
}

type Papaya = papaya::HashMap<Key, Arc<Record>, Hasher>;

/// papaya alone, which cannot wait.
fn filled_papaya(keys: &[Key]) -> Papaya {
    let map = Papaya::with_capacity_and_hasher(keys.len(), Hasher::default());
    for key in keys {
        map.pin()
            .insert(key.clone(), Record::new(Status::new(1), 1));
    }
    map
}

fn filled_map(keys: &[Key]) -> HashMap<Key, Arc<Record>, Hasher> {
    keys.iter()
        .map(|key| (key.clone(), Record::new(Status::new(1), 1)))
        .collect()
}

const OURS: &str = "podcache";
const OURS_PINNED: &str = "podcache pinned";

fn reads(runner: &mut Runner, table: &mut Table) {
    let keys = uuids(KEYS);
    let order = || Order::new(Pick::Uniform, KEYS, 1);
    let ours = filled::<Ours>(&keys);
    let pinned = ours.0.pin();
    let papaya = filled_papaya(&keys);
    let map = filled_map(&keys);
    let mut orders: [Order; 4] = std::array::from_fn(|_| order());
    let [a, b, c, d] = &mut orders;
    let samples = runner.interleave(
        "reads",
        150,
        vec![
            Case::alone(OURS, || {
                black_box(ours.get(&keys[a.next()]).status().generation);
            }),
            Case::alone("papaya", || {
                let record = papaya.pin().get(&keys[b.next()]).cloned();
                black_box(record.expect("a key that was set").status.generation);
            }),
            Case::alone(OURS_PINNED, || {
                let entry = pinned.get(&keys[c.next()]).expect("a key that was set");
                black_box(entry.value().generation);
            }),
            Case::alone("HashMap", || {
                let record = map.get(&keys[d.next()]).expect("a key that was set");
                black_box(record.status.generation);
            }),
        ],
    );
    let bound = Bound::AtMost(1.0);
    table.row(
        "get / papaya get, pin and Arc clone each",
        bound,
        &samples,
        NANOS,
        [OURS, "papaya"],
        time,
    );
    let bound = Bound::AtMost(1.25);
    table.row(
        "pinned get / HashMap get",
        bound,
        &samples,
        NANOS,
        [OURS_PINNED, "HashMap"],
        time,
    );
}

/// Allocations that one call of `op` makes, averaged.
fn allocations(mut op: impl FnMut()) -> f64 {
    const CALLS: u64 = 1000;
    // Whatever is made once only is made now.
    op();
    Count::start();
    for _ in 0..CALLS {
        op();
    }
    Count::stop().calls as f64 / CALLS as f64
}

fn sets(runner: &mut Runner, table: &mut Table) {
    let keys = uuids(KEYS);
    let ours = filled::<Ours>(&keys);
    let papaya = filled_papaya(&keys);
    let locked = parking_lot::RwLock::new(filled_map(&keys));
    let mut orders: [Order; 3] = std::array::from_fn(|_| Order::new(Pick::Uniform, KEYS, 2));
    let [a, b, c] = &mut orders;
    let mut times = [1_u64; 3];
    let [ta, tb, tc] = &mut times;
    let next = |time: &mut u64| {
        *time += 1;
        (Status::new(*time), *time)
    };
    let samples = runner.interleave(
        "sets",
        150,
        vec![
            Case::alone(OURS, || {
                let (status, time) = next(ta);
                ours.set(&keys[a.next()], status, time);
            }),
            Case::alone("papaya", || {
                let (status, time) = next(tb);
                papaya
                    .pin()
                    .insert(keys[b.next()].clone(), Record::new(status, time));
            }),
            Case::alone("RwLock<HashMap>", || {
                let (status, time) = next(tc);
                let record = Record::new(status, time);
                if let Some(old) = locked.write().get_mut(&keys[c.next()]) {
                    *old = record;
                }
            }),
        ],
    );
    let bound = Bound::AtMost(1.0);
    table.row(
        "set / papaya insert",
        bound,
        &samples,
        NANOS,
        [OURS, "papaya"],
        time,
    );
    let bound = Bound::AtMost(1.5);
    let names = [OURS, "RwLock<HashMap>"];
    table.row(
        "set / parking_lot::RwLock<HashMap> set",
        bound,
        &samples,
        NANOS,
        names,
        time,
    );

    let calls = allocations(|| ours.set(&keys[0], Status::new(0), u64::MAX));
    table.rows.push(Row::new(
        "allocations per set, a 64th of a collector's bag included",
        Bound::AtMost(1.02),
        Ratio::exact(calls),
        "counted over 1000 sets".to_owned(),
    ));
}

/// How long slices with several threads are.
const TOGETHER: Duration = Duration::from_millis(10);

/// What a reader and a writer beside it got done.
const READS: &str = "reads/s";
const WRITES: &str = "sets/s";

/// One reader for a slice; beside it a writer that sets all the time, or `pace` apart.
fn reader_and_writer(
    mut read: impl FnMut() + Send,
    mut write: impl FnMut() + Send,
    pace: Option<Duration>,
) -> Vec<f64> {
    let members: Vec<Member<'_, u64>> = vec![
        Box::new(move |run: &Run| run.count(&mut read)),
        Box::new(move |run: &Run| match pace {
            None => run.count(&mut write),
            Some(pace) => {
                let (start, mut done) = (Instant::now(), 0);
                while run.goes_on() {
                    if start.elapsed() >= pace * done {
                        write();
                        done += 1;
                    }
                    std::hint::spin_loop();
                }
                u64::from(done)
            }
        }),
    ];
    let done = together(TOGETHER, members);
    vec![done.rate(0..1), done.rate(1..2)]
}

fn beside_a_writer(runner: &mut Runner, table: &mut Table) {
    const FIGURES: &[&str] = &[READS, WRITES];
    let keys = uuids(KEYS);
    let ours = filled::<Ours>(&keys);
    let papaya = filled_papaya(&keys);
    let slots: Vec<_> = keys
        .iter()
        .map(|_| EpochCell::new(Record::new(Status::new(1), 1)))
        .collect();
    let order = |seed| Order::new(Pick::Uniform, KEYS, seed);
    let clock = AtomicU64::new(2);
    let fresh = || {
        let time = clock.load(Relaxed) + 1;
        clock.store(time, Relaxed);
        (Status::new(time), time)
    };
    let ours_slice = |pace: Option<Duration>| {
        let (mut a, mut b) = (order(3), order(4));
        reader_and_writer(
            || {
                black_box(ours.get(&keys[a.next()]).status().generation);
            },
            || {
                let (status, time) = fresh();
                ours.set(&keys[b.next()], status, time);
            },
            pace,
        )
    };
    let samples = runner.interleave(
        "beside a writer",
        100,
        vec![
            Case::new(OURS, FIGURES, || ours_slice(None)),
            Case::new("papaya", FIGURES, || {
                let (mut a, mut b) = (order(3), order(4));
                reader_and_writer(
                    || {
                        let record = papaya.pin().get(&keys[a.next()]).cloned();
                        black_box(record.expect("a key that was set").status.generation);
                    },
                    || {
                        let (status, time) = fresh();
                        papaya
                            .pin()
                            .insert(keys[b.next()].clone(), Record::new(status, time));
                    },
                    None,
                )
            }),
            Case::new("bare slots", FIGURES, || {
                let (mut a, mut b) = (order(3), order(4));
                reader_and_writer(
                    || {
                        black_box(slots[a.next()].load().status.generation);
                    },
                    || {
                        let (status, time) = fresh();
                        slots[b.next()].store(Record::new(status, time));
                    },
                    None,
                )
            }),
            Case::new("10,000 sets/s", FIGURES, || {
                ours_slice(Some(Duration::from_micros(100)))
            }),
            Case::new("no sets", FIGURES, || ours_slice(Some(Duration::MAX / 2))),
        ],
    );
    let writes = |case| rate(samples.median(case, WRITES));
    let beside = format!(
        "; beside {}, {}, {}",
        writes(OURS),
        writes("papaya"),
        writes("bare slots")
    );
    let bound = Bound::AtLeast(1.0);
    table.row(
        "reads beside a writer / papaya's",
        bound,
        &samples,
        READS,
        [OURS, "papaya"],
        rate,
    );
    let bound = Bound::AtLeast(1.0 / 2.5);
    let names = [OURS, "bare slots"];
    table.row(
        "reads beside a writer / bare slots'",
        bound,
        &samples,
        READS,
        names,
        rate,
    );
    for row in table.rows.iter_mut().rev().take(2) {
        row.figures.push_str(&beside);
    }
    let bound = Bound::AtLeast(0.85);
    let names = ["10,000 sets/s", "no sets"];
    table.row(
        "reads beside a paced writer / without",
        bound,
        &samples,
        READS,
        names,
        rate,
    );
}

fn beside_live_threads(runner: &mut Runner, table: &mut Table) {
    const THREADS: usize = 256;
    let keys = uuids(KEYS);
    let ours = filled::<Ours>(&keys);
    let time = AtomicU64::new(2);
    let set_some = || {
        let mut order = Order::new(Pick::Uniform, KEYS, 5);
        nanos_alone(Duration::from_millis(5), || {
            let now = time.load(Relaxed) + 1;
            time.store(now, Relaxed);
            ours.set(&keys[order.next()], Status::new(now), now);
        })
    };
    let samples = runner.interleave(
        "beside live threads",
        25,
        vec![
            Case::new("alone", &[NANOS], || vec![set_some()]),
            Case::new("beside 256 threads", &[NANOS], || {
                let (ready, over) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
                let nanos = thread::scope(|scope| {
                    let live = (0..THREADS).map(|at| {
                        let (ours, keys, ready, over) = (&ours, &keys, &ready, &over);
                        scope.spawn(move || {
                            // A thread that has used the cache and lives on.
                            ours.set(&keys[at], Status::new(1), 1);
                            black_box(ours.get(&keys[at]));
                            ready.wait();
                            over.wait();
                        })
                    });
                    let live: Vec<_> = live.collect();
                    ready.wait();
                    let nanos = set_some();
                    over.wait();
                    // Joined one by one: a scope does not wait for what threads do as they end.
                    for thread in live {
                        thread.join().expect("a waiting thread does not panic");
                    }
                    nanos
                });
                vec![nanos]
            }),
        ],
    );
    let bound = Bound::AtMost(1.5);
    let names = ["beside 256 threads", "alone"];
    table.row(
        "set beside 256 live threads / alone",
        bound,
        &samples,
        NANOS,
        names,
        self::time,
    );
}

fn update_time(runner: &mut Runner, table: &mut Table) {
    let keys = uuids(1_000_000);
    let [few, many] = [1_000, 1_000_000].map(|count| filled::<Ours>(&keys[..count]));
    let waiting = [1_000, 100_000].map(|count| {
        let ours = filled::<Ours>(&keys[..count]);
        let step = count / 100;
        let waits: Vec<_> = keys[..count]
            .iter()
            .step_by(step)
            .map(|key| ours.0.subscribe(key, Timestamp::MAX))
            .collect();
        (ours, waits)
    });
    let tick = |cache: &Ours, time: &mut u64| {
        *time += 1;
        cache.update_time(*time);
    };
    let mut times = [1_u64; 4];
    let [a, b, c, d] = &mut times;
    let samples = runner.interleave(
        "update_time",
        60,
        vec![
            Case::alone("1k keys", || tick(&few, a)),
            Case::alone("1M keys", || tick(&many, b)),
            Case::alone("1k keys, 100 waiting", || tick(&waiting[0].0, c)),
            Case::alone("100k keys, 100 waiting", || tick(&waiting[1].0, d)),
        ],
    );
    let bound = Bound::AtMost(1.1);
    let what = "update_time, nobody waiting: 1M keys / 1k keys";
    table.row(what, bound, &samples, NANOS, ["1M keys", "1k keys"], time);
    let bound = Bound::AtMost(2.0);
    let what = "update_time, 100 waiting: 100k keys / 1k keys";
    let names = ["100k keys, 100 waiting", "1k keys, 100 waiting"];
    table.row(what, bound, &samples, NANOS, names, time);
}

/// Nanoseconds per round trip of two threads that answer each other.
fn ping_pong(turns: u64, ping: impl Fn(u64) + Sync, pong: impl Fn(u64) + Sync) -> f64 {
    let members: Vec<Member<'_, Duration>> = vec![
        Box::new(|_: &Run| {
            let start = Instant::now();
            (1..=turns).for_each(&ping);
            start.elapsed()
        }),
        Box::new(|_: &Run| {
            let start = Instant::now();
            (1..=turns).for_each(&pong);
            start.elapsed()
        }),
    ];
    together(Duration::ZERO, members).results[0].as_nanos() as f64 / turns as f64
}

fn round_trip(runner: &mut Runner, table: &mut Table) {
    const TURNS: u64 = 500;
    let keys = uuids(2);
    let (there, back) = (&keys[0], &keys[1]);
    let ours = Ours::with_capacity(KEYS);
    // Times go on from one slice to the next.
    let base = AtomicU64::new(0);
    let samples = runner.interleave(
        "round trip",
        120,
        vec![
            Case::new(OURS, &[NANOS], || {
                let from = base.fetch_add(TURNS, Relaxed);
                let nanos = ping_pong(
                    TURNS,
                    |turn| {
                        let time = from + turn;
                        ours.set(there, Status::new(time), time);
                        black_box(ours.wait_newer_than(back, time - 1));
                    },
                    |turn| {
                        let time = from + turn;
                        black_box(ours.wait_newer_than(there, time - 1));
                        ours.set(back, Status::new(time), time);
                    },
                );
                vec![nanos]
            }),
            Case::new("atomic-wait", &[NANOS], || {
                let words = [AtomicU32::new(0), AtomicU32::new(0)];
                let tell = |word: &AtomicU32, turn: u64| {
                    word.store(turn as u32, SeqCst);
                    atomic_wait::wake_one(word);
                };
                let hear = |word: &AtomicU32, turn: u64| {
                    while word.load(SeqCst) != turn as u32 {
                        atomic_wait::wait(word, turn as u32 - 1);
                    }
                };
                let nanos = ping_pong(
                    TURNS,
                    |turn| {
                        tell(&words[0], turn);
                        hear(&words[1], turn);
                    },
                    |turn| {
                        hear(&words[0], turn);
                        tell(&words[1], turn);
                    },
                );
                vec![nanos]
            }),
        ],
    );
    let bound = Bound::AtMost(1.3);
    let names = [OURS, "atomic-wait"];
    table.row(
        "wake round trip / bare atomic-wait",
        bound,
        &samples,
        NANOS,
        names,
        time,
    );
}

/// Every which operation is timed: few enough that the clock does not count.
const TIMED: u32 = 16;

const TAIL: &str = "p99.9 ns";

/// Repeats `op` to the end of the slice and times some of its calls.
fn count_and_time(run: &Run, mut op: impl FnMut()) -> (u64, Histogram<u64>) {
    let clock = quanta::Clock::new();
    let mut times = histogram();
    let mut done = 0_u64;
    while run.goes_on() {
        for _ in 1..TIMED {
            op();
        }
        let start = clock.raw();
        op();
        times.saturating_record(clock.delta_as_nanos(start, clock.raw()));
        done += u64::from(TIMED);
    }
    (done, times)
}

fn eight_threads(runner: &mut Runner, table: &mut Table) {
    const THREADS: usize = 8;
    const FIGURES: &[&str] = &[READS, WRITES, TAIL];
    const SETS: &str = "sets/s together";
    const CORES: &str = "cores";
    /// Long enough that the scheduler takes every thread off its core a few times.
    const LENGTH: Duration = Duration::from_millis(60);

    fn mixed<P: Peer>(peer: &P, keys: &[Key]) -> Vec<f64> {
        let members = (0..THREADS)
            .map(|at| -> Member<'_, (u64, Histogram<u64>)> {
                let mut order = Order::new(Pick::Uniform, KEYS, at as u64);
                let mut time = 2;
                Box::new(move |run: &Run| {
                    if at == 0 {
                        let set = || {
                            time += 1;
                            peer.set(&keys[order.next()], Status::new(time), time);
                        };
                        (run.count(set), histogram())
                    } else {
                        count_and_time(run, || {
                            black_box(peer.get(&keys[order.next()]).status().generation);
                        })
                    }
                })
            })
            .collect();
        let done = together(LENGTH, members);
        let mut times = histogram();
        let mut reads = 0;
        for (count, some) in &done.results[1..] {
            reads += count;
            times.add(some).expect("histograms of one shape");
        }
        let seconds = done.took.as_secs_f64();
        vec![
            reads as f64 / seconds,
            done.results[0].0 as f64 / seconds,
            times.value_at_quantile(0.999) as f64,
        ]
    }

    fn setting<P: Peer>(peer: &P, keys: &[Key]) -> Vec<f64> {
        let members = (0..THREADS)
            .map(|at| -> Member<'_, u64> {
                // Every thread has keys of its own.
                let own = &keys[at * KEYS / THREADS..(at + 1) * KEYS / THREADS];
                let mut order = Order::new(Pick::Uniform, own.len(), at as u64);
                let mut time = 2;
                Box::new(move |run: &Run| {
                    run.count(|| {
                        time += 1;
                        peer.set(&own[order.next()], Status::new(time), time);
                    })
                })
            })
            .collect();
        let done = together(LENGTH, members);
        vec![done.rate(0..THREADS), done.cores()]
    }

    type StdLock = OneLock<Std>;
    type ParkingLotLock = OneLock<ParkingLot>;
    let keys = uuids(KEYS);
    let ours = filled::<Ours>(&keys);
    let std = filled::<StdLock>(&keys);
    let parking_lot = filled::<ParkingLotLock>(&keys);
    let samples = runner.interleave(
        "eight threads: reads",
        32,
        vec![
            Case::new(OURS, FIGURES, || mixed(&*ours, &keys)),
            Case::new(StdLock::NAME, FIGURES, || mixed(&*std, &keys)),
            Case::new(ParkingLotLock::NAME, FIGURES, || {
                mixed(&*parking_lot, &keys)
            }),
        ],
    );
    for (what, names) in [
        (
            "7 readers and a writer: reads / one lock's (std)",
            [OURS, StdLock::NAME],
        ),
        (
            "7 readers and a writer: reads / one lock's (parking_lot)",
            [OURS, ParkingLotLock::NAME],
        ),
    ] {
        table.row(what, Bound::AtLeast(20.0), &samples, READS, names, rate);
        let figures = &mut table.rows.last_mut().expect("just added").figures;
        let writes = names.map(|name| rate(samples.median(name, WRITES)));
        figures.push_str(&format!("; beside {}, {}", writes[0], writes[1]));
    }
    for (what, names) in [
        (
            "7 readers and a writer: p99.9 of get / one lock's (std)",
            [OURS, StdLock::NAME],
        ),
        (
            "7 readers and a writer: p99.9 of get / one lock's (parking_lot)",
            [OURS, ParkingLotLock::NAME],
        ),
    ] {
        table.row(what, Bound::AtMost(1.0 / 20.0), &samples, TAIL, names, time);
    }
    let samples = runner.interleave(
        "eight threads: sets",
        32,
        vec![
            Case::new(OURS, &[SETS, CORES], || setting(&*ours, &keys)),
            Case::new(StdLock::NAME, &[SETS, CORES], || setting(&*std, &keys)),
            Case::new(ParkingLotLock::NAME, &[SETS, CORES], || {
                setting(&*parking_lot, &keys)
            }),
        ],
    );
    for (what, names) in [
        (
            "8 threads set different keys / one lock (std)",
            [OURS, StdLock::NAME],
        ),
        (
            "8 threads set different keys / one lock (parking_lot)",
            [OURS, ParkingLotLock::NAME],
        ),
    ] {
        table.row(what, Bound::AtLeast(3.0), &samples, SETS, names, rate);
    }
}

fn waking_tasks(runner: &mut Runner, table: &mut Table) {
    const FIGURES: &[&str] = &["call", "all"];
    const SOME: usize = 2_500;
    const MANY: usize = 10_000;
    let keys = uuids(MANY);
    let runtime = tasks::runtime();
    let figures =
        |storm: tasks::Storm| vec![storm.call.as_nanos() as f64, storm.all.as_nanos() as f64];

    fn peer_slice<'a, P: Peer>(
        runtime: &'a tokio::runtime::Runtime,
        keys: &'a [Key],
        figures: impl Fn(tasks::Storm) -> Vec<f64> + 'a,
    ) -> impl FnMut() -> Vec<f64> + 'a {
        let peer = filled::<P>(keys);
        let mut time = 1;
        move || {
            time += 1;
            figures(tasks::peer_storm(runtime, &peer, keys, time - 1))
        }
    }

    type Lock = OneLock<Std>;
    let some = &keys[..SOME];
    let samples = runner.interleave(
        "waking 2,500 tasks",
        80,
        vec![
            Case::new(OURS, FIGURES, peer_slice::<Ours>(&runtime, some, figures)),
            Case::new(
                Lock::NAME,
                FIGURES,
                peer_slice::<Lock>(&runtime, some, figures),
            ),
        ],
    );
    let bound = Bound::AtMost(0.5);
    let names = [OURS, Lock::NAME];
    table.row(
        "update_time waking 2,500 tasks / one lock",
        bound,
        &samples,
        "call",
        names,
        time,
    );
    let samples = runner.interleave(
        "waking 10,000 tasks",
        40,
        vec![
            Case::new(OURS, FIGURES, peer_slice::<Ours>(&runtime, &keys, figures)),
            Case::new("bare wakers", FIGURES, || {
                figures(tasks::bare_storm(&runtime, MANY))
            }),
        ],
    );
    let bound = Bound::AtMost(1.5);
    let names = [OURS, "bare wakers"];
    table.row(
        "update_time waking 10,000 tasks / bare wakers",
        bound,
        &samples,
        "call",
        names,
        time,
    );
    let what = "the same until the last task has run";
    table.row(what, bound, &samples, "all", names, time);
}

fn reads_during_wake_up(runner: &mut Runner, table: &mut Table) {
    const WAITING: usize = 2_500;
    let keys = uuids(WAITING);
    let ours = filled::<Ours>(&keys);
    let time = AtomicU64::new(1);
    let slice = |storms: bool| {
        let waking = AtomicBool::new(!storms);
        let over = AtomicBool::new(false);
        let wake = || {
            pin_to_core(1);
            if storms {
                let runtime = tasks::runtime();
                for _ in 0..4 {
                    let now = time.fetch_add(1, Relaxed);
                    let wait = |at: usize| {
                        let (ours, key) = (Arc::clone(&ours), keys[at].clone());
                        async move { drop(ours.newer_than(&key, now).await) }
                    };
                    tasks::storm(&runtime, WAITING, wait, || {
                        waking.store(true, SeqCst);
                        ours.update_time(now + 1);
                        waking.store(false, SeqCst);
                    });
                }
            } else {
                thread::sleep(Duration::from_millis(10));
            }
            over.store(true, SeqCst);
        };
        let read = || {
            pin_to_core(0);
            let clock = quanta::Clock::new();
            let mut times = histogram();
            let mut order = Order::new(Pick::Uniform, WAITING, 7);
            while !over.load(Relaxed) {
                let woken_before = waking.load(Relaxed);
                let start = clock.raw();
                black_box(ours.get(&keys[order.next()]).status().generation);
                let nanos = clock.delta_as_nanos(start, clock.raw());
                if woken_before || waking.load(Relaxed) {
                    times.saturating_record(nanos);
                }
            }
            times.value_at_quantile(0.999) as f64
        };
        thread::scope(|scope| {
            scope.spawn(wake);
            vec![scope.spawn(read).join().expect("a reader does not panic")]
        })
    };
    let samples = runner.interleave(
        "reads during a wake-up",
        80,
        vec![
            Case::new("during", &[TAIL], || slice(true)),
            Case::new("idle", &[TAIL], || slice(false)),
        ],
    );
    let what = "p99.9 of get while update_time wakes 2,500 tasks / idle";
    table.row(
        what,
        Bound::AtMost(2.0),
        &samples,
        TAIL,
        ["during", "idle"],
        self::time,
    );
}

/// Bytes per key that `build` leaves allocated.
fn bytes_per_key<T>(count: usize, build: impl FnOnce() -> T) -> f64 {
    Count::start();
    let built = build();
    flush_epochs();
    let live = Count::stop().live;
    drop(built);
    live as f64 / count as f64
}

fn memory(_: &mut Runner, table: &mut Table) {
    const COUNT: usize = 100_000;
    let keys = uuids(COUNT);
    let ours = bytes_per_key(COUNT, || {
        let ours = Ours::with_capacity(0);
        keys.iter().for_each(|key| ours.set(key, Status::new(1), 1));
        ours
    });
    let dash = bytes_per_key(COUNT, || {
        let map = dashmap::DashMap::<Key, Arc<Record>, Hasher>::default();
        for key in &keys {
            map.insert(key.clone(), Record::new(Status::new(1), 1));
        }
        map
    });
    table.rows.push(Row::new(
        "bytes per key, 100k keys / DashMap<_, Arc<_>>",
        Bound::AtMost(1.5),
        Ratio::exact(ours / dash),
        format!("{OURS} {ours:.0}, DashMap {dash:.0}; the key's text not counted"),
    ));
}

fn growth(runner: &mut Runner, table: &mut Table) {
    const COUNT: usize = 1_000_000;
    let keys = uuids(COUNT);
    let once = |f: &mut dyn FnMut()| {
        let start = cpu_time();
        f();
        vec![(cpu_time() - start).as_nanos() as f64 / COUNT as f64]
    };
    let samples = runner.interleave(
        "growth",
        5,
        vec![
            Case::new(OURS, &[NANOS], || {
                let ours = Ours::with_capacity(0);
                once(&mut || keys.iter().for_each(|key| ours.set(key, Status::new(1), 1)))
            }),
            Case::new("papaya", &[NANOS], || {
                let map = Papaya::default();
                once(&mut || {
                    for key in &keys {
                        map.pin()
                            .insert(key.clone(), Record::new(Status::new(1), 1));
                    }
                })
            }),
        ],
    );
    let bound = Bound::AtMost(1.5);
    let what = "growth to 1M keys, per key / papaya";
    table.row(what, bound, &samples, NANOS, [OURS, "papaya"], time);
}

fn compressed_day(runner: &mut Runner, table: &mut Table) {
    type Lock = OneLock<Std>;
    let keys: Arc<[Key]> = uuids(2_500).into();
    let mut ours = mixes::day::compressed::<Ours>(&keys, Scope::Quick);
    let mut lock = mixes::day::compressed::<Lock>(&keys, Scope::Quick);
    const FIGURE: &str = "relists/s";
    let samples = runner.interleave(
        "compressed day",
        60,
        vec![
            Case::new(OURS, &[FIGURE], || ours.slice()),
            Case::new(Lock::NAME, &[FIGURE], || lock.slice()),
        ],
    );
    let what = "compressed kubelet day, 2,500 pods: relists / one lock's (std)";
    let names = [OURS, Lock::NAME];
    table.row(what, Bound::AtLeast(5.0), &samples, FIGURE, names, rate);
}

fn beyond_the_kubelet(runner: &mut Runner, table: &mut Table) {
    let keys = uuids(KEYS);
    let map = filled_map(&keys);
    let ours = filled::<Ours>(&keys);
    let watched = filled::<Ours>(&keys);
    let mut tracker = ours.0.track(&keys[0]);
    let swapped = arc_swap::ArcSwap::new(ours.0.view());
    let _idle = (
        watched.0.view(),
        watched.0.changes(),
        keys.iter()
            .map(|key| watched.0.track(key))
            .collect::<Vec<_>>(),
    );
    let mut order = Order::new(Pick::Uniform, KEYS, 8);
    let (mut a, mut b) = (1, 1);
    let tick = |cache: &Ours, time: &mut u64| {
        *time += 1;
        cache.update_time(*time);
    };
    let plain = filled::<Ours>(&keys);
    let samples = runner.interleave(
        "beyond the kubelet",
        100,
        vec![
            Case::alone("tracker", || {
                black_box(tracker.load().generation);
            }),
            Case::alone("HashMap", || {
                let record = map.get(&keys[order.next()]).expect("a key that was set");
                black_box(record.status.generation);
            }),
            Case::alone("view", || drop(black_box(ours.0.view()))),
            Case::alone("arc-swap", || drop(black_box(swapped.load()))),
            Case::alone("plain", || tick(&plain, &mut a)),
            Case::alone("watched", || tick(&watched, &mut b)),
        ],
    );
    let followed = filled::<Ours>(&keys);
    let mut orders: [Order; 2] = std::array::from_fn(|_| Order::new(Pick::Uniform, KEYS, 9));
    let [c, d] = &mut orders;
    let mut times = [1_u64; 2];
    let [tc, td] = &mut times;
    let set = |cache: &Ours, order: &mut Order, time: &mut u64| {
        *time += 1;
        cache.set(&keys[order.next()], Status::new(*time), *time);
    };
    let over = AtomicBool::new(false);
    let streamed = thread::scope(|scope| {
        let mut changes = followed.0.changes();
        let reader = scope.spawn({
            let over = &over;
            move || {
                while !over.load(Relaxed) {
                    drop(black_box(
                        changes.wait_next_timeout(Duration::from_millis(1)),
                    ));
                }
            }
        });
        let streamed = runner.interleave(
            "a stream of changes",
            60,
            vec![
                Case::alone("without a stream", || set(&plain, c, tc)),
                Case::alone("with one reader", || set(&followed, d, td)),
            ],
        );
        over.store(true, Relaxed);
        reader.join().expect("the reader does not panic");
        streamed
    });
    let bound = Bound::AtMost(2.0);
    let names = ["with one reader", "without a stream"];
    table.row(
        "set beside one reader of the changes / without",
        bound,
        &streamed,
        NANOS,
        names,
        time,
    );
    let bound = Bound::AtMost(0.15);
    let names = ["tracker", "HashMap"];
    table.row(
        "tracker load / HashMap get",
        bound,
        &samples,
        NANOS,
        names,
        time,
    );
    let bound = Bound::AtMost(2.0);
    table.row(
        "unchanged view() / arc-swap load",
        bound,
        &samples,
        NANOS,
        ["view", "arc-swap"],
        time,
    );
    let bound = Bound::AtMost(1.1);
    let what = "update_time beside a view, a stream and 1024 trackers not used / without";
    let names = ["watched", "plain"];
    table.row(what, bound, &samples, NANOS, names, time);
}
