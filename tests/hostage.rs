//! Nobody is hostage to a stranger's task: whoever's waker does not return holds up the one call
//! that runs it, and whoever's panics is heard of there and nowhere else.

mod common;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use common::gate::Gate;
use common::trap::{self, Place, caught, panics};
use common::values::{Live, TrapVal, Val};
use common::wakers::{TestWaker, is_closed, is_timed_out, ready};
use common::watchdog::Watchdog;
use common::{POLICIES, cache_with, eventually, rounds, t};
use podcache::{
    Cache, Change, Changes, DefaultFor, Snapshot, Subscription, WaitError, WritePolicy,
};

type Call = fn(&Cache<u64, Val>);
type Way = fn(&Subscription<Val>) -> Result<Snapshot<Val>, WaitError>;

const KEY: u64 = 1;

/// Longer than anything here takes that is not held up.
const HELD_UP: Duration = Duration::from_secs(60);

/// What `f` comes to on a thread of its own, where nothing may hold it up.
#[track_caller]
fn unhindered<R: Send + 'static>(f: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, result) = mpsc::channel();
    std::thread::spawn(move || done.send(f()));
    result
        .recv_timeout(HELD_UP)
        .expect("it is held up, or panicked")
}

/// Runs `call` into a waker that stops it at the gate, then `meanwhile`; what the call comes to
/// when it is let go.
fn stopped<R: Send>(
    gate: &Arc<Gate>,
    call: impl FnOnce() -> R + Send,
    meanwhile: impl FnOnce(),
) -> R {
    std::thread::scope(|scope| {
        let _open = gate.open_on_drop();
        let stopped = scope.spawn(call);
        gate.await_arrivals(1);
        meanwhile();
        gate.open();
        stopped.join().unwrap()
    })
}

/// The waker of several tasks: the first that is called stops at the gate, the others do as
/// `others` does.
fn first_stops(gate: &Arc<Gate>, others: impl Fn() + Send + Sync + 'static) -> TestWaker {
    let gate = Arc::clone(gate);
    let called = AtomicBool::new(false);
    TestWaker::calling(move || match called.swap(true, SeqCst) {
        false => gate.enter(),
        true => others(),
    })
}

/// A subscription that a task waits for.
fn task<V: DefaultFor<u64> + Send + Sync + 'static>(
    cache: &Cache<u64, V>,
    key: u64,
    waker: &TestWaker,
) -> Subscription<V> {
    let mut wait = cache.subscribe(&key, t(5));
    assert!(waker.poll(&mut wait).is_pending());
    wait
}

fn listen<V: Send + Sync + 'static>(changes: &mut Changes<u64, V>, waker: &TestWaker) {
    let waker = waker.waker();
    let mut next = || changes.poll_next(&mut Context::from_waker(&waker));
    while next().is_ready() {}
}

#[test]
fn a_listener_that_does_not_return_holds_up_its_writer_alone() {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        let live = Live::default();
        let cache = cache_with::<u64, TrapVal>(policy);
        let gate = Gate::new();
        let listener = first_stops(&gate, || {});
        let mut changes = cache.changes();
        listen(&mut changes, &listener);
        let (done, result) = mpsc::channel();
        let waiting = std::thread::spawn({
            let cache = cache.clone();
            move || done.send(cache.get_newer_than(&KEY, t(5)).map(|got| got.number))
        });
        while cache.waiters() == 0 {
            std::thread::yield_now();
        }
        let set = |number| cache.set(&KEY, TrapVal::counted(number, &live), t(6));
        let meanwhile = || {
            assert_eq!(result.recv_timeout(HELD_UP), Ok(Ok(7)), "{policy:?}");
            // No guard is held in the waker: what is replaced goes away.
            let replace = || assert!(set(8));
            (0..10_000).for_each(|_| replace());
            eventually(replace, || live.load(SeqCst) < 1_000);
        };
        assert!(stopped(&gate, || set(7), meanwhile));
        assert!(waiting.join().unwrap().is_ok());
        assert_eq!((listener.wakes(), listener.handles()), (1, 0));
        let next = changes.try_next();
        assert!(matches!(next, Some(Change::Set { snapshot, .. }) if snapshot.number == 8));
    }
}

