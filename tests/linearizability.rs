//! Histories of several threads, recorded and explained.
//!
//! Each thread runs random operations on a few keys and notes for each the moment of its call and
//! of its return; a checker then looks for an order that explains all results (`common/linear.rs`
//! says what may count as one). The moments come from one shared counter: what had returned before
//! another was called really was before it.

mod common;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use common::linear::{Event, Op, is_linearizable};
use common::model::{Outcome, Seen};
use common::race::{AbortOnPanic, StartLine};
use common::rng::Rng;
use common::values::Val;
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, rounds, t};
use podcache::{Cache, Subscription, WritePolicy};

/// One program of several threads on one cache.
struct Field {
    cache: Cache<u8, Val>,
    clock: AtomicU64,
    waits: Vec<OnceLock<Subscription<Val>>>,
    begun: AtomicUsize,
    values: AtomicU64,
}

#[derive(Clone, Copy)]
struct Shape {
    threads: usize,
    steps: usize,
    keys: u64,
    times: u64,
    /// Whether anybody may close the cache.
    closes: bool,
}

impl Field {
    fn new(policy: WritePolicy, shape: Shape) -> Self {
        Self {
            cache: cache_with(policy),
            clock: AtomicU64::new(0),
            waits: (0..shape.threads * shape.steps)
                .map(|_| OnceLock::new())
                .collect(),
            begun: AtomicUsize::new(0),
            values: AtomicU64::new(1),
        }
    }

    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    /// One random operation; a blocking wait gives two, which share their interval.
    fn step(&self, thread: usize, shape: Shape, rng: &mut Rng, events: &mut Vec<Event>) {
        let cache = &self.cache;
        let key = rng.below(shape.keys) as u8;
        let ts = rng.below(shape.times) + 1;
        let called;
        let ops = match rng.below(if shape.closes { 41 } else { 40 }) {
            0..=8 => {
                let value = self.values.fetch_add(1, SeqCst);
                called = self.now();
                let stored = cache.set(&key, Val(value), t(ts));
                [
                    Some(Op::Set {
                        key,
                        value,
                        ts,
                        stored,
                    }),
                    None,
                ]
            }
            9..=12 => {
                called = self.now();
                cache.set_observed_time(&key, t(ts));
                [Some(Op::SetObservedTime { key, ts }), None]
            }
            13..=14 => {
                called = self.now();
                let was = cache.delete(&key);
                [Some(Op::Delete { key, was }), None]
            }
            15..=16 => {
                called = self.now();
                let was = cache.delete_at(&key, t(ts));
                [Some(Op::DeleteAt { key, ts, was }), None]
            }
            17..=20 => {
                called = self.now();
                cache.update_time(t(ts));
                [Some(Op::UpdateTime { ts }), None]
            }
            21..=22 => {
                called = self.now();
                let got = Seen::of(&cache.get(&key));
                [Some(Op::Get { key, got }), None]
            }
            23..=24 => {
                called = self.now();
                let got = cache.try_get_newer_than(&key, t(ts));
                let got = got.as_ref().map(Seen::of);
                [Some(Op::TryGetNewerThan { key, min: ts, got }), None]
            }
            25 => {
                called = self.now();
                let got = cache.global_time().as_nanos();
                [Some(Op::GlobalTime { got }), None]
            }
            26 => {
                called = self.now();
                let got = cache.contains(&key);
                [Some(Op::Contains { key, got }), None]
            }
            27..=32 => {
                let wait = self.begun.fetch_add(1, SeqCst);
                called = self.now();
                let subscription = cache.subscribe(&key, t(ts));
                let op = Op::Subscribe { wait, key, min: ts };
                assert!(self.waits[wait].set(subscription).is_ok());
                [Some(op), None]
            }
            33..=34 => {
                // A timed wait: some are out of time from the start, some sleep for a moment.
                let wait = self.begun.fetch_add(1, SeqCst);
                let limit = Duration::from_micros(rng.below(3) * 20);
                called = self.now();
                let got = cache.get_newer_than_timeout(&key, t(ts), limit);
                let end = match Outcome::of(&got) {
                    Some(outcome) => Op::Look {
                        wait,
                        got: Some(outcome),
                    },
                    None => Op::TimeOut { wait },
                };
                [Some(Op::Subscribe { wait, key, min: ts }), Some(end)]
            }
            35 => {
                let wait = self.begun.fetch_add(1, SeqCst);
                called = self.now();
                drop(cache.subscribe(&key, t(ts)));
                [
                    Some(Op::Subscribe { wait, key, min: ts }),
                    Some(Op::Drop { wait }),
                ]
            }
            36..=39 => {
                // Anybody may look at anybody's wait.
                let begun = self.begun.load(SeqCst);
                let wait = rng.below(begun.max(1) as u64) as usize;
                let Some(subscription) = self.waits[wait].get() else {
                    return;
                };
                called = self.now();
                let got = match rng.below(4) {
                    0 => Some(subscription.wait_timeout(Duration::from_micros(20))),
                    _ => subscription.try_get(),
                };
                let got = got.as_ref().and_then(Outcome::of);
                [Some(Op::Look { wait, got }), None]
            }
            _ => {
                called = self.now();
                cache.close();
                [Some(Op::Close), None]
            }
        };
        let returned = self.now();
        events.extend(ops.into_iter().flatten().map(|op| Event {
            thread,
            op,
            called,
            returned,
        }));
    }

