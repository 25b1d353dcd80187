use std::sync::{Arc, Condvar, Mutex};

/// A place where threads can be stopped: who enters stays until it is opened.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    inside: usize,
    open: bool,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Stops the calling thread here.
    pub(crate) fn enter(&self) {
        let mut state = self.state.lock().unwrap();
        state.inside += 1;
        self.changed.notify_all();
        while !state.open {
            state = self.changed.wait(state).unwrap();
        }
    }

    /// Is counted among those who came here, and goes on.
    pub(crate) fn pass(&self) {
        self.state.lock().unwrap().inside += 1;
        self.changed.notify_all();
    }

    /// Returns once `n` threads have come here.
    pub(crate) fn await_arrivals(&self, n: usize) {
        let mut state = self.state.lock().unwrap();
        while state.inside < n {
            state = self.changed.wait(state).unwrap();
        }
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    /// Opens the gate when the test's body ends, also by a failed assertion.
    pub(crate) fn open_on_drop(self: &Arc<Self>) -> OpenOnDrop {
        OpenOnDrop(Arc::clone(self))
    }
}

#[must_use]
pub(crate) struct OpenOnDrop(Arc<Gate>);

impl Drop for OpenOnDrop {
    fn drop(&mut self) {
        self.0.open();
    }
}
