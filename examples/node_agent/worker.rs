//! One pod's worker: waits for news of its pod and passes them on.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::Sender,
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use podcache::{ReadCache, Snapshot, Subscription, Timestamp, WaitError, pod::PodUid};

use crate::{
    event::{Event, Left, Why, Woken},
    pod::Report,
};

/// A worker sleeps nearly always and calls little: hundreds of them should not take hundreds of
/// megabytes.
const STACK: usize = 64 << 10;

#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) uid: PodUid,
    /// Read-only: a worker has nothing to write, and does not keep the cache open.
    pub(crate) cache: ReadCache<PodUid, Report>,
    /// The first wait. Registered before the pod's first status was written, so that not even a pod
    /// that is gone before this thread has started goes by unseen.
    pub(crate) first: Subscription<Report>,
    pub(crate) synced: Arc<Synced>,
    pub(crate) events: Sender<Event>,
}

/// The time of the newest status that a worker has got, for the lister to see.
#[derive(Debug, Default)]
pub(crate) struct Synced(AtomicU64);

// Relaxed: it says that the worker has a status, and hands over nothing else.
impl Synced {
    fn store(&self, time: Timestamp) {
        self.0.store(time.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn load(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

impl Worker {
    pub(crate) fn start(self) -> io::Result<JoinHandle<()>> {
        thread::Builder::new()
            .name(self.uid.to_string())
            .stack_size(STACK)
            .spawn(move || {
                let why = self.follow();
                let _ = self.events.send(Event::Left { uid: self.uid, why });
            })
    }

    fn follow(&self) -> Left {
        let mut asked = Instant::now();
        let mut answer = self.first.wait();
        let mut last = Seen {
            modified: Timestamp::ZERO,
            observed: Timestamp::ZERO,
        };
        loop {
            let woken = Instant::now();
            let snapshot = match answer {
                Ok(snapshot) => snapshot,
                Err(WaitError::Closed) => return Left::Closed,
                Err(error) => unreachable!("a wait without a deadline ended with {error}"),
            };
            // Nothing is stored under the key any more: what came is what a missing pod reads as.
            let Some(seen) = Seen::of(&snapshot) else {
                return Left::Deleted;
            };

            let why = seen.compared_with(last);
            let waited = |&set_at: &Instant| why == Why::News && asked < set_at;
            let latency = snapshot.set_at.filter(waited).map(|set_at| woken - set_at);
            let _ = self.events.send(Event::Woken(Woken {
                uid: self.uid.clone(),
                snapshot,
                why,
                latency,
            }));
            self.synced.store(seen.modified);

            // The time to name is that of the snapshot, not the present: a status that was taken
            // before now but is written after it would be passed over, and it may be the pod's
            // last.
            last = seen;
            asked = Instant::now();
            answer = self.cache.get_newer_than(&self.uid, last.observed);
        }
    }
}

#[derive(Clone, Copy)]
struct Seen {
    modified: Timestamp,
    observed: Timestamp,
}

impl Seen {
    fn of(snapshot: &Snapshot<Report>) -> Option<Self> {
        Some(Self {
            modified: snapshot.modified()?,
            observed: snapshot.observed()?,
        })
    }

    fn compared_with(self, last: Self) -> Why {
        if self.modified != last.modified {
            Why::News
        } else if self.observed != last.observed {
            Why::Confirmed
        } else {
            Why::SameTime
        }
    }
}