    /// What all waits have come to when everybody is home.
    fn last_looks(&self, thread: usize, events: &mut Vec<Event>) {
        for (wait, subscription) in self.waits.iter().enumerate() {
            let Some(subscription) = subscription.get() else {
                continue;
            };
            let called = self.now();
            let got = subscription.try_get().as_ref().and_then(Outcome::of);
            let returned = self.now();
            events.push(Event {
                thread,
                op: Op::Look { wait, got },
                called,
                returned,
            });
        }
    }
}

fn explain_many(policy: WritePolicy, shape: Shape, histories: usize) {
    let _dog = Watchdog::start();
    let line = StartLine::new(shape.threads);
    let field = std::sync::RwLock::new(Field::new(policy, shape));
    let recorded = std::sync::Mutex::new(Vec::new());
    let run = |thread: usize, rng: &mut Rng| {
        let field = field.read().unwrap();
        let mut events = Vec::with_capacity(2 * shape.steps);
        line.wait();
        for _ in 0..shape.steps {
            if rng.below(2) == 0 {
                rng.jitter();
            }
            field.step(thread, shape, rng, &mut events);
        }
        recorded.lock().unwrap().append(&mut events);
        drop(field);
        line.wait();
    };
    std::thread::scope(|scope| {
        for thread in 1..shape.threads {
            let (run, line) = (&run, &line);
            scope.spawn(move || {
                let _abort = AbortOnPanic;
                let mut rng = Rng::new(thread as u64);
                for _ in 0..histories {
                    line.wait();
                    run(thread, &mut rng);
                }
            });
        }
        let _abort = AbortOnPanic;
        let mut rng = Rng::new(0);
        for history in 0..histories {
            line.wait();
            run(0, &mut rng);
            let mut events = std::mem::take(&mut *recorded.lock().unwrap());
            let old = std::mem::replace(&mut *field.write().unwrap(), Field::new(policy, shape));
            old.last_looks(0, &mut events);
            assert!(
                is_linearizable(policy, &events),
                "no order explains history {history} under {policy:?}:\n{}",
                told(events)
            );
        }
    });
}

fn told(mut events: Vec<Event>) -> String {
    events.sort_by_key(|event| event.called);
    let line = |e: &Event| {
        format!(
            "  {:3}..{:3} [{}] {:?}\n",
            e.called, e.returned, e.thread, e.op
        )
    };
    events.iter().map(line).collect()
}

fn on_every_policy(shape: Shape, histories: usize) {
    for policy in POLICIES {
        explain_many(policy, shape, rounds(histories));
    }
}

const NARROW: Shape = Shape {
    threads: 2,
    steps: 6,
    keys: 1,
    times: 4,
    closes: false,
};

#[test]
fn two_threads_on_one_key() {
    on_every_policy(NARROW, 4_000);
}

