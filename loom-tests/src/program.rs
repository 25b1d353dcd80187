//! Programs: a few calls, spread over a few threads, as text and as data.
//!
//! ```text
//! overwrite: [update(2); set(a,3); s0=sub(a,3)] set(a,4); get(a) || s0.wait
//! ```
//!
//! reads: under the policy `overwrite`, after the calls in brackets, two threads run. The text is
//! the name of a program: what a run prints can be given back to it.

use std::fmt;
use std::str::FromStr;

use crate::spec::{Key, Policy, Time, Wait};

/// One call.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// `get`.
    Get(Key),
    /// `pin().get`.
    Pinned(Key),
    /// `try_get_newer_than`.
    Try(Key, Time),
    /// `iter`, collected.
    Iter,
    /// `Tracker::load`, of the thread's tracker of that key; made if it has none.
    Load(Key),
    /// `view`.
    View,
    /// `changes`: the thread's stream.
    Watch,
    /// Takes from the stream all that is there.
    Drain,
    /// Waits for the next change. Only in programs that have one: nobody ends it.
    Await,
    /// Drops the stream.
    Unwatch,
    /// `len`.
    Len,
    /// `global_time`.
    Global,
    /// `waiters`.
    Waiters,
    /// `set`.
    Set(Key, Time),
    /// `set_observed_time`.
    Observe(Key, Time),
    /// `delete`.
    Delete(Key),
    /// `delete_at`.
    DeleteAt(Key, Time),
    /// `update_time`.
    Update(Time),
    /// `relist` of one pod, with a value of its own.
    Relist(Key, Time),
    /// `relist` of one pod, with the value that the program's first set brought.
    RelistFirst(Key, Time),
    /// `relist_or_clear` of nothing.
    Clear(Time),
    /// `close`.
    Close,
    /// Drops the thread's handle on the cache, its last call on it.
    Leave,
    /// `subscribe`.
    Subscribe(Wait, Key, Time),
    /// `get_newer_than`; blocks.
    GetNewer(Wait, Key, Time),
    /// `get_newer_than_timeout`.
    GetNewerTimed(Wait, Key, Time),
    /// `Subscription::try_get`.
    TryNow(Wait),
    /// `Subscription::wait`; blocks.
    Block(Wait),
    /// `Subscription::wait_timeout`.
    Timed(Wait),
    /// Polls the subscription with the waker of that number.
    Poll(Wait, u8),
    /// Drops the subscription.
    Drop(Wait),
}

impl Op {
    /// Whether it may block for ever if nobody closes the cache.
    pub fn blocks(self) -> bool {
        matches!(
            self,
            Op::GetNewer(..) | Op::GetNewerTimed(..) | Op::Block(_) | Op::Timed(_)
        )
    }

    /// Whether it may time out.
    pub fn timed(self) -> bool {
        matches!(self, Op::GetNewerTimed(..) | Op::Timed(_))
    }

    /// The key that it names.
    pub fn key(self) -> Option<Key> {
        match self {
            Op::Get(k)
            | Op::Load(k)
            | Op::Pinned(k)
            | Op::Try(k, _)
            | Op::Set(k, _)
            | Op::Observe(k, _) => Some(k),
            Op::Delete(k) | Op::DeleteAt(k, _) | Op::Subscribe(_, k, _) => Some(k),
            Op::Relist(k, _) | Op::RelistFirst(k, _) => Some(k),
            Op::GetNewer(_, k, _) | Op::GetNewerTimed(_, k, _) => Some(k),
            _ => None,
        }
    }

    /// The time that it names.
    pub fn time(self) -> Option<Time> {
        match self {
            Op::Try(_, t) | Op::Set(_, t) | Op::Observe(_, t) | Op::DeleteAt(_, t) => Some(t),
            Op::Update(t) | Op::Subscribe(_, _, t) => Some(t),
            Op::Relist(_, t) | Op::RelistFirst(_, t) | Op::Clear(t) => Some(t),
            Op::GetNewer(_, _, t) | Op::GetNewerTimed(_, _, t) => Some(t),
            _ => None,
        }
    }

