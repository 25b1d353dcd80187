use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::rng::Rng;

/// Lets all threads go at the same moment: they spin, so that none is late by a wake-up.
pub(crate) struct StartLine {
    threads: usize,
    arrived: AtomicUsize,
}

impl StartLine {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads,
            arrived: AtomicUsize::new(0),
        }
    }

    /// Waits for the others; may be used again and again by the same threads.
    pub(crate) fn wait(&self) {
        let turn = self.arrived.fetch_add(1, SeqCst) / self.threads;
        let mut spins = 0_u32;
        while self.arrived.load(SeqCst) < (turn + 1) * self.threads {
            spins += 1;
            if spins < 200 {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// One of the threads of a [`Race`].
pub(crate) type Runner<'a, S> = &'a (dyn Fn(&S) + Sync);

/// Several threads against each other, once per round, each round with a state of its own.
pub(crate) struct Race<S, F: Fn(usize) -> S> {
    rounds: usize,
    start: F,
}

impl<S: Send + Sync, F: Fn(usize) -> S> Race<S, F> {
    pub(crate) fn new(rounds: usize, start: F) -> Self {
        Self { rounds, start }
    }

    /// Runs one thread per runner through all rounds. In each they start together and then drift by
    /// a few random steps; `finish` looks at the state when all have come home.
    pub(crate) fn run(self, runners: &[Runner<'_, S>], finish: impl Fn(usize, S)) {
        let line = StartLine::new(runners.len());
        let state: Mutex<Option<Arc<S>>> = Mutex::new(None);
        let run = |runner: Runner<'_, S>, rng: &mut Rng| {
            line.wait();
            let state = Arc::clone(state.lock().unwrap().as_ref().unwrap());
            line.wait();
            rng.jitter();
            runner(&state);
            drop(state);
            line.wait();
        };
        std::thread::scope(|scope| {
            for (id, runner) in runners.iter().enumerate().skip(1) {
                let (run, rounds) = (&run, self.rounds);
                scope.spawn(move || {
                    let _abort = AbortOnPanic;
                    let mut rng = Rng::new(id as u64);
                    (0..rounds).for_each(|_| run(*runner, &mut rng));
                });
            }
            let _abort = AbortOnPanic;
            let mut rng = Rng::new(0);
            for round in 0..self.rounds {
                *state.lock().unwrap() = Some(Arc::new((self.start)(round)));
                run(runners[0], &mut rng);
                let state = state.lock().unwrap().take().unwrap();
                finish(round, Arc::into_inner(state).expect("all have let go"));
            }
        });
    }
}

/// Ends the process when its thread panics: the message is out by then, and the other threads of
/// the race would wait for it in vain.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