#[test]
fn three_threads_on_one_key() {
    on_every_policy(
        Shape {
            threads: 3,
            steps: 5,
            ..NARROW
        },
        2_000,
    );
}

#[test]
fn three_threads_on_two_keys() {
    on_every_policy(
        Shape {
            threads: 3,
            steps: 6,
            keys: 2,
            ..NARROW
        },
        2_000,
    );
}

#[test]
fn four_threads_on_three_keys() {
    on_every_policy(
        Shape {
            threads: 4,
            steps: 4,
            keys: 3,
            times: 6,
            ..NARROW
        },
        1_000,
    );
}

#[test]
fn three_threads_one_of_which_may_close() {
    on_every_policy(
        Shape {
            threads: 3,
            steps: 5,
            keys: 2,
            closes: true,
            ..NARROW
        },
        2_000,
    );
}

/// The checker itself: what it has to refuse, and what it has to let pass.
mod checker {
    use super::*;

    const OVERWRITE: WritePolicy = WritePolicy::Overwrite;

    fn set(value: u64, ts: u64) -> Op {
        Op::Set {
            key: 0,
            value,
            ts,
            stored: true,
        }
    }

    fn get(value: u64, ts: u64) -> Op {
        Op::Get {
            key: 0,
            got: Seen::set(value, ts),
        }
    }

    fn subscribe(min: u64) -> Op {
        Op::Subscribe {
            wait: 0,
            key: 0,
            min,
        }
    }

    fn look(got: Option<Seen>) -> Op {
        Op::Look {
            wait: 0,
            got: got.map(Outcome::Ready),
        }
    }

    /// One after the other.
    fn sequence(ops: &[Op]) -> Vec<Event> {
        let event = |(n, op): (usize, &Op)| Event {
            thread: 0,
            op: *op,
            called: 2 * n as u64,
            returned: 2 * n as u64 + 1,
        };
        ops.iter().enumerate().map(event).collect()
    }

    fn at(called: u64, returned: u64, op: Op) -> Event {
        Event {
            thread: 0,
            op,
            called,
            returned,
        }
    }

    #[track_caller]
    fn refused(history: &[Event]) {
        assert!(!is_linearizable(OVERWRITE, history));
    }

    #[track_caller]
    fn explained(history: &[Event]) {
        assert!(is_linearizable(OVERWRITE, history));
    }

    #[test]
    fn stale_reads_are_refused_unless_they_overlap() {
        refused(&sequence(&[set(1, 1), set(2, 2), get(1, 1)]));
        explained(&[
            at(0, 1, set(1, 1)),
            at(2, 9, set(2, 2)),
            at(3, 4, get(1, 1)),
        ]);
        // Having seen the new one, nobody goes back to the old one.
        refused(&[
            at(0, 1, set(1, 1)),
            at(2, 9, set(2, 2)),
            at(3, 4, get(2, 2)),
            at(5, 6, get(1, 1)),
        ]);
    }

    #[test]
    fn torn_times_are_refused() {
        refused(&sequence(&[set(1, 1), set(2, 2), get(2, 1)]));
        let torn = Seen {
            value: 1,
            times: Some((1, 2)),
        };
        refused(&sequence(&[set(1, 1), Op::Get { key: 0, got: torn }]));
    }

    #[test]
    fn lost_wake_ups_are_refused() {
        for wake in [
            set(1, 5),
            Op::SetObservedTime { key: 0, ts: 5 },
            Op::UpdateTime { ts: 5 },
        ] {
            refused(&sequence(&[subscribe(5), wake, look(None)]));
            // While the call is under way, not yet.
            explained(&[at(0, 1, subscribe(5)), at(2, 9, wake), at(3, 4, look(None))]);
        }
        refused(&sequence(&[subscribe(5), Op::Close, look(None)]));
    }

    #[test]
    fn wakes_by_nobody_are_refused() {
        refused(&sequence(&[
            subscribe(5),
            set(1, 4),
            look(Some(Seen::set(1, 4))),
        ]));
        refused(&sequence(&[
            subscribe(5),
            Op::Delete { key: 0, was: false },
            look(Some(Seen::default_of(0))),
        ]));
    }

