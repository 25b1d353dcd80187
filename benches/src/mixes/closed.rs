//! Reads and sets as fast as they go, on one to many threads.
//!
//! Latencies are those of calls, sampled; there is no intended start time when every thread starts
//! the next call as soon as it can.

use std::hint::black_box;
use std::sync::Arc;

use hdrhistogram::Histogram;

use super::{Experiment, Scope, Subject, every_peer, filled, note, seconds, slice_length};
use crate::data::{KEYS, Key, Order, Pick, Status, uuids};
use crate::harness::{Member, Run, Together, together};
use crate::peers::{Flurry, LeftRight, Papaya, Peer, Plain, ReadOnly, Snapshot, go};
use crate::stats::histogram;

/// What most of the mixes measure...
const TOGETHER: &[&str] = &["operations/s"];
/// ... and those where threads differ.
const APART: &[&str] = &["reads/s", "sets/s"];

/// Which keys a thread uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// All of them.
    Shared(Pick),
    /// A part that no other thread uses.
    Own,
}

/// What share of its operations are sets, by thread.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Sets {
    /// Every thread mixes them alike.
    Each(f64),
    /// One thread only sets, and all others only read: the size of the mix counts those.
    One,
}

impl Sets {
    fn share(self, thread: usize) -> f64 {
        match self {
            Self::Each(share) => share,
            Self::One if thread == 0 => 1.0,
            Self::One => 0.0,
        }
    }

    /// How many threads there are at a size.
    fn threads(self, size: usize) -> usize {
        match self {
            Self::Each(_) => size,
            Self::One => size + 1,
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Self::Each(_) => "threads",
            Self::One => "readers",
        }
    }

    fn figures(self) -> &'static [&'static str] {
        match self {
            Self::Each(_) => TOGETHER,
            Self::One => APART,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Mix {
    name: &'static str,
    sets: Sets,
    keys: Keys,
}

impl Mix {
    /// The figures of a slice.
    fn figures(self, done: &Together<Done>) -> Vec<f64> {
        let seconds = done.took.as_secs_f64();
        let (mut all, mut sets) = (0, 0);
        for thread in &done.results {
            all += thread.count;
            sets += thread.set;
        }
        match self.sets {
            Sets::Each(_) => vec![all as f64 / seconds],
            Sets::One => vec![(all - sets) as f64 / seconds, sets as f64 / seconds],
        }
    }
}

const UNIFORM: Keys = Keys::Shared(Pick::Uniform);

/// The mix of one writer and many readers.
const ONE_WRITER: &str = "get beside one writer";

const MIXES: &[Mix] = &[
    Mix {
        name: "get",
        sets: Sets::Each(0.0),
        keys: UNIFORM,
    },
    Mix {
        name: ONE_WRITER,
        sets: Sets::One,
        keys: UNIFORM,
    },
    Mix {
        name: "get 99.9 %, set 0.1 %",
        sets: Sets::Each(0.001),
        keys: UNIFORM,
    },
    Mix {
        name: "get 90 %, set 10 %",
        sets: Sets::Each(0.1),
        keys: UNIFORM,
    },
    Mix {
        name: "get 50 %, set 50 %",
        sets: Sets::Each(0.5),
        keys: UNIFORM,
    },
    Mix {
        name: "get 90 %, set 10 %, zipf",
        sets: Sets::Each(0.1),
        keys: Keys::Shared(Pick::Zipf),
    },
    Mix {
        name: "get 90 %, set 10 %, one key",
        sets: Sets::Each(0.1),
        keys: Keys::Shared(Pick::Hot),
    },
    Mix {
        name: "set, one key",
        sets: Sets::Each(1.0),
        keys: Keys::Shared(Pick::Hot),
    },
    Mix {
        name: "set, different keys",
        sets: Sets::Each(1.0),
        keys: Keys::Own,
    },
];

pub(super) fn threads(scope: Scope) -> &'static [usize] {
    scope.pick(&[1, 2, 8], &[1, 2, 4, 8, 16, 64])
}

pub(super) fn experiments(scope: Scope) -> Vec<Experiment> {
    let every = MIXES
        .iter()
        .flat_map(|&mix| threads(scope).iter().map(move |&n| (mix, n)));
    every
        .map(|(mix, size)| {
            let threads = mix.sets.threads(size);
            let seconds = seconds(slice_length(threads, scope), scope);
            Experiment::new(mix.name, mix.sets.axis(), size, seconds, move |bench| {
                let keys: Arc<[Key]> = uuids(KEYS).into();
                let mut subjects = every_peer!(subject(mix, &keys, threads, scope));
                if mix.sets == Sets::Each(0.0) {
                    subjects.push(read_only::<Plain>(&keys, threads, scope));
                    subjects.push(read_only::<Papaya>(&keys, threads, scope));
                    subjects.push(read_only::<Flurry>(&keys, threads, scope));
                    subjects.push(read_only::<LeftRight>(&keys, threads, scope));
                }
                subjects.extend(in_go(mix, threads, scope));
                bench.run(mix.sets.figures(), subjects);
            })
        })
        .collect()
}

/// Of the frequent operations one in so many is timed.
const TIMED: u64 = 16;

/// What a thread did.
struct Done {
    count: u64,
    /// How many of these were sets.
    set: u64,
    gets: Histogram<u64>,
    sets: Histogram<u64>,
}

fn subject<P: Peer>(mix: Mix, keys: &Arc<[Key]>, threads: usize, scope: Scope) -> Subject<'static> {
    let peer = filled::<P>(keys);
    let keys = Arc::clone(keys);
    Subject::new(P::NAME, move |latencies| {
        let members = (0..threads)
            .map(|at| -> Member<'_, Done> {
                let peer = &*peer;
                let (keys, pick) = match mix.keys {
                    Keys::Shared(pick) => (&keys[..], pick),
                    Keys::Own => (
                        &keys[at * KEYS / threads..(at + 1) * KEYS / threads],
                        Pick::Uniform,
                    ),
                };
                let share = mix.sets.share(at);
                let order = Order::mixed(pick, keys.len(), share, at as u64);
                Box::new(move |run| mixed(run, peer, keys, order, share < 0.01))
            })
            .collect();
        let done = together(slice_length(threads, scope), members);
        for thread in &done.results {
            note(latencies, "get", &thread.gets);
            note(latencies, "set", &thread.sets);
        }
        mix.figures(&done)
    })
}

