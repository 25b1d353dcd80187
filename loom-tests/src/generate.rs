//! All the programs of a size.
//!
//! A program is put together from *units*: one call, or a subscription and what is done with it at
//! once. It runs after a *setting*: nothing, a record with a wait on it, or a wait without a
//! record. The times are few and stand for all others: a record and the waits are of time 3, the
//! global time is 2, and every call that takes a time comes older, equal and newer. To add a call to
//! the alphabet is to add a line to [`units`].
//!
//! Every program is there in every order of its threads. That is not the same to loom: where it has
//! a choice it runs the first thread first, and because it remembers one access of an object only,
//! a load before a compare-and-swap hides the load of another thread before that (loom#166). With
//! the reader first, `get || set` has a single execution; with the writer first it has all six.

use serde::Serialize;

use crate::program::{Op, Program};
use crate::spec::{Key, Policy, Wait};

/// A program, and how far it is explored.
#[derive(Clone, Debug)]
pub struct Model {
    /// The program.
    pub program: Program,
    /// Whether all keys hash alike.
    pub alike: bool,
    /// The most preemptions; none: no bound.
    pub preemptions: Option<usize>,
    /// The most executions; none: to the end.
    pub limit: Option<usize>,
}

/// A model as the commands pass it on. The models of the index are called `index: name`.
#[derive(Serialize, Debug)]
pub struct Listed {
    program: String,
    alike: bool,
    preemptions: Option<usize>,
    limit: Option<usize>,
}

impl From<&Model> for Listed {
    fn from(model: &Model) -> Self {
        Listed {
            program: model.program.to_string(),
            alike: model.alike,
            preemptions: model.preemptions,
            limit: model.limit,
        }
    }
}

/// One call, or a subscription and what is done with it.
type Unit = Vec<Op>;

const A: Key = Key(0);
const B: Key = Key(1);

/// The wait of the setting.
const S0: Wait = Wait(0);

/// The wait that a unit makes; numbered when a program is put together.
const OWN: Wait = Wait(u16::MAX);

/// What there is before the threads start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Setting {
    Nothing,
    Record,
    WaitOnly,
}

impl Setting {
    fn ops(self) -> Vec<Op> {
        match self {
            Setting::Nothing => vec![],
            Setting::Record => vec![Op::Update(2), Op::Set(A, 3), Op::Subscribe(S0, A, 3)],
            Setting::WaitOnly => vec![Op::Update(2), Op::Subscribe(S0, A, 3)],
        }
    }

    fn has_wait(self) -> bool {
        self != Setting::Nothing
    }
}

/// The alphabet, on key `a`; without the less telling half of it if `core`.
fn units(setting: Setting, core: bool) -> Vec<Unit> {
    let own = |then: &[Op]| {
        let mut unit = vec![Op::Subscribe(OWN, A, 3)];
        unit.extend_from_slice(then);
        unit
    };
    let mut units: Vec<Unit> = vec![
        vec![Op::Get(A)],
        vec![Op::Try(A, 3)],
        own(&[Op::TryNow(OWN)]),
        vec![Op::GetNewer(OWN, A, 3)],
        vec![Op::Set(A, 2)],
        vec![Op::Set(A, 3)],
        vec![Op::Set(A, 4)],
        vec![Op::Observe(A, 3)],
        vec![Op::Delete(A)],
        vec![Op::DeleteAt(A, 4)],
        vec![Op::Update(3)],
        vec![Op::Update(4)],
        vec![Op::Close],
    ];
    if setting.has_wait() {
        units.extend([
            vec![Op::TryNow(S0)],
            vec![Op::Drop(S0)],
            vec![Op::Poll(S0, 0)],
        ]);
    }
    if core {
        return units;
    }
    units.extend([
        vec![Op::Pinned(A)],
        vec![Op::Try(A, 2)],
        vec![Op::Iter],
        vec![Op::Load(A)],
        vec![Op::View],
        vec![Op::Watch],
        own(&[]),
        own(&[Op::Drop(OWN)]),
        own(&[Op::Block(OWN)]),
        own(&[Op::Timed(OWN)]),
        own(&[Op::Poll(OWN, 0)]),
        own(&[Op::Poll(OWN, 0), Op::Poll(OWN, 1)]),
        own(&[Op::Poll(OWN, 0), Op::Drop(OWN)]),
        vec![Op::GetNewerTimed(OWN, A, 3)],
        vec![Op::Observe(A, 2)],
        vec![Op::Observe(A, 4)],
        vec![Op::DeleteAt(A, 2)],
        vec![Op::DeleteAt(A, 3)],
        vec![Op::Update(1)],
        vec![Op::Relist(A, 4)],
        vec![Op::Relist(B, 4)],
        vec![Op::RelistFirst(A, 4)],
        vec![Op::Clear(4)],
    ]);
    if setting.has_wait() {
        units.extend([
            vec![Op::Block(S0)],
            vec![Op::Timed(S0)],
            vec![Op::Timed(S0), Op::Drop(S0)],
            vec![Op::Poll(S0, 0), Op::Poll(S0, 1)],
            vec![Op::Poll(S0, 0), Op::Drop(S0)],
        ]);
    }
    units
}