#[test]
fn a_listener_that_panics_is_heard_of_by_its_writer() {
    let _dog = Watchdog::start();
    let writes: [(&str, Call); 3] = [
        ("set", |c| _ = c.set(&KEY, Val(2), t(6))),
        ("delete", |c| _ = c.delete(&KEY)),
        ("delete_at", |c| _ = c.delete_at(&KEY, t(6))),
    ];
    for policy in POLICIES {
        for (name, write) in writes {
            let cache = cache_with::<u64, Val>(policy);
            cache.set(&KEY, Val(1), t(1));
            let listener = TestWaker::new();
            let mut changes = cache.changes();
            listen(&mut changes, &listener);
            let came_out = panics(Place::Wake, 0, || write(&cache)).is_none();
            assert!(came_out, "{name} under {policy:?}");
            assert_eq!(cache.contains(&KEY), name == "set", "it was done by then");
            assert_eq!((listener.wakes(), listener.handles()), (1, 0));
            assert!(changes.try_next().is_some());
        }
    }
}

#[test]
fn a_reader_calls_no_listener() {
    let _dog = Watchdog::start();
    for policy in POLICIES {
        let cache = cache_with::<u64, Val>(policy);
        let writer = std::thread::current().id();
        let strangers = Arc::new(AtomicUsize::new(0));
        let listener = TestWaker::calling({
            let strangers = Arc::clone(&strangers);
            move || {
                let by_a_reader = std::thread::current().id() != writer;
                strangers.fetch_add(usize::from(by_a_reader), SeqCst);
            }
        });
        let mut changes = cache.changes();
        let stop = AtomicBool::new(false);
        let rounds = rounds(20_000);
        let reading = |read: &mut dyn FnMut()| {
            while !stop.load(SeqCst) {
                read();
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| reading(&mut || drop(cache.get(&KEY))));
            scope.spawn(|| reading(&mut || _ = cache.pin().get(&KEY)));
            scope.spawn(|| {
                let mut tracker = cache.track(&KEY);
                reading(&mut || _ = tracker.load());
            });
            for n in 1..=rounds as u64 {
                listen(&mut changes, &listener);
                cache.set(&KEY, Val(n), t(n));
            }
            stop.store(true, SeqCst);
        });
        assert_eq!(strangers.load(SeqCst), 0, "{policy:?}");
        assert_eq!(listener.wakes(), rounds, "once for each set, by its writer");
    }
}

/// Calls that name the waits of two tasks, with and without a record.
const NAMING: [(&str, bool, Call); 5] = [
    ("set", true, |c| _ = c.set(&KEY, Val(7), t(6))),
    ("observe", true, |c| c.set_observed_time(&KEY, t(6))),
    ("update", true, |c| c.update_time(t(6))),
    ("observe", false, |c| c.set_observed_time(&KEY, t(6))),
    ("update", false, |c| c.update_time(t(6))),
];

/// A cache, two tasks that are about to be named, and somebody who waits for later.
fn two_tasks(
    record: bool,
    waker: &TestWaker,
) -> (Cache<u64, Val>, [Subscription<Val>; 2], Subscription<Val>) {
    let cache = Cache::new();
    if record {
        cache.set(&KEY, Val(7), t(1));
    }
    let tasks = [0, 1].map(|_| task(&cache, KEY, waker));
    let third = cache.subscribe(&KEY, t(100));
    (cache, tasks, third)
}

/// What others do on a key between the call that names tasks and the next one that wakes. They
/// wake nobody.
fn strangers_come_and_go(cache: &Cache<u64, Val>, third: Subscription<Val>) {
    if cache.try_get_newer_than(&KEY, t(5)).is_some() {
        let cache = cache.clone();
        unhindered(move || {
            assert!(cache.get_newer_than(&KEY, t(5)).is_ok());
            let in_time = cache.get_newer_than_timeout(&KEY, t(5), Duration::MAX);
            assert!(in_time.is_ok());
            assert!(ready(&cache.subscribe(&KEY, t(5))).is_some());
        });
    }
    let cache = cache.clone();
    unhindered(move || {
        let fourth = cache.subscribe(&KEY, t(100));
        assert!(fourth.try_get().is_none());
        let late = cache.get_newer_than_timeout(&KEY, t(100), Duration::from_millis(1));
        assert!(is_timed_out(&late));
        assert!(is_timed_out(&fourth.wait_timeout(Duration::ZERO)));
        drop(third);
        drop(fourth);
    });
}

