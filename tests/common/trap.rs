//! User code that misbehaves on demand: the hostile keys and values call [`hit`] wherever the
//! cache runs code of theirs, and a trap that the calling thread has set there goes off.

use std::cell::RefCell;
use std::sync::Arc;

use super::gate::Gate;

/// A place where the cache runs its user's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Hash,
    Eq,
    CloneKey,
    DropKey,
    DropValue,
    Default,
    CloneWaker,
    Wake,
    DropWaker,
}

#[derive(Clone)]
pub(crate) enum Action {
    Panic,
    Park(Arc<Gate>),
}

struct Trap {
    place: Place,
    /// How many visits pass unharmed before it goes off.
    passes: usize,
    action: Action,
}

thread_local! {
    static TRAP: RefCell<Option<Trap>> = const { RefCell::new(None) };
}

/// The message of a trap's panic, to tell it from every other.
pub(crate) const MESSAGE: &str = "the user's code panics here";

/// Sets this thread's trap: the visit after `passes` others to `place` runs into `action`, once.
pub(crate) fn set(place: Place, passes: usize, action: Action) {
    TRAP.set(Some(Trap {
        place,
        passes,
        action,
    }));
}

/// Removes this thread's trap; whether it was still there, which means that it never went off.
pub(crate) fn clear() -> bool {
    TRAP.take().is_some()
}

pub(crate) fn hit(place: Place) {
    // A thread that ends drops values after its thread-locals are gone.
    let action = TRAP.try_with(|trap| {
        let mut trap = trap.borrow_mut();
        let set = trap.as_mut().filter(|trap| trap.place == place)?;
        if set.passes > 0 {
            set.passes -= 1;
            return None;
        }
        trap.take().map(|trap| trap.action)
    });
    match action.ok().flatten() {
        None => {}
        Some(Action::Park(gate)) => gate.enter(),
        // One panic is the test; a second while unwinding would only be an abort.
        Some(Action::Panic) if std::thread::panicking() => {}
        Some(Action::Panic) => panic!("{MESSAGE}"),
    }
}

/// Runs `f` with a trap that panics; whether the panic came out of `f`. Any other panic goes on.
pub(crate) fn panics<R>(place: Place, passes: usize, f: impl FnOnce() -> R) -> Option<R> {
    set(place, passes, Action::Panic);
    let result = caught(f);
    clear();
    result
}

/// Runs `f`; `None` if it ended in the panic of a trap. Any other panic goes on.
pub(crate) fn caught<R>(f: impl FnOnce() -> R) -> Option<R> {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(result) => Some(result),
        Err(payload) if payload.downcast_ref::<&str>() == Some(&MESSAGE) => None,
        Err(payload)
            if payload
                .downcast_ref::<String>()
                .is_some_and(|s| s == MESSAGE) =>
        {
            None
        }
        Err(payload) => std::panic::resume_unwind(payload),
    }
}
