//! Many waiters at once, and what a waiter costs while it waits.

mod common;

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use common::t;
use common::values::Val;
use common::watchdog::Watchdog;
use podcache::Cache;

const TASKS: usize = 10_000;
const THREADS: usize = 1_000;
const KEYS: u64 = 500;

/// Ten thousand tasks and a thousand blocked threads, then `call`, then all have to come home.
fn all_at_once(call: impl Fn(&Cache<u64, Val>)) {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    let home = AtomicUsize::new(0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..TASKS as u64)
        .map(|n| runtime.spawn(cache.subscribe(&(n % KEYS), t(5))))
        .collect();
    std::thread::scope(|scope| {
        for n in 0..THREADS as u64 {
            let (cache, home) = (&cache, &home);
            std::thread::Builder::new()
                .stack_size(64 * 1_024)
                .spawn_scoped(scope, move || {
                    let key = n % KEYS;
                    let waited = match n % 2 {
                        0 => cache.get_newer_than(&key, t(5)),
                        _ => cache.get_newer_than_timeout(&key, t(5), Duration::from_secs(3_600)),
                    };
                    assert_ne!(waited.is_ok(), cache.is_closed());
                    home.fetch_add(1, SeqCst);
                })
                .expect("a thread");
        }
        while cache.waiters() < TASKS + THREADS {
            std::thread::yield_now();
        }
        assert_eq!(home.load(SeqCst), 0);
        call(&cache);
        assert_eq!(cache.waiters(), 0);
    });
    assert_eq!(home.load(SeqCst), THREADS);
    runtime.block_on(async {
        for task in tasks {
            assert_ne!(task.await.unwrap().is_ok(), cache.is_closed());
        }
    });
}

#[test]
fn one_update_wakes_them_all() {
    all_at_once(|cache| cache.update_time(t(5)));
}

#[test]
fn sets_wake_them_key_by_key() {
    all_at_once(|cache| (0..KEYS).for_each(|key| _ = cache.set(&key, Val(key), t(5))));
}

#[test]
fn close_lets_them_all_go() {
    all_at_once(|cache| cache.close());
}

type Wait = fn(&Cache<u64, Val>) -> bool;

/// The kernel's account of the time that the calling thread has spent on a processor.
#[cfg(target_os = "linux")]
fn own_cpu_time() -> Duration {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let on_cpu = schedstat.split_whitespace().next().unwrap();
    Duration::from_nanos(on_cpu.parse().unwrap())
}

#[cfg(target_os = "linux")]
#[test]
fn a_waiting_thread_uses_no_cpu() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    let waits: [Wait; 4] = [
        |c| c.get_newer_than(&1, t(5)).is_ok(),
        |c| {
            c.get_newer_than_timeout(&1, t(5), Duration::from_secs(3_600))
                .is_ok()
        },
        |c| c.subscribe(&1, t(5)).wait().is_ok(),
        |c| common::wakers::block_on(c.subscribe(&1, t(5))).is_ok(),
    ];
    std::thread::scope(|scope| {
        let waiting = waits.map(|wait| {
            let cache = &cache;
            scope.spawn(move || {
                let before = own_cpu_time();
                assert!(wait(cache));
                own_cpu_time() - before
            })
        });
        while cache.waiters() < waits.len() {
            std::thread::yield_now();
        }
        // Long against what a wait costs, and traffic beside it that does not concern it.
        for n in 0..200 {
            std::thread::sleep(Duration::from_millis(10));
            cache.set(&2, Val(n), t(n));
            cache.set(&1, Val(n), t(n % 5));
            cache.update_time(t(n % 5));
        }
        cache.set(&1, Val(1), t(5));
        for thread in waiting {
            let used = thread.join().unwrap();
            // Two seconds passed: a thread that spins would have had most of them.
            assert!(
                used < Duration::from_millis(100),
                "{used:?} of processor time"
            );
        }
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_thread_that_waits_for_a_deadline_uses_no_cpu() {
    let _dog = Watchdog::start();
    let cache: Cache<u64, Val> = Cache::new();
    let before = own_cpu_time();
    let waited = cache.get_newer_than_timeout(&1, t(5), Duration::from_secs(1));
    assert!(common::wakers::is_timed_out(&waited));
    let used = own_cpu_time() - before;
    assert!(
        used < Duration::from_millis(50),
        "{used:?} of processor time"
    );
}
