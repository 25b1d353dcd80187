//! One execution of a program on the real cache, and what it returned.
//!
//! The threads are loom's, shuttle's or the system's, as the crate is built.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use podcache::{Change, RelistSummary, Snapshot, Timestamp, WaitError, WritePolicy};

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
use loom::thread;
#[cfg(podcache_shuttle)]
use shuttle::thread;
#[cfg(not(podcache_loom))]
use std::thread;

use crate::judge::{Call, FIRST, History, Outcome, Relisted};
use crate::program::{Op, Program};
use crate::spec::{End, Key, Policy, Value, Wait};
use crate::subject::{
    Bell, Following, Ringer, Spread, Status, Stream, Subject, Uid, Waiting, calling, reading,
};

/// Longer than any model runs: under loom and shuttle time passes when the model says so. With
/// real threads, short enough that a time-out is a likely end.
const TIME_OUT: Duration = if cfg!(podcache_loom) {
    Duration::from_secs(3600)
} else {
    Duration::from_micros(30)
};

/// Whether the order of calls in time says which came first. Under loom it does not: a thread may
/// read what was there before a call of another thread that has returned, if nothing orders them.
const CLOCK_COUNTS: bool = cfg!(any(not(podcache_loom), podcache_shuttle));

/// The order in which the calls of the current execution began and returned, for people: a model
/// that fails half way can still say how it came there.
static TRACE: Mutex<Vec<(usize, Op, Option<Outcome>)>> = Mutex::new(Vec::new());

/// The calls of the current execution, in the order in which they began and returned.
pub fn trace() -> Vec<String> {
    let trace = TRACE.lock().unwrap_or_else(PoisonError::into_inner);
    let line = |(strand, op, outcome): &(usize, Op, Option<Outcome>)| match outcome {
        None => format!("{strand}: {op} begins"),
        Some(outcome) => format!("{strand}: {op} -> {outcome}"),
    };
    trace.iter().map(line).collect()
}

fn note(strand: usize, op: Op, outcome: Option<&Outcome>) {
    if cfg!(podcache_loom) {
        let mut trace = TRACE.lock().unwrap_or_else(PoisonError::into_inner);
        trace.push((strand, op, outcome.cloned()));
    }
}

/// The instants at which a call began and returned.
#[derive(Clone, Copy)]
struct Span(usize, usize);

/// A call made by a thread.
struct Made {
    op: Op,
    value: Value,
    outcome: Outcome,
    span: Span,
}

/// One poll of a subscription.
struct Polled {
    wait: Wait,
    bell: Arc<Bell>,
    rung_before: usize,
    pending: bool,
    /// How often each bell of the wait had rung when the poll returned.
    rung_after: Vec<(Arc<Bell>, usize)>,
}

/// What a thread holds.
#[derive(Default)]
struct Hands {
    strand: usize,
    cache: Option<Subject>,
    waits: BTreeMap<Wait, Arc<Waiting>>,
    trackers: BTreeMap<Key, Following>,
    stream: Option<Stream>,
    /// What the stream has told so far.
    told: BTreeMap<Key, Value>,
    wakers: BTreeMap<(Wait, u8), Arc<Ringer>>,
    polls: Vec<Polled>,
    /// How often the bells of a dropped subscription had rung.
    silenced: Vec<(Arc<Bell>, usize)>,
    made: Vec<Made>,
}

fn ts(time: u64) -> Timestamp {
    Timestamp::from_nanos(time)
}

fn end(result: Result<Snapshot<Status>, WaitError>) -> Outcome {
    match result {
        Ok(snapshot) => Outcome::Wait(Some(End::Ready(reading(&snapshot)))),
        Err(WaitError::Closed) => Outcome::Wait(Some(End::Closed)),
        Err(WaitError::TimedOut) => Outcome::Wait(None),
        Err(other) => panic!("a new kind of end: {other}"),
    }
}

