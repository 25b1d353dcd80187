//! Random programs in one thread: after every step the cache shows exactly what the model shows.

mod common;

use std::task::Poll;
use std::time::Duration;

use common::model::{KEYS, Model, Outcome, Seen, Wait};
use common::values::Val;
use common::wakers::TestWaker;
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, t};
use podcache::{Cache, Subscription, WritePolicy};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[derive(Clone, Debug)]
enum Step {
    Set { key: u8, ts: u64 },
    SetObservedTime { key: u8, ts: u64 },
    Delete { key: u8 },
    DeleteAt { key: u8, ts: u64 },
    UpdateTime { ts: u64 },
    TryGetNewerThan { key: u8, min: u64 },
    TimedOut { key: u8, min: u64 },
    Subscribe { key: u8, min: u64 },
    Poll { wait: Index },
    TimedWait { wait: Index },
    GiveUp { wait: Index },
    Forget { wait: Index },
    Close,
}

/// Few keys and few times, so that they meet often.
fn step() -> impl Strategy<Value = Step> {
    let key = || 0..KEYS;
    let time = || 0..10_u64;
    let wait = any::<Index>;
    prop_oneof![
        6 => (key(), time()).prop_map(|(key, ts)| Step::Set { key, ts }),
        4 => (key(), time()).prop_map(|(key, ts)| Step::SetObservedTime { key, ts }),
        3 => key().prop_map(|key| Step::Delete { key }),
        2 => (key(), time()).prop_map(|(key, ts)| Step::DeleteAt { key, ts }),
        3 => time().prop_map(|ts| Step::UpdateTime { ts }),
        2 => (key(), time()).prop_map(|(key, min)| Step::TryGetNewerThan { key, min }),
        1 => (key(), time()).prop_map(|(key, min)| Step::TimedOut { key, min }),
        8 => (key(), time()).prop_map(|(key, min)| Step::Subscribe { key, min }),
        5 => wait().prop_map(|wait| Step::Poll { wait }),
        1 => wait().prop_map(|wait| Step::TimedWait { wait }),
        4 => wait().prop_map(|wait| Step::GiveUp { wait }),
        1 => wait().prop_map(|wait| Step::Forget { wait }),
        1 => Just(Step::Close),
    ]
}

/// A subscription that is kept open, and the wakers it was polled with.
struct Open {
    id: usize,
    subscription: Subscription<Val>,
    waker: Option<TestWaker>,
    replaced: Vec<TestWaker>,
}

struct Run {
    policy: WritePolicy,
    cache: Cache<u8, Val>,
    model: Model,
    begun: usize,
    values: u64,
    open: Vec<Open>,
    /// Waits that were forgotten: still registered, since nobody said that they gave up.
    forgotten: Vec<usize>,
}

impl Run {
    fn new(policy: WritePolicy) -> Self {
        Self {
            policy,
            cache: cache_with(policy),
            model: Model::new(),
            begun: 0,
            values: 0,
            open: Vec::new(),
            forgotten: Vec::new(),
        }
    }

    fn chosen(&self, wait: &Index) -> Option<usize> {
        (!self.open.is_empty()).then(|| wait.index(self.open.len()))
    }

