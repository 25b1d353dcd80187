//! The feature `tracing`, with a subscriber that keeps everything.
#![cfg(feature = "tracing")]

mod common;

use std::collections::HashMap;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::t;
use common::values::Val;
use common::wakers::{TestWaker, is_closed, is_timed_out};
use podcache::{Cache, Timestamp, WritePolicy};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

type Pods = Cache<u8, Val>;
type Fields = HashMap<&'static str, String>;

/// What was told, in order.
#[derive(Clone, Default)]
struct Kept(Arc<Inner>);

#[derive(Default)]
struct Inner {
    ids: AtomicU64,
    open: Mutex<HashMap<u64, Span>>,
    closed: Mutex<Vec<Span>>,
    events: Mutex<Vec<(Level, Fields)>>,
}

#[derive(Clone, Debug, Default)]
struct Span {
    name: &'static str,
    fields: Fields,
    entered: usize,
    left: usize,
}

struct Visitor<'a>(&'a mut Fields);

impl Visit for Visitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Subscriber for Kept {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "podcache"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.0.ids.fetch_add(1, SeqCst) + 1;
        let mut new = Span {
            name: span.metadata().name(),
            ..Span::default()
        };
        span.record(&mut Visitor(&mut new.fields));
        self.0.open.lock().unwrap().insert(id, new);
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.with(span, |span| values.record(&mut Visitor(&mut span.fields)));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Visitor(&mut fields));
        let level = *event.metadata().level();
        self.0.events.lock().unwrap().push((level, fields));
    }

    fn enter(&self, span: &Id) {
        self.with(span, |span| span.entered += 1);
    }

    fn exit(&self, span: &Id) {
        self.with(span, |span| span.left += 1);
    }

    fn try_close(&self, id: Id) -> bool {
        let span = self.0.open.lock().unwrap().remove(&id.into_u64());
        self.0.closed.lock().unwrap().extend(span);
        true
    }
}

impl Kept {
    fn with(&self, id: &Id, f: impl FnOnce(&mut Span)) {
        f(self.0.open.lock().unwrap().get_mut(&id.into_u64()).unwrap());
    }

    /// Runs `f` with this subscriber on this thread.
    fn during<R>(&self, f: impl FnOnce() -> R) -> R {
        tracing::subscriber::with_default(self.clone(), f)
    }

    fn open(&self) -> usize {
        self.0.open.lock().unwrap().len()
    }

    fn closed(&self) -> Vec<Span> {
        self.0.closed.lock().unwrap().clone()
    }

    fn events(&self) -> Vec<(Level, Fields)> {
        self.0.events.lock().unwrap().clone()
    }
}

fn named() -> Pods {
    Cache::builder()
        .write_policy(WritePolicy::RejectOlder)
        .max_future_skew(Duration::from_secs(3600))
        .name("node 7")
        .build()
}

#[test]
fn a_blocking_wait_is_a_span() {
    let (kept, cache) = (Kept::default(), named());
    kept.during(|| {
        let wait = cache.subscribe(&1, t(5));
        assert_eq!(kept.open(), 0, "registering is no waiting");
        assert!(is_timed_out(&wait.wait_timeout(Duration::ZERO)));
        cache.set(&1, Val(1), t(5));
        assert!(wait.wait().is_ok(), "ready: no waiting either");
    });
    let [span] = kept.closed().try_into().unwrap();
    assert_eq!((span.name, kept.open()), ("wait", 0));
    assert_eq!((span.entered, span.left), (1, 1));
    let expected = [
        ("cache", "node 7"),
        ("by", "thread"),
        ("min", "1970-01-01T00:00:00.000000005Z"),
        ("outcome", "timed out"),
    ];
    let expected: Fields = expected.map(|(k, v)| (k, v.to_owned())).into();
    assert_eq!(span.fields, expected);
}

#[test]
fn a_thread_that_sleeps_is_in_its_span_until_it_is_woken() {
    let (kept, cache) = (Kept::default(), named());
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| kept.during(|| cache.get_newer_than(&1, t(5))));
        while kept.open() == 0 {
            std::thread::yield_now();
        }
        assert!(kept.closed().is_empty());
        cache.set(&1, Val(1), t(5));
        assert!(waiter.join().unwrap().is_ok());
    });
    let [span] = kept.closed().try_into().unwrap();
    assert_eq!(span.fields["outcome"], "ready");
}

