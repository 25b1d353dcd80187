//! How far a run is: a bar with the time left on a terminal, a line now and then elsewhere.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// Steps of the bar per experiment.
const STEPS: u64 = 1000;

/// How far a run of several experiments of about the same length is.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    experiments: usize,
    done: usize,
    start: Instant,
    said: Instant,
}

impl Progress {
    /// Nothing of `experiments` done yet.
    pub fn new(experiments: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(experiments as u64 * STEPS);
            let style = "{elapsed} {wide_bar} {percent}%, {eta} left: {msg}";
            bar.set_style(ProgressStyle::with_template(style).expect("a valid template"));
            bar
        });
        let now = Instant::now();
        Self {
            bar,
            experiments,
            done: 0,
            start: now,
            said: now,
        }
    }

    /// This share of the experiment is done.
    pub fn step(&mut self, experiment: &str, share: f64) {
        if let Some(bar) = &self.bar {
            bar.set_message(experiment.to_owned());
            bar.set_position(((self.done as f64 + share) * STEPS as f64) as u64);
        } else if self.said.elapsed() > Duration::from_secs(10) {
            let part = (self.done as f64 + share) / self.experiments as f64;
            let left = self.start.elapsed().as_secs_f64() * (1.0 - part) / part.max(1e-3);
            eprintln!(
                "{:3.0} %, about {left:.0} s left: {experiment}",
                part * 100.0
            );
            self.said = Instant::now();
        }
    }

    /// One experiment is through.
    pub fn next(&mut self) {
        self.done += 1;
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
