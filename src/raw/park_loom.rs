//! A futex for loom: the wait table of the kernel, as far as the protocol can tell.

use std::time::Instant;

use loom::sync::{Arc, Mutex, Notify};

use super::sync::{AtomicU32, Ordering};

/// The table keeps the list.
pub(super) struct Sleepers;

impl Sleepers {
    pub(super) fn new() -> Self {
        Sleepers
    }
}

loom::lazy_static! {
    static ref TABLE: Mutex<Vec<(usize, Arc<Notify>)>> = Mutex::new(Vec::new());
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

pub(super) fn wait(word: &AtomicU32, value: u32) {
    let mut table = TABLE.lock().unwrap();
    // Relaxed: the table's lock orders it with the change that precedes a wake.
    if word.load(Ordering::Relaxed) != value {
        return;
    }
    let notify = Arc::new(Notify::new());
    table.push((address(word), Arc::clone(&notify)));
    drop(table);
    notify.wait();
}

pub(super) fn wait_until(word: &AtomicU32, _: &Sleepers, value: u32, _: Instant) {
    wait(word, value);
}

pub(super) fn wake_all(word: &AtomicU32, _: &Sleepers) {
    TABLE.lock().unwrap().retain(|(sleeps_on, notify)| {
        let meant = *sleeps_on == address(word);
        if meant {
            notify.notify();
        }
        !meant
    });
}