    #[test]
    fn a_loose_entry_is_refused() {
        refused(&sequence(&[
            set(1, 5),
            subscribe(5),
            look(Some(Seen::set(1, 5))),
        ]));
        refused(&sequence(&[
            Op::UpdateTime { ts: 5 },
            subscribe(5),
            look(Some(Seen::default_of(0))),
        ]));
        let loose = Op::TryGetNewerThan {
            key: 0,
            min: 5,
            got: Some(Seen::set(1, 5)),
        };
        refused(&sequence(&[set(1, 5), loose]));
    }

    #[test]
    fn wake_and_look_again_is_refused() {
        let delete = Op::Delete { key: 0, was: true };
        refused(&sequence(&[
            subscribe(5),
            set(1, 5),
            delete,
            look(Some(Seen::default_of(0))),
        ]));
        refused(&sequence(&[
            subscribe(5),
            set(1, 5),
            set(2, 1),
            look(Some(Seen::set(2, 1))),
        ]));
        explained(&sequence(&[
            subscribe(5),
            set(1, 5),
            delete,
            look(Some(Seen::set(1, 5))),
        ]));
    }

    #[test]
    fn a_time_before_its_sets_is_refused() {
        let missed = Op::Get {
            key: 0,
            got: Seen::default_of(0),
        };
        let time = Op::GlobalTime { got: 5 };
        // One thread sets and then moves the time; another sees the time and not the set.
        refused(&[
            at(0, 1, set(1, 5)),
            at(2, 9, Op::UpdateTime { ts: 5 }),
            at(3, 4, time),
            at(5, 6, missed),
        ]);
    }

    #[test]
    fn an_update_may_serve_whom_it_finds_but_only_while_it_is_under_way() {
        let served = look(Some(Seen::set(1, 1)));
        // Registered after the time was seen moved, served by the update that is still under way.
        let history = |finished: u64| {
            [
                at(0, 1, set(1, 1)),
                at(2, finished, Op::UpdateTime { ts: 5 }),
                at(3, 4, Op::GlobalTime { got: 5 }),
                at(5, 6, subscribe(5)),
                at(7, 8, served),
            ]
        };
        explained(&history(9));
        explained(&history(7));
        refused(&[
            at(0, 1, set(1, 1)),
            at(2, 4, Op::UpdateTime { ts: 5 }),
            at(5, 6, subscribe(5)),
            at(7, 8, served),
        ]);
    }

    #[test]
    fn what_an_update_hands_out_is_the_record_of_one_instant() {
        let update = Op::UpdateTime { ts: 5 };
        // The record changed twice before the update was called: the old one is out of reach.
        refused(&[
            at(0, 1, set(1, 1)),
            at(2, 3, subscribe(5)),
            at(4, 5, set(2, 2)),
            at(6, 7, update),
            at(8, 9, look(Some(Seen::set(1, 1)))),
        ]);
        explained(&[
            at(0, 1, set(1, 1)),
            at(2, 3, subscribe(5)),
            at(4, 9, update),
            at(5, 6, set(2, 2)),
            at(10, 11, look(Some(Seen::set(1, 1)))),
        ]);
    }

    #[test]
    fn a_time_out_means_that_nobody_had_served_it() {
        let out = Op::TimeOut { wait: 0 };
        refused(&sequence(&[subscribe(5), set(1, 5), out]));
        explained(&sequence(&[subscribe(5), set(1, 4), out]));
    }

    #[test]
    fn results_of_refused_sets_and_deletes_count() {
        let late = Op::Set {
            key: 0,
            value: 2,
            ts: 4,
            stored: true,
        };
        let refused_late = Op::Set {
            key: 0,
            value: 2,
            ts: 4,
            stored: false,
        };
        let delete = Op::DeleteAt {
            key: 0,
            ts: 6,
            was: true,
        };
        let monotonic = |ops: &[Op]| is_linearizable(WritePolicy::Monotonic, &sequence(ops));
        assert!(!monotonic(&[set(1, 5), late]));
        assert!(monotonic(&[set(1, 5), refused_late]));
        assert!(!monotonic(&[set(1, 3), delete, late]));
        assert!(monotonic(&[set(1, 3), delete, refused_late]));
    }
}

