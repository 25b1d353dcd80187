//! The feature `metrics`, with a recorder that keeps everything.
#![cfg(feature = "metrics")]

mod common;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use common::t;
use common::values::Val;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder,
    SharedString, Unit,
};
use podcache::{Cache, Stats, Timestamp, WritePolicy};

type Pods = Cache<u8, Val>;

thread_local! {
    static BROKEN: Cell<bool> = const { Cell::new(false) };
}

/// By name and cache.
type Values = BTreeMap<(String, Option<String>), Vec<f64>>;

/// All that was recorded, by the name of the metric and of the cache.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Values>>);

struct Series(Kept, (String, Option<String>));

impl Series {
    fn of(kept: &Kept, key: &Key) -> Arc<Self> {
        let labels: Vec<_> = key.labels().collect();
        assert!(labels.len() <= 1 && labels.iter().all(|label| label.key() == "cache"));
        let cache = labels.first().map(|label| label.value().to_owned());
        Arc::new(Self(kept.clone(), (key.name().to_owned(), cache)))
    }

    fn keep(&self, value: f64) {
        let mut kept = self.0.0.lock().unwrap();
        kept.entry(self.1.clone()).or_default().push(value);
    }
}

impl CounterFn for Series {
    fn increment(&self, _: u64) {
        unreachable!("counters are published as they stand");
    }

    fn absolute(&self, value: u64) {
        self.keep(value as f64);
    }
}

impl GaugeFn for Series {
    fn increment(&self, _: f64) {
        unreachable!("gauges are published as they stand");
    }

    fn decrement(&self, _: f64) {
        unreachable!("gauges are published as they stand");
    }

    fn set(&self, value: f64) {
        self.keep(value);
    }
}

