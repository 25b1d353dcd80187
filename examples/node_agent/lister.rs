//! The lister: looks at the node every period and writes what it found into the cache. The only
//! writer there is.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use podcache::{
    Cache, Timestamp,
    pod::{PodStatus, PodUid},
};

use crate::{
    children::Children,
    diff::{Diff, Listing, diff},
    event::{Event, Listed},
    node::Node,
    pod::{Report, exit_codes},
    worker::{Synced, Worker},
};

/// How soon to look again once only the last children are waited for.
const SOON: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(crate) struct Lister {
    cache: Cache<PodUid, Report>,
    node: Node,
    children: Arc<Mutex<Children>>,
    /// The listing before, as far as it was written.
    known: Listing,
    followed: HashMap<PodUid, Followed>,
    workers: Vec<JoinHandle<()>>,
    events: Sender<Event>,
}

/// What the lister knows of a pod's worker.
#[derive(Debug)]
struct Followed {
    synced: Arc<Synced>,
    sets: u64,
    modified: Timestamp,
}

impl Followed {
    /// Whether the pod can be deleted without costing its worker the last status.
    fn delivered(&self) -> bool {
        // The first status met the wait that was registered before it, and is the worker's however
        // late it wakes. A later one may have found the worker busy with the one before; then only
        // the worker can tell. One that has left will not, and what it missed is lost.
        self.sets == 1
            || self.synced.load() == self.modified
            || Arc::strong_count(&self.synced) == 1
    }
}

impl Lister {
    pub(crate) fn new(
        cache: Cache<PodUid, Report>,
        children: Arc<Mutex<Children>>,
        events: Sender<Event>,
    ) -> Self {
        Self {
            cache,
            node: Node::default(),
            children,
            known: Listing::new(),
            followed: HashMap::new(),
            workers: Vec::new(),
            events,
        }
    }

    /// Lists until the other end of `stop` is dropped, then until the last child has ended and its
    /// worker knows. Returns the workers that are still there.
    pub(crate) fn run(
        mut self,
        period: Duration,
        stop: &Receiver<()>,
    ) -> io::Result<Vec<JoinHandle<()>>> {
        let mut due = Instant::now();
        loop {
            self.relist()?;
            let next = due.checked_add(period);
            // Beyond what the clock can say is never.
            let Some(next) = next.map(|next| next.max(Instant::now())) else {
                let _ = stop.recv();
                break;
            };
            due = next;
            if stop.recv_timeout(due - Instant::now()) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        loop {
            self.relist()?;
            if self.children.lock().unwrap().is_empty() {
                return Ok(self.workers);
            }
            std::thread::sleep(SOON.min(period));
        }
    }

    fn relist(&mut self) -> io::Result<()> {
        let begun = Instant::now();
        // Before anything is looked at: everything that is found is at least as new as this. Taken
        // afterwards, it would vouch for what happened in between and was not seen.
        let time = Timestamp::now();
        let now = self.list()?;
        let Diff {
            changed,
            confirmed,
            gone,
        } = diff(&self.known, &now);

        let mut listed = Listed::default();
        let mut without_worker = Vec::new();
        for uid in changed {
            match self.set(&uid, &now[&uid], time) {
                Ok(true) => listed.sets += 1,
                Ok(false) => listed.refused += 1,
                // Nobody would see it. It stays as unknown as before and is new the next time.
                Err(error) => without_worker.push(error),
            }
        }
        if let Some(error) = without_worker.first() {
            let pods = without_worker.len();
            self.tell(Event::Trouble(format!(
                "{pods} pods without a worker as yet: {error}"
            )));
        }
        // For those who read, the global time vouches for these too. This is for the workers: what
        // wakes them says which listing it comes from, and that is the time they name next.
        for uid in &confirmed {
            self.cache.set_observed_time(uid, time);
            listed.observes += 1;
        }
        for uid in &gone {
            self.forget(uid, &mut listed);
        }
        self.forget_ended_children(&mut listed);
        // Last, so that nobody takes an older status for one that this listing vouches for. It also
        // wakes the workers of the pods just deleted: they get a pod that is not there, and leave.
        self.cache.update_time(time);

        self.dismiss();
        listed.workers = self.workers.len();
        listed.took = begun.elapsed();
        self.tell(Event::Listed(listed));
        Ok(())
    }

    /// Looks at the processes and at the children, with none started or reaped in between.
    fn list(&mut self) -> io::Result<Listing> {
        let mut children = self.children.lock().unwrap();
        self.node.refresh();
        for (uid, code) in children.reap()? {
            self.tell(Event::Reaped { uid, code });
        }
        Ok(self.node.list(&children))
    }

    fn set(&mut self, uid: &PodUid, pod: &PodStatus, time: Timestamp) -> io::Result<bool> {
        if !self.followed.contains_key(uid) {
            let followed = self.follow(uid, time)?;
            self.followed.insert(uid.clone(), followed);
        }
        let report = Report {
            status: PodStatus {
                timestamp: time,
                ..pod.clone()
            },
            set_at: Some(Instant::now()),
        };
        let stored = self.cache.set(uid, report, time);
        if stored && let Some(followed) = self.followed.get_mut(uid) {
            followed.sets += 1;
            followed.modified = time;
            self.known.insert(uid.clone(), pod.clone());
        }
        Ok(stored)
    }

    /// Starts the worker of a new pod. Its first wait is registered here and now, with the time
    /// under which the pod's first status is about to be written: that `set` ends the wait,
    /// whenever the thread gets to run.
    fn follow(&mut self, uid: &PodUid, time: Timestamp) -> io::Result<Followed> {
        let synced = Arc::new(Synced::default());
        let worker = Worker {
            uid: uid.clone(),
            cache: self.cache.read_only(),
            first: self.cache.subscribe(uid, time),
            synced: synced.clone(),
            events: self.events.clone(),
        };
        self.workers.push(worker.start()?);
        Ok(Followed {
            synced,
            sets: 0,
            modified: Timestamp::ZERO,
        })
    }

    /// Deletes the pods of the children that have ended, as soon as that cannot cost an exit code.
    /// For a child that was first seen when it had already ended, that is right after its only
    /// `set`.
    fn forget_ended_children(&mut self, listed: &mut Listed) {
        let ended: Vec<_> = self.children.lock().unwrap().ended().cloned().collect();
        for uid in ended {
            let Some(followed) = self.followed.get(&uid) else {
                continue;
            };
            let written = self
                .known
                .get(&uid)
                .is_some_and(|pod| exit_codes(pod).next().is_some());
            if written && followed.delivered() {
                listed.deletes_at_once += u64::from(followed.sets == 1);
                self.forget(&uid, listed);
                self.children.lock().unwrap().release(&uid);
            }
        }
    }

    fn forget(&mut self, uid: &PodUid, listed: &mut Listed) {
        listed.deletes += u64::from(self.cache.delete(uid));
        self.followed.remove(uid);
        self.known.remove(uid);
    }

    /// Joins the workers that have left. One that panicked takes the agent with it.
    fn dismiss(&mut self) {
        for worker in self.workers.extract_if(.., |worker| worker.is_finished()) {
            worker.join().expect("a worker does not panic");
        }
    }

    fn tell(&self, event: Event) {
        // Nobody listens any more only when the agent is ending.
        let _ = self.events.send(event);
    }
}
