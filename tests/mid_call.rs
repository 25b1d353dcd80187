//! What happens while a call stands in the middle.
//!
//! A call is stopped inside user code (a key's `Hash`, `Eq` or `Clone`, a default, a waker), others
//! are made to their end, then it goes on. So the cache meets, every time and on any machine, what
//! preemption brings once in a million calls. Each history has to be linearizable.

mod common;

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use common::gate::Gate;
use common::linear::{Event, Op, is_linearizable};
use common::model::{Outcome, Seen};
use common::rng::Rng;
use common::trap::{self, Action, Place};
use common::values::Val;
use common::wakers::TestWaker;
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, rounds, t};
use podcache::{Cache, DefaultFor, Subscription, WritePolicy};

#[derive(Debug, Eq)]
struct Key(u8);

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        trap::hit(Place::Hash);
        self.0.hash(state);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        trap::hit(Place::Eq);
        self.0 == other.0
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        trap::hit(Place::CloneKey);
        Self(self.0)
    }
}

impl DefaultFor<Key> for Val {
    fn default_for(key: &Key) -> Self {
        trap::hit(Place::Default);
        Self::default_of(u64::from(key.0))
    }
}

const PLACES: [Place; 5] = [
    Place::Hash,
    Place::Eq,
    Place::CloneKey,
    Place::Default,
    Place::Wake,
];

#[derive(Clone, Copy, Debug)]
enum Call {
    Get(u8),
    TryGetNewerThan(u8, u64),
    TimedOut(u8, u64),
    Subscribe(u8, u64),
    Set(u8, u64),
    SetObservedTime(u8, u64),
    Delete(u8),
    DeleteAt(u8, u64),
    UpdateTime(u64),
    Close,
}

fn random_call(rng: &mut Rng) -> Call {
    let key = rng.below(2) as u8;
    let ts = rng.below(5) + 1;
    match rng.below(40) {
        0..=2 => Call::Get(key),
        3..=5 => Call::TryGetNewerThan(key, ts),
        6..=7 => Call::TimedOut(key, ts),
        8..=15 => Call::Subscribe(key, ts),
        16..=22 => Call::Set(key, ts),
        23..=26 => Call::SetObservedTime(key, ts),
        27..=29 => Call::Delete(key),
        30..=31 => Call::DeleteAt(key, ts),
        32..=38 => Call::UpdateTime(ts),
        _ => Call::Close,
    }
}

/// A wait that is kept open by who began it.
struct Open {
    id: usize,
    subscription: Subscription<Val>,
}

/// The cache, and what everybody notes together.
struct Scene {
    cache: Cache<Key, Val>,
    clock: AtomicU64,
    /// Numbers for waits and values.
    numbers: AtomicU64,
}

/// What one thread has done.
#[derive(Default)]
struct Notes {
    events: Vec<Event>,
    open: Vec<Open>,
    wakers: Vec<TestWaker>,
}

impl Scene {
    fn now(&self) -> u64 {
        self.clock.fetch_add(1, SeqCst)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, SeqCst)
    }

    fn make(&self, thread: usize, call: Call, notes: &mut Notes) {
        let cache = &self.cache;
        let called = self.now();
        let ops = match call {
            Call::Get(key) => {
                let got = Seen::of(&cache.get(&Key(key)));
                [Some(Op::Get { key, got }), None]
            }
            Call::TryGetNewerThan(key, min) => {
                let got = cache.try_get_newer_than(&Key(key), t(min));
                let got = got.as_ref().map(Seen::of);
                [Some(Op::TryGetNewerThan { key, min, got }), None]
            }
            Call::TimedOut(key, min) => {
                let wait = self.number() as usize;
                let got = cache.get_newer_than_timeout(&Key(key), t(min), Duration::ZERO);
                let end = match Outcome::of(&got) {
                    None => Op::TimeOut { wait },
                    got => Op::Look { wait, got },
                };
                [Some(Op::Subscribe { wait, key, min }), Some(end)]
            }
            Call::Subscribe(key, min) => {
                let wait = self.number() as usize;
                let mut subscription = cache.subscribe(&Key(key), t(min));
                let waker = TestWaker::new();
                let _ = waker.poll(&mut subscription);
                notes.wakers.push(waker);
                notes.open.push(Open {
                    id: wait,
                    subscription,
                });
                [Some(Op::Subscribe { wait, key, min }), None]
            }
            Call::Set(key, ts) => {
                let value = self.number();
                let stored = cache.set(&Key(key), Val(value), t(ts));
                let op = Op::Set {
                    key,
                    value,
                    ts,
                    stored,
                };
                [Some(op), None]
            }
            Call::SetObservedTime(key, ts) => {
                cache.set_observed_time(&Key(key), t(ts));
                [Some(Op::SetObservedTime { key, ts }), None]
            }
            Call::Delete(key) => {
                let was = cache.delete(&Key(key));
                [Some(Op::Delete { key, was }), None]
            }
            Call::DeleteAt(key, ts) => {
                let was = cache.delete_at(&Key(key), t(ts));
                [Some(Op::DeleteAt { key, ts, was }), None]
            }
            Call::UpdateTime(ts) => {
                cache.update_time(t(ts));
                [Some(Op::UpdateTime { ts }), None]
            }
            Call::Close => {
                cache.close();
                [Some(Op::Close), None]
            }
        };
        let returned = self.now();
        notes.note(thread, called, returned, ops);
    }

    /// Everything that can be seen.
    fn look(&self, thread: usize, notes: &mut Notes) {
        for n in 0..notes.open.len() {
            let Open { id, subscription } = &notes.open[n];
            let called = self.now();
            let got = subscription.try_get().as_ref().and_then(Outcome::of);
            let op = Op::Look { wait: *id, got };
            notes.note(thread, called, self.now(), [Some(op), None]);
        }
        for key in 0..2 {
            self.make(thread, Call::Get(key), notes);
        }
        let called = self.now();
        let got = self.cache.global_time().as_nanos();
        notes.note(
            thread,
            called,
            self.now(),
            [Some(Op::GlobalTime { got }), None],
        );
    }
}

