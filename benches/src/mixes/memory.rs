//! Bytes per key, bytes that stay after churn, and growth.

use std::pin::pin;
use std::task::{Context, Waker};

use super::{Bench, Experiment, Scope, Subject, every_peer};
use crate::alloc::Count;
use crate::data::{Key, Status, uuids};
use crate::harness::{cpu_time, flush_epochs};
use crate::peers::{CopyOnWrite, Peer};

pub(super) fn experiments(scope: Scope) -> Vec<Experiment> {
    let memory = |&count: &usize| {
        Experiment::new("memory", "keys", count, count as f64 * 2e-5, move |bench| {
            let keys = uuids(count);
            let _ = every_peer!(measure(bench, &keys));
        })
    };
    let growth = |&count: &usize| {
        Experiment::new(
            "growth",
            "keys",
            count,
            count as f64 * 2.5e-5,
            move |bench| {
                let keys = uuids(count);
                // To copy the map for each key would take for ever.
                let mut subjects = every_peer!(grow(&keys));
                subjects.retain(|subject| subject.name != CopyOnWrite::NAME);
                bench.run_rounds(3, &["ns per key"], subjects);
            },
        )
    };
    let sizes = scope.pick(&[1_000, 10_000][..], &[1_000, 10_000, 100_000]);
    let growths = scope.pick(&[100_000][..], &[10_000, 100_000, 1_000_000]);
    sizes
        .iter()
        .map(memory)
        .chain(growths.iter().map(growth))
        .collect()
}

/// Beyond this a map that is copied for each key is left out.
const COPIED: usize = 10_000;

fn measure<P: Peer>(bench: &mut Bench<'_>, keys: &[Key]) {
    if P::NAME == CopyOnWrite::NAME && keys.len() > COPIED {
        return;
    }
    Count::start();
    let live = || {
        flush_epochs();
        Count::now().live as f64
    };
    let peer = P::with_capacity(0);
    let empty = live();
    for key in keys {
        peer.set(key, Status::new(1), 1);
    }
    let full = live();
    for key in keys {
        let mut wait = pin!(peer.newer_than(key, 1));
        let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "nobody wakes it");
    }
    let cancelled = live();
    for key in keys {
        peer.delete(key);
    }
    let emptied = live();
    Count::stop();
    let per_key = |bytes: f64| bytes / keys.len() as f64;
    for (figure, bytes) in [
        ("bytes per key", full - empty),
        (
            "bytes per key kept by waits that were given up",
            cancelled - full,
        ),
        ("bytes per deleted key", emptied - empty),
    ] {
        bench.figure(P::NAME, figure, &[per_key(bytes)]);
    }
}

fn grow<P: Peer>(keys: &[Key]) -> Subject<'_> {
    Subject::new(P::NAME, move |_| {
        let peer = P::with_capacity(0);
        let start = cpu_time();
        for key in keys {
            peer.set(key, Status::new(1), 1);
        }
        vec![(cpu_time() - start).as_nanos() as f64 / keys.len() as f64]
    })
}
