//! One wait and those who stand on it.

mod common;

use std::task::Poll;
use std::time::{Duration, Instant};

use common::model::Seen;
use common::values::Val;
use common::wakers::{TestWaker, block_on, is_timed_out, ready};
use common::watchdog::Watchdog;
use common::{rounds, t};
use podcache::Cache;

const AGES: Duration = Duration::from_secs(3600);

#[test]
fn several_threads_wait_on_one_subscription() {
    let _dog = Watchdog::start();
    for round in 0..rounds(300) {
        let cache: Cache<u8, Val> = Cache::new();
        let waiting = cache.subscribe(&1, t(5));
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6)
                .map(|n| {
                    let waiting = &waiting;
                    scope.spawn(move || match n % 3 {
                        0 => waiting.wait(),
                        1 => waiting.wait_timeout(AGES),
                        _ => waiting.wait_deadline(Instant::now() + AGES),
                    })
                })
                .collect();
            assert_eq!(cache.waiters(), 1, "one wait, however many stand on it");
            if round % 2 == 0 {
                std::thread::yield_now();
            }
            cache.set(&1, Val(1), t(5));
            let record = cache.get(&1);
            for thread in threads {
                let got = thread.join().unwrap().unwrap();
                assert!(
                    std::ptr::eq(got.value(), record.value()),
                    "all get the same one"
                );
            }
        });
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn a_thread_and_a_task_wait_on_one_subscription() {
    let _dog = Watchdog::start();
    for _ in 0..rounds(300) {
        let cache: Cache<u8, Val> = Cache::new();
        let mut waiting = cache.subscribe(&1, t(5));
        let waker = TestWaker::new();
        assert!(waker.poll(&mut waiting).is_pending());
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| waiting.wait());
            cache.set(&1, Val(1), t(5));
            assert!(thread.join().unwrap().is_ok());
        });
        assert_eq!((waker.wakes(), waker.handles()), (1, 0));
    }
}

#[test]
fn a_time_out_leaves_it_registered_to_be_waited_on_again() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let waiting = cache.subscribe(&1, t(5));
    for _ in 0..3 {
        assert!(is_timed_out(&waiting.wait_timeout(Duration::ZERO)));
        assert!(is_timed_out(
            &waiting.wait_timeout(Duration::from_micros(200))
        ));
        assert!(is_timed_out(&waiting.wait_deadline(Instant::now())));
        assert_eq!(cache.waiters(), 1);
        assert!(waiting.try_get().is_none());
    }
    cache.set(&1, Val(1), t(5));
    for waited in [waiting.wait_timeout(Duration::ZERO), waiting.wait()] {
        assert_eq!(Seen::of(&waited.unwrap()), Seen::set(1, 5));
    }
}

#[test]
fn some_time_out_while_others_stay_on_the_same_subscription() {
    let _dog = Watchdog::start();
    for _ in 0..rounds(100) {
        let cache: Cache<u8, Val> = Cache::new();
        let waiting = cache.subscribe(&1, t(5));
        std::thread::scope(|scope| {
            let stays = [
                scope.spawn(|| waiting.wait()),
                scope.spawn(|| waiting.wait_timeout(AGES)),
            ];
            let leaves = [
                scope.spawn(|| waiting.wait_timeout(Duration::from_micros(50))),
                scope.spawn(|| waiting.wait_timeout(Duration::ZERO)),
            ];
            for leaver in leaves {
                assert!(is_timed_out(&leaver.join().unwrap()));
            }
            cache.set(&1, Val(1), t(5));
            for stayer in stays {
                assert!(stayer.join().unwrap().is_ok());
            }
        });
    }
}

#[test]
fn a_timed_wait_that_gives_up_leaves_nothing() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    for micros in [0, 1, 50, 1_000] {
        let waited = cache.get_newer_than_timeout(&1, t(5), Duration::from_micros(micros));
        assert!(is_timed_out(&waited));
        let deadline = Instant::now() + Duration::from_micros(micros);
        assert!(is_timed_out(&cache.get_newer_than_deadline(
            &1,
            t(5),
            deadline
        )));
        assert_eq!(cache.waiters(), 0);
    }
}

#[test]
fn a_deadline_in_the_past_times_out_at_once_unless_the_answer_is_there() {
    let cache: Cache<u8, Val> = Cache::new();
    let Some(past) = Instant::now().checked_sub(Duration::from_millis(5)) else {
        return; // a machine that has just been started
    };
    assert!(is_timed_out(&cache.get_newer_than_deadline(&1, t(5), past)));
    let waiting = cache.subscribe(&1, t(5));
    assert!(is_timed_out(&waiting.wait_deadline(past)));
    cache.set(&1, Val(1), t(6));
    assert!(waiting.wait_deadline(past).is_ok());
    assert!(cache.get_newer_than_deadline(&1, t(5), past).is_ok());
}

#[test]
fn times_beyond_all_clocks_wait_without_an_end() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let far = (0..63)
        .rev()
        .find_map(|bits| Instant::now().checked_add(Duration::from_secs(1 << bits)));
    std::thread::scope(|scope| {
        let threads = [
            scope.spawn(|| cache.get_newer_than_timeout(&1, t(5), Duration::MAX)),
            scope.spawn(|| cache.get_newer_than_timeout(&1, t(5), Duration::from_secs(u64::MAX))),
            scope.spawn(|| cache.get_newer_than_deadline(&1, t(5), far.unwrap())),
            scope.spawn(|| cache.subscribe(&1, t(5)).wait_timeout(Duration::MAX)),
        ];
        while cache.waiters() < threads.len() {
            std::thread::yield_now();
        }
        cache.set(&1, Val(1), t(5));
        for thread in threads {
            assert!(thread.join().unwrap().is_ok());
        }
    });
}

