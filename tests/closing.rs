//! Closing: by `close`, or by dropping the last `Cache`.

mod common;

use std::task::Poll;
use std::time::{Duration, Instant};

use common::model::Seen;
use common::values::Val;
use common::wakers::{TestWaker, is_closed, is_timed_out};
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, t};
use podcache::{Cache, Timestamp};

const AGES: Duration = Duration::from_secs(3600);

#[test]
fn close_ends_every_registered_wait() {
    let cache: Cache<u8, Val> = Cache::new();
    assert!(!cache.is_closed());
    cache.set(&1, Val(1), t(5));
    let waits = [
        cache.subscribe(&1, t(5)),
        cache.subscribe(&2, t(5)),
        cache.subscribe(&2, Timestamp::MAX),
    ];
    cache.close();
    assert!(cache.is_closed());
    for wait in &waits {
        assert!(is_closed(&wait.try_get().expect("over")));
        assert!(is_closed(&wait.wait()));
        assert!(is_closed(&wait.wait_timeout(AGES)));
        assert!(is_closed(&wait.wait_timeout(Duration::ZERO)));
    }
    assert_eq!(cache.waiters(), 0);
}

#[test]
fn close_ends_blocked_waits_of_every_kind() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| cache.get_newer_than(&1, t(5))),
            scope.spawn(|| cache.get_newer_than_timeout(&2, t(5), AGES)),
            scope.spawn(|| cache.get_newer_than_deadline(&1, t(5), Instant::now() + AGES)),
            scope.spawn(|| cache.subscribe(&3, t(5)).wait()),
            scope.spawn(|| common::wakers::block_on(cache.subscribe(&1, t(5)))),
        ];
        while cache.waiters() < waits.len() {
            std::thread::yield_now();
        }
        cache.close();
        for wait in waits {
            assert!(is_closed(&wait.join().unwrap()));
        }
    });
}

#[test]
fn close_calls_wakers_once_and_drops_them() {
    let cache: Cache<u8, Val> = Cache::new();
    let mut waiting = cache.subscribe(&1, t(5));
    let waker = TestWaker::new();
    assert!(waker.poll(&mut waiting).is_pending());
    cache.close();
    cache.close();
    assert_eq!((waker.wakes(), waker.handles()), (1, 0));
    assert!(matches!(
        waker.poll(&mut waiting),
        Poll::Ready(Err(podcache::WaitError::Closed))
    ));
}

#[test]
fn after_close_what_is_fresh_is_read_and_what_is_not_is_closed() {
    for policy in POLICIES {
        let cache = cache_with::<u8, Val>(policy);
        cache.set(&1, Val(1), t(5));
        cache.close();
        let fresh = cache.get_newer_than(&1, t(4)).unwrap();
        assert_eq!(Seen::of(&fresh), Seen::set(1, 5));
        assert!(cache.subscribe(&1, t(4)).wait().is_ok());
        assert!(cache.try_get_newer_than(&1, t(4)).is_some());

        assert!(cache.try_get_newer_than(&1, t(5)).is_none());
        assert!(is_closed(&cache.get_newer_than(&1, t(5))));
        assert!(is_closed(&cache.get_newer_than_timeout(&1, t(5), AGES)));
        let closed = cache.get_newer_than_timeout(&1, t(5), Duration::ZERO);
        assert!(is_closed(&closed), "closed comes before timed out");
        assert!(is_closed(&cache.get_newer_than_deadline(
            &2,
            t(5),
            Instant::now()
        )));
        let waiting = cache.subscribe(&1, t(5));
        assert!(is_closed(&waiting.try_get().expect("at once")));
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn reads_and_writes_go_on_after_close() {
    for policy in POLICIES {
        let cache = cache_with::<u8, Val>(policy);
        cache.close();
        assert!(cache.set(&1, Val(1), t(5)));
        cache.set_observed_time(&1, t(6));
        let expected = Seen {
            value: 1,
            times: Some((5, 6)),
        };
        assert_eq!(Seen::of(&cache.get(&1)), expected);
        cache.update_time(t(9));
        assert_eq!(cache.global_time(), t(9));
        assert!(
            cache.get_newer_than(&2, t(8)).is_ok(),
            "fresh by the global time"
        );
        assert!(cache.delete(&1));
        assert!(cache.is_empty());
        assert!(cache.is_closed());
    }
}

#[test]
fn a_wait_that_was_over_before_close_keeps_its_snapshot() {
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(5));
    cache.set(&1, Val(1), t(5));
    cache.close();
    assert_eq!(Seen::of(&waiting.wait().unwrap()), Seen::set(1, 5));
}

#[test]
fn a_wait_that_close_ended_stays_closed_whatever_comes() {
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(5));
    cache.close();
    cache.set(&1, Val(1), t(9));
    cache.update_time(t(9));
    assert!(is_closed(&waiting.wait()));
    assert!(
        cache.get_newer_than(&1, t(5)).is_ok(),
        "a new question has a new answer"
    );
}

