//! Is there an order that explains what every call returned?
//!
//! A search in the manner of Wing and Gong with Lowe's memory of what was tried: of all the calls
//! that may come next, take one, apply it to the sequential specification, compare what it returns
//! with what was recorded, go on; step back where they differ.
//!
//! Most calls take effect at one instant. The contract allows these to be spread out:
//!
//! * `update_time` and `close` move the global state at one instant and then reach the waits one by
//!   one, before they return. Waits that were registered at that instant must have been reached.
//! * A wait that overlaps an `update_time` may be satisfied by it, though it was registered after.
//! * `iter` reads every key at an instant of its own. `view` does too, at any instant since the
//!   statement of the global time that it names, even one before the call.
//! * `relist` is the calls that it stands for, one after the other: it looks which keys there are,
//!   sets what changed, deletes what is gone, states the global time.
//!
//! What has to come before what is said per call: the order within a thread, spawning and joining,
//! and for histories of real threads the clock.

use std::collections::HashSet;
use std::fmt;

use crate::program::Op;
use crate::spec::{End, Key, Policy, Reading, Record, Spec, Status, Time, Value, Wait};

/// What a call returned.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// Nothing.
    Done,
    /// Whether something was stored or removed.
    Flag(bool),
    /// A snapshot.
    Read(Reading),
    /// A snapshot if it is new enough.
    Maybe(Option<Reading>),
    /// The end of a wait; `None`: not yet, or timed out.
    Wait(Option<End>),
    /// A time.
    Time(Time),
    /// A number.
    Count(usize),
    /// All records.
    Records(Vec<(Key, Record)>),
    /// All records, as of a time.
    View(Time, Vec<(Key, Record)>),
    /// What a relisting changed.
    Relisted(Relisted),
}

/// What a relisting changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Relisted {
    /// Stored.
    pub set: usize,
    /// Left as it was.
    pub unchanged: usize,
    /// Gone.
    pub deleted: usize,
    /// Newer than the listing.
    pub refused: usize,
}

/// The value of the first set in a program's text.
pub const FIRST: Value = 1;

/// A call that was made, and what must have returned before it was.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Call {
    /// The call.
    pub op: Op,
    /// What a set brings.
    pub value: Value,
    /// What it returned.
    pub outcome: Outcome,
    /// For each strand, how many of its calls had returned before this one began.
    pub after: Vec<usize>,
}

/// What happened in an execution: strands of calls, each in order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct History {
    /// The write policy.
    pub policy: Policy,
    /// How many handles keep the cache open at first.
    pub handles: usize,
    /// The calls of each thread.
    pub strands: Vec<Vec<Call>>,
}

/// Where a strand stands within its next call.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Stage {
    /// Before it.
    Before,
    /// Registering has begun; the newest time of an `update_time` since.
    Entering(Option<Time>),
    /// Registered, but not yet returned.
    Entered(Option<Time>),
    /// Registered; blocking.
    Blocked,
    /// In effect; these waits are owed their end before it returns.
    Waking { owed: Vec<Wait>, reach: Reach },
    /// Going through the keys.
    Iterating(Vec<Key>),
    /// Relisting: what is still to be done, and what was.
    Relisting(Relisting, Relisted),
    /// The same for a view; with what each key has given since the view's time.
    Viewing(Vec<(Key, Vec<Reading>)>),
}

/// Where a relisting stands.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Relisting {
    /// Looking which keys there are: these are to be looked at, those were found and not listed.
    Looking(Vec<Key>, Vec<Key>),
    /// Comparing what is listed, if anything is, before these go.
    Comparing(Vec<Key>),
    /// Setting it, for it is different, before these go.
    Setting(Vec<Key>),
    /// Deleting.
    Deleting(Vec<Key>),
    /// This one was not deleted: was it refused, or was it gone before? Then these.
    Refused(Key, Vec<Key>),
}

/// Whom a call that is in effect decides.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Reach {
    /// Waits up to this time.
    Until(Time),
    /// Everybody: the cache was closed.
    Closed,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    spec: Spec,
    handles: usize,
    at: Vec<usize>,
    stage: Vec<Stage>,
}

