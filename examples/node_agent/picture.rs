//! What the main thread has been told so far: the pods, the counts and the books.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use podcache::{
    Timestamp,
    pod::{PodPhase, PodUid},
};

use crate::{
    event::{Event, Left, Listed, Why, Woken},
    ledger::Ledger,
    pod::{exit_codes, phase, started},
};

#[derive(Debug)]
pub(crate) struct Picture {
    pub(crate) begun: Instant,
    /// Only the children that still run are waited for.
    pub(crate) ending: bool,
    pub(crate) pods: HashMap<PodUid, Row>,
    pub(crate) ledger: Ledger,
    pub(crate) counts: Counts,
    /// From the call of `set` to the worker going on, in nanoseconds.
    pub(crate) latency: Histogram<u64>,
}

/// A pod as its worker last saw it.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) phase: PodPhase,
    pub(crate) since: Instant,
    pub(crate) containers: usize,
    pub(crate) running: usize,
    pub(crate) started: Option<Timestamp>,
    pub(crate) wakes: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) pods: u64,
    pub(crate) listings: u64,
    pub(crate) listing: Duration,
    pub(crate) sets: u64,
    pub(crate) refused: u64,
    pub(crate) observes: u64,
    pub(crate) deletes: u64,
    pub(crate) deletes_at_once: u64,
    pub(crate) workers_at_most: usize,
    pub(crate) left_deleted: u64,
    pub(crate) left_closed: u64,
    pub(crate) news: u64,
    pub(crate) confirmed: u64,
    pub(crate) same_time: u64,
}

/// Something to show.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) at: Duration,
    pub(crate) what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    Turned(Turn),
    Trouble(String),
}

/// A pod went from one phase to another.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(crate) name: String,
    /// None: it is new.
    pub(crate) from: Option<PodPhase>,
    /// None: it is gone.
    pub(crate) to: Option<PodPhase>,
    pub(crate) exit: Option<i32>,
    pub(crate) latency: Option<Duration>,
}

impl Picture {
    pub(crate) fn new() -> Self {
        let minute = 60_000_000_000;
        Self {
            begun: Instant::now(),
            ending: false,
            pods: HashMap::new(),
            ledger: Ledger::default(),
            counts: Counts::default(),
            latency: Histogram::new_with_bounds(1, minute, 3)
                .expect("from a nanosecond to a minute, three digits"),
        }
    }

    /// Takes in what happened, and says what there is to show for it.
    pub(crate) fn take(&mut self, event: Event) -> Option<Change> {
        let what = match event {
            Event::Started { uid, code } => {
                self.ledger.started(uid, code);
                None
            }
            Event::Reaped { uid, code } => {
                self.ledger.reaped(&uid, code);
                None
            }
            Event::Listed(listed) => {
                self.counts.add(listed);
                None
            }
            Event::Woken(woken) => self.woken(woken),
            Event::Left { uid, why } => self.left(&uid, why),
            Event::Trouble(trouble) => Some(What::Trouble(trouble)),
            Event::Interrupted => None,
        };
        what.map(|what| Change {
            at: self.begun.elapsed(),
            what,
        })
    }

    fn woken(
        &mut self,
        Woken {
            uid,
            snapshot,
            why,
            latency,
        }: Woken,
    ) -> Option<What> {
        match why {
            Why::News => self.counts.news += 1,
            Why::Confirmed => self.counts.confirmed += 1,
            Why::SameTime => self.counts.same_time += 1,
        }
        if let Some(latency) = latency {
            self.latency
                .saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        }
        let pod = &snapshot.status;
        let exit = exit_codes(pod).next();
        if let Some(code) = exit {
            self.ledger.seen(&uid, code);
        }

        let before = self.pods.remove(&uid);
        self.counts.pods += u64::from(before.is_none());
        let from = before.as_ref().map(|row| row.phase);
        let to = phase(pod);
        let turned = from != Some(to);
        let row = Row {
            name: pod.name.clone(),
            phase: to,
            since: before
                .as_ref()
                .filter(|_| !turned)
                .map_or_else(Instant::now, |row| row.since),
            containers: pod.container_statuses.len(),
            running: pod.running_container_statuses().count(),
            started: started(pod),
            wakes: before.map_or(0, |row| row.wakes) + 1,
        };
        let name = row.name.clone();
        self.pods.insert(uid, row);
        turned.then_some(What::Turned(Turn {
            name,
            from,
            to: Some(to),
            exit,
            latency,
        }))
    }

    fn left(&mut self, uid: &PodUid, why: Left) -> Option<What> {
        match why {
            Left::Deleted => self.counts.left_deleted += 1,
            Left::Closed => self.counts.left_closed += 1,
        }
        let Row { name, phase, .. } = self.pods.remove(uid)?;
        // That a pod whose end was shown is now gone too is no news.
        (why == Left::Deleted && !phase.is_terminal()).then_some(What::Turned(Turn {
            name,
            from: Some(phase),
            to: None,
            exit: None,
            latency: None,
        }))
    }

    pub(crate) fn in_phase(&self, phase: PodPhase) -> usize {
        self.pods.values().filter(|row| row.phase == phase).count()
    }

    pub(crate) fn quantile(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.latency.value_at_quantile(quantile))
    }
}

impl Counts {
    fn add(&mut self, listed: Listed) {
        self.listings += 1;
        self.listing += listed.took;
        self.sets += listed.sets;
        self.refused += listed.refused;
        self.observes += listed.observes;
        self.deletes += listed.deletes;
        self.deletes_at_once += listed.deletes_at_once;
        self.workers_at_most = self.workers_at_most.max(listed.workers);
    }

    /// Every return of a worker's wait with a snapshot.
    pub(crate) fn wakes(&self) -> u64 {
        self.news + self.confirmed + self.same_time + self.left_deleted
    }
}
