//! How far a run is: a bar with the time left on a terminal, a line now and then elsewhere.

use std::cell::Cell;
use std::io::{self, IsTerminal};
use std::rc::Rc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::units::minutes;

/// How far a whole run is, by what its experiments are expected to take.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    /// Seconds that the run is expected to take.
    total: f64,
    /// Of these, what the finished experiments were expected to.
    done: Cell<f64>,
    start: Instant,
    said: Cell<Instant>,
}

impl Progress {
    /// Of a run that another one tells about.
    pub fn silent() -> Rc<Self> {
        let now = Instant::now();
        Rc::new(Self {
            bar: Some(ProgressBar::hidden()),
            total: 0.0,
            done: Cell::new(0.0),
            start: now,
            said: Cell::new(now),
        })
    }

    /// Nothing done yet of what is expected to take `total` seconds.
    pub fn new(total: f64) -> Self {
        eprintln!("This takes about {}.", minutes(total));
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new((total * 1e3) as u64);
            let style = "{elapsed} {wide_bar} {percent}%, {eta} left: {msg}";
            bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        let now = Instant::now();
        Self {
            bar,
            total,
            done: Cell::new(0.0),
            start: now,
            said: Cell::new(now),
        }
    }

    /// So many of the expected seconds of the experiment that goes on are done.
    pub fn step(&self, experiment: &str, seconds: f64) {
        let done = self.done.get() + seconds;
        if let Some(bar) = &self.bar {
            bar.set_message(experiment.to_owned());
            bar.set_position((done * 1e3) as u64);
        } else if self.said.get().elapsed() > Duration::from_secs(10) {
            let share = (done / self.total).min(1.0);
            let left = self.start.elapsed().as_secs_f64() * (1.0 - share) / share.max(1e-3);
            eprintln!(
                "{:3.0} %, {} left: {experiment}",
                share * 100.0,
                minutes(left)
            );
            self.said.set(Instant::now());
        }
    }

    /// An experiment is through that was expected to take so long.
    pub fn next(&self, seconds: f64) {
        self.done.set(self.done.get() + seconds);
    }

    /// Prints below the bar.
    pub fn print(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{text}")),
            None => println!("{text}"),
        }
    }

    /// Takes the bar away, and tells how long the run was.
    pub fn finish(&self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.start.elapsed()
    }
}