    /// The same call on another key.
    pub fn on(self, to: Key) -> Op {
        match self {
            Op::Get(_) => Op::Get(to),
            Op::Pinned(_) => Op::Pinned(to),
            Op::Load(_) => Op::Load(to),
            Op::Try(_, t) => Op::Try(to, t),
            Op::Set(_, t) => Op::Set(to, t),
            Op::Observe(_, t) => Op::Observe(to, t),
            Op::Delete(_) => Op::Delete(to),
            Op::DeleteAt(_, t) => Op::DeleteAt(to, t),
            Op::Relist(_, t) => Op::Relist(to, t),
            Op::RelistFirst(_, t) => Op::RelistFirst(to, t),
            Op::Subscribe(w, _, t) => Op::Subscribe(w, to, t),
            Op::GetNewer(w, _, t) => Op::GetNewer(w, to, t),
            Op::GetNewerTimed(w, _, t) => Op::GetNewerTimed(w, to, t),
            other => other,
        }
    }

    /// The wait that it makes or names.
    pub fn wait(self) -> Option<Wait> {
        match self {
            Op::Subscribe(w, ..) | Op::GetNewer(w, ..) | Op::GetNewerTimed(w, ..) => Some(w),
            Op::TryNow(w) | Op::Block(w) | Op::Timed(w) | Op::Poll(w, _) | Op::Drop(w) => Some(w),
            _ => None,
        }
    }

    /// Whether it makes the wait that it names.
    pub fn makes_wait(self) -> bool {
        matches!(
            self,
            Op::Subscribe(..) | Op::GetNewer(..) | Op::GetNewerTimed(..)
        )
    }

    /// The same call with the waits that it names renamed.
    pub fn with_wait(self, to: Wait) -> Op {
        match self {
            Op::Subscribe(_, k, t) => Op::Subscribe(to, k, t),
            Op::GetNewer(_, k, t) => Op::GetNewer(to, k, t),
            Op::GetNewerTimed(_, k, t) => Op::GetNewerTimed(to, k, t),
            Op::TryNow(_) => Op::TryNow(to),
            Op::Block(_) => Op::Block(to),
            Op::Timed(_) => Op::Timed(to),
            Op::Poll(_, n) => Op::Poll(to, n),
            Op::Drop(_) => Op::Drop(to),
            other => other,
        }
    }

    /// Whether it needs a handle on the cache.
    pub fn needs_cache(self) -> bool {
        self.makes_wait() || self.wait().is_none()
    }

    /// Whether it may bring a value.
    pub fn sets(self) -> bool {
        matches!(self, Op::Set(..) | Op::Relist(..) | Op::RelistFirst(..))
    }

    /// Whether it is of those that may call tasks: writes, and the end of the cache.
    pub fn wakes(self) -> bool {
        self.sets()
            || self.deletes()
            || matches!(
                self,
                Op::Observe(..) | Op::Update(_) | Op::Close | Op::Leave
            )
    }

    /// Whether it may remove a record.
    pub fn deletes(self) -> bool {
        matches!(self, Op::Delete(_) | Op::DeleteAt(..) | Op::Clear(_))
            || matches!(self, Op::Relist(..) | Op::RelistFirst(..))
    }

    /// Whether the policy has a say in what it does.
    pub fn heeds_policy(self) -> bool {
        self.sets() || self.deletes() || matches!(self, Op::Observe(..) | Op::Update(_))
    }
}

/// A program.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Program {
    /// The write policy.
    pub policy: Policy,
    /// What happens before the threads start.
    pub setup: Vec<Op>,
    /// What they do.
    pub threads: Vec<Vec<Op>>,
}

