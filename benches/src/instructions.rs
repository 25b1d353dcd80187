//! Instructions and locked operations of the uncontended paths, counted by callgrind.
//!
//! A count is the same on a noisy machine: the steadiest figure there is, though not a time.

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, bail};
use podcache::Timestamp;

use crate::alloc::Count;
use crate::data::{Hasher, KEYS, Key, Order, Pick, Record, Status, uuids};
use crate::harness::flush_epochs;
use crate::peers::{
    CopyOnWrite, DashTable, OneLock, Ours, PapayaEvents, ParkingLot, Peer, SccTable, Snapshot, Std,
    TableWatch, WatchMap,
};

/// What one call of a path costs.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Instructions.
    pub instructions: f64,
    /// Instructions that lock the bus (or the cache line).
    pub locked: f64,
    /// Allocations.
    pub allocations: f64,
}

/// The operations that are counted for every peer.
const OPERATIONS: [&str; 7] = [
    "get",
    "get of a missing key",
    "set",
    "update_time",
    "wait and cancel",
    "wait, woken by set",
    "wait, woken by update_time",
];

/// The operations that only we have.
const OURS_ONLY: [&str; 3] = [
    "pinned get",
    "try_get_newer_than, fresh",
    "get_newer_than, fresh",
];

/// Maps that cannot wait, for comparison, with the operations that are counted for each.
const MAPS: [(&str, &[&str]); 3] = [
    ("HashMap (read-only)", &["get"]),
    ("papaya (map only)", &["get", "set"]),
    ("RwLock<HashMap> (map only)", &["get", "set"]),
];

/// The empty loop, which is taken off every count.
const NOTHING: &str = "nothing";

/// Few enough for callgrind, which is slow.
const FEW_CALLS: u64 = 2_000;

/// How often a path is run.
static CALLS: AtomicU64 = AtomicU64::new(FEW_CALLS);

/// All that happens while callgrind counts.
#[inline(never)]
fn measured(op: &mut dyn FnMut()) {
    repeat(op);
}

fn repeat(op: &mut dyn FnMut()) {
    for _ in 0..CALLS.load(Relaxed) {
        op();
    }
}

/// Warms up, has the instructions counted, and then, since counting costs instructions, the
/// allocations.
fn look_at(op: &mut dyn FnMut()) {
    repeat(op);
    flush_epochs();
    measured(op);
    Count::start();
    repeat(op);
    println!("{}", Count::stop().calls);
}

fn run_peer<P: Peer>(operation: &str) -> anyhow::Result<()> {
    let keys = uuids(KEYS + 1);
    let (missing, keys) = keys.split_last().expect("there are keys");
    let peer = P::with_capacity(KEYS);
    for key in keys {
        peer.set(key, Status::new(1), 1);
    }
    let mut order = Order::new(Pick::Uniform, KEYS, 1);
    let mut time = 1;
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let op: &mut dyn FnMut() = match operation {
        NOTHING => &mut || {
            black_box(&keys[order.next()]);
        },
        "get" => &mut || {
            black_box(peer.get(&keys[order.next()]).status().generation);
        },
        "get of a missing key" => &mut || drop(black_box(peer.get(missing))),
        "set" => &mut || {
            time += 1;
            peer.set(&keys[order.next()], Status::new(time), time);
        },
        "update_time" => &mut || {
            time += 1;
            peer.update_time(time);
        },
        "wait and cancel" => &mut || {
            let mut wait = std::pin::pin!(peer.newer_than(&keys[order.next()], 1));
            assert!(wait.as_mut().poll(&mut context).is_pending(), "it waits");
        },
        "wait, woken by set" => &mut || {
            let key = &keys[order.next()];
            let mut wait = std::pin::pin!(peer.newer_than(key, time));
            assert!(wait.as_mut().poll(&mut context).is_pending(), "it waits");
            time += 1;
            peer.set(key, Status::new(time), time);
            assert!(wait.as_mut().poll(&mut context).is_ready(), "it was woken");
        },
        "wait, woken by update_time" => &mut || {
            let mut wait = std::pin::pin!(peer.newer_than(&keys[order.next()], time));
            assert!(wait.as_mut().poll(&mut context).is_pending(), "it waits");
            time += 1;
            peer.update_time(time);
            assert!(wait.as_mut().poll(&mut context).is_ready(), "it was woken");
        },
        _ => bail!("no operation is called {operation}"),
    };
    look_at(op);
    Ok(())
}

fn run_ours(operation: &str) -> anyhow::Result<()> {
    let keys = uuids(KEYS);
    let ours = Ours::with_capacity(KEYS);
    for key in &keys {
        ours.set(key, Status::new(1), 1);
    }
    let mut order = Order::new(Pick::Uniform, KEYS, 1);
    match operation {
        "pinned get" => {
            let pinned = ours.0.pin();
            look_at(&mut || {
                let entry = pinned.get(&keys[order.next()]).expect("a key that was set");
                black_box(entry.value().generation);
            });
        }
        "try_get_newer_than, fresh" => look_at(&mut || {
            drop(black_box(
                ours.0
                    .try_get_newer_than(&keys[order.next()], Timestamp::ZERO),
            ));
        }),
        "get_newer_than, fresh" => look_at(&mut || {
            drop(black_box(
                ours.0.get_newer_than(&keys[order.next()], Timestamp::ZERO),
            ));
        }),
        _ => return run_peer::<Ours>(operation),
    }
    Ok(())
}

