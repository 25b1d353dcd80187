//! Starts children, so many a second.

use std::{
    sync::{
        Mutex,
        mpsc::{Receiver, RecvTimeoutError, Sender},
    },
    time::{Duration, Instant},
};

use podcache::pod::PodUid;

use crate::{
    children::{Children, Orders},
    event::Event,
};

/// Runs until the other end of `stop` is dropped. Each pod is admitted one gap before it is
/// started, so that some are seen pending.
pub(crate) fn run(
    per_second: u32,
    longest: Duration,
    children: &Mutex<Children>,
    events: &Sender<Event>,
    stop: &Receiver<()>,
) {
    let gap = Duration::from_secs(1) / per_second;
    let mut due = Instant::now();
    for n in 0.. {
        let uid = PodUid::from(format!("child-{n}"));
        let orders = Orders::for_child(n, longest);
        children
            .lock()
            .unwrap()
            .admit(uid.clone(), format!("child/{n}"), orders);

        // A machine that cannot keep up starts fewer, rather than all that it owes at once.
        due = (due + gap).max(Instant::now());
        if stop.recv_timeout(due - Instant::now()) != Err(RecvTimeoutError::Timeout) {
            children.lock().unwrap().release(&uid);
            return;
        }

        let mut children = children.lock().unwrap();
        let started = children.start(&uid);
        // Told while nobody else can look: the lister cannot report the end of a child before its
        // start.
        let _ = events.send(match started {
            Ok(()) => Event::Started {
                uid,
                code: orders.code.into(),
            },
            Err(error) => Event::Trouble(format!("child/{n} could not be started: {error}")),
        });
    }
}