#[test]
fn after_it_is_ready_every_call_gives_the_same_snapshot() {
    let cache: Cache<u8, Val> = Cache::new();
    let mut waiting = cache.subscribe(&1, t(5));
    cache.set(&1, Val(1), t(5));
    let first = ready(&waiting).unwrap();
    cache.set(&1, Val(2), t(9));
    cache.delete(&1);
    cache.close();
    for _ in 0..2 {
        let waker = TestWaker::new();
        let Poll::Ready(polled) = waker.poll(&mut waiting) else {
            panic!("ready before, not ready now");
        };
        let again = [
            waiting.try_get().unwrap(),
            waiting.wait(),
            waiting.wait_timeout(Duration::ZERO),
            waiting.wait_timeout(Duration::MAX),
            waiting.wait_deadline(Instant::now()),
            polled,
        ];
        for again in again {
            assert!(std::ptr::eq(again.unwrap().value(), first.value()));
        }
        assert_eq!((waker.wakes(), waker.handles()), (0, 0));
    }
    assert!(block_on(waiting).is_ok());
}

#[test]
fn a_poll_with_another_waker_replaces_the_first() {
    let cache: Cache<u8, Val> = Cache::new();
    let mut waiting = cache.subscribe(&1, t(5));
    let wakers = [0, 1, 2].map(|_| TestWaker::new());
    for waker in &wakers {
        assert!(waker.poll(&mut waiting).is_pending());
    }
    assert_eq!(wakers.each_ref().map(TestWaker::handles), [0, 0, 1]);
    cache.set(&1, Val(1), t(5));
    assert_eq!(wakers.each_ref().map(TestWaker::wakes), [0, 0, 1]);
    assert_eq!(wakers.each_ref().map(TestWaker::handles), [0, 0, 0]);
}

#[test]
fn a_poll_with_the_same_waker_keeps_one_of_it() {
    let cache: Cache<u8, Val> = Cache::new();
    let mut waiting = cache.subscribe(&1, t(5));
    let waker = TestWaker::new();
    for _ in 0..10 {
        assert!(waker.poll(&mut waiting).is_pending());
        assert_eq!(waker.handles(), 1);
    }
    cache.set(&1, Val(1), t(5));
    assert_eq!((waker.wakes(), waker.handles()), (1, 0));
}

#[test]
fn a_dropped_wait_drops_its_waker_and_never_calls_it() {
    let cache: Cache<u8, Val> = Cache::new();
    let waker = TestWaker::new();
    let mut waiting = cache.subscribe(&1, t(5));
    assert!(waker.poll(&mut waiting).is_pending());
    drop(waiting);
    assert_eq!(waker.handles(), 0);
    assert_eq!(cache.waiters(), 0);
    cache.set(&1, Val(1), t(5));
    cache.update_time(t(9));
    cache.close();
    assert_eq!(waker.wakes(), 0);
}

#[test]
fn a_subscription_may_move_between_threads() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let mut waiting = cache.subscribe(&1, t(5));
    // The first waker belongs to a thread that is gone.
    let waiting = std::thread::spawn(move || {
        assert!(TestWaker::new().poll(&mut waiting).is_pending());
        waiting
    })
    .join()
    .unwrap();
    let thread = std::thread::spawn(move || waiting.wait());
    cache.set(&1, Val(1), t(5));
    assert_eq!(Seen::of(&thread.join().unwrap().unwrap()), Seen::set(1, 5));
}

#[test]
fn a_thread_that_ends_in_mid_wait_leaves_nothing() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    for _ in 0..rounds(100) {
        let clone = cache.clone();
        // A panic unwinds through the wait's owner.
        let thread = std::thread::spawn(move || {
            let waiting = clone.subscribe(&1, t(5));
            let _ = waiting.wait_timeout(Duration::from_micros(10));
            std::panic::resume_unwind(Box::new("ends in the middle"));
        });
        assert!(thread.join().is_err());
    }
    assert_eq!(cache.waiters(), 0);
    cache.set(&1, Val(1), t(5));
}

#[test]
fn a_forgotten_subscription_holds_up_nobody() {
    let _dog = Watchdog::start();
    let cache: Cache<u8, Val> = Cache::new();
    let waker = TestWaker::new();
    for n in 0..100 {
        let mut waiting = cache.subscribe(&1, t(n));
        assert!(waker.poll(&mut waiting).is_pending());
        std::mem::forget(waiting);
    }
    let kept = cache.subscribe(&1, t(50));
    assert_eq!(cache.waiters(), 101, "nobody said that they gave up");
    cache.set(&1, Val(1), t(50));
    assert_eq!(Seen::of(&ready(&kept).unwrap()), Seen::set(1, 50));
    assert_eq!(waker.wakes(), 51);
    cache.close();
    assert_eq!(
        (cache.waiters(), waker.wakes(), waker.handles()),
        (0, 100, 0)
    );
}