/// The part that fits a deterministic specification, judged by an independent checker.
mod second_opinion {
    use super::*;
    use common::model::Model;
    use todc_utils::linearizability::WGLChecker;
    use todc_utils::linearizability::history::{Action, History};
    use todc_utils::specifications::Specification;

    /// Records and the global time under `Overwrite`, without waits.
    struct Records;

    impl Specification for Records {
        type State = Model;
        type Operation = Op;

        fn init() -> Model {
            Model::new()
        }

        fn apply(op: &Op, state: &Model) -> (bool, Model) {
            let policy = WritePolicy::Overwrite;
            let mut next = state.clone();
            let fits = match *op {
                Op::Get { key, got } => state.get(key) == got,
                Op::Contains { key, got } => state.contains(key) == got,
                Op::GlobalTime { got } => state.global_time() == got,
                Op::Set {
                    key,
                    value,
                    ts,
                    stored,
                } => next.set(policy, key, value, ts) == stored,
                Op::Delete { key, was } => next.delete(policy, key) == was,
                Op::DeleteAt { key, ts, was } => next.delete_at(policy, key, ts) == was,
                Op::SetObservedTime { key, ts } => {
                    next.set_observed_time(policy, key, ts);
                    true
                }
                Op::UpdateTime { ts } => {
                    next.update_time(policy, ts);
                    true
                }
                ref other => panic!("not an operation on records: {other:?}"),
            };
            (fits, next)
        }
    }

    fn on_records(op: Op) -> bool {
        matches!(
            op,
            Op::Get { .. }
                | Op::Contains { .. }
                | Op::GlobalTime { .. }
                | Op::Set { .. }
                | Op::Delete { .. }
                | Op::DeleteAt { .. }
                | Op::SetObservedTime { .. }
                | Op::UpdateTime { .. }
        )
    }

    fn agrees(events: &[Event]) -> bool {
        let mut actions: Vec<(u64, usize, Action<Op>)> = Vec::new();
        for event in events {
            // The checker reads the results off the responses only.
            actions.push((event.called, event.thread, Action::Call(event.op)));
            actions.push((event.returned, event.thread, Action::Response(event.op)));
        }
        actions.sort_by_key(|action| action.0);
        let actions = actions
            .into_iter()
            .map(|(_, thread, action)| (thread, action));
        WGLChecker::<Records>::is_linearizable(History::from_actions(actions.collect()))
    }

    #[test]
    fn long_histories_on_records() {
        let _dog = Watchdog::start();
        let shape = Shape {
            threads: 4,
            steps: 150,
            keys: 3,
            times: 9,
            closes: false,
        };
        for round in 0..rounds(20) as u64 {
            let field = Field::new(WritePolicy::Overwrite, shape);
            let line = StartLine::new(shape.threads);
            let mut events: Vec<Event> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..shape.threads)
                    .map(|thread| {
                        let (field, line) = (&field, &line);
                        scope.spawn(move || {
                            let mut rng = Rng::new(round << 8 | thread as u64);
                            let mut events = Vec::new();
                            line.wait();
                            for _ in 0..shape.steps {
                                field.step(thread, shape, &mut rng, &mut events);
                            }
                            events
                        })
                    })
                    .collect();
                threads
                    .into_iter()
                    .flat_map(|t| t.join().unwrap())
                    .collect()
            });
            events.retain(|event| on_records(event.op));
            assert!(agrees(&events), "no order explains:\n{}", told(events));
        }
    }

    #[test]
    fn the_checkers_agree_on_a_stale_read() {
        let stale = [
            Event {
                thread: 0,
                op: Op::Set {
                    key: 0,
                    value: 1,
                    ts: 1,
                    stored: true,
                },
                called: 0,
                returned: 1,
            },
            Event {
                thread: 0,
                op: Op::Get {
                    key: 0,
                    got: Seen::default_of(0),
                },
                called: 2,
                returned: 3,
            },
        ];
        assert!(!agrees(&stale));
        assert!(!is_linearizable(WritePolicy::Overwrite, &stale));
    }
}