    fn take(&mut self, step: &Step) {
        let Self {
            policy,
            cache,
            model,
            ..
        } = self;
        match *step {
            Step::Set { key, ts } => {
                self.values += 1;
                let stored = cache.set(&key, Val(self.values), t(ts));
                assert_eq!(stored, model.set(*policy, key, self.values, ts));
            }
            Step::SetObservedTime { key, ts } => {
                cache.set_observed_time(&key, t(ts));
                model.set_observed_time(*policy, key, ts);
            }
            Step::Delete { key } => {
                assert_eq!(cache.delete(&key), model.delete(*policy, key));
            }
            Step::DeleteAt { key, ts } => {
                let was = cache.delete_at(&key, t(ts));
                assert_eq!(was, model.delete_at(*policy, key, ts));
            }
            Step::UpdateTime { ts } => {
                cache.update_time(t(ts));
                model.update_time(*policy, ts);
            }
            Step::TryGetNewerThan { key, min } => {
                let got = cache.try_get_newer_than(&key, t(min));
                let expected = model.try_get_newer_than(key, min);
                assert_eq!(got.as_ref().map(Seen::of), expected);
            }
            Step::TimedOut { key, min } => {
                let got = cache.get_newer_than_timeout(&key, t(min), Duration::ZERO);
                let expected = match model.try_get_newer_than(key, min) {
                    Some(seen) => Some(Outcome::Ready(seen)),
                    None => model.is_closed().then_some(Outcome::Closed),
                };
                assert_eq!(Outcome::of(&got), expected);
            }
            Step::Subscribe { key, min } => {
                let subscription = cache.subscribe(&key, t(min));
                model.subscribe(self.begun, key, min);
                self.open.push(Open {
                    id: self.begun,
                    subscription,
                    waker: None,
                    replaced: Vec::new(),
                });
                self.begun += 1;
            }
            Step::Poll { ref wait } => {
                let Some(at) = self.chosen(wait) else { return };
                let open = &mut self.open[at];
                let waker = TestWaker::new();
                match waker.poll(&mut open.subscription) {
                    Poll::Ready(got) => {
                        assert_eq!(Outcome::of(&got), self.model.outcome(open.id));
                        assert_eq!(waker.handles(), 0, "ready keeps no waker");
                    }
                    Poll::Pending => {
                        assert_eq!(self.model.outcome(open.id), None);
                        open.replaced.extend(open.waker.replace(waker));
                    }
                }
            }
            Step::TimedWait { ref wait } => {
                let Some(at) = self.chosen(wait) else { return };
                let got = self.open[at].subscription.wait_timeout(Duration::ZERO);
                assert_eq!(Outcome::of(&got), self.model.outcome(self.open[at].id));
            }
            Step::GiveUp { ref wait } => {
                let Some(at) = self.chosen(wait) else { return };
                let open = self.open.swap_remove(at);
                let was_over = self.model.outcome(open.id).is_some();
                self.model.give_up(open.id);
                drop(open.subscription);
                for waker in open.waker.iter().chain(&open.replaced) {
                    assert_eq!(waker.handles(), 0, "dropped at once");
                }
                if let Some(waker) = open.waker {
                    assert_eq!(waker.wakes(), usize::from(was_over));
                }
            }
            Step::Forget { ref wait } => {
                let Some(at) = self.chosen(wait) else { return };
                let open = self.open.swap_remove(at);
                std::mem::forget(open.subscription);
                self.forgotten.push(open.id);
            }
            Step::Close => {
                cache.close();
                model.close();
            }
        }
    }

    fn compare(&self) {
        let Self { cache, model, .. } = self;
        let keys: Vec<u8> = (0..KEYS).filter(|key| model.contains(*key)).collect();
        let mut listed: Vec<u8> = cache.keys().collect();
        listed.sort_unstable();
        assert_eq!(listed, keys);
        let mut items: Vec<_> = cache.iter().map(|(k, v)| (k, Seen::of(&v))).collect();
        items.sort_unstable_by_key(|item| item.0);
        let expected: Vec<_> = keys.iter().map(|key| (*key, model.get(*key))).collect();
        assert_eq!(items, expected);
        assert_eq!(cache.len(), keys.len());
        assert_eq!(cache.is_empty(), keys.is_empty());
        let pinned = cache.pin();
        for key in 0..KEYS {
            assert_eq!(Seen::of(&cache.get(&key)), model.get(key));
            assert_eq!(cache.contains(&key), model.contains(key));
            let entry = pinned.get(&key).map(|entry| Seen {
                value: entry.value().0,
                times: Some((entry.modified().as_nanos(), entry.observed().as_nanos())),
            });
            assert_eq!(entry, model.contains(key).then(|| model.get(key)));
        }
        drop(pinned);
        assert_eq!(cache.global_time(), t(model.global_time()));
        assert_eq!(cache.is_closed(), model.is_closed());
        assert_eq!(cache.waiters(), model.registered());
        for open in &self.open {
            let got = open.subscription.try_get();
            let expected = model.outcome(open.id);
            assert_eq!(got.as_ref().and_then(Outcome::of), expected);
            assert_eq!(got.is_some(), expected.is_some());
            if let Some(waker) = &open.waker {
                let registered = matches!(model.wait(open.id), Some(Wait::Registered { .. }));
                assert_eq!(waker.wakes(), usize::from(!registered));
                assert_eq!(waker.handles(), usize::from(registered));
            }
            for waker in &open.replaced {
                assert_eq!(
                    (waker.wakes(), waker.handles()),
                    (0, 0),
                    "replaced by a later poll"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: common::rounds(1_000) as u32,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_cache_does_what_the_model_does(
        policy in select(POLICIES.as_slice()),
        steps in vec(step(), 1..60),
    ) {
        let _dog = Watchdog::start();
        let mut run = Run::new(policy);
        for step in &steps {
            run.take(step);
            run.compare();
        }
    }

    /// The same with a global time that was there before: what every agent meets after its first
    /// relist.
    #[test]
    fn and_so_it_does_under_a_global_time(
        policy in select(POLICIES.as_slice()),
        start in 1..10_u64,
        steps in vec(step(), 1..40),
    ) {
        let _dog = Watchdog::start();
        let mut run = Run::new(policy);
        run.take(&Step::UpdateTime { ts: start });
        for step in &steps {
            run.take(step);
            run.compare();
        }
    }
}