impl History {
    /// Whether some order of the calls explains what they returned.
    pub fn is_explained(&self) -> bool {
        let start = State {
            spec: Spec::new(self.policy),
            handles: self.handles,
            at: vec![0; self.strands.len()],
            stage: vec![Stage::Before; self.strands.len()],
        };
        let mut seen = HashSet::new();
        let mut open = vec![start];
        while let Some(state) = open.pop() {
            if self
                .strands
                .iter()
                .zip(&state.at)
                .all(|(calls, at)| *at == calls.len())
            {
                return true;
            }
            for strand in 0..self.strands.len() {
                self.step(&state, strand, &mut |next| {
                    if !seen.contains(&next) {
                        seen.insert(next.clone());
                        open.push(next);
                    }
                });
            }
        }
        false
    }

    /// How many calls there are.
    pub fn calls(&self) -> usize {
        self.strands.iter().map(Vec::len).sum()
    }

    /// How many calls began while another thread was within one.
    pub fn overlapping(&self) -> usize {
        let within = |call: &Call, strand: usize| {
            let begun = |other: usize| {
                let next = call.after[other];
                // The next call of that thread had not returned; it had begun unless it began after.
                let next = self.strands[other].get(next);
                next.is_some_and(|next| next.after[strand] <= self.position(strand, call))
            };
            (0..self.strands.len()).any(|other| other != strand && begun(other))
        };
        let all = self.strands.iter().enumerate();
        all.map(|(strand, calls)| calls.iter().filter(|call| within(call, strand)).count())
            .sum()
    }

    fn position(&self, strand: usize, call: &Call) -> usize {
        self.strands[strand]
            .iter()
            .position(|c| std::ptr::eq(c, call))
            .expect("of this strand")
    }

    /// All the states that one step of one strand can lead to.
    fn step(&self, state: &State, strand: usize, found: &mut dyn FnMut(State)) {
        let Some(call) = self.strands[strand].get(state.at[strand]) else {
            return;
        };
        match &state.stage[strand] {
            Stage::Before => {
                if call
                    .after
                    .iter()
                    .zip(&state.at)
                    .all(|(needed, at)| at >= needed)
                {
                    self.begin(state, strand, call, found);
                }
            }
            Stage::Entering(since) => {
                let (Op::Subscribe(wait, key, min)
                | Op::GetNewer(wait, key, min)
                | Op::GetNewerTimed(wait, key, min)) = call.op
                else {
                    unreachable!("only waits enter")
                };
                let mut next = state.clone();
                next.spec.register(wait, key, min);
                next.stage[strand] = Stage::Entered(*since);
                found(next);
            }
            Stage::Entered(since) => {
                let wait = call.op.wait().expect("only waits enter");
                let waiter = state.spec.waiter(wait).expect("just registered");
                let mut next = state.clone();
                if call.op.blocks() {
                    next.stage[strand] = Stage::Blocked;
                } else {
                    next.advance(strand);
                }
                if waiter.status == Status::Pending && *since >= Some(waiter.min) {
                    let mut served = next.clone();
                    served.spec.satisfy(wait);
                    found(served);
                }
                found(next);
            }
            Stage::Blocked => {
                let wait = call.op.wait().expect("only waits block");
                if state.shows(wait, &call.outcome) {
                    let mut next = state.clone();
                    next.spec.forget(wait);
                    next.advance(strand);
                    found(next);
                }
            }
            Stage::Waking { owed, reach } => {
                for (wait, waiter) in state.spec.pending() {
                    let mut next = state.clone();
                    match *reach {
                        Reach::Until(ts) if waiter.min <= ts => next.spec.satisfy(wait),
                        Reach::Closed => next.spec.decide(wait, End::Closed),
                        _ => continue,
                    }
                    found(next);
                }
                let is_pending = |wait: &Wait| {
                    state
                        .spec
                        .waiter(*wait)
                        .is_some_and(|w| w.status == Status::Pending)
                };
                if !owed.iter().any(is_pending) {
                    let mut next = state.clone();
                    next.advance(strand);
                    found(next);
                }
            }
            Stage::Viewing(rest) => {
                let Outcome::View(_, records) = &call.outcome else {
                    unreachable!("view")
                };
                // Where a key was read does not matter to the others: those that can be explained
                // now are, and the others wait for what is to come.
                let explained = |(key, given): &&(Key, Vec<Reading>)| {
                    let seen = records.iter().find(|(k, _)| k == key).map(|(_, r)| *r);
                    given.contains(&seen) || state.spec.read(*key) == seen
                };
                let left: Vec<_> = rest.iter().filter(|key| !explained(key)).cloned().collect();
                if left.len() < rest.len() || rest.is_empty() {
                    let mut next = state.clone();
                    if left.is_empty() {
                        next.advance(strand);
                    } else {
                        next.stage[strand] = Stage::Viewing(left);
                    }
                    found(next);
                }
            }
            Stage::Relisting(stage, done) => {
                let (stage, done) = (stage.clone(), *done);
                self.relist(state, strand, call, stage, done, found);
            }
            Stage::Iterating(rest) => {
                let Outcome::Records(records) = &call.outcome else {
                    unreachable!("iter")
                };
                for key in rest {
                    let given = records.iter().find(|(k, _)| k == key).map(|(_, r)| *r);
                    if state.spec.read(*key) == given {
                        let rest: Vec<Key> = rest.iter().copied().filter(|k| k != key).collect();
                        let mut next = state.clone();
                        if rest.is_empty() {
                            next.advance(strand);
                        } else {
                            next.stage[strand] = Stage::Iterating(rest);
                        }
                        found(next);
                    }
                }
            }
        }
    }

