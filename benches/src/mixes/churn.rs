//! Waits that are given up, and keys that come and go.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};

use super::{Experiment, Scope, Subject, closed, every_peer, filled, note, seconds, slice_length};
use crate::data::{KEYS, Key, Order, Pick, Status, uuids};
use crate::harness::{Member, Run, together};
use crate::peers::Peer;
use crate::stats::histogram;

const FIGURES: &[&str] = &["operations/s"];

/// Of the operations one in so many is timed.
const TIMED: u64 = 8;

/// What is done over and over.
#[derive(Debug, Clone, Copy)]
enum Churn {
    /// Begin to wait, and give up.
    Wait,
    /// Insert a key of one's own, and delete it.
    Key,
}

pub(super) fn experiments(scope: Scope) -> Vec<Experiment> {
    let mixes = [
        ("wait and cancel", Churn::Wait),
        ("insert and delete", Churn::Key),
    ];
    let every = mixes
        .into_iter()
        .flat_map(|mix| closed::threads(scope).iter().map(move |&n| (mix, n)));
    every
        .map(|((name, churn), threads)| {
            let seconds = seconds(slice_length(threads, scope), scope);
            Experiment::new(name, "threads", threads, seconds, move |bench| {
                let keys: Arc<[Key]> = uuids(KEYS).into();
                bench.run(
                    FIGURES,
                    every_peer!(subject(name, churn, &keys, threads, scope)),
                );
            })
        })
        .collect()
}

fn subject<P: Peer>(
    name: &'static str,
    churn: Churn,
    keys: &Arc<[Key]>,
    threads: usize,
    scope: Scope,
) -> Subject<'static> {
    let peer = filled::<P>(keys);
    let keys = Arc::clone(keys);
    let fresh = uuids(KEYS + threads * 64).split_off(KEYS);
    let mut time = 1;
    Subject::new(P::NAME, move |latencies| {
        let members = (0..threads)
            .map(|at| -> Member<'_, _> {
                let (peer, keys) = (&*peer, &keys[..]);
                let own = &fresh[at * 64..(at + 1) * 64];
                let order = Order::new(Pick::Uniform, KEYS, at as u64);
                let min = time;
                Box::new(move |run: &Run| match churn {
                    Churn::Wait => timed(run, waits(peer, keys, order, min)),
                    Churn::Key => timed(run, inserts(peer, own)),
                })
            })
            .collect();
        let done = together(slice_length(threads, scope), members);
        // Those who gave up are told as well: a peer that keeps them is rid of them now.
        time += 1;
        peer.update_time(time);
        let mut count = 0;
        for (thread, times) in &done.results {
            count += thread;
            note(latencies, name, times);
        }
        vec![count as f64 / done.took.as_secs_f64()]
    })
}

fn waits<P: Peer>(peer: &P, keys: &[Key], mut order: Order, min: u64) -> impl FnMut() {
    move || {
        let mut wait = pin!(peer.newer_than(&keys[order.next()], min));
        let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending(), "nobody wakes it");
    }
}

fn inserts<P: Peer>(peer: &P, own: &[Key]) -> impl FnMut() {
    let mut turn = 0;
    move || {
        turn += 1;
        let key = &own[turn % own.len()];
        peer.set(key, Status::new(1), 1);
        peer.delete(key);
    }
}

fn timed(run: &Run, mut op: impl FnMut()) -> (u64, hdrhistogram::Histogram<u64>) {
    let clock = quanta::Clock::new();
    let mut times = histogram();
    let mut count = 0;
    while run.goes_on() {
        for _ in 1..TIMED {
            op();
        }
        let start = clock.raw();
        op();
        times.saturating_record(clock.delta_as_nanos(start, clock.raw()));
        count += TIMED;
    }
    (count, times)
}