/// Puts a program together; `None` if it cannot be.
fn compose(policy: Policy, setting: Setting, threads: &[&[&Unit]]) -> Option<Program> {
    let mut next = u16::from(setting.has_wait());
    let mut whole = Vec::new();
    for units in threads {
        let mut ops = Vec::new();
        for unit in *units {
            for op in unit.iter() {
                ops.push(if op.wait() == Some(OWN) {
                    op.with_wait(Wait(next))
                } else {
                    *op
                });
            }
            next += u16::from(unit.iter().any(|op| op.wait() == Some(OWN)));
        }
        whole.push(ops);
    }
    let exclusive = |op: &Op| matches!(op, Op::Poll(S0, _) | Op::Drop(S0));
    let users = whole
        .iter()
        .filter(|ops| ops.iter().any(|op| op.wait() == Some(S0)) && setting.has_wait());
    let exclusively = setting.has_wait() && whole.iter().flatten().any(exclusive);
    if exclusively && users.count() > 1 {
        return None;
    }
    // Nothing can be done with a subscription after it was dropped.
    for ops in &whole {
        let dropped = ops.iter().position(|op| *op == Op::Drop(S0));
        if setting.has_wait()
            && dropped.is_some_and(|at| ops[at + 1..].iter().any(|op| op.wait() == Some(S0)))
        {
            return None;
        }
    }
    Some(Program {
        policy,
        setup: setting.ops(),
        threads: whole,
    })
}

/// The policies that make a difference to these calls.
fn policies(ops: impl IntoIterator<Item = Op>) -> Vec<Policy> {
    let ops: Vec<Op> = ops.into_iter().collect();
    let differs = |policy: &Policy| match policy {
        Policy::Overwrite => true,
        Policy::RejectOlder => ops.iter().any(|op| op.sets()),
        Policy::Monotonic => ops.iter().any(|op| op.heeds_policy()),
    };
    Policy::ALL.into_iter().filter(differs).collect()
}

/// The program in every order of its threads.
fn every_order(program: &Program) -> Vec<Program> {
    fn orders(threads: &[Vec<Op>]) -> Vec<Vec<Vec<Op>>> {
        if threads.is_empty() {
            return vec![vec![]];
        }
        let mut all = Vec::new();
        for first in 0..threads.len() {
            let mut rest = threads.to_vec();
            let first = rest.remove(first);
            for mut order in orders(&rest) {
                order.insert(0, first.clone());
                if !all.contains(&order) {
                    all.push(order);
                }
            }
        }
        all
    }
    let with = |threads| Program {
        threads,
        ..program.clone()
    };
    orders(&program.threads).into_iter().map(with).collect()
}

/// Whether it changes anything that another can see.
fn acts(unit: &Unit) -> bool {
    !unit.iter().all(|op| {
        matches!(
            op,
            Op::Get(_) | Op::Pinned(_) | Op::Try(..) | Op::Iter | Op::Load(_) | Op::TryNow(_)
        )
    })
}