    /// The first step of a call.
    fn begin(&self, state: &State, strand: usize, call: &Call, found: &mut dyn FnMut(State)) {
        let spec = &state.spec;
        let mut next = state.clone();
        match (call.op, &call.outcome) {
            (Op::Get(key) | Op::Pinned(key) | Op::Load(key), Outcome::Read(reading)) => {
                if spec.read(key) != *reading {
                    return;
                }
                next.advance(strand);
            }
            (Op::Try(key, min), Outcome::Maybe(given)) => {
                if spec.fresh(key, min).then(|| spec.read(key)) != *given {
                    return;
                }
                next.advance(strand);
            }
            (Op::Iter, Outcome::Records(records)) => {
                let mut keys: Vec<Key> = self.keys();
                keys.extend(records.iter().map(|(key, _)| *key));
                keys.sort();
                keys.dedup();
                let twice = records
                    .iter()
                    .zip(&records[1.min(records.len())..])
                    .any(|(a, b)| a.0 == b.0);
                if twice {
                    return;
                }
                if keys.is_empty() {
                    next.advance(strand);
                } else {
                    next.stage[strand] = Stage::Iterating(keys);
                }
            }
            (Op::View, Outcome::View(time, records)) => {
                if spec.global() != *time {
                    return;
                }
                let mut keys = self.keys();
                keys.extend(records.iter().map(|(key, _)| *key));
                keys.sort();
                keys.dedup();
                let given = keys.into_iter().map(|key| (key, spec.given(key)));
                next.stage[strand] = Stage::Viewing(given.collect());
            }
            (Op::Watch | Op::Drain | Op::Await | Op::Unwatch, Outcome::Done) => {
                next.advance(strand)
            }
            (Op::Len, Outcome::Count(n)) => {
                if spec.len() != *n {
                    return;
                }
                next.advance(strand);
            }
            (Op::Waiters, Outcome::Count(n)) => {
                if spec.pending().count() != *n {
                    return;
                }
                next.advance(strand);
            }
            (Op::Global, Outcome::Time(time)) => {
                if spec.global() != *time {
                    return;
                }
                next.advance(strand);
            }
            (Op::Set(key, ts), Outcome::Flag(stored)) => {
                if spec.admits(key, ts) != *stored {
                    return;
                }
                if *stored {
                    next.spec.set(key, call.value, ts);
                }
                next.advance(strand);
            }
            (Op::Observe(key, ts), Outcome::Done) => {
                next.spec.observe(key, ts);
                next.advance(strand);
            }
            (Op::Delete(key), Outcome::Flag(was_there)) => {
                if next.spec.delete(key) != *was_there {
                    return;
                }
                next.advance(strand);
            }
            (Op::DeleteAt(key, ts), Outcome::Flag(was_there)) => {
                if next.spec.delete_at(key, ts).unwrap_or(false) != *was_there {
                    return;
                }
                next.advance(strand);
            }
            (Op::Update(ts), Outcome::Done) => next.update_time(strand, ts),
            (Op::Relist(..) | Op::RelistFirst(..) | Op::Clear(_), Outcome::Relisted(_)) => {
                let mut keys = self.keys();
                keys.sort();
                keys.dedup();
                keys.retain(|key| call.op.key() != Some(*key));
                let looking = Relisting::Looking(keys, Vec::new());
                next.stage[strand] = Stage::Relisting(looking, Relisted::default());
            }
            (Op::Close, Outcome::Done) => next.close(strand),
            (Op::Leave, Outcome::Done) => {
                next.handles -= 1;
                if next.handles == 0 {
                    next.close(strand);
                } else {
                    next.advance(strand);
                }
            }
            (Op::Subscribe(..), Outcome::Done)
            | (Op::GetNewer(..) | Op::GetNewerTimed(..), Outcome::Wait(_)) => {
                next.stage[strand] = Stage::Entering(None);
            }
            (Op::TryNow(wait) | Op::Poll(wait, _) | Op::Block(wait) | Op::Timed(wait), outcome) => {
                if !state.shows(wait, outcome) {
                    return;
                }
                next.advance(strand);
            }
            (Op::Drop(wait), Outcome::Done) => {
                next.spec.forget(wait);
                next.advance(strand);
            }
            (op, outcome) => unreachable!("{op} does not return {outcome}"),
        }
        found(next);
    }

