//! What the cache counts about itself.
//!
//! Each count is spread over places in memory of which every thread has one to itself: adding is a
//! load and a store there, without a locked instruction and without touching a line that another
//! thread writes. A reader adds the places up. Places are lent to threads for the whole process,
//! the lowest free one first, so that a reader has no more to visit than there were threads at
//! once. Threads beyond that, and threads on their way out, share a few.
//!
//! The atomics are always std's, under loom too: no protocol hangs on them, and as loom objects
//! they would multiply the interleavings without adding an outcome.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Count {
    /// Slots that hold a record: those that got one less those that lost it.
    Records,
    Sets,
    RefusedSets,
    RefusedFuture,
    Deletes,
    Observations,
    Waits,
    WakeUps,
    ClosedWaits,
    Cancellations,
    TimeOuts,
}

const COUNTS: usize = Count::TimeOuts as usize + 1;

/// Places that one thread has to itself.
const OWN: usize = 64;
/// Places that are shared by the threads that found none free.
const SHARED: usize = 8;

pub(crate) struct Counters(Box<[CachePadded<[AtomicI64; COUNTS]>]>);

impl Counters {
    pub(crate) fn new() -> Self {
        Counters((0..OWN + SHARED).map(|_| CachePadded::default()).collect())
    }

    /// Counts `n` more, or fewer. Wait-free.
    #[inline]
    pub(crate) fn add(&self, what: Count, n: i64) {
        let place = Lease::of_this_thread();
        let count = &self.0[place][what as usize];
        // Relaxed, here and below: numbers for people, which nothing is derived from.
        if place < OWN {
            // Nobody else writes here now. Who did before has handed the place over by the
            // release and the acquire on `FREE`.
            count.store(count.load(Ordering::Relaxed) + n, Ordering::Relaxed);
        } else {
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// How many there are. Weakly consistent: exact for all that happened before, while nobody
    /// counts.
    pub(crate) fn sum(&self, what: Count) -> u64 {
        let places = &self.0[..REACH.load(Ordering::Relaxed)];
        let counts = places
            .iter()
            .map(|place| place[what as usize].load(Ordering::Relaxed));
        // Below zero while a delete that was seen has overtaken its set that was not.
        counts.sum::<i64>().try_into().unwrap_or(0)
    }
}

/// Waits that one call has ended.
#[derive(Default)]
pub(crate) struct Ended {
    pub(crate) woken: i64,
    pub(crate) closed: i64,
    /// How long each that was woken had waited.
    #[cfg(feature = "metrics")]
    pub(crate) waited: Vec<std::time::Duration>,
}

impl Ended {
    pub(crate) fn is_empty(&self) -> bool {
        self.woken == 0 && self.closed == 0
    }
}

/// A bit for each place of its own that no thread has now.
static FREE: AtomicU64 = AtomicU64::new(u64::MAX);
/// How many places, from the first, have ever been lent.
static REACH: AtomicUsize = AtomicUsize::new(0);

/// A place, lent to a thread until it ends.
struct Lease(usize);

impl Lease {
    #[inline]
    fn of_this_thread() -> usize {
        thread_local! {
            static LEASE: Lease = Lease::take();
        }
        LEASE.try_with(|lease| lease.0).unwrap_or_else(|_| {
            // Its thread-locals are gone: whoever runs this is the destructor of another one.
            Lease::new(OWN).0
        })
    }

    fn new(place: usize) -> Self {
        REACH.fetch_max(place + 1, Ordering::Relaxed);
        Lease(place)
    }

    #[cold]
    fn take() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        // Acquire, with the release in `drop`: what the last holder counted is there. (All that
        // happens to the word between the two are read-modify-writes.)
        let taken = FREE.fetch_update(Ordering::Acquire, Ordering::Relaxed, |free| {
            (free != 0).then_some(free & free.wrapping_sub(1))
        });
        match taken {
            Ok(free) => Lease::new(free.trailing_zeros() as usize),
            Err(_) => Lease::new(OWN + NEXT.fetch_add(1, Ordering::Relaxed) % SHARED),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.0 < OWN {
            // Release, with the acquire in `take`.
            FREE.fetch_or(1 << self.0, Ordering::Release);
        }
    }
}

#[cfg(all(test, not(podcache_loom)))]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_with_more_threads_than_places() {
        let counters = Counters::new();
        for _ in 0..3 {
            std::thread::scope(|scope| {
                for _ in 0..2 * (OWN + SHARED) {
                    scope.spawn(|| (0..100).for_each(|_| counters.add(Count::Sets, 1)));
                }
            });
        }
        let threads = 3 * 2 * (OWN + SHARED) as u64;
        assert_eq!(counters.sum(Count::Sets), threads * 100);
        assert_eq!(counters.sum(Count::Deletes), 0);
    }

    #[test]
    fn a_thread_counts_while_its_locals_are_destroyed() {
        use std::sync::Arc;

        struct Last(Arc<Counters>);
        impl Drop for Last {
            fn drop(&mut self) {
                self.0.add(Count::Sets, 1);
            }
        }
        thread_local! {
            static BEFORE: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
            static AFTER: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
        }
        let counters = Arc::new(Counters::new());
        let count = {
            let counters = Arc::clone(&counters);
            move || {
                // One on each side of the lease, whichever way they are destroyed.
                BEFORE.set(Some(Last(Arc::clone(&counters))));
                counters.add(Count::Sets, 1);
                AFTER.set(Some(Last(counters)));
            }
        };
        std::thread::spawn(count).join().unwrap();
        assert_eq!(counters.sum(Count::Sets), 3);
    }

    #[test]
    fn more_gone_than_come_reads_as_none() {
        let counters = Counters::new();
        counters.add(Count::Records, -1);
        assert_eq!(counters.sum(Count::Records), 0);
        counters.add(Count::Records, 3);
        assert_eq!(counters.sum(Count::Records), 2);
    }
}