/// Two threads of one unit each on one key: all of them.
fn pairs(core: bool) -> Vec<Program> {
    let mut programs = Vec::new();
    for setting in [Setting::Nothing, Setting::Record, Setting::WaitOnly] {
        let units = units(setting, core);
        for (i, one) in units.iter().enumerate() {
            for two in &units[i..] {
                if !acts(one) && !acts(two) {
                    continue;
                }
                for policy in policies(one.iter().chain(two).copied()) {
                    programs.extend(compose(policy, setting, &[&[one], &[two]]));
                }
            }
        }
    }
    programs
}

/// Two threads of one unit each on two keys: all of them.
fn pairs_on_two_keys(core: bool) -> Vec<Program> {
    let mut programs = Vec::new();
    for setting in [Setting::Nothing, Setting::Record] {
        let all = units(setting, core);
        let other = units(Setting::Nothing, core)
            .into_iter()
            .filter(|unit| unit.iter().any(|op| op.key() == Some(A)));
        let other: Vec<Unit> = other
            .map(|unit| unit.iter().map(|op| op.on(B)).collect())
            .collect();
        for one in all.iter().filter(|unit| {
            unit.iter()
                .any(|op| op.key().is_some() || op.wait().is_some() || *op == Op::Iter)
        }) {
            for two in other.iter().filter(|two| acts(one) || acts(two)) {
                for policy in policies(one.iter().chain(two).copied()) {
                    programs.extend(compose(policy, setting, &[&[one], &[two]]));
                }
            }
        }
    }
    programs
}

/// Two units on one thread, one on the other, of the core alphabet: all of them.
fn two_and_one() -> Vec<Program> {
    let mut programs = Vec::new();
    for setting in [Setting::Nothing, Setting::Record, Setting::WaitOnly] {
        let units = units(setting, true);
        for first in &units {
            for second in &units {
                for other in &units {
                    let quiet = [first, second, other]
                        .into_iter()
                        .filter(|unit| !acts(unit))
                        .count();
                    if quiet > 1 {
                        continue;
                    }
                    for policy in policies(first.iter().chain(second).chain(other).copied()) {
                        programs.extend(compose(policy, setting, &[&[first, second], &[other]]));
                    }
                }
            }
        }
    }
    programs
}