fn mixed<P: Peer>(
    run: &Run,
    peer: &P,
    keys: &[Key],
    mut order: Order,
    time_every_set: bool,
) -> Done {
    let clock = quanta::Clock::new();
    let mut done = Done {
        count: 0,
        set: 0,
        gets: histogram(),
        sets: histogram(),
    };
    let mut time = 1;
    while run.goes_on() {
        for turn in 0..TIMED {
            let (at, set) = order.next_with_kind();
            let timed = turn == 0 || (set && time_every_set);
            let start = if timed { clock.raw() } else { 0 };
            if set {
                time += 1;
                done.set += 1;
                peer.set(&keys[at], Status::new(time), time);
            } else {
                black_box(peer.get(&keys[at]).status().generation);
            }
            if timed {
                let times = if set { &mut done.sets } else { &mut done.gets };
                times.saturating_record(clock.delta_as_nanos(start, clock.raw()));
            }
        }
        done.count += TIMED;
    }
    done
}

fn read_only<M: ReadOnly>(keys: &Arc<[Key]>, threads: usize, scope: Scope) -> Subject<'static> {
    let map = M::filled(keys);
    let keys = Arc::clone(keys);
    Subject::new(M::NAME, move |_| {
        let members = (0..threads)
            .map(|at| -> Member<'_, u64> {
                let handle = map.handle();
                let mut order = Order::new(Pick::Uniform, KEYS, at as u64);
                let keys = &keys;
                Box::new(move |run| run.count(|| M::read(&handle, &keys[order.next()])))
            })
            .collect();
        vec![together(slice_length(threads, scope), members).rate(0..threads)]
    })
}

/// The peer in Go, on goroutines.
fn in_go(mix: Mix, threads: usize, scope: Scope) -> Option<Subject<'static>> {
    let peer = go::start()?;
    let (what, sets) = match mix.sets {
        Sets::Each(share) => ("closed", share),
        Sets::One => ("one-writer", 0.0),
    };
    let pick = match mix.keys {
        Keys::Own => "own",
        Keys::Shared(Pick::Uniform) => "uniform",
        Keys::Shared(Pick::Zipf) => "zipf",
        Keys::Shared(Pick::Hot) => "hot",
    };
    Some(Subject::new(go::NAME, move |latencies| {
        let length = slice_length(threads, scope);
        let answer = peer.lock().ask(what, threads, sets, pick, length);
        let answer = answer.expect("the Go peer answers");
        for operation in ["get", "set"] {
            if let Some(times) = answer.latencies.get(operation) {
                note(latencies, operation, times);
            }
        }
        let figures = mix.sets.figures().iter();
        figures.map(|&figure| answer.figures[figure]).collect()
    }))
}