fn summary(summary: RelistSummary) -> Outcome {
    Outcome::Relisted(Relisted {
        set: summary.set,
        unchanged: summary.unchanged,
        deleted: summary.deleted,
        refused: summary.refused,
    })
}

impl Hands {
    fn perform(&mut self, op: Op, value: Value, clock: &AtomicUsize) {
        let began = clock.fetch_add(1, SeqCst);
        note(self.strand, op, None);
        let outcome = calling(!op.wakes(), || self.call(op, value));
        note(self.strand, op, Some(&outcome));
        let span = Span(began, clock.fetch_add(1, SeqCst));
        self.made.push(Made {
            op,
            value,
            outcome,
            span,
        });
    }

    fn call(&mut self, op: Op, value: Value) -> Outcome {
        let key = op.key().map(Uid::from);
        let key = key.as_ref();
        let cache = || self.cache.as_ref().expect("the thread has a handle");
        let uid = || key.expect("the call names a key");
        let wait = |wait: Wait| &self.waits[&wait];
        match op {
            Op::Get(_) => Outcome::Read(reading(&cache().get(uid()))),
            Op::Pinned(_) => {
                let pinned = cache().pin();
                Outcome::Read(pinned.get(uid()).map(|entry| crate::spec::Record {
                    value: entry.value().id(),
                    modified: entry.modified().as_nanos(),
                    observed: entry.observed().as_nanos(),
                }))
            }
            Op::Try(_, min) => {
                let given = cache().try_get_newer_than(uid(), ts(min));
                Outcome::Maybe(given.map(|snapshot| reading(&snapshot)))
            }
            Op::Iter => {
                let mut records: Vec<_> = cache()
                    .iter()
                    .map(|(uid, snapshot)| (uid.key(), reading(&snapshot).expect("a record")))
                    .collect();
                records.sort_by_key(|(key, _)| *key);
                Outcome::Records(records)
            }
            Op::Load(key) => {
                let track = || cache().track(uid());
                let tracker = self.trackers.entry(key).or_insert_with(track);
                Outcome::Read(reading(tracker.load()))
            }
            Op::View => {
                let view = cache().view();
                let records = view.iter().map(|(uid, snapshot)| (uid.key(), snapshot));
                let records = records.map(|(key, snapshot)| (key, reading(snapshot)));
                Outcome::View(
                    view.timestamp().as_nanos(),
                    records
                        .map(|(key, reading)| (key, reading.expect("a record")))
                        .collect(),
                )
            }
            Op::Watch => {
                let stream = cache().changes();
                self.stream = Some(stream);
                Outcome::Done
            }
            Op::Drain => {
                self.drain();
                Outcome::Done
            }
            Op::Await => {
                let stream = self.stream.as_mut().expect("the thread has one");
                let change = stream.wait_next().expect("nobody closes the cache");
                self.hear(change);
                Outcome::Done
            }
            Op::Unwatch => {
                drop(self.stream.take());
                self.told.clear();
                Outcome::Done
            }
            Op::Len => Outcome::Count(cache().len()),
            Op::Global => Outcome::Time(cache().global_time().as_nanos()),
            Op::Waiters => Outcome::Count(cache().waiters()),
            Op::Set(_, at) => Outcome::Flag(cache().set(uid(), Status::new(value), ts(at))),
            Op::Observe(_, at) => {
                cache().set_observed_time(uid(), ts(at));
                Outcome::Done
            }
            Op::Delete(_) => Outcome::Flag(cache().delete(uid())),
            Op::DeleteAt(_, at) => Outcome::Flag(cache().delete_at(uid(), ts(at))),
            Op::Update(at) => {
                cache().update_time(ts(at));
                Outcome::Done
            }
            Op::Relist(key, at) | Op::RelistFirst(key, at) => {
                let value = if matches!(op, Op::Relist(..)) {
                    value
                } else {
                    FIRST
                };
                // One pod at most: the order of more hangs on a hasher that differs from run to run.
                let pods = [(Uid::from(key), Status::new(value))];
                summary(cache().relist(ts(at), pods))
            }
            Op::Clear(at) => summary(cache().relist_or_clear(ts(at), [])),
            Op::Close => {
                cache().close();
                Outcome::Done
            }
            Op::Leave => {
                drop(self.cache.take());
                Outcome::Done
            }
            Op::Subscribe(wait, _, min) => {
                let subscription = cache().subscribe(uid(), ts(min));
                self.waits.insert(wait, Arc::new(subscription));
                Outcome::Done
            }
            Op::GetNewer(_, _, min) => end(cache().get_newer_than(uid(), ts(min))),
            Op::GetNewerTimed(_, _, min) => {
                end(cache().get_newer_than_timeout(uid(), ts(min), TIME_OUT))
            }
            Op::TryNow(w) => wait(w).try_get().map_or(Outcome::Wait(None), end),
            Op::Block(w) => end(wait(w).wait()),
            Op::Timed(w) => end(wait(w).wait_timeout(TIME_OUT)),
            Op::Poll(wait, number) => self.poll(wait, number),
            Op::Drop(wait) => {
                let subscription = self.waits.remove(&wait).expect("the thread has it");
                drop(Arc::into_inner(subscription).expect("nobody else has it"));
                let silenced = self.bells(wait);
                self.silenced.extend(silenced);
                Outcome::Done
            }
        }
    }