/// Programs that are worth more than their size: each stands for a way in which caches, wait lists
/// and wakers of this kind have failed, here in a draft or elsewhere.
const CHOSEN: &[&str] = &[
    // Lost wake-ups: every order of registering and waking.
    "set(a,3) || set(a,4) || s0=sub(a,3); s0.try",
    "update(3) || update(4) || s0=sub(a,3); s0.try",
    "update(3) || s0=sub(a,3) || s1=sub(a,3)",
    "update(3) || s0=newer(a,3) || s1=newer(a,3)",
    "update(4) || s0=newer(a,3) || set(a,2)",
    "[s0=sub(a,3)] update(3); s0.try || update(4)",
    "[s0=sub(a,3)] update(3); s0.try || set(a,4); delete(a)",
    "s0=sub(a,3); update(3); s0.try || update(3)",
    "s0=sub(a,3); set(a,3); s0.try || set(a,4)",
    "[s0=sub(a,3)] set(a,4) || get(a); s0.try",
    "[set(a,1); s0=sub(a,3)] update(4) || global; s0.try",
    "update(3) || s0=sub(a,3) || s1=sub(b,3)",
    // One snapshot, of the call that woke.
    "set(a,4); delete(a) || s0=sub(a,3) || s1=sub(a,4)",
    "[s0=sub(a,3)] set(a,4); delete(a) || set(a,3) || s0.wait",
    "[s0=sub(a,3)] set(a,4); set(a,2) || s0.wait",
    "[s0=sub(a,3)] update(3) || set(a,2) || s0.try",
    "[s0=sub(a,3); s1=sub(a,4)] set(a,3) || set(a,4) || delete(a)",
    // Giving up takes nothing from the others.
    "[s0=sub(a,3); s1=sub(a,3)] s0.drop || set(a,4) || s1.wait",
    "[s0=sub(a,3); s1=sub(a,3)] s0.drop || s1.drop || set(a,4)",
    "[s0=sub(a,3); s1=sub(a,3)] s0.drop; s1.try || update(3)",
    "[s0=sub(a,3); s1=sub(a,3); s2=sub(a,3)] s0.drop; s1.drop || set(a,4)",
    "s0=sub(a,3); s0.drop || set(a,4) || s1=sub(a,3); s1.try",
    "s0=sub(a,3); s0.drop || s1=sub(a,3); s1.drop || update(3)",
    "s0=newer_timed(a,3) || set(a,4) || s1=newer(a,3)",
    "[s0=sub(a,3)] s0.timed; s0.try || set(a,4); delete(a)",
    // Who gives up calls nobody.
    "[s0=sub(a,3); s1=sub(a,9)] s0.poll(0); s0.poll(1) || observe(a,3) || s1.drop",
    // Closing.
    "close || s0=sub(a,3); s0.try || set(a,4)",
    "close || s0=newer(a,3) || update(4)",
    "[s0=sub(a,3)] close || update(3) || s0.wait",
    "leave || leave || s0=sub(a,3); leave; s0.wait",
    "[s0=sub(a,3)] leave || s0.wait",
    "[s0=sub(a,3); s1=sub(a,3)] leave || s0.wait || s1.wait",
    "[s0=sub(a,3); s1=sub(a,3)] leave || s0.wait || s1.drop",
    "[s0=sub(a,3); s1=sub(a,3)] leave || s0.poll(0); s0.try || s1.poll(0); s1.drop",
    "[s0=sub(a,3); s1=sub(a,3)] leave || set(a,4); leave || s0.wait; s1.try",
    // Wakers.
    "[s0=sub(a,3)] s0.poll(0); s0.poll(1) || set(a,4); delete(a)",
    "[s0=sub(a,3)] s0.poll(0); s0.poll(1); s0.poll(0) || update(3)",
    "[s0=sub(a,3); s0.poll(0)] s0.poll(1) || set(a,4) || update(3)",
    "[s0=sub(a,3)] leave || s0.poll(0)",
    "[s0=sub(a,3)] s0.poll(0) || set(a,4)",
    "[s0=sub(a,3)] s0.poll(0); s0.drop || set(a,2)",
    "[s0=sub(a,3); s0.poll(0)] s0.drop || set(a,4) || update(3)",
    // The last waiter goes as a record, a wait or a delete comes: slots retire and come back.
    "[s0=sub(a,3)] s0.drop || set(a,2); get(a)",
    "[s0=sub(a,3)] s0.drop || s1=sub(a,3); s1.try || update(3)",
    "[set(a,1)] delete(a) || set(a,4) || s0=sub(a,3); s0.try",
    "[set(a,1)] delete(a) || delete(a) || set(a,2)",
    "set(a,1); delete(a) || set(a,2); delete(a)",
    "set(a,3) || set(a,4) || get(a)",
    "set(a,3) || set(b,3) || delete(a)",
    "[set(a,1)] delete(a); set(b,1) || get(b); get(a)",
    // Trackers, views and streams.
    "[set(a,1); load(a)] load(a); load(a) || set(a,2)",
    "[set(a,1); load(a)] load(a); load(a) || delete(a); set(a,2)",
    "[set(a,1)] load(a); load(a) || delete(a) || set(a,2)",
    "[set(a,1)] view || update(2); set(a,3)",
    "[set(a,1)] view || view || update(2)",
    "[set(a,1)] view; view || set(a,2); update(3)",
    "[set(a,1); watch] drain; drain || set(a,2) || delete(a)",
    "[watch] drain || set(a,1); delete(a) || set(b,1)",
    "[set(a,1)] watch; drain || delete(a); set(a,2)",
    "[watch] await || set(a,1)",
    "[watch] await; await || set(a,1) || set(b,1)",
    "[watch] await; await || set(a,1); set(b,1)",
    "watch; drain || watch; drain || set(a,1)",
    "[set(a,1)] watch; unwatch || watch; drain || set(a,2)",
    "[watch] drain; unwatch || set(a,1); watch; drain",
    "[watch; s0=sub(a,3); set(a,1); delete(a)] drain || s0.drop",
    "[set(a,1); watch] drain; unwatch || delete(a)",
    // A wait is given up while somebody is handed something on a key without a record.
    "[s0=sub(a,3); s1=sub(a,5)] observe(a,3) || s1.drop",
    "[s0=sub(a,3); s0.poll(0); s1=sub(a,5)] observe(a,3) || s1.drop",
    "[s0=sub(a,3); s1=sub(a,5)] update(3) || s1.drop",
    // A relisting.
    "[set(a,1)] relist(b,4) || get(a); get(b)",
    "[set(a,1)] relist_first(a,4) || delete(a); try(a,3)",
    "[set(a,1); s0=sub(a,3)] relist(b,3) || s0.wait",
    "[set(a,1); s0=sub(a,3)] relist(a,3) || set(a,4); delete(a) || s0.wait",
    "[set(a,1)] relist(b,4) || relist(a,3)",
    "[set(a,1)] clear(4) || set(a,5) || s0=sub(a,4); s0.try",
    // Times: nobody sees one without what came before it.
    "set(a,1); update(3) || try(a,2)",
    "[update(3)] update(1); set(a,2) || try(a,2)",
    "[update(3)] update(1); set(a,2) || s0=sub(a,2); s0.try",
    "update(4); get(a) || set(a,3)",
    "update(4); try(a,3) || set(a,3)",
    "[set(a,3)] observe(a,5); set(a,4) || try(a,4)",
    "[set(a,3); observe(a,5)] set(a,4) || get(a) || observe(a,6)",
    "update(3); update(1) || s0=sub(a,3) || s1=sub(a,2)",
    "update(4) || set(a,3) || try(a,3); get(a)",
    "update(4); get(a) || set(a,3); global",
    "[set(a,3)] delete_at(a,4) || set(a,3) || set(a,5)",
    "[set(a,3); delete_at(a,5)] update(5) || set(a,4) || get(a)",
];