/// Whatever happened: nobody waits, and there is a slot for a record and no other.
fn nothing_is_left(cache: &Cache<u64, Val>, waker: &TestWaker, case: &str) {
    assert_eq!(waker.handles(), 0, "{case}: wakers");
    assert_eq!(cache.waiters(), 0, "{case}: waiters");
    assert_eq!(cache.stats().index_slots, cache.len(), "{case}: slots");
}

#[test]
fn who_is_not_named_runs_no_task_that_does_not_return() {
    let _dog = Watchdog::start();
    for (name, record, naming) in NAMING {
        let case = format!("{name}, record: {record}");
        let gate = Gate::new();
        let waker = TestWaker::calling({
            let gate = Arc::clone(&gate);
            move || gate.enter()
        });
        let (cache, tasks, third) = two_tasks(record, &waker);
        stopped(
            &gate,
            || naming(&cache),
            || {
                strangers_come_and_go(&cache, third);
                assert_eq!(waker.wakes(), 1, "{case}");
            },
        );
        assert_eq!(waker.wakes(), 2, "{case}: the call itself, at last");
        assert!(tasks.iter().all(|wait| ready(wait).is_some()), "{case}");
        nothing_is_left(&cache, &waker, &case);
    }
}

#[test]
fn who_is_not_named_hears_of_no_panic() {
    let _dog = Watchdog::start();
    for (name, record, naming) in NAMING {
        let case = format!("{name}, record: {record}");
        let gate = Gate::new();
        let waker = first_stops(&gate, || panic!("{}", trap::MESSAGE));
        let (cache, tasks, third) = two_tasks(record, &waker);
        let own = stopped(
            &gate,
            || caught(|| naming(&cache)),
            || {
                strangers_come_and_go(&cache, third);
                assert_eq!(waker.wakes(), 1, "{case}");
            },
        );
        assert!(own.is_none(), "{case}: its caller does");
        assert_eq!(waker.wakes(), 2, "{case}");
        assert!(tasks.iter().all(|wait| ready(wait).is_some()), "{case}");
        nothing_is_left(&cache, &waker, &case);
    }
}

#[test]
fn the_next_call_that_wakes_calls_who_is_left() {
    const NEXT: [(&str, Call); 8] = [
        ("set", |c| _ = c.set(&KEY, Val(9), t(9))),
        ("older set", |c| _ = c.set(&KEY, Val(9), t(1))),
        ("observe", |c| c.set_observed_time(&KEY, t(9))),
        ("observe again", |c| c.set_observed_time(&KEY, t(6))),
        ("update", |c| c.update_time(t(9))),
        ("update back", |c| c.update_time(t(1))),
        ("close", |c| c.close()),
        ("delete", |c| _ = c.delete(&KEY)),
    ];
    let _dog = Watchdog::start();
    for (name, record, naming) in NAMING {
        for (next_name, next) in NEXT {
            // Without a record there is nothing to delete.
            if next_name == "delete" && !record {
                continue;
            }
            for come_and_go in [false, true] {
                let case = format!("{name}, record: {record}, others: {come_and_go}, {next_name}");
                let gate = Gate::new();
                let waker = first_stops(&gate, || {});
                let (cache, tasks, third) = two_tasks(record, &waker);
                stopped(
                    &gate,
                    || naming(&cache),
                    || {
                        match come_and_go {
                            true => strangers_come_and_go(&cache, third),
                            false => drop(third),
                        }
                        assert_eq!(waker.wakes(), 1, "{case}");
                        let called = unhindered({
                            let (cache, waker) = (cache.clone(), waker.clone());
                            move || {
                                next(&cache);
                                waker.wakes()
                            }
                        });
                        assert_eq!(called, 2, "{case}");
                        assert_eq!(waker.handles(), 1, "{case}: the one that is being called");
                    },
                );
                assert_eq!(waker.wakes(), 2, "{case}: each once");
                let expected = if record { Val(7) } else { Val::default_of(KEY) };
                for wait in &tasks {
                    assert_eq!(*ready(wait).unwrap(), expected, "{case}");
                }
                nothing_is_left(&cache, &waker, &case);
            }
        }
    }
}