impl HistogramFn for Series {
    fn record(&self, value: f64) {
        assert!(!BROKEN.get(), "the recorder is broken");
        self.keep(value);
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.described(&name, &text);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, text: SharedString) {
        self.described(&name, &text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        assert_eq!(unit, Some(Unit::Seconds));
        self.described(&name, &text);
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        assert!(key.name().ends_with("_total"), "{key}");
        Counter::from_arc(Series::of(self, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Series::of(self, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(Series::of(self, key))
    }
}

impl Kept {
    /// Runs `f` with this recorder, and says what it has kept since the beginning.
    fn during(&self, f: impl FnOnce()) {
        metrics::with_local_recorder(self, f);
    }

    fn described(&self, name: &KeyName, text: &str) {
        assert!(text.ends_with('.'));
        Series(self.clone(), (name.as_str().to_owned(), None)).keep(0.0);
    }

    fn all(&self, name: &str, cache: Option<&str>) -> Vec<f64> {
        let kept = self.0.lock().unwrap();
        let key = (name.to_owned(), cache.map(str::to_owned));
        kept.get(&key).cloned().unwrap_or_default()
    }

    fn last(&self, name: &str, cache: Option<&str>) -> f64 {
        *self.all(name, cache).last().expect(name)
    }

    fn names(&self) -> Vec<String> {
        let kept = self.0.lock().unwrap();
        kept.keys().map(|(name, _)| name.clone()).collect()
    }
}

const WAIT: &str = "podcache_wait_seconds";

#[test]
fn publishing_states_every_figure() {
    let cache: Pods = Cache::builder()
        .write_policy(WritePolicy::RejectOlder)
        .name("node 7")
        .build();
    cache.set(&1, Val(1), t(5));
    cache.set(&1, Val(1), t(6));
    cache.set(&1, Val(1), t(4));
    let wait = cache.subscribe(&2, t(9));
    cache.update_time(t(7));
    let kept = Kept::default();
    kept.during(|| {
        cache.stats().publish();
        drop(wait);
        cache.stats().publish();
    });
    let all = |name| kept.all(name, Some("node 7"));
    assert_eq!(all("podcache_sets_total"), [2.0, 2.0]);
    assert_eq!(all("podcache_refused_sets_total"), [1.0, 1.0]);
    assert_eq!(all("podcache_time_updates_total"), [1.0, 1.0]);
    assert_eq!(all("podcache_waits_total"), [1.0, 1.0]);
    assert_eq!(all("podcache_cancellations_total"), [0.0, 1.0]);
    assert_eq!(all("podcache_records"), [1.0, 1.0]);
    assert_eq!(all("podcache_waiters"), [1.0, 0.0]);
    assert!(all("podcache_longest_wait_seconds")[0] > 0.0);
    assert_eq!(all("podcache_longest_wait_seconds")[1], 0.0);
    assert!(all("podcache_global_time_age_seconds")[0] > 1e9);
    assert!(all("podcache_index_bytes")[0] > 0.0);
    assert!(all(WAIT).is_empty());
}

#[test]
fn caches_are_told_apart_by_their_names() {
    let kept = Kept::default();
    let caches: [Pods; 3] = [
        Cache::builder().name("a").build(),
        Cache::builder().name(String::from("b")).build(),
        Cache::new(),
    ];
    caches[1].set(&1, Val(1), t(5));
    kept.during(|| caches.iter().for_each(|cache| cache.stats().publish()));
    let last = |cache| kept.last("podcache_records", cache);
    assert_eq!(
        [last(Some("a")), last(Some("b")), last(None)],
        [0.0, 1.0, 0.0]
    );
}

#[test]
fn each_satisfied_wait_is_recorded_once() {
    let kept = Kept::default();
    let cache: Pods = Cache::builder().name("node 7").build();
    kept.during(|| {
        let waits: Vec<_> = (0..3).map(|_| cache.subscribe(&1, t(5))).collect();
        cache.set(&1, Val(1), t(5));
        assert_eq!(kept.all(WAIT, Some("node 7")).len(), 3);
        let timed = cache.subscribe(&2, t(7));
        cache.update_time(t(7));
        cache.set_observed_time(&2, t(8));
        assert_eq!(kept.all(WAIT, Some("node 7")).len(), 4);
        // Looking at a result is not a wait, and neither is what is ready at once, given up, or
        // closed.
        drop((
            waits,
            timed,
            cache.subscribe(&1, t(1)),
            cache.subscribe(&3, t(9)),
        ));
        let closed = cache.subscribe(&3, t(9));
        cache.close();
        assert!(closed.wait().is_err());
    });
    assert_eq!(kept.all(WAIT, Some("node 7")).len(), 4);
    assert!(kept.all(WAIT, Some("node 7")).iter().all(|&s| s >= 0.0));
    assert_eq!(cache.stats().wake_ups, 4);
}

#[test]
fn a_latency_is_at_least_what_the_waiter_saw_pass() {
    let kept = Kept::default();
    let cache: Pods = Cache::new();
    let wait = cache.subscribe(&1, t(5));
    let since = Timestamp::now();
    while Timestamp::now() == since {
        std::thread::yield_now();
    }
    let passed = Timestamp::now().duration_since(since);
    kept.during(|| _ = cache.set(&1, Val(1), t(5)));
    assert!(kept.last(WAIT, None) >= passed.as_secs_f64());
    drop(wait);
}

#[test]
fn a_recorder_that_panics_harms_no_wait() {
    let kept = Kept::default();
    let cache: Pods = Cache::new();
    let waits = [1, 1, 2].map(|key| cache.subscribe(&key, t(5)));
    kept.during(|| {
        BROKEN.set(true);
        let out = catch_unwind(AssertUnwindSafe(|| cache.update_time(t(5))));
        BROKEN.set(false);
        assert!(out.is_err(), "it goes to the caller");
    });
    assert!(waits.iter().all(|wait| wait.try_get().is_some()));
    assert_eq!(cache.stats().wake_ups, 3);
}

#[test]
fn every_figure_is_described() {
    let (described, published) = (Kept::default(), Kept::default());
    described.during(Stats::describe);
    let cache: Pods = Cache::new();
    published.during(|| {
        let wait = cache.subscribe(&1, t(5));
        cache.set(&1, Val(1), t(5));
        cache.stats().publish();
        drop(wait);
    });
    assert_eq!(described.names(), published.names());
    assert_eq!(published.names().len(), 19);
}