fn written(texts: &[&str]) -> Vec<Program> {
    let mut programs = Vec::new();
    for text in texts {
        let program = |policy: Policy| -> Program {
            format!("{policy}: {text}")
                .parse()
                .expect("written by hand")
        };
        let ops = program(Policy::Overwrite).threads.concat();
        programs.extend(policies(ops).into_iter().map(program));
    }
    programs
}

/// Where memory is freed while somebody may be reading: explored on the real collector.
const FREEING: &[&str] = &[
    "[set(a,1)] set(a,2) || get(a)",
    "[set(a,1)] set(a,2) || pinned(a)",
    "[set(a,1)] set(a,2) || set(a,3)",
    "[set(a,1)] delete(a) || get(a)",
    "[set(a,1)] delete(a); set(a,2) || get(a)",
    "[set(a,1)] delete(a) || set(a,2)",
    "[set(a,1)] delete(a) || delete(a)",
    "set(a,1) || set(b,1)",
    "set(a,1) || delete(a)",
    "set(a,1) || set(a,2)",
    "[set(b,1)] set(a,1) || delete(b)",
    "[set(b,1)] delete(b) || set(a,1); get(b)",
    "[s0=sub(a,3)] set(a,3) || s0.try",
    "[s0=sub(a,3)] s0.drop || set(a,3)",
    "[s0=sub(a,3)] s0.drop || update(3)",
    "[s0=sub(a,3)] update(3) || update(4)",
    "[s0=sub(a,3)] update(3) || s0.try",
    "update(3) || update(4)",
    "update(3) || try(a,2)",
    "close || s0=sub(a,3)",
];

/// Keys that meet in a bucket, and tables that grow and shrink while somebody uses them: under loom
/// the smallest table has two buckets, and the second key makes it grow.
const RESIZING: &[&str] = &[
    "[set(a,1)] set(b,1) || get(a)",
    "[set(a,1)] set(b,1) || get(b)",
    "[set(a,1)] set(b,1) || set(c,1)",
    "[set(a,1)] set(b,1) || set(a,2)",
    "[set(a,1)] set(b,1) || delete(a)",
    "[set(a,1)] set(b,1) || iter",
    "[set(a,1)] set(b,1) || s0=sub(c,3); s0.try",
    "[set(a,1); set(b,1); set(c,1)] delete(a); delete(b) || set(d,1)",
    "[set(a,1); set(b,1); set(c,1)] delete(a); delete(b) || get(c)",
    "[set(a,1); set(b,1); set(c,1)] delete(a) || delete(b) || get(c)",
    "set(a,1) || set(b,1) || set(c,1)",
];