    /// Takes all that the stream has to tell.
    fn drain(&mut self) {
        while let Some(change) = self.stream.as_mut().and_then(Stream::try_next) {
            self.hear(change);
        }
    }

    fn hear(&mut self, change: Change<Uid, Status>) {
        match change {
            Change::Set { key, snapshot } => {
                self.told.insert(key.key(), snapshot.value().id());
            }
            Change::Deleted { key } => _ = self.told.remove(&key.key()),
            other => panic!("a new kind of change: {other:?}"),
        }
    }

    fn poll(&mut self, wait: Wait, number: u8) -> Outcome {
        let ringer = self.wakers.entry((wait, number)).or_default();
        let (bell, waker) = (ringer.bell(), ringer.waker());
        let rung_before = bell.rung();
        let subscription = self.waits.get_mut(&wait).expect("the thread has it");
        let subscription = Arc::get_mut(subscription).expect("only this thread has it");
        let outcome = match Pin::new(subscription).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(result) => end(result),
            Poll::Pending => Outcome::Wait(None),
        };
        let rung_after = self.bells(wait);
        let pending = outcome == Outcome::Wait(None);
        self.polls.push(Polled {
            wait,
            bell,
            rung_before,
            pending,
            rung_after,
        });
        outcome
    }

    /// The bells of a wait, and how often each has rung.
    fn bells(&self, wait: Wait) -> Vec<(Arc<Bell>, usize)> {
        let of_wait = self.wakers.iter().filter(|((w, _), _)| *w == wait);
        let bells = of_wait.map(|(_, ringer)| ringer.bell());
        bells.map(|bell| (Arc::clone(&bell), bell.rung())).collect()
    }

    /// What the thread that runs `ops` needs.
    fn share(&mut self, strand: usize, ops: &[Op], with_cache: bool) -> Hands {
        let named = |wait: &Wait| ops.iter().any(|op| op.wait() == Some(*wait));
        let loaded: Vec<Key> = self.trackers.keys().copied().collect();
        let loaded = loaded
            .into_iter()
            .filter(|key| ops.contains(&Op::Load(*key)));
        let trackers = loaded
            .filter_map(|key| Some((key, self.trackers.remove(&key)?)))
            .collect();
        let reads = |op: &Op| matches!(op, Op::Drain | Op::Await | Op::Unwatch);
        let stream = self
            .stream
            .take_if(|_| ops.iter().any(reads) && !ops.contains(&Op::Watch));
        let waits = self.waits.iter().filter(|(wait, _)| named(wait));
        Hands {
            strand,
            cache: self.cache.clone().filter(|_| with_cache),
            waits: waits.map(|(wait, sub)| (*wait, Arc::clone(sub))).collect(),
            trackers,
            stream,
            ..Hands::default()
        }
    }

    fn run(mut self, ops: &[(Op, Value)], clock: &AtomicUsize) -> Hands {
        for (op, value) in ops {
            self.perform(*op, *value, clock);
        }
        self
    }

    /// Whoever has followed the changes knows what is there now.
    fn check_streams(&mut self, hands: &mut [Hands]) {
        let there = |made: &Made| match (made.op, &made.outcome) {
            (Op::Get(key), Outcome::Read(Some(record))) => Some((key, record.value)),
            _ => None,
        };
        let keys = self
            .made
            .iter()
            .rev()
            .skip_while(|made| !matches!(made.op, Op::Get(_)));
        let keys = keys.take_while(|made| matches!(made.op, Op::Get(_)));
        let records: BTreeMap<Key, Value> = keys.filter_map(there).collect();
        for hands in hands
            .iter_mut()
            .chain([self])
            .filter(|hands| hands.stream.is_some())
        {
            hands.drain();
            assert_eq!(
                hands.told, records,
                "the stream of changes does not end in what is there"
            );
        }
    }

    /// What a waker is owed: to be called if the last poll left it and the wait has ended, never
    /// after another has replaced it or the subscription was dropped.
    fn check_wakers(&self, ended: impl Fn(Wait) -> bool) {
        for (i, poll) in self
            .polls
            .iter()
            .enumerate()
            .filter(|(_, poll)| poll.pending)
        {
            for (other, rung) in poll
                .rung_after
                .iter()
                .filter(|(b, _)| !Arc::ptr_eq(b, &poll.bell))
            {
                let again = self.polls[i..]
                    .iter()
                    .any(|later| Arc::ptr_eq(&later.bell, other));
                assert!(
                    again || other.rung() == *rung,
                    "a replaced waker was called"
                );
            }
            let is_last = !self.polls[i + 1..]
                .iter()
                .any(|later| later.wait == poll.wait);
            if is_last && ended(poll.wait) {
                assert!(
                    poll.bell.rung() > poll.rung_before,
                    "the waker of an ended wait was not called"
                );
            }
        }
        for (bell, rung) in &self.silenced {
            assert_eq!(
                bell.rung(),
                *rung,
                "the waker of a dropped subscription was called"
            );
        }
    }
}

