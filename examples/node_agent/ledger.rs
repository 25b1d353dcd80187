//! The books of the children's exit codes: what was ordered, what the system said, what the pod's
//! worker got to see.

use std::collections::{BTreeMap, HashMap};

use podcache::pod::PodUid;

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    started: u64,
    /// Those of which the worker has yet to see the end.
    open: HashMap<PodUid, Entry>,
    seen: BTreeMap<i32, u64>,
    wrong: u64,
    ended_otherwise: u64,
}

#[derive(Debug)]
struct Entry {
    ordered: i32,
    reaped: Option<i32>,
}

impl Ledger {
    pub(crate) fn started(&mut self, uid: PodUid, ordered: i32) {
        self.started += 1;
        self.open.insert(
            uid,
            Entry {
                ordered,
                reaped: None,
            },
        );
    }

    pub(crate) fn reaped(&mut self, uid: &PodUid, code: i32) {
        if let Some(entry) = self.open.get_mut(uid) {
            entry.reaped = Some(code);
        }
    }

    /// A worker got a snapshot with this exit code. The first one counts; the same may come again.
    pub(crate) fn seen(&mut self, uid: &PodUid, code: i32) {
        let Some(entry) = self.open.remove(uid) else {
            return;
        };
        if entry.reaped == Some(code) {
            *self.seen.entry(code).or_default() += 1;
            self.ended_otherwise += u64::from(code != entry.ordered);
        } else {
            self.wrong += 1;
        }
    }

    pub(crate) fn children(&self) -> u64 {
        self.started
    }

    /// Of how many the worker saw the exit code that the system gave.
    pub(crate) fn accounted(&self) -> u64 {
        self.seen.values().sum()
    }

    /// How many of those exited with another code than ordered: something ended them early.
    pub(crate) fn ended_otherwise(&self) -> u64 {
        self.ended_otherwise
    }

    /// How many are not accounted for; once all is over, they are lost.
    pub(crate) fn missing(&self) -> u64 {
        self.open.len() as u64 + self.wrong
    }

    /// How often each code was seen.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (i32, u64)> {
        self.seen.iter().map(|(&code, &times)| (code, times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid(n: u32) -> PodUid {
        format!("child-{n}").into()
    }

    #[test]
    fn a_code_that_was_reaped_and_seen_is_accounted_for() {
        let mut ledger = Ledger::default();
        ledger.started(uid(1), 3);
        assert_eq!((ledger.accounted(), ledger.missing()), (0, 1));
        ledger.reaped(&uid(1), 3);
        assert_eq!((ledger.accounted(), ledger.missing()), (0, 1));
        ledger.seen(&uid(1), 3);
        ledger.seen(&uid(1), 3);
        assert_eq!(
            (
                ledger.accounted(),
                ledger.missing(),
                ledger.ended_otherwise()
            ),
            (1, 0, 0)
        );
        assert_eq!(ledger.codes().collect::<Vec<_>>(), [(3, 1)]);
    }

    #[test]
    fn a_code_that_no_worker_saw_is_missing() {
        let mut ledger = Ledger::default();
        ledger.started(uid(1), 0);
        ledger.reaped(&uid(1), 0);
        assert_eq!(
            (ledger.children(), ledger.accounted(), ledger.missing()),
            (1, 0, 1)
        );
    }

    #[test]
    fn another_code_than_was_reaped_is_no_account() {
        let mut ledger = Ledger::default();
        ledger.started(uid(1), 3);
        ledger.reaped(&uid(1), 3);
        ledger.seen(&uid(1), 4);
        assert_eq!((ledger.accounted(), ledger.missing()), (0, 1));
    }

    #[test]
    fn a_child_that_was_killed_is_accounted_for_with_what_it_got() {
        let mut ledger = Ledger::default();
        ledger.started(uid(1), 3);
        ledger.reaped(&uid(1), 137);
        ledger.seen(&uid(1), 137);
        assert_eq!(
            (
                ledger.accounted(),
                ledger.missing(),
                ledger.ended_otherwise()
            ),
            (1, 0, 1)
        );
    }
}