impl Notes {
    fn note(&mut self, thread: usize, called: u64, returned: u64, ops: [Option<Op>; 2]) {
        self.events
            .extend(ops.into_iter().flatten().map(|op| Event {
                thread,
                op,
                called,
                returned,
            }));
    }
}

/// One case: what was there before, the call that is stopped and where, and what goes on meanwhile.
#[derive(Clone, Debug)]
struct Case {
    policy: WritePolicy,
    before: Vec<Call>,
    stopped: Call,
    place: Place,
    passes: usize,
    meanwhile: Vec<Call>,
}

/// Plays a case; whether its call was stopped at all.
fn play(case: &Case) -> bool {
    let scene = Scene {
        cache: cache_with(case.policy),
        clock: AtomicU64::new(0),
        numbers: AtomicU64::new(0),
    };
    let mut notes = Notes::default();
    for call in &case.before {
        scene.make(0, *call, &mut notes);
    }
    let gate = Gate::new();
    let (was_stopped, stopped) = std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        let stopped = scope.spawn(|| {
            let mut notes = Notes::default();
            trap::set(case.place, case.passes, Action::Park(Arc::clone(&gate)));
            scene.make(1, case.stopped, &mut notes);
            let passed = trap::clear();
            // Otherwise it has been here, and nobody waits for it any more.
            if passed {
                gate.pass();
            }
            (!passed, notes)
        });
        gate.await_arrivals(1);
        for call in &case.meanwhile {
            scene.make(0, *call, &mut notes);
            scene.look(0, &mut notes);
        }
        gate.open();
        stopped.join().unwrap()
    });
    notes.events.extend(stopped.events);
    notes.open.extend(stopped.open);
    notes.wakers.extend(stopped.wakers);
    scene.look(0, &mut notes);
    let told = || {
        let mut events = notes.events.clone();
        events.sort_by_key(|event| event.called);
        let line = |e: &Event| {
            format!(
                "\n  {:3}..{:3} [{}] {:?}",
                e.called, e.returned, e.thread, e.op
            )
        };
        events.iter().map(line).collect::<String>()
    };
    assert!(
        is_linearizable(case.policy, &notes.events),
        "no order explains {case:?}:{}",
        told()
    );
    // Who is ready was woken, who is not was not, nobody twice, and no waker is kept beyond that.
    for (open, waker) in notes.open.iter().zip(&notes.wakers) {
        let over = open.subscription.try_get().is_some();
        assert_eq!(waker.handles(), usize::from(!over), "{case:?}:{}", told());
        assert!(waker.wakes() <= usize::from(over), "{case:?}:{}", told());
    }
    let waiting = notes
        .open
        .iter()
        .filter(|open| open.subscription.try_get().is_none());
    assert_eq!(
        scene.cache.waiters(),
        waiting.count(),
        "{case:?}:{}",
        told()
    );
    was_stopped
}

fn some(rng: &mut Rng, least: u64, most: u64) -> Vec<Call> {
    (0..least + rng.below(most - least + 1))
        .map(|_| random_call(rng))
        .collect()
}