/// Calls, with what a set brings.
type Numbered = Vec<(Op, Value)>;

/// The numbers of a program's sets, from 1, in the order of its text.
fn numbered(program: &Program) -> (Numbered, Vec<Numbered>) {
    let mut value = 0;
    let mut number = |ops: &[Op]| -> Numbered {
        let number = |op: &Op| {
            value += Value::from(op.sets());
            (*op, value)
        };
        ops.iter().map(number).collect()
    };
    let setup = number(&program.setup);
    (
        setup,
        program.threads.iter().map(|ops| number(ops)).collect(),
    )
}

/// The thread that the first thread of the model plays, since loom has no more than five. Only the
/// first can be: it is the one that runs first where loom has a choice, and [`generate`] relies on
/// that.
///
/// [`generate`]: crate::generate
fn played_by_main(program: &Program) -> Option<usize> {
    (!CLOCK_COUNTS && !program.timed() && !program.blocks(0)).then_some(0)
}

/// Runs `program` once and says what its calls returned.
///
/// # Panics
///
/// If a waker was not called or called too often, if a value was read late, leaked or dropped twice.
pub fn execute(program: &Program, spread: Spread) -> History {
    let policy = match program.policy {
        Policy::Overwrite => WritePolicy::Overwrite,
        Policy::RejectOlder => WritePolicy::RejectOlder,
        Policy::Monotonic => WritePolicy::Monotonic,
    };
    TRACE.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let clock = Arc::new(AtomicUsize::new(0));
    let (setup, threads) = numbered(program);
    let cache: Subject = podcache::Cache::<Uid, Status>::builder()
        .write_policy(policy)
        .hasher(spread)
        .build();
    let main = Hands {
        cache: Some(cache),
        ..Hands::default()
    };
    let mut main = main.run(&setup, &clock);

    let with_cache = |thread: usize| program.threads[thread].iter().any(|op| op.needs_cache());
    let handles = (0..threads.len())
        .filter(|thread| with_cache(*thread))
        .count();
    let mut hands: Vec<Option<Hands>> = (0..threads.len())
        .map(|thread| Some(main.share(thread + 1, &program.threads[thread], with_cache(thread))))
        .collect();
    for wait in hands.iter().flatten().flat_map(|hands| hands.waits.keys()) {
        main.waits.remove(wait);
    }
    // Under loom the last handle closes the cache, but its memory goes here, after all threads are
    // joined: that the last owner has seen everything rests on std's reference count, which loom
    // does not see. Elsewhere it goes with its last owner, whoever that is.
    let keeps = |_: &&Subject| !CLOCK_COUNTS;
    let memory = main.cache.as_ref().filter(keeps).map(Subject::read_only);
    if program.leaves() {
        main.cache = None;
    }

    let played = played_by_main(program);
    let mut spawned = Vec::new();
    for (thread, ops) in threads
        .iter()
        .enumerate()
        .filter(|(thread, _)| Some(*thread) != played)
    {
        let (hands, ops, clock) = (
            hands[thread].take().expect("once"),
            ops.clone(),
            Arc::clone(&clock),
        );
        let run = move || {
            let hands = hands.run(&ops, &clock);
            #[cfg(podcache_loom)]
            podcache::model::end_thread();
            hands
        };
        spawned.push((thread, thread::spawn(run)));
    }
    #[cfg(podcache_loom)]
    if program.timed() {
        podcache::model::let_time_pass();
    }
    if let Some(thread) = played {
        hands[thread] = hands[thread]
            .take()
            .map(|hands| hands.run(&threads[thread], &clock));
    }

    // Whoever may block for ever is joined after the cache was closed.
    let needs_closing =
        (0..threads.len()).any(|thread| program.blocks(thread)) && !program.leaves();
    let (blocking, free): (Vec<_>, Vec<_>) = spawned
        .into_iter()
        .partition(|(thread, _)| program.blocks(*thread) && needs_closing);
    for (thread, handle) in free {
        hands[thread] = Some(handle.join().expect("a thread panicked"));
    }
    if needs_closing {
        main.perform(Op::Close, 0, &clock);
    }
    for (thread, handle) in blocking {
        hands[thread] = Some(handle.join().expect("a thread panicked"));
    }
    let mut hands: Vec<Hands> = hands
        .into_iter()
        .map(|hands| hands.expect("joined"))
        .collect();

    // Everybody has come to rest: what is left must be explained by the same order.
    for wait in program.subscriptions() {
        let holder = hands
            .iter()
            .chain([&main])
            .find_map(|hands| hands.waits.get(&wait));
        let subscription = Arc::clone(holder.expect("somebody has it"));
        main.waits.insert(wait, subscription);
        main.perform(Op::TryNow(wait), 0, &clock);
    }
    if main.cache.is_some() {
        for key in program.keys() {
            main.perform(Op::Get(key), 0, &clock);
        }
        for op in [Op::Global, Op::Len, Op::Waiters] {
            main.perform(op, 0, &clock);
        }
        main.check_streams(&mut hands);
    }

    let history = record(
        program.policy,
        handles,
        setup.len(),
        needs_closing,
        &main,
        &hands,
        program,
    );
    let ended = |wait: Wait| {
        let look = |made: &&Made| made.op == Op::TryNow(wait);
        main.made
            .iter()
            .rev()
            .find(look)
            .is_some_and(|made| made.outcome != Outcome::Wait(None))
    };
    hands.iter().for_each(|hands| hands.check_wakers(ended));

    // Nobody keeps a waker but of a wait that goes on.
    let waits_on = |wait: Wait| program.subscriptions().contains(&wait) && !ended(wait);
    for ((wait, _), waker) in hands.iter().chain([&main]).flat_map(|hands| &hands.wakers) {
        let kept = Arc::strong_count(waker) > 1;
        assert!(!kept || waits_on(*wait), "a waker outlives its wait");
    }
    #[cfg(all(podcache_loom, not(crossbeam_loom)))]
    check_leftovers(program, &main, &mut hands);

    drop((hands, main, memory));
    #[cfg(podcache_loom)]
    podcache::model::free_garbage();
    #[cfg(all(podcache_loom, not(crossbeam_loom)))]
    assert_eq!(Status::alive(), 0, "values leaked");
    history
}