/// More than are looked at under one guard.
const KEYS: u64 = 80;

/// The calls that name waits on all keys, and whether they end them as closed.
const UPDATE: (Call, bool) = (|c| c.update_time(t(6)), false);
const CLOSE: (Call, bool) = (|c| c.close(), true);

/// A call on all keys is stopped in the waker of one: of each key there is a task and a thread.
fn stopped_on_one_of_many((call, closes): (Call, bool), has_record: impl Fn(u64) -> bool) {
    let _dog = Watchdog::start();
    let cache = Cache::<u64, Val>::new();
    let gate = Gate::new();
    let waker = first_stops(&gate, || {});
    for key in (0..KEYS).filter(|key| has_record(*key)) {
        cache.set(&key, Val(key), t(1));
    }
    let tasks: Vec<_> = (0..KEYS).map(|key| task(&cache, key, &waker)).collect();
    // With somebody who goes on waiting, a key is served in another way.
    let others: Vec<_> = (0..KEYS)
        .step_by(3)
        .map(|key| cache.subscribe(&key, t(1_000)))
        .collect();
    let (done, results) = mpsc::channel();
    for key in 0..KEYS {
        let (cache, done) = (cache.clone(), done.clone());
        std::thread::spawn(move || done.send((key, cache.get_newer_than(&key, t(5)))));
    }
    let all = 2 * KEYS as usize + others.len();
    while cache.waiters() < all {
        std::thread::yield_now();
    }
    let meanwhile = || {
        for _ in 0..KEYS {
            let (key, result) = results.recv_timeout(HELD_UP).expect("a thread sleeps on");
            match result {
                Ok(snapshot) => {
                    assert!(!closes);
                    assert_eq!(snapshot.is_present(), has_record(key));
                    let missing = Val::default_for(&key);
                    assert_eq!(*snapshot, if has_record(key) { Val(key) } else { missing });
                }
                end => assert!(closes && is_closed(&end)),
            }
        }
        assert_eq!(waker.wakes(), 1);
        drop(tasks);
        assert_eq!(waker.handles(), 1, "the one that is being called");
    };
    stopped(&gate, || call(&cache), meanwhile);
    assert_eq!(waker.wakes(), 1, "the other tasks were gone");
    drop(others);
    assert_eq!((waker.handles(), cache.waiters()), (0, 0));
    assert_eq!(cache.stats().index_slots, cache.len());
}

#[test]
fn update_time_stopped_at_one_key_has_served_all_others() {
    stopped_on_one_of_many(UPDATE, |_| true);
    stopped_on_one_of_many(UPDATE, |key| key % 2 == 0);
}

#[test]
fn close_stopped_at_one_key_has_served_all_others() {
    stopped_on_one_of_many(CLOSE, |key| key % 2 == 0);
}

#[test]
fn a_named_wait_does_not_sleep() {
    let _dog = Watchdog::start();
    for (call, closes) in [CLOSE, UPDATE] {
        let cache = Cache::<u64, Val>::new();
        let gate = Gate::new();
        let waker = first_stops(&gate, || {});
        let tasks: Vec<_> = (0..KEYS)
            .map(|key| {
                cache.set(&key, Val(key), t(1));
                task(&cache, key, &waker)
            })
            .collect();
        let meanwhile = || {
            unhindered(move || {
                for (key, wait) in (0..).zip(&tasks) {
                    // Each asks first for a third of the keys.
                    let mut ways: [Way; 3] = [
                        |wait| wait.wait(),
                        |wait| wait.wait_timeout(Duration::MAX),
                        |wait| wait.wait_deadline(Instant::now() + 60 * HELD_UP),
                    ];
                    ways.rotate_left(key as usize % 3);
                    for way in ways {
                        match way(wait) {
                            Ok(snapshot) => assert_eq!((*snapshot, closes), (Val(key), false)),
                            end => assert!(closes && is_closed(&end)),
                        }
                    }
                }
            });
        };
        stopped(&gate, || call(&cache), meanwhile);
        assert_eq!(waker.handles(), 0);
    }
}