fn play_many(policy: WritePolicy) {
    let _dog = Watchdog::start();
    let mut rng = Rng::new(policy as u64);
    let mut stopped = 0;
    let cases = rounds(6_000);
    for _ in 0..cases {
        let case = Case {
            policy,
            before: some(&mut rng, 0, 4),
            stopped: random_call(&mut rng),
            place: PLACES[rng.below(PLACES.len() as u64) as usize],
            passes: rng.below(3) as usize,
            meanwhile: some(&mut rng, 1, 3),
        };
        stopped += usize::from(play(&case));
    }
    assert!(
        stopped * 20 > cases,
        "too few calls were stopped: {stopped} of {cases}"
    );
}

#[test]
fn random_cases_under_overwrite() {
    play_many(WritePolicy::Overwrite);
}

#[test]
fn random_cases_under_reject_older() {
    play_many(WritePolicy::RejectOlder);
}

#[test]
fn random_cases_under_monotonic() {
    play_many(WritePolicy::Monotonic);
}

/// A case in which the call is sure to be stopped, under every policy.
fn stopped(place: Place, before: &[Call], stopped: Call, meanwhile: &[Call]) {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        let case = Case {
            policy,
            before: before.to_vec(),
            stopped,
            place,
            passes: 0,
            meanwhile: meanwhile.to_vec(),
        };
        assert!(play(&case), "it was never in {place:?}: {case:?}");
    }
}

#[test]
fn what_is_fresh_by_the_global_time_was_so_at_one_instant() {
    // The time goes back, and then comes an older record: it was never there while the time vouched.
    let before = [Call::Set(0, 1), Call::UpdateTime(5)];
    let meanwhile = [Call::UpdateTime(2), Call::Set(0, 1)];
    for call in [
        Call::TryGetNewerThan(0, 4),
        Call::TimedOut(0, 4),
        Call::Subscribe(0, 4),
    ] {
        stopped(Place::Eq, &before, call, &meanwhile);
        stopped(Place::Hash, &before, call, &meanwhile);
    }
}

#[test]
fn a_registering_wait_is_not_left_behind() {
    for place in [Place::Hash, Place::CloneKey] {
        for meanwhile in [Call::UpdateTime(5), Call::Set(0, 5), Call::Close] {
            stopped(place, &[], Call::Subscribe(0, 4), &[meanwhile]);
        }
    }
    for meanwhile in [
        Call::UpdateTime(5),
        Call::Set(0, 5),
        Call::SetObservedTime(0, 5),
        Call::Close,
    ] {
        stopped(
            Place::Eq,
            &[Call::Set(0, 1)],
            Call::Subscribe(0, 4),
            &[meanwhile],
        );
    }
}

#[test]
fn a_set_that_the_time_has_overtaken_is_decided_by_the_time() {
    let look = [Call::UpdateTime(5), Call::Get(0)];
    stopped(Place::Eq, &[Call::Set(0, 1)], Call::Set(0, 3), &look);
    stopped(Place::CloneKey, &[], Call::Set(0, 3), &look);
    stopped(Place::Eq, &[Call::Set(0, 1)], Call::DeleteAt(0, 3), &look);
    stopped(
        Place::Eq,
        &[Call::Set(0, 1)],
        Call::Set(0, 3),
        &[Call::Set(0, 5)],
    );
    stopped(
        Place::Eq,
        &[Call::Set(0, 1)],
        Call::Set(0, 3),
        &[Call::DeleteAt(0, 5), Call::Get(0)],
    );
}

#[test]
fn a_record_that_comes_while_its_default_is_made() {
    for call in [Call::SetObservedTime(0, 4), Call::UpdateTime(4)] {
        for meanwhile in [
            &[Call::Set(0, 2)][..],
            &[Call::Set(0, 4)],
            &[Call::Set(0, 2), Call::Delete(0)],
            &[Call::SetObservedTime(0, 4)],
            &[Call::UpdateTime(4)],
            &[Call::Close],
        ] {
            let before = [Call::Subscribe(0, 4), Call::Subscribe(0, 3)];
            stopped(Place::Default, &before, call, meanwhile);
        }
    }
}

#[test]
fn a_hand_over_that_is_stopped_in_a_waker() {
    let waits = [
        Call::Subscribe(0, 4),
        Call::Subscribe(1, 4),
        Call::Subscribe(0, 3),
        Call::Subscribe(0, 5),
    ];
    for call in [
        Call::Set(0, 4),
        Call::SetObservedTime(0, 4),
        Call::UpdateTime(4),
        Call::Close,
    ] {
        for meanwhile in [
            &[Call::Set(0, 4)][..],
            &[Call::Set(0, 1), Call::Delete(0)],
            &[Call::SetObservedTime(0, 5)],
            &[Call::UpdateTime(5)],
            &[Call::Close],
            &[Call::Subscribe(0, 4), Call::Set(0, 4)],
        ] {
            stopped(Place::Wake, &waits, call, meanwhile);
        }
    }
}