impl Program {
    /// All calls.
    pub fn ops(&self) -> impl Iterator<Item = Op> + '_ {
        self.setup
            .iter()
            .chain(self.threads.iter().flatten())
            .copied()
    }

    /// The keys that it names.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.ops().filter_map(Op::key).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// The subscriptions that it makes and never drops.
    pub fn subscriptions(&self) -> Vec<Wait> {
        let dropped: Vec<Wait> = self
            .ops()
            .filter_map(|op| {
                if let Op::Drop(wait) = op {
                    Some(wait)
                } else {
                    None
                }
            })
            .collect();
        self.ops()
            .filter_map(|op| {
                if let Op::Subscribe(wait, ..) = op {
                    Some(wait)
                } else {
                    None
                }
            })
            .filter(|wait| !dropped.contains(wait))
            .collect()
    }

    /// Whether a thread may block until the cache is closed.
    pub fn blocks(&self, thread: usize) -> bool {
        self.threads[thread].iter().any(|op| op.blocks())
    }

    /// Whether some call may time out.
    pub fn timed(&self) -> bool {
        self.ops().any(Op::timed)
    }

    /// Whether some thread gives its handle up, so that the last one closes the cache.
    pub fn leaves(&self) -> bool {
        self.ops().any(|op| op == Op::Leave)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Get(k) => write!(f, "get({k})"),
            Op::Pinned(k) => write!(f, "pinned({k})"),
            Op::Try(k, t) => write!(f, "try({k},{t})"),
            Op::Iter => f.write_str("iter"),
            Op::Load(k) => write!(f, "load({k})"),
            Op::View => f.write_str("view"),
            Op::Watch => f.write_str("watch"),
            Op::Drain => f.write_str("drain"),
            Op::Await => f.write_str("await"),
            Op::Unwatch => f.write_str("unwatch"),
            Op::Len => f.write_str("len"),
            Op::Global => f.write_str("global"),
            Op::Waiters => f.write_str("waiters"),
            Op::Set(k, t) => write!(f, "set({k},{t})"),
            Op::Observe(k, t) => write!(f, "observe({k},{t})"),
            Op::Delete(k) => write!(f, "delete({k})"),
            Op::DeleteAt(k, t) => write!(f, "delete_at({k},{t})"),
            Op::Update(t) => write!(f, "update({t})"),
            Op::Relist(k, t) => write!(f, "relist({k},{t})"),
            Op::RelistFirst(k, t) => write!(f, "relist_first({k},{t})"),
            Op::Clear(t) => write!(f, "clear({t})"),
            Op::Close => f.write_str("close"),
            Op::Leave => f.write_str("leave"),
            Op::Subscribe(w, k, t) => write!(f, "{w}=sub({k},{t})"),
            Op::GetNewer(w, k, t) => write!(f, "{w}=newer({k},{t})"),
            Op::GetNewerTimed(w, k, t) => write!(f, "{w}=newer_timed({k},{t})"),
            Op::TryNow(w) => write!(f, "{w}.try"),
            Op::Block(w) => write!(f, "{w}.wait"),
            Op::Timed(w) => write!(f, "{w}.timed"),
            Op::Poll(w, n) => write!(f, "{w}.poll({n})"),
            Op::Drop(w) => write!(f, "{w}.drop"),
        }
    }
}

/// Calls in a row.
pub fn sequence(ops: &[Op]) -> String {
    ops.iter().map(Op::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.policy)?;
        if !self.setup.is_empty() {
            write!(f, "[{}] ", sequence(&self.setup))?;
        }
        let threads: Vec<String> = self.threads.iter().map(|ops| sequence(ops)).collect();
        f.write_str(&threads.join(" || "))
    }
}

