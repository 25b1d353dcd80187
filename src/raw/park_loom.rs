//! A futex for loom: the kernel's wait table, as far as the protocol can tell apart.
//!
//! A wait may return for no reason, once in an execution: without a bound, two waiters could keep
//! each other turning for ever. Deadlines pass when the model says so, by [`let_time_pass`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool as Flag;
use std::time::Instant;

#[cfg(not(podcache_shuttle))]
use loom::sync::Notify;

use super::sync::model::{self, sync::Mutex};
use super::sync::{AtomicBool, AtomicU32, Ordering};

/// The table keeps the list.
pub(super) struct Sleepers;

impl Sleepers {
    pub(super) fn new() -> Self {
        Sleepers
    }
}

struct Sleeper {
    word: usize,
    timed: bool,
    notify: Notify,
    /// Not a part of the model, so not an atomic of it.
    woken: Flag,
}

struct Table {
    sleepers: Vec<Arc<Sleeper>>,
    /// How many waits may still return for no reason.
    spurious: usize,
}

model::lazy_static! {
    static ref TABLE: Mutex<Table> = Mutex::new(Table { sleepers: Vec::new(), spurious: 1 });
    static ref TIME_HAS_PASSED: AtomicBool = AtomicBool::new(false);
}

impl Table {
    fn wake(&mut self, meant: impl Fn(&Sleeper) -> bool) {
        self.sleepers.retain(|sleeper| {
            let meant = meant(sleeper);
            if meant {
                sleeper.woken.store(true, Ordering::Relaxed);
                sleeper.notify.notify();
            }
            !meant
        });
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

fn sleep(word: &AtomicU32, value: u32, timed: bool) {
    let mut table = TABLE.lock().unwrap();
    // Relaxed: the table's lock orders it with the change that precedes a wake.
    if word.load(Ordering::Relaxed) != value {
        return;
    }
    let sleeper = Arc::new(Sleeper {
        word: address(word),
        timed,
        notify: Notify::new(),
        woken: Flag::new(false),
    });
    table.sleepers.push(Arc::clone(&sleeper));
    drop(table);
    loop {
        // Each `Notify` may return for no reason once.
        sleeper.notify.wait();
        if sleeper.woken.load(Ordering::Relaxed) {
            return;
        }
        let mut table = TABLE.lock().unwrap();
        if table.spurious > 0 {
            table.spurious -= 1;
            table.sleepers.retain(|other| !Arc::ptr_eq(other, &sleeper));
            return;
        }
    }
}

pub(super) fn wait(word: &AtomicU32, value: u32) {
    sleep(word, value, false);
}

pub(super) fn wait_until(word: &AtomicU32, _: &Sleepers, value: u32, _: Instant) {
    sleep(word, value, true);
}

pub(super) fn wake_all(word: &AtomicU32, _: &Sleepers) {
    let word = address(word);
    TABLE.lock().unwrap().wake(|sleeper| sleeper.word == word);
}

pub(super) fn has_passed(_: Instant) -> bool {
    // Relaxed, as the store: a thread that nothing orders after it may see either.
    TIME_HAS_PASSED.load(Ordering::Relaxed)
}

/// All deadlines pass, at this instant of the calling thread.
pub(crate) fn let_time_pass() {
    TIME_HAS_PASSED.store(true, Ordering::Relaxed);
    TABLE.lock().unwrap().wake(|sleeper| sleeper.timed);
}

#[cfg(podcache_shuttle)]
use notify::Notify;

/// loom's `Notify` for shuttle.
#[cfg(podcache_shuttle)]
mod notify {
    use shuttle::rand::{Rng, thread_rng};
    use shuttle::sync::{Condvar, Mutex};

    pub(super) struct Notify {
        notified: Mutex<bool>,
        changed: Condvar,
        may_spur: Mutex<bool>,
    }

    impl Notify {
        pub(super) fn new() -> Self {
            Notify {
                notified: Mutex::new(false),
                changed: Condvar::new(),
                may_spur: Mutex::new(true),
            }
        }

        pub(super) fn notify(&self) {
            *self.notified.lock().unwrap() = true;
            self.changed.notify_one();
        }

        pub(super) fn wait(&self) {
            let may_spur = std::mem::take(&mut *self.may_spur.lock().unwrap());
            if may_spur && thread_rng().gen_bool(0.1) {
                return;
            }
            let mut notified = self.notified.lock().unwrap();
            while !*notified {
                notified = self.changed.wait(notified).unwrap();
            }
        }
    }
}