/// The cache remembers a key only for a record or a wait, and beyond them no more than as many
/// again, but for tombstones.
#[cfg(all(podcache_loom, not(crossbeam_loom)))]
fn check_leftovers(program: &Program, main: &Hands, hands: &mut [Hands]) {
    // A tombstone stays until the global time has reached it.
    let global = main.made.iter().rev().find_map(|made| match made.outcome {
        Outcome::Time(time) => Some(time),
        _ => None,
    });
    let may_bury = program.policy == Policy::Monotonic
        && program.ops().any(Op::deletes)
        && global < program.ops().filter_map(Op::time).max();
    if main.cache.is_none() || may_bury || program.ops().any(|op| op == Op::View) {
        return;
    }
    for hands in hands {
        hands.trackers.clear();
        hands.stream = None;
    }
    let held = main.trackers.len() as isize;
    podcache::model::free_garbage();
    let needed = |made: &&Made| match (made.op, &made.outcome) {
        (Op::Get(_), Outcome::Read(reading)) => reading.is_some(),
        (Op::TryNow(_), outcome) => *outcome == Outcome::Wait(None),
        _ => false,
    };
    let at_rest = main.made.iter().rev().take_while(|made| {
        matches!(
            made.op,
            Op::Get(_) | Op::TryNow(_) | Op::Global | Op::Len | Op::Waiters
        )
    });
    let most = 2 * at_rest.filter(needed).count() as isize + held;
    assert!(
        Uid::alive() <= most,
        "{} keys are remembered for {most}",
        Uid::alive()
    );
}