#[test]
fn a_task_that_is_ready_is_not_called() {
    let _dog = Watchdog::start();
    for (name, record, naming) in NAMING {
        let case = format!("{name}, record: {record}");
        let gate = Gate::new();
        let waker = first_stops(&gate, || {});
        let (cache, mut tasks, _third) = two_tasks(record, &waker);
        let meanwhile = || {
            let again = TestWaker::new();
            for wait in &mut tasks {
                assert!(matches!(again.poll(wait), Poll::Ready(Ok(_))), "{case}");
            }
            assert_eq!(waker.handles(), 1, "{case}: the one that is being called");
            assert_eq!(again.handles(), 0, "{case}");
        };
        stopped(&gate, || naming(&cache), meanwhile);
        assert_eq!((waker.wakes(), waker.handles()), (1, 0), "{case}");
    }
}

/// The task that is called first polls the other.
#[test]
fn a_task_that_another_polled_is_not_called() {
    let _dog = Watchdog::start();
    for (name, record, naming) in NAMING {
        let case = format!("{name}, record: {record}");
        let tasks: Arc<Mutex<Vec<Subscription<Val>>>> = Arc::default();
        let waker = TestWaker::calling({
            let tasks = Arc::clone(&tasks);
            move || {
                for wait in tasks.lock().unwrap().iter_mut() {
                    assert!(TestWaker::new().poll(wait).is_ready());
                }
            }
        });
        let (cache, waits, _third) = two_tasks(record, &waker);
        tasks.lock().unwrap().extend(waits);
        naming(&cache);
        assert_eq!((waker.wakes(), waker.handles()), (1, 0), "{case}");
        tasks.lock().unwrap().clear();
    }
}

/// The task that is called gives up the wait of another, which was all that the slot was still for.
#[test]
fn a_wait_that_a_task_gives_up_leaves_nothing() {
    let _dog = Watchdog::start();
    for (name, record, naming) in NAMING {
        let case = format!("{name}, record: {record}");
        let third: Arc<Mutex<Option<Subscription<Val>>>> = Arc::default();
        let waker = TestWaker::calling({
            let third = Arc::clone(&third);
            move || {
                let given_up = third.lock().unwrap().take();
                drop(given_up); // without the lock
            }
        });
        let (cache, tasks, waiting) = two_tasks(record, &waker);
        *third.lock().unwrap() = Some(waiting);
        naming(&cache);
        assert_eq!(waker.wakes(), 2, "{case}");
        drop(tasks);
        nothing_is_left(&cache, &waker, &case);
    }
}

/// Under `Monotonic` a write is first proposed; what it names and whom it leaves is the same.
#[test]
fn a_proposal_carries_on_who_is_left() {
    let _dog = Watchdog::start();
    let next: [(&str, Call); 3] = [
        ("set", |c| _ = c.set(&KEY, Val(9), t(9))),
        ("delete", |c| _ = c.delete(&KEY)),
        ("delete_at", |c| _ = c.delete_at(&KEY, t(9))),
    ];
    for (name, next) in next {
        let cache = cache_with::<u64, Val>(WritePolicy::Monotonic);
        let gate = Gate::new();
        let waker = first_stops(&gate, || {});
        let tasks = [0, 1].map(|_| task(&cache, KEY, &waker));
        let third = cache.subscribe(&KEY, t(100));
        let meanwhile = || {
            strangers_come_and_go(&cache, third);
            assert!(!cache.set(&KEY, Val(8), t(5)), "refused: it wakes nobody");
            assert_eq!(waker.wakes(), 1, "{name}");
            unhindered({
                let cache = cache.clone();
                move || next(&cache)
            });
            assert_eq!(waker.wakes(), 2, "{name}");
        };
        assert!(stopped(&gate, || cache.set(&KEY, Val(7), t(6)), meanwhile));
        assert!(tasks.iter().all(|wait| *ready(wait).unwrap() == Val(7)));
        // A tombstone is kept until then.
        cache.update_time(t(10));
        nothing_is_left(&cache, &waker, name);
    }
}