/// Explores programs so far, in every order of their threads.
fn models(programs: Vec<Program>, preemptions: Option<usize>, alike: bool) -> Vec<Model> {
    let every_order = programs.iter().flat_map(every_order);
    every_order
        .map(|program| Model {
            program,
            alike,
            preemptions,
            limit: None,
        })
        .collect()
}

/// A program that a seed stands for: longer ones than can be explored, for random schedules and
/// real threads.
pub fn random(seed: u64, threads: usize, calls: usize) -> Program {
    let mut random = Random(seed);
    let policy = Policy::ALL[random.below(3)];
    let mut next_wait = 0;
    let mut waits = |n: u16| {
        next_wait += n;
        Wait(next_wait - n)
    };
    let time = |random: &mut Random| 1 + random.below(6) as u64;
    let mut setup = Vec::new();
    for _ in 0..random.below(4) {
        let (key, at) = (Key(random.below(2) as u8), time(&mut random));
        setup.push([Op::Set(key, at), Op::Update(at), Op::Observe(key, at)][random.below(3)]);
    }
    // In some programs all threads give their handles up before they are through, so that the
    // cache ends under the waits that are left.
    let leaves = random.below(6) == 0;
    let mut programs = Vec::new();
    for _ in 0..threads {
        let mut ops = Vec::new();
        // The thread's subscription, if it has one.
        let mut held = None;
        while ops.len() < calls {
            let (key, at) = (Key(random.below(3) as u8), time(&mut random));
            if let Some(wait) = held {
                let last = ops.len() + 1 >= calls;
                match random.below(if last { 2 } else { 12 }) {
                    0 => ops.push(Op::Drop(wait)),
                    1 => ops.push(Op::Timed(wait)),
                    2 => ops.push(Op::Poll(wait, 0)),
                    3 => ops.push(Op::Poll(wait, 1)),
                    4 | 5 => ops.push(Op::TryNow(wait)),
                    _ => {}
                }
                if matches!(ops.last(), Some(Op::Drop(w)) if *w == wait) {
                    held = None;
                    continue;
                }
            }
            let op = match random.below(20) {
                0 | 1 => Op::Get(key),
                2 => Op::Pinned(key),
                3 | 4 => Op::Try(key, at),
                5 if random.below(2) == 0 => {
                    [Op::Relist(key, at), Op::RelistFirst(key, at), Op::Clear(at)][random.below(3)]
                }
                5 => [Op::Iter, Op::View, Op::Load(key), Op::Load(key)][random.below(4)],
                6..=8 => Op::Set(key, at),
                9 | 10 => Op::Observe(key, at),
                11 | 12 => Op::Delete(key),
                13 => Op::DeleteAt(key, at),
                14 | 15 => Op::Update(at),
                16 => Op::GetNewerTimed(waits(1), key, at),
                17 if random.below(4) == 0 => Op::Close,
                _ if held.is_none() => {
                    let wait = waits(1);
                    held = Some(wait);
                    Op::Subscribe(wait, key, at)
                }
                _ => Op::Global,
            };
            ops.push(op);
        }
        if leaves {
            let after = ops.split_off(random.below(calls + 1));
            ops.push(Op::Leave);
            let known: Vec<Wait> = ops.iter().filter_map(|op| op.wait()).collect();
            let is_known =
                |op: &Op| !op.needs_cache() && op.wait().is_some_and(|w| known.contains(&w));
            ops.extend(after.into_iter().filter(is_known));
        }
        programs.push(ops);
    }
    Program {
        policy,
        setup,
        threads: programs,
    }
}

/// Numbers that only depend on a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// The sets of programs by name.
pub const SETS: &[(&str, &str)] = &[
    (
        "pairs",
        "two threads of one operation each, one key, no bound",
    ),
    (
        "pairs-two-keys",
        "two threads of one operation each, two keys, no bound",
    ),
    (
        "two-and-one",
        "two operations against one, core alphabet, three preemptions",
    ),
    (
        "chosen",
        "chosen programs of up to three threads, three preemptions",
    ),
    (
        "resizing",
        "tables that grow and shrink, keys that collide, three preemptions",
    ),
    (
        "freeing",
        "where memory is freed, for the real collector, three preemptions",
    ),
    ("quick", "the core of these that takes a few minutes"),
    (
        "quick-freeing",
        "the same of what is for the real collector",
    ),
];