fn run_map(map: &str, operation: &str) -> anyhow::Result<()> {
    let keys = uuids(KEYS);
    let mut order = Order::new(Pick::Uniform, KEYS, 1);
    let mut time = 1;
    let record = |time| Record::new(Status::new(time), time);
    let plain: HashMap<Key, Arc<Record>, Hasher> =
        keys.iter().map(|key| (key.clone(), record(1))).collect();
    let papaya = papaya::HashMap::with_capacity_and_hasher(KEYS, Hasher::default());
    for key in &keys {
        papaya.pin().insert(key.clone(), record(1));
    }
    let locked = parking_lot::RwLock::new(plain.clone());
    let op: &mut dyn FnMut() = match (map, operation) {
        ("HashMap (read-only)", "get") => &mut || {
            black_box(
                plain
                    .get(&keys[order.next()])
                    .map(|record| record.status.generation),
            );
        },
        ("papaya (map only)", "get") => &mut || {
            let record = papaya.pin().get(&keys[order.next()]).cloned();
            black_box(record.map(|record| record.status.generation));
        },
        ("papaya (map only)", "set") => &mut || {
            time += 1;
            papaya
                .pin()
                .insert(keys[order.next()].clone(), record(time));
        },
        ("RwLock<HashMap> (map only)", "get") => &mut || {
            let record = locked.read().get(&keys[order.next()]).cloned();
            black_box(record.map(|record| record.status.generation));
        },
        ("RwLock<HashMap> (map only)", "set") => &mut || {
            time += 1;
            let record = record(time);
            if let Some(old) = locked.write().get_mut(&keys[order.next()]) {
                *old = record;
            }
        },
        _ => bail!("no peer or map is called {map}, or it has no {operation}"),
    };
    look_at(op);
    Ok(())
}

/// The peers whose paths are counted.
const PEERS: [&str; 8] = [
    Ours::NAME,
    OneLock::<Std>::NAME,
    OneLock::<ParkingLot>::NAME,
    TableWatch::<DashTable>::NAME,
    PapayaEvents::NAME,
    TableWatch::<SccTable>::NAME,
    CopyOnWrite::NAME,
    WatchMap::NAME,
];

/// Runs one path: what callgrind looks at, or, with more calls, another profiler.
pub fn run(peer: &str, operation: &str, calls: Option<u64>) -> anyhow::Result<()> {
    CALLS.store(calls.unwrap_or(FEW_CALLS), Relaxed);
    match PEERS.iter().position(|&name| name == peer) {
        Some(0) => run_ours(operation),
        Some(1) => run_peer::<OneLock<Std>>(operation),
        Some(2) => run_peer::<OneLock<ParkingLot>>(operation),
        Some(3) => run_peer::<TableWatch<DashTable>>(operation),
        Some(4) => run_peer::<PapayaEvents>(operation),
        Some(5) => run_peer::<TableWatch<SccTable>>(operation),
        Some(6) => run_peer::<CopyOnWrite>(operation),
        Some(7) => run_peer::<WatchMap>(operation),
        _ => run_map(peer, operation),
    }
}

/// All that is counted: who does what.
pub fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
    let peers = PEERS
        .into_iter()
        .flat_map(|peer| OPERATIONS.map(|operation| (peer, operation)));
    let own = OURS_ONLY.map(|operation| (PEERS[0], operation));
    let maps = MAPS
        .into_iter()
        .flat_map(|(map, operations)| operations.iter().map(move |&operation| (map, operation)));
    let (ours, others): (Vec<_>, Vec<_>) = peers.partition(|(peer, _)| *peer == PEERS[0]);
    ours.into_iter().chain(own).chain(others).chain(maps)
}

/// Whether callgrind can be had.
pub fn available() -> bool {
    let version = Command::new("valgrind").arg("--version").output();
    version.is_ok_and(|out| out.status.success())
}

/// How long counting a path takes about.
pub const SECONDS: f64 = 1.0;

/// Has callgrind count paths; its own output stays in a directory.
#[derive(Debug)]
pub struct Counter<'a> {
    directory: &'a Path,
    /// What the empty loop costs.
    empty: [f64; 3],
}

impl<'a> Counter<'a> {
    /// Counts the empty loop.
    pub fn new(directory: &'a Path) -> anyhow::Result<Self> {
        let empty = count_raw(directory, PEERS[0], NOTHING)?;
        Ok(Self { directory, empty })
    }

    /// Counts one path.
    pub fn path(&self, peer: &str, operation: &str) -> anyhow::Result<Cost> {
        let raw = count_raw(self.directory, peer, operation)?;
        let per_call = |event: usize| (raw[event] - self.empty[event]).max(0.0) / FEW_CALLS as f64;
        Ok(Cost {
            instructions: per_call(0),
            locked: per_call(1),
            allocations: per_call(2),
        })
    }
}

fn count_raw(directory: &Path, peer: &str, operation: &str) -> anyhow::Result<[f64; 3]> {
    let name: String = format!("{peer}-{operation}")
        .chars()
        .map(|c| if c.is_alphanumeric() { c } else { '_' })
        .collect();
    let out = directory.join(format!("callgrind.{name}.out"));
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--collect-bus=yes",
            "--toggle-collect=*instructions::measured*",
        ])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe()?)
        .args(["path", peer, operation])
        .output()?;
    if !output.status.success() {
        bail!(
            "callgrind failed: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let text = std::fs::read_to_string(&out)?;
    let line = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>())
            .with_context(|| format!("callgrind wrote no {name}"))
    };
    let (events, totals) = (line("events:")?, line("totals:")?);
    let total = |event: &str| {
        let at = events.iter().position(|&name| name == event);
        // Events of which there were none at the end of the list are left out.
        at.and_then(|at| totals.get(at))
            .map_or(Ok(0.0), |value| value.parse::<f64>())
    };
    let allocations = String::from_utf8_lossy(&output.stdout).trim().parse()?;
    Ok([total("Ir")?, total("Ge")?, allocations])
}