    /// A step of a relisting.
    fn relist(
        &self,
        state: &State,
        strand: usize,
        call: &Call,
        stage: Relisting,
        mut done: Relisted,
        found: &mut dyn FnMut(State),
    ) {
        let time = call.op.time().expect("a listing has a time");
        let value = match call.op {
            Op::RelistFirst(..) => FIRST,
            _ => call.value,
        };
        let mut next = state.clone();
        let stage = match stage {
            Relisting::Looking(keys, gone) if keys.is_empty() => Relisting::Comparing(gone),
            Relisting::Looking(keys, gone) => {
                // Each key at an instant of its own, in whatever order.
                for key in &keys {
                    let rest = keys.iter().copied().filter(|other| other != key).collect();
                    let mut gone = gone.clone();
                    gone.extend(state.spec.read(*key).map(|_| *key));
                    gone.sort();
                    let mut next = state.clone();
                    next.stage[strand] = Stage::Relisting(Relisting::Looking(rest, gone), done);
                    found(next);
                }
                return;
            }
            Relisting::Comparing(gone) => match call.op.key().map(|key| state.spec.read(key)) {
                None => Relisting::Deleting(gone),
                Some(Some(record)) if record.value == value => {
                    done.unchanged += 1;
                    Relisting::Deleting(gone)
                }
                Some(_) => Relisting::Setting(gone),
            },
            Relisting::Setting(gone) => {
                let key = call.op.key().expect("something is listed");
                if next.spec.admits(key, time) {
                    next.spec.set(key, value, time);
                    done.set += 1;
                } else {
                    done.refused += 1;
                }
                Relisting::Deleting(gone)
            }
            Relisting::Deleting(gone) if gone.is_empty() => {
                if call.outcome == Outcome::Relisted(done) {
                    next.update_time(strand, time);
                    found(next);
                }
                return;
            }
            Relisting::Deleting(gone) => {
                for key in &gone {
                    let rest = gone.iter().copied().filter(|other| other != key).collect();
                    let (mut next, mut done) = (state.clone(), done);
                    let stage = if next.spec.delete_at(*key, time) == Some(true) {
                        done.deleted += 1;
                        Relisting::Deleting(rest)
                    } else {
                        Relisting::Refused(*key, rest)
                    };
                    next.stage[strand] = Stage::Relisting(stage, done);
                    found(next);
                }
                return;
            }
            Relisting::Refused(key, gone) => {
                done.refused += usize::from(state.spec.read(key).is_some());
                Relisting::Deleting(gone)
            }
        };
        next.stage[strand] = Stage::Relisting(stage, done);
        found(next);
    }

    fn keys(&self) -> Vec<Key> {
        self.strands
            .iter()
            .flatten()
            .filter_map(|call| call.op.key())
            .collect()
    }
}

impl State {
    fn advance(&mut self, strand: usize) {
        self.at[strand] += 1;
        self.stage[strand] = Stage::Before;
    }

    fn update_time(&mut self, strand: usize, ts: Time) {
        let owed = named(&self.spec, ts);
        self.spec.update_time(ts);
        for stage in &mut self.stage {
            if let Stage::Entering(since) | Stage::Entered(since) = stage {
                *since = (*since).max(Some(ts));
            }
        }
        self.stage[strand] = Stage::Waking {
            owed,
            reach: Reach::Until(ts),
        };
    }