/// Not a program.
#[derive(Debug)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a program: {}", self.0)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Op {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = || ParseError(format!("{text:?} is no call"));
        let text = text.trim();
        let wait = |name: &str| -> Result<Wait, ParseError> {
            let number = name.strip_prefix('s').and_then(|n| n.parse().ok());
            number.map(Wait).ok_or_else(wrong)
        };
        let (made, rest) = match text.split_once('=') {
            Some((name, rest)) => (Some(wait(name)?), rest),
            None => (None, text),
        };
        let (named, rest) = match rest.split_once('.') {
            Some((name, rest)) => (Some(wait(name)?), rest),
            None => (None, rest),
        };
        let (verb, arguments) = match rest.split_once('(') {
            Some((verb, rest)) => (verb, rest.strip_suffix(')').ok_or_else(wrong)?),
            None => (rest, ""),
        };
        let arguments: Vec<&str> = arguments
            .split(',')
            .map(str::trim)
            .filter(|a| !a.is_empty())
            .collect();
        let key = |i: usize| match arguments.get(i).map(|a| a.as_bytes()) {
            Some(&[letter @ b'a'..=b'z']) => Ok(Key(letter - b'a')),
            _ => Err(wrong()),
        };
        let number = |i: usize| -> Result<Time, ParseError> {
            arguments
                .get(i)
                .and_then(|a| a.parse().ok())
                .ok_or_else(wrong)
        };
        Ok(match (made, named, verb) {
            (None, None, "get") => Op::Get(key(0)?),
            (None, None, "pinned") => Op::Pinned(key(0)?),
            (None, None, "try") => Op::Try(key(0)?, number(1)?),
            (None, None, "iter") => Op::Iter,
            (None, None, "load") => Op::Load(key(0)?),
            (None, None, "view") => Op::View,
            (None, None, "watch") => Op::Watch,
            (None, None, "drain") => Op::Drain,
            (None, None, "await") => Op::Await,
            (None, None, "unwatch") => Op::Unwatch,
            (None, None, "len") => Op::Len,
            (None, None, "global") => Op::Global,
            (None, None, "waiters") => Op::Waiters,
            (None, None, "set") => Op::Set(key(0)?, number(1)?),
            (None, None, "observe") => Op::Observe(key(0)?, number(1)?),
            (None, None, "delete") => Op::Delete(key(0)?),
            (None, None, "delete_at") => Op::DeleteAt(key(0)?, number(1)?),
            (None, None, "update") => Op::Update(number(0)?),
            (None, None, "relist") => Op::Relist(key(0)?, number(1)?),
            (None, None, "relist_first") => Op::RelistFirst(key(0)?, number(1)?),
            (None, None, "clear") => Op::Clear(number(0)?),
            (None, None, "close") => Op::Close,
            (None, None, "leave") => Op::Leave,
            (Some(w), None, "sub") => Op::Subscribe(w, key(0)?, number(1)?),
            (Some(w), None, "newer") => Op::GetNewer(w, key(0)?, number(1)?),
            (Some(w), None, "newer_timed") => Op::GetNewerTimed(w, key(0)?, number(1)?),
            (None, Some(w), "try") => Op::TryNow(w),
            (None, Some(w), "wait") => Op::Block(w),
            (None, Some(w), "timed") => Op::Timed(w),
            (None, Some(w), "poll") => Op::Poll(w, number(0)? as u8),
            (None, Some(w), "drop") => Op::Drop(w),
            _ => return Err(wrong()),
        })
    }
}

fn parse_sequence(text: &str) -> Result<Vec<Op>, ParseError> {
    text.split(';')
        .filter(|op| !op.trim().is_empty())
        .map(str::parse)
        .collect()
}

impl FromStr for Program {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (policy, rest) = text
            .split_once(':')
            .ok_or_else(|| ParseError(text.into()))?;
        let policy = Policy::ALL
            .into_iter()
            .find(|p| p.to_string() == policy.trim())
            .ok_or_else(|| ParseError(format!("{policy:?} is no policy")))?;
        let rest = rest.trim();
        let (setup, rest) = match rest.strip_prefix('[') {
            Some(rest) => rest
                .split_once(']')
                .ok_or_else(|| ParseError(text.into()))?,
            None => ("", rest),
        };
        Ok(Program {
            policy,
            setup: parse_sequence(setup)?,
            threads: rest
                .split("||")
                .map(parse_sequence)
                .collect::<Result<_, _>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_program_is_its_name() {
        for text in [
            "overwrite: [update(2); set(a,3); s0=sub(a,3)] set(a,4); get(a) || s0.wait",
            "monotonic: s0=sub(b,3); s0.poll(0); s0.poll(1); s0.drop || delete_at(a,4) || close",
            "reject-older: s0=newer(a,3) || s1=newer_timed(a,3) || observe(a,4); leave",
            "overwrite: [set(a,1)] relist(b,2); relist_first(a,3) || clear(4)",
        ] {
            let program: Program = text.parse().unwrap();
            assert_eq!(program.to_string(), text);
        }
        assert!("overwrite: set(a)".parse::<Program>().is_err());
        assert!("overwrite: s0.sub(a,1)".parse::<Program>().is_err());
        assert!("sometimes: get(a)".parse::<Program>().is_err());
    }
}
