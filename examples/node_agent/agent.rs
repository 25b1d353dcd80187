//! The main thread: starts the others, shows what they tell, and ends it all in order.

use std::{
    io::{self, ErrorKind, Write},
    process::ExitCode,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, anyhow};
use podcache::{Cache, pod::PodUid};

use crate::{
    args::Args, children::Children, churn, event::Event, lister::Lister, picture::Picture,
    pod::Report, summary::Summary, view::View,
};

/// How long a picture stands before the next is drawn.
const FRAME: Duration = Duration::from_millis(100);

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (events, told) = mpsc::channel();
    let interrupts = events.clone();
    ctrlc::set_handler(move || drop(interrupts.send(Event::Interrupted)))
        .context("no signal handler")?;

    let cache = Cache::<PodUid, Report>::builder()
        .write_policy(args.policy.into())
        .build();
    let children = Arc::new(Mutex::new(Children::default()));
    let lister = Lister::new(cache.clone(), children.clone(), events.clone());

    let mut picture = Picture::new();
    let mut view = View::open(args)?;
    let mut threads = Threads::start(args, lister, children, events)?;
    let mut shown = follow(args, &mut picture, &mut view, &told, &mut threads);

    // However that ended: first the children, which the lister stays for, then the lister, and the
    // workers when there is nobody left to write.
    threads.stop();
    if shown.is_err() {
        threads.kill_children();
    }
    let workers = threads.join_lister()?;
    cache.close();
    for worker in workers {
        worker.join().map_err(|_| anyhow!("a worker panicked"))?;
    }
    let took = picture.begun.elapsed();
    for event in told.try_iter() {
        let change = picture.take(event);
        shown = shown.and_then(|()| change.map_or(Ok(()), |change| view.show(change)));
    }
    drop(view);

    let summary = Summary {
        args,
        picture: &picture,
        took,
        waits_left: cache.waiters(),
    };
    match shown.and_then(|()| writeln!(io::stdout(), "{summary}")) {
        // Whoever read has read enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        other => other.context("the output failed")?,
    }
    Ok(if summary.holds() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Takes in and shows what is told, until the lister is through.
fn follow(
    args: &Args,
    picture: &mut Picture,
    view: &mut View,
    told: &Receiver<Event>,
    threads: &mut Threads,
) -> io::Result<()> {
    let mut end = args
        .run_for
        .and_then(|time| picture.begun.checked_add(time));
    while !threads.lister_is_through() {
        view.draw(picture)?;
        let mut interrupted = view.interrupted()?;
        let mut next = Instant::now() + FRAME;
        if let Some(end) = end {
            next = next.min(end);
        }
        while !interrupted && let Some(left) = next.checked_duration_since(Instant::now()) {
            match told.recv_timeout(left) {
                Ok(Event::Interrupted) => interrupted = true,
                Ok(event) => {
                    if let Some(change) = picture.take(event) {
                        view.show(change)?;
                    }
                }
                // The next picture is due.
                Err(_) => break,
            }
        }
        if interrupted || end.is_some_and(|end| end <= Instant::now()) {
            end = None;
            picture.ending = true;
            threads.stop();
        }
        if interrupted {
            threads.kill_children();
        }
    }
    Ok(())
}

/// The threads besides the workers. A thread is told to stop by dropping the channel that it
/// listens to.
struct Threads {
    children: Arc<Mutex<Children>>,
    churn: Option<(Sender<()>, JoinHandle<()>)>,
    stop_lister: Option<Sender<()>>,
    lister: JoinHandle<io::Result<Vec<JoinHandle<()>>>>,
}

impl Threads {
    fn start(
        args: &Args,
        lister: Lister,
        children: Arc<Mutex<Children>>,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        let Args {
            period,
            churn: per_second,
            child_life,
            ..
        } = *args;
        let (stop_lister, stop) = mpsc::channel();
        let lister = thread::Builder::new()
            .name("lister".into())
            .spawn(move || lister.run(period, &stop))?;
        let churn = if per_second == 0 {
            None
        } else {
            let (stop_churn, stop) = mpsc::channel();
            let children = children.clone();
            let churn = move || churn::run(per_second, child_life, &children, &events, &stop);
            Some((
                stop_churn,
                thread::Builder::new().name("churn".into()).spawn(churn)?,
            ))
        };
        Ok(Self {
            children,
            churn,
            stop_lister: Some(stop_lister),
            lister,
        })
    }

    /// No more children; the lister goes on until the last one's end has been seen.
    fn stop(&mut self) {
        if let Some((stop, churn)) = self.churn.take() {
            drop(stop);
            churn.join().expect("starting children does not panic");
        }
        self.stop_lister = None;
    }

    /// Ends the children that still run. The lister sees what became of them.
    fn kill_children(&self) {
        kill(&self.children);
    }

    fn lister_is_through(&self) -> bool {
        self.lister.is_finished()
    }

    /// Returns the workers that are left.
    fn join_lister(self) -> anyhow::Result<Vec<JoinHandle<()>>> {
        let Self {
            children, lister, ..
        } = self;
        let listed = lister.join();
        if !matches!(listed, Ok(Ok(_))) {
            // Nobody waits for them any more.
            kill(&children);
        }
        listed
            .map_err(|_| anyhow!("the lister panicked"))?
            .context("the node could not be listed")
    }
}

fn kill(children: &Mutex<Children>) {
    // Also if somebody panicked over them: they are processes.
    children
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .kill();
}