    fn close(&mut self, strand: usize) {
        let owed = named(&self.spec, Time::MAX);
        self.spec.close();
        self.stage[strand] = Stage::Waking {
            owed,
            reach: Reach::Closed,
        };
    }

    /// Whether this is what a waiter finds that looks now.
    fn shows(&self, wait: Wait, outcome: &Outcome) -> bool {
        let status = self.spec.waiter(wait).expect("registered").status;
        match (outcome, status) {
            (Outcome::Wait(None), Status::Pending) => true,
            (Outcome::Wait(Some(given)), Status::Over(end)) => *given == end,
            _ => false,
        }
    }
}

/// The waits up to a time that are registered and not over.
fn named(spec: &Spec, ts: Time) -> Vec<Wait> {
    let named = spec.pending().filter(|(_, waiter)| waiter.min <= ts);
    named.map(|(wait, _)| wait).collect()
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reading = |reading: &Reading| match reading {
            Some(record) => record.to_string(),
            None => "default".to_string(),
        };
        match self {
            Outcome::Done => f.write_str("()"),
            Outcome::Flag(flag) => write!(f, "{flag}"),
            Outcome::Read(r) | Outcome::Maybe(Some(r)) | Outcome::Wait(Some(End::Ready(r))) => {
                f.write_str(&reading(r))
            }
            Outcome::Maybe(None) | Outcome::Wait(None) => f.write_str("not yet"),
            Outcome::Wait(Some(End::Closed)) => f.write_str("closed"),
            Outcome::Time(time) => write!(f, "{time}"),
            Outcome::Count(n) => write!(f, "{n}"),
            Outcome::Relisted(relisted) => write!(
                f,
                "{} set, {} unchanged, {} deleted, {} refused",
                relisted.set, relisted.unchanged, relisted.deleted, relisted.refused
            ),
            Outcome::View(time, records) => {
                write!(f, "{time}: ")?;
                Outcome::Records(records.clone()).fmt(f)
            }
            Outcome::Records(records) => f
                .debug_map()
                .entries(records.iter().map(|(k, r)| (k.to_string(), r.to_string())))
                .finish(),
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.op)?;
        if self.op.sets() {
            write!(f, " [v{}]", self.value)?;
        }
        if self.outcome != Outcome::Done {
            write!(f, " -> {}", self.outcome)?;
        }
        Ok(())
    }
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (strand, calls) in self.strands.iter().enumerate() {
            let calls: Vec<String> = calls.iter().map(Call::to_string).collect();
            writeln!(f, "  {strand}: {}", calls.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A history from text: `call -> outcome` per call; every strand but the first runs after the
    /// first, and the last one, if `tail`, after all others.
    fn history(policy: Policy, strands: &[&[(&str, Outcome)]], tail: bool) -> History {
        let lengths: Vec<usize> = strands.iter().map(|calls| calls.len()).collect();
        let mut value = 0;
        let strands = strands.iter().enumerate().map(|(strand, calls)| {
            let call = |(op, outcome): &(&str, Outcome)| {
                let mut after = vec![0; lengths.len()];
                if strand > 0 {
                    after[0] = lengths[0];
                }
                if tail && strand == lengths.len() - 1 {
                    after[..strand].copy_from_slice(&lengths[..strand]);
                }
                let op: Op = op.parse().unwrap();
                value += Value::from(op.sets());
                Call {
                    op,
                    value,
                    outcome: outcome.clone(),
                    after,
                }
            };
            calls.iter().map(call).collect()
        });
        History {
            policy,
            handles: 1,
            strands: strands.collect(),
        }
    }

    fn v(value: Value, modified: Time) -> Reading {
        Some(Record {
            value,
            modified,
            observed: modified,
        })
    }

    fn ready(reading: Reading) -> Outcome {
        Outcome::Wait(Some(End::Ready(reading)))
    }

    const NOT_YET: Outcome = Outcome::Wait(None);
    const CLOSED: Outcome = Outcome::Wait(Some(End::Closed));
    use Outcome::{Done, Flag, Read};
    use Policy::Overwrite;

    #[test]
    fn entry_is_strict_and_waking_is_not() {
        // Woken at an equal time.
        let woken: &[(&str, Outcome)] = &[
            ("s0=sub(a,3)", Done),
            ("set(a,3)", Flag(true)),
            ("s0.try", ready(v(1, 3))),
        ];
        assert!(history(Overwrite, &[woken], false).is_explained());
        let strict: &[(&str, Outcome)] = &[
            ("s0=sub(a,3)", Done),
            ("set(a,3)", Flag(true)),
            ("s0.try", NOT_YET),
        ];
        assert!(!history(Overwrite, &[strict], false).is_explained());
        // Not ready at an equal time.
        let waits: &[(&str, Outcome)] = &[
            ("set(a,3)", Flag(true)),
            ("s0=sub(a,3)", Done),
            ("s0.try", NOT_YET),
        ];
        assert!(history(Overwrite, &[waits], false).is_explained());
        let lax: &[(&str, Outcome)] = &[
            ("set(a,3)", Flag(true)),
            ("s0=sub(a,3)", Done),
            ("s0.try", ready(v(1, 3))),
        ];
        assert!(!history(Overwrite, &[lax], false).is_explained());
        // Nor after an equal update that came before, for nobody overlapped it.
        let late: &[(&str, Outcome)] = &[
            ("update(3)", Done),
            ("s0=sub(a,3)", Done),
            ("s0.try", ready(None)),
        ];
        assert!(!history(Overwrite, &[late], false).is_explained());
    }

    #[test]
    fn a_waiter_gets_the_snapshot_that_woke_it() {
        let setup: &[(&str, Outcome)] = &[("s0=sub(a,3)", Done)];
        let writer: &[(&str, Outcome)] = &[("set(a,4)", Flag(true)), ("delete(a)", Flag(true))];
        let right: &[(&str, Outcome)] = &[("s0.try", ready(v(1, 4)))];
        assert!(history(Overwrite, &[setup, writer, right], false).is_explained());
        let looked_again: &[(&str, Outcome)] = &[("s0.try", ready(None))];
        assert!(!history(Overwrite, &[setup, writer, looked_again], false).is_explained());
    }

    #[test]
    fn a_named_waiter_is_ready_though_its_caller_was_stopped() {
        let setup: &[(&str, Outcome)] = &[("s0=sub(a,3)", Done)];
        let other: &[(&str, Outcome)] = &[("set(a,4)", Flag(true))];
        let mine = |seen: Outcome| [("update(3)", Done), ("s0.try", seen)];
        assert!(history(Overwrite, &[setup, other, &mine(ready(v(1, 4)))], false).is_explained());
        assert!(history(Overwrite, &[setup, other, &mine(ready(None))], false).is_explained());
        assert!(!history(Overwrite, &[setup, other, &mine(NOT_YET)], false).is_explained());
        // Who sees the set sees its waiters ready.
        let seen = |then: Outcome| [("get(a)", Read(v(1, 4))), ("s0.try", then)];
        assert!(history(Overwrite, &[setup, other, &seen(ready(v(1, 4)))], false).is_explained());
        assert!(!history(Overwrite, &[setup, other, &seen(NOT_YET)], false).is_explained());
    }

    #[test]
    fn a_wait_that_overlaps_an_update_may_be_satisfied_by_it() {
        let writer: &[(&str, Outcome)] = &[("update(3)", Done), ("set(a,2)", Flag(true))];
        let reader: &[(&str, Outcome)] = &[
            ("global", Outcome::Time(0)),
            ("s0=sub(a,3)", Done),
            ("s0.try", ready(v(1, 2))),
        ];
        assert!(history(Overwrite, &[&[], writer, reader], false).is_explained());
        let reader: &[(&str, Outcome)] = &[
            ("global", Outcome::Time(3)),
            ("s0=sub(a,3)", Done),
            ("s0.try", ready(v(1, 2))),
        ];
        let done: &[(&str, Outcome)] = &[("update(3)", Done), ("set(a,2)", Flag(true))];
        assert!(!history(Overwrite, &[done, reader], false).is_explained());
    }

    #[test]
    fn nobody_is_left_behind() {
        let wake: &[(&str, Outcome)] = &[("update(3)", Done)];
        let wait: &[(&str, Outcome)] = &[("s0=sub(a,3)", Done)];
        let left: &[(&str, Outcome)] = &[("global", Outcome::Time(3)), ("s0.try", NOT_YET)];
        // In sequence, update first: rightly waiting; the other way round it was forgotten.
        assert!(history(Overwrite, &[&[], wake, wait, left], true).is_explained());
        let above: &[(&str, Outcome)] = &[("update(4)", Done)];
        assert!(!history(Overwrite, &[&[], above, wait, left], true).is_explained());
        let closing: &[(&str, Outcome)] = &[("close", Done)];
        let left: &[(&str, Outcome)] = &[("s0.try", NOT_YET)];
        assert!(!history(Overwrite, &[&[], closing, wait, left], true).is_explained());
        let left: &[(&str, Outcome)] = &[("s0.try", CLOSED)];
        assert!(history(Overwrite, &[&[], closing, wait, left], true).is_explained());
    }

    #[test]
    fn a_set_replaces_the_observed_time() {
        let calls = |observed| {
            let last = Read(Some(Record {
                value: 2,
                modified: 2,
                observed,
            }));
            [
                ("set(a,1)", Flag(true)),
                ("observe(a,5)", Done),
                ("set(a,2)", Flag(true)),
                ("get(a)", last),
            ]
        };
        assert!(history(Overwrite, &[&calls(2)], false).is_explained());
        assert!(!history(Overwrite, &[&calls(5)], false).is_explained());
    }

    #[test]
    fn monotonic_remembers_what_it_vouched_for() {
        let calls = |late: bool| {
            [
                ("set(a,1)", Flag(true)),
                ("observe(a,5)", Done),
                ("delete(a)", Flag(true)),
                ("set(a,4)", Flag(late)),
                ("delete_at(a,4)", Flag(false)),
                ("set(a,5)", Flag(true)),
            ]
        };
        assert!(history(Policy::Monotonic, &[&calls(false)], false).is_explained());
        assert!(!history(Policy::Monotonic, &[&calls(true)], false).is_explained());
        let forgotten = [
            ("delete_at(a,5)", Flag(false)),
            ("update(6)", Done),
            ("update(2)", Done),
            ("global", Outcome::Time(6)),
            ("set(a,6)", Flag(true)),
        ];
        assert!(history(Policy::Monotonic, &[&forgotten], false).is_explained());
    }

    #[test]
    fn iteration_reads_key_by_key() {
        let writer: &[(&str, Outcome)] = &[("set(a,1)", Flag(true)), ("set(b,1)", Flag(true))];
        let only_b = Outcome::Records(vec![(Key(1), v(2, 1).unwrap())]);
        assert!(
            history(
                Overwrite,
                &[&[], writer, &[("iter", only_b.clone())]],
                false
            )
            .is_explained()
        );
        assert!(!history(Overwrite, &[&[], writer, &[("iter", only_b)]], true).is_explained());
    }

    #[test]
    fn a_relisting_is_the_calls_that_it_stands_for() {
        let relisted = |set, unchanged, deleted, refused| {
            Outcome::Relisted(Relisted {
                set,
                unchanged,
                deleted,
                refused,
            })
        };
        let calls = |then: Outcome, a: Outcome, b: Outcome| {
            [
                ("set(a,1)", Flag(true)),
                ("set(b,3)", Flag(true)),
                ("s0=sub(b,2)", Done),
                ("relist_first(a,2)", then),
                ("get(a)", a),
                ("get(b)", b),
                ("global", Outcome::Time(2)),
            ]
        };
        let right = calls(relisted(0, 1, 1, 0), Read(v(1, 1)), Read(None));
        assert!(history(Overwrite, &[&right], false).is_explained());
        assert!(!history(Policy::Monotonic, &[&right], false).is_explained());
        let refused = calls(relisted(0, 1, 0, 1), Read(v(1, 1)), Read(v(2, 3)));
        assert!(history(Policy::Monotonic, &[&refused], false).is_explained());
        let set_again = calls(relisted(1, 0, 1, 0), Read(v(1, 2)), Read(None));
        assert!(!history(Overwrite, &[&set_again], false).is_explained());
        let cleared = [
            ("set(a,1)", Flag(true)),
            ("clear(3)", relisted(0, 0, 1, 0)),
            ("get(a)", Read(None)),
            ("clear(3)", relisted(0, 0, 0, 0)),
        ];
        assert!(history(Overwrite, &[&cleared], false).is_explained());
    }

    #[test]
    fn the_clock_counts_where_it_is_given() {
        let writer: &[(&str, Outcome)] = &[("set(a,1)", Flag(true))];
        let reader: &[(&str, Outcome)] = &[("get(a)", Read(None))];
        assert!(history(Overwrite, &[&[], writer, reader], false).is_explained());
        assert!(!history(Overwrite, &[&[], writer, reader], true).is_explained());
    }
}