#[test]
fn dropping_the_last_cache_closes() {
    let cache: Cache<u8, Val> = Cache::new();
    let clone = cache.clone();
    let reader = cache.read_only();
    let waiting = cache.subscribe(&1, t(5));
    let reading = reader.subscribe(&2, t(5));
    cache.set(&3, Val(3), t(5));
    drop(cache);
    assert!(waiting.try_get().is_none(), "a clone is left");
    drop(clone);
    assert!(is_closed(&waiting.try_get().expect("no cache is left")));
    assert!(is_closed(
        &reading.try_get().expect("readers do not keep it open")
    ));
    // The reader still reads.
    assert_eq!(Seen::of(&reader.get(&3)), Seen::set(3, 5));
    assert!(reader.get_newer_than(&3, t(4)).is_ok());
    assert!(is_closed(&reader.get_newer_than(&3, t(5))));
    assert_eq!(reader.iter().count(), 1);
}

#[test]
fn dropping_the_last_cache_ends_blocked_waits_and_wakes_tasks() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let reader = cache.read_only();
    let mut task = cache.subscribe(&1, t(5));
    let waker = TestWaker::new();
    assert!(waker.poll(&mut task).is_pending());
    std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| reader.get_newer_than(&1, t(5))),
            scope.spawn(|| reader.get_newer_than_timeout(&2, t(5), AGES)),
        ];
        while cache.waiters() < 3 {
            std::thread::yield_now();
        }
        drop(cache);
        for wait in waits {
            assert!(is_closed(&wait.join().unwrap()));
        }
    });
    assert_eq!((waker.wakes(), waker.handles()), (1, 0));
    assert!(is_closed(&task.wait()));
}

#[test]
fn a_subscription_neither_keeps_the_cache_open_nor_loses_by_its_end() {
    let cache: Cache<u8, Val> = Cache::new();
    let over = cache.subscribe(&1, t(5));
    cache.set(&1, Val(1), t(5));
    let open = cache.subscribe(&1, t(6));
    drop(cache);
    assert_eq!(Seen::of(&over.wait().unwrap()), Seen::set(1, 5));
    assert!(is_closed(&open.wait()));
}

#[test]
fn a_time_out_before_close_is_a_time_out_and_closed_after() {
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(5));
    assert!(is_timed_out(&waiting.wait_timeout(Duration::ZERO)));
    cache.close();
    assert!(is_closed(&waiting.wait_timeout(Duration::ZERO)));
}

#[test]
fn values_are_dropped_with_the_last_handle() {
    use common::values::{Live, TrapVal};
    let live = Live::default();
    let cache: Cache<u64, TrapVal> = Cache::new();
    for key in 0..100 {
        cache.set(&key, TrapVal::counted(key, &live), t(1));
    }
    let kept = cache.get(&7);
    let waiting = cache.subscribe(&200, t(5));
    drop(cache);
    drop(waiting);
    // Destruction may be deferred, and is driven by what other caches of the process do.
    let other: Cache<u64, Val> = Cache::new();
    let alive = || live.load(std::sync::atomic::Ordering::SeqCst);
    common::eventually(|| common::traffic(&other, &0), || alive() == 1);
    assert_eq!(kept.number, 7, "what is still held is still there");
    drop(kept);
    common::eventually(|| common::traffic(&other, &0), || alive() == 0);
}