#[test]
fn an_async_wait_is_one_span_over_all_its_polls() {
    let (kept, cache) = (Kept::default(), named());
    kept.during(|| {
        let mut wait = cache.subscribe(&1, t(5));
        for polls in 1..=3 {
            assert!(TestWaker::new().poll(&mut wait).is_pending());
            assert_eq!((kept.open(), kept.closed().len()), (1, 0));
            kept.with(&Id::from_u64(1), |span| {
                assert_eq!((span.entered, span.left), (polls, polls));
            });
        }
        cache.set(&1, Val(1), t(5));
        assert!(TestWaker::new().poll(&mut wait).is_ready());
        let [span] = kept.closed().try_into().unwrap();
        assert_eq!((span.fields["by"].as_str(), kept.open()), ("task", 0));
        assert_eq!(span.fields["outcome"], "ready");
        assert!(TestWaker::new().poll(&mut wait).is_ready());
        drop(wait);
        assert_eq!((kept.open(), kept.closed().len()), (0, 1));
    });
}

#[test]
fn how_a_wait_ended_is_told() {
    let (kept, cache) = (Kept::default(), named());
    kept.during(|| {
        let mut given_up = cache.subscribe(&1, t(5));
        assert!(TestWaker::new().poll(&mut given_up).is_pending());
        drop(given_up);
        let mut closed = cache.subscribe(&1, t(5));
        assert!(TestWaker::new().poll(&mut closed).is_pending());
        cache.close();
        assert!(TestWaker::new().poll(&mut closed).is_ready());
        // Closed before it began to wait.
        assert!(is_closed(&cache.get_newer_than(&1, t(5))));
    });
    let closed = kept.closed();
    let outcomes: Vec<_> = closed.iter().map(|span| &span.fields["outcome"]).collect();
    assert_eq!(outcomes, ["given up", "closed"]);
}

#[test]
fn refusals_are_told_and_nothing_else_of_writes_and_reads() {
    let (kept, cache) = (Kept::default(), named());
    let ahead = Timestamp::now() + Duration::from_secs(7200);
    kept.during(|| {
        cache.set(&1, Val(1), t(5));
        cache.get(&1);
        cache.try_get_newer_than(&1, t(4));
        cache.pin().get(&1);
        cache.set_observed_time(&1, t(6));
        cache.update_time(t(6));
        cache.relist(t(6), [(1, Val(1))]);
        cache.delete(&2);
        assert!(kept.events().is_empty() && kept.closed().is_empty());

        cache.set(&1, Val(2), t(4));
        cache.relist(t(4), [(1, Val(2))]);
        cache.set(&1, Val(2), ahead);
        cache.set_observed_time(&1, ahead);
        cache.update_time(ahead);
        cache.delete_at(&1, ahead);
        cache.relist(ahead, [(1, Val(2))]);
    });
    let events = kept.events();
    for (level, fields) in &events[..2] {
        assert_eq!(
            (*level, fields["message"].as_str()),
            (Level::DEBUG, "refused a set")
        );
        assert_eq!(fields["cache"], "node 7");
        assert_eq!(fields["policy"], "RejectOlder");
        assert_eq!(fields["time"], t(4).to_string());
    }
    let calls: Vec<_> = events[2..]
        .iter()
        .map(|(level, fields)| {
            assert_eq!((*level, &fields["time"]), (Level::WARN, &ahead.to_string()));
            assert_eq!(fields["max_future_skew"], "3600s");
            fields["call"].as_str()
        })
        .collect();
    let expected = [
        "set",
        "set_observed_time",
        "update_time",
        "delete_at",
        "relist",
    ];
    assert_eq!(calls, expected);
}

#[test]
fn closing_is_told_once() {
    let (kept, cache) = (Kept::default(), named());
    kept.during(|| {
        cache.close();
        cache.close();
        drop(cache);
        drop(Pods::new());
    });
    let told = kept.events();
    assert!(told.iter().all(|(_, fields)| fields["message"] == "closed"));
    assert_eq!(told.len(), 2);
    assert_eq!(told[0].1["cache"], "node 7");
    assert!(!told[1].1.contains_key("cache"), "it has no name");
}

/// Panics at everything that is told of a span after its start.
struct Broken;

impl Subscriber for Broken {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "podcache"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {
        panic!("a subscriber");
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn a_wait_is_given_up_though_the_subscriber_panics() {
    let cache = Pods::new();
    let waker = TestWaker::new();
    tracing::subscriber::with_default(Broken, || {
        let mut wait = cache.subscribe(&1, t(1));
        assert!(waker.poll(&mut wait).is_pending());
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(wait)));
        assert!(dropped.is_err(), "the panic is passed on");
    });
    assert_eq!((cache.waiters(), waker.handles()), (0, 0));
    cache.update_time(t(2));
    assert_eq!(waker.wakes(), 0);
}