/// The history of what the threads made.
fn record(
    policy: Policy,
    handles: usize,
    setup: usize,
    closed: bool,
    main: &Hands,
    hands: &[Hands],
    program: &Program,
) -> History {
    let strand_of_main = hands.len() + 1;
    let strands_made: Vec<&[Made]> = std::iter::once(&main.made[..setup])
        .chain(hands.iter().map(|hands| &hands.made[..]))
        .chain([&main.made[setup..]])
        .collect();
    let lengths: Vec<usize> = strands_made.iter().map(|made| made.len()).collect();
    let after = |strand: usize, index: usize, span: Span| -> Vec<usize> {
        if CLOCK_COUNTS {
            // Whoever returned before this call began comes before it.
            let returned = |made: &&[Made]| made.iter().filter(|made| made.span.1 < span.0).count();
            return strands_made.iter().map(returned).collect();
        }
        let mut after = vec![0; lengths.len()];
        if strand > 0 {
            after[0] = setup;
        }
        if strand == strand_of_main {
            let closing = closed && index == 0;
            for thread in 0..hands.len() {
                if !closing || !program.blocks(thread) {
                    after[thread + 1] = lengths[thread + 1];
                }
            }
        }
        after
    };
    let call = |strand: usize, index: usize, made: &Made| Call {
        op: made.op,
        value: made.value,
        outcome: made.outcome.clone(),
        after: after(strand, index, made.span),
    };
    let strands = strands_made
        .iter()
        .enumerate()
        .map(|(s, made)| {
            made.iter()
                .enumerate()
                .map(|(i, made)| call(s, i, made))
                .collect()
        })
        .collect();

    History {
        policy,
        handles: handles.max(1),
        strands,
    }
}
