//! The present view of the whole cache: the only file that names arc-swap.
//!
//! A view is read often, replaced about once a second and kept for long: what arc-swap is for.
//! Nothing here is touched by a writer. The first who asks for the view of a tick that has none
//! puts an empty cell there, and one of those who ask then builds it while the others wait for
//! him. (Without a wait it would be built more than once.)

use std::cell::Cell;
use std::sync::Arc;

use super::clock::{Clock, Tick};
use super::reclaim::pin;
use super::sync::{self, thread_local};

struct Generation<T> {
    tick: sync::Arc<Tick>,
    /// One for all ticks with the same number.
    view: Arc<imp::Once<Arc<T>>>,
}

impl<T> Generation<T> {
    /// What is to take the place of `present` at `tick`; `None` if that is older.
    fn next(present: Option<&Self>, tick: &sync::Arc<Tick>) -> Option<Arc<Self>> {
        let view = match present {
            Some(present) if present.tick.number > tick.number => return None,
            Some(present) if present.tick.number == tick.number => Arc::clone(&present.view),
            _ => Arc::new(imp::Once::new()),
        };
        let tick = sync::Arc::clone(tick);
        Some(Arc::new(Generation { tick, view }))
    }
}

pub(crate) struct ViewCell<T>(imp::Shared<Generation<T>>);

impl<T> ViewCell<T> {
    pub(crate) fn new() -> Self {
        ViewCell(imp::Shared::none())
    }

    /// The view of the present tick or a later one, built if nobody has.
    #[inline]
    pub(crate) fn get(&self, clock: &Clock, build: impl FnOnce() -> T) -> Arc<T> {
        let mut tick = None;
        self.0.with(
            |generation| clock.still_shows(&generation.tick),
            |present| {
                let tick = tick.get_or_insert_with(|| clock.keep(&pin()));
                Generation::next(present, tick)
            },
            |generation| {
                if let Some(view) = generation.view.get() {
                    return view.clone();
                }
                let Some(_building) = Building::begin() else {
                    return Arc::new(build());
                };
                generation.view.get_or_init(|| Arc::new(build())).clone()
            },
        )
    }
}

/// This thread builds a view, or waits for one.
///
/// Building runs destructors of old records in passing, which may ask for a view. They must not
/// wait for one: it could be the one that is being built here, or one whose builder has just met
/// the like and waits for us. So they get one of their own.
struct Building;

thread_local! {
    // loom has no form for a constant.
    #[allow(clippy::missing_const_for_thread_local)]
    static BUILDING: Cell<bool> = Cell::new(false);
}

impl Building {
    fn begin() -> Option<Self> {
        (!BUILDING.with(|building| building.replace(true))).then(|| Building)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        BUILDING.with(|building| building.set(false));
    }
}

#[cfg(not(podcache_loom))]
mod imp {
    use super::Arc;
    use arc_swap::ArcSwapOption;

    pub(super) use std::sync::OnceLock as Once;

    pub(super) struct Shared<T>(ArcSwapOption<T>);

    impl<T> Shared<T> {
        pub(super) fn none() -> Self {
            Shared(ArcSwapOption::empty())
        }

        /// Uses what is there if it will do, else what is to replace that; `None` leaves it.
        #[inline]
        pub(super) fn with<R>(
            &self,
            will_do: impl Fn(&T) -> bool,
            mut next: impl FnMut(Option<&T>) -> Option<Arc<T>>,
            using: impl FnOnce(&T) -> R,
        ) -> R {
            let present = self.0.load();
            if let Some(present) = present.as_deref().filter(|present| will_do(present)) {
                return using(present);
            }
            drop(present);
            let mut chosen = None;
            self.0.rcu(|present| {
                chosen = next(present.as_deref()).or_else(|| present.clone());
                chosen.clone()
            });
            using(&chosen.expect("something is there by now"))
        }
    }
}

/// arc-swap cannot run under loom: an atomic pointer with the same orderings, on the crate's own
/// reclamation.
#[cfg(podcache_loom)]
mod imp {
    use super::super::sync::model::sync::Mutex;
    use super::super::sync::{AtomicPtr, Ordering};
    use super::{Arc, pin};
    use std::ptr;

    pub(super) struct Once<T>(Mutex<Option<T>>);

    impl<T: Clone> Once<T> {
        pub(super) fn new() -> Self {
            Once(Mutex::new(None))
        }

        pub(super) fn get(&self) -> Option<T> {
            self.0.lock().unwrap().clone()
        }

        pub(super) fn get_or_init(&self, init: impl FnOnce() -> T) -> T {
            self.0.lock().unwrap().get_or_insert_with(init).clone()
        }
    }

    pub(super) struct Shared<T>(AtomicPtr<T>);

    impl<T> Shared<T> {
        pub(super) fn none() -> Self {
            Shared(AtomicPtr::new(ptr::null_mut()))
        }

        pub(super) fn with<R>(
            &self,
            will_do: impl Fn(&T) -> bool,
            mut next: impl FnMut(Option<&T>) -> Option<Arc<T>>,
            using: impl FnOnce(&T) -> R,
        ) -> R {
            let guard = pin();
            let mut present = self.0.load(Ordering::Acquire);
            // SAFETY: an `Arc`'s pointer, loaded under the guard.
            if let Some(present) = unsafe { present.as_ref() }.filter(|p| will_do(p)) {
                return using(present);
            }
            loop {
                // SAFETY: as above.
                let there = unsafe { present.as_ref() };
                let Some(new) = next(there) else {
                    return using(there.expect("something is there by now"));
                };
                let raw = Arc::into_raw(Arc::clone(&new)).cast_mut();
                let swap =
                    self.0
                        .compare_exchange(present, raw, Ordering::AcqRel, Ordering::Relaxed);
                if swap.is_ok() {
                    if !present.is_null() {
                        // SAFETY: unreachable for new guards, and the cell's own reference.
                        unsafe { guard.retire(present, |present| drop(Arc::from_raw(present))) };
                    }
                    return using(&new);
                }
                // SAFETY: not published.
                drop(unsafe { Arc::from_raw(raw) });
                present = self.0.load(Ordering::Acquire);
            }
        }
    }

    impl<T> Drop for Shared<T> {
        fn drop(&mut self) {
            let present = self.0.load(Ordering::Relaxed);
            if !present.is_null() {
                // SAFETY: the cell's own reference, and nobody else is here.
                drop(unsafe { Arc::from_raw(present) });
            }
        }
    }
}