/// The most executions of a model in the quick sets.
const QUICK_EXECUTIONS: usize = 2_000;

/// A set by its name.
pub fn set(name: &str) -> Option<Vec<Model>> {
    Some(match name {
        "pairs" => models(pairs(false), None, false),
        "pairs-two-keys" => models(pairs_on_two_keys(false), None, false),
        "two-and-one" => models(two_and_one(), Some(3), false),
        "chosen" => models(written(CHOSEN), Some(3), false),
        "resizing" => resizing(3),
        "freeing" => freeing(3),
        "quick" => {
            let mut quick = models(written(CHOSEN), Some(2), false);
            // Readers of streams that sleep have failed at three preemptions first.
            let mut sleepers = written(CHOSEN);
            sleepers.retain(|program| program.ops().any(|op| op == Op::Await));
            quick.extend(models(sleepers, Some(3), false));
            quick.extend(resizing(2));
            quick.extend(models(pairs(true), Some(2), false));
            capped(quick)
        }
        "quick-freeing" => capped(freeing(2)),
        _ => return None,
    })
}

/// A set by its name, as the commands pass it on: with the models of the index that belong to it.
#[cfg(all(podcache_loom, not(podcache_shuttle)))]
pub fn listed(name: &str) -> Option<Vec<Listed>> {
    let mut all: Vec<Listed> = match set(name) {
        Some(models) => models.iter().map(Listed::from).collect(),
        None => Vec::new(),
    };
    all.extend(match name {
        "quick" => index(false, Some(2), Some(QUICK_EXECUTIONS)),
        "quick-freeing" => index(true, Some(2), Some(QUICK_EXECUTIONS)),
        "index" => index(false, None, None),
        "index-freeing" => {
            let mut both = index(true, Some(2), None);
            both.extend(index(true, Some(3), None));
            both
        }
        _ => Vec::new(),
    });
    (!all.is_empty()).then_some(all)
}

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
fn index(freeing: bool, preemptions: Option<usize>, limit: Option<usize>) -> Vec<Listed> {
    let meant = |name: &str| !freeing || crate::index::FREEING.contains(&name);
    let meant = crate::index::MODELS
        .iter()
        .filter(|model| meant(model.name));
    meant
        .map(|model| Listed {
            program: format!("index: {}", model.name),
            alike: false,
            preemptions,
            limit,
        })
        .collect()
}

/// The beginning of each: what a few minutes allow.
fn capped(mut models: Vec<Model>) -> Vec<Model> {
    for model in &mut models {
        model.limit = Some(QUICK_EXECUTIONS);
    }
    models
}

fn resizing(preemptions: usize) -> Vec<Model> {
    let mut all = models(written(RESIZING), Some(preemptions), false);
    all.extend(models(written(RESIZING), Some(preemptions), true));
    all
}

fn freeing(preemptions: usize) -> Vec<Model> {
    let only_overwrite = |texts| {
        let mut programs = written(texts);
        programs.retain(|program| program.policy == Policy::Overwrite);
        programs
    };
    let mut all = models(only_overwrite(FREEING), Some(preemptions), false);
    all.extend(models(only_overwrite(RESIZING), Some(preemptions), false));
    all
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn random_programs_are_what_their_seed_says() {
        for seed in 0..200 {
            let program = random(seed, 4, 5);
            assert_eq!(program, random(seed, 4, 5));
            let text = program.to_string();
            assert_eq!(text.parse::<Program>().unwrap(), program, "{text}");
        }
        assert_ne!(random(1, 4, 5), random(2, 4, 5));
    }

    #[test]
    fn programs_are_put_together_right() {
        for (name, _) in SETS {
            let models = set(name).unwrap();
            let mut seen = HashSet::new();
            for model in &models {
                let text = model.program.to_string();
                assert_eq!(text.parse::<Program>().unwrap(), model.program, "{text}");
                assert!(
                    seen.insert((text.clone(), model.alike, model.preemptions)),
                    "twice: {text}"
                );
                assert!(model.program.threads.len() <= 4, "{text}");
            }
            println!("{name}: {}", models.len());
        }
    }
}
