//! Values whose `Drop` panics, in the places where nobody in particular owns them last.

use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

use podcache::{Cache, DefaultFor, Subscription, Timestamp};

fn t(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

static LIVING: AtomicI64 = AtomicI64::new(0);
/// A bit for each value that panics in its drop.
static BAD: AtomicU64 = AtomicU64::new(0);
/// One test at a time counts.
static TURN: Mutex<()> = Mutex::new(());

struct Counted(u64);

impl Counted {
    fn new(number: u64) -> Self {
        LIVING.fetch_add(1, SeqCst);
        Counted(number)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        LIVING.fetch_sub(1, SeqCst);
        assert!(BAD.load(SeqCst) >> self.0 & 1 == 0, "drop of {}", self.0);
    }
}

impl DefaultFor<u64> for Counted {
    fn default_for(_: &u64) -> Self {
        Counted::new(0)
    }
}

struct Calls(Box<dyn Fn() + Send + Sync>);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        (self.0)();
    }
}

fn task(
    cache: &Cache<u64, Counted>,
    min: u64,
    waker: impl Fn() + Send + Sync + 'static,
) -> Pin<Box<Subscription<Counted>>> {
    let mut wait = Box::pin(cache.subscribe(&1, t(min)));
    let waker = Waker::from(Arc::new(Calls(Box::new(waker))));
    let poll = wait.as_mut().poll(&mut Context::from_waker(&waker));
    assert!(poll.is_pending());
    wait
}

/// What is replaced is destroyed in the course of other calls, to the last value.
fn all_go() {
    let other = Cache::<u64, u64>::new();
    for _ in 0..100_000 {
        other.set(&1, 0, t(1));
        other.delete(&1);
        if LIVING.load(SeqCst) == 0 {
            return;
        }
    }
    panic!("{} values are left", LIVING.load(SeqCst));
}

/// A set within a waker within a set: the node that is there in the end carries on three waiters,
/// each the last owner of a value.
fn nothing_is_lost(bad: u64) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    BAD.store(bad, SeqCst);
    let cache = Cache::<u64, Counted>::new();
    let set_in = |value, time| {
        let cache = cache.clone();
        move || {
            cache.set(&1, Counted::new(value), t(time));
        }
    };
    let waits = [
        task(&cache, 10, set_in(2, 20)),
        task(&cache, 20, set_in(3, 30)),
        task(&cache, 30, || ()),
    ];
    cache.set(&1, Counted::new(1), t(10));
    drop(waits);
    cache.set(&1, Counted::new(4), t(40));
    cache.delete(&1);
    drop(cache);
    all_go();
}

#[test]
fn of_one_value() {
    for value in 1..=4 {
        nothing_is_lost(1 << value);
    }
}

#[test]
fn of_several_at_once() {
    nothing_is_lost(1 << 2 | 1 << 3);
    nothing_is_lost(0b11110);
}

/// The default was made for a key that has a record by then, and is not used.
#[test]
fn of_a_default_that_is_not_used() {
    struct Unused(bool);
    static HOME: Mutex<Option<Cache<u64, Unused>>> = Mutex::new(None);
    impl Drop for Unused {
        fn drop(&mut self) {
            assert!(!self.0, "not used");
        }
    }
    impl DefaultFor<u64> for Unused {
        fn default_for(key: &u64) -> Self {
            let home = HOME.lock().unwrap().clone().expect("is put there");
            home.set(key, Unused(false), t(1));
            Unused(true)
        }
    }
    let cache = Cache::<u64, Unused>::new();
    *HOME.lock().unwrap() = Some(cache.clone());
    let wait = cache.subscribe(&1, t(5));
    let observed = catch_unwind(AssertUnwindSafe(|| cache.set_observed_time(&1, t(10))));
    assert!(observed.is_err());
    let served = wait.try_get().expect("the observation took place").unwrap();
    assert_eq!(served.observed(), Some(t(10)));
}

/// Keys that are all in one bucket, so that they are found together.
#[derive(Clone, Default)]
struct Alike;

impl Hasher for Alike {
    fn finish(&self) -> u64 {
        0
    }
    fn write(&mut self, _: &[u8]) {}
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Whoever comes last to records that panic, several of them, and did not ask for them.
fn come_last(f: impl FnOnce(&Cache<u64, Counted, BuildHasherDefault<Alike>>, &dyn Fn())) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let cache = Cache::<u64, Counted>::builder()
        .hasher(BuildHasherDefault::<Alike>::default())
        .build();
    for key in 1..=3 {
        cache.set(&key, Counted::new(key), t(1));
    }
    BAD.store(0b1110, SeqCst);
    f(&cache, &|| {
        for key in 1..=3 {
            cache.set(&key, Counted::new(9), t(2));
        }
        // What is replaced is destroyed in the course of other calls.
        for _ in 0..2_000 {
            cache.set(&4, Counted::new(9), t(2));
        }
        cache.delete(&4);
    });
    drop(cache);
    all_go();
}

#[test]
fn of_records_in_a_view() {
    come_last(|cache, replace_all| {
        let view = cache.view();
        replace_all();
        cache.update_time(t(3));
        assert_eq!(cache.view().len(), 3);
        drop(view);
    });
    come_last(|cache, replace_all| {
        cache.view();
        replace_all();
        cache.update_time(t(3));
        cache.view();
    });
}

#[test]
fn of_records_in_an_iteration() {
    come_last(|cache, replace_all| {
        let mut iter = cache.iter();
        assert!(iter.next().is_some());
        replace_all();
        drop(iter);
    });
    come_last(|cache, replace_all| {
        let mut keys = cache.keys();
        let mut given = vec![keys.next().unwrap()];
        replace_all();
        given.extend(keys.filter(|key| *key != 4));
        given.sort_unstable();
        assert_eq!(given, [1, 2, 3]);
    });
}

#[test]
fn of_records_in_a_stream() {
    come_last(|cache, replace_all| {
        let mut changes = cache.changes();
        assert!(changes.try_next().is_some());
        replace_all();
        drop(changes);
    });
}

#[test]
fn of_values_that_have_not_changed() {
    come_last(|cache, replace_all| {
        let listed = (1..=3).map(|key| (key, Counted::new(key)));
        assert_eq!(cache.relist(t(2), listed).unchanged, 3);
        assert_eq!(cache.global_time(), t(2));
        replace_all();
    });
}

/// Wakers every handle of which panics as often as it is dropped, or cloned, by a thread that has
/// been told so: two panics in one call must not end the process.
mod bad_wakers {
    use std::cell::{Cell, RefCell};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::pin::Pin;
    use std::ptr;
    use std::task::{Context, RawWaker, RawWakerVTable, Waker};

    use podcache::Cache;

    use super::t;

    thread_local! {
        static CLONING: Cell<bool> = const { Cell::new(false) };
        static DROPPING: Cell<bool> = const { Cell::new(false) };
        /// What is set a record of by the next clone.
        static SETTING: RefCell<Option<Cache<u64, u64>>> = const { RefCell::new(None) };
    }

    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |number| {
            assert!(!CLONING.get(), "a clone of a waker");
            if let Some(cache) = SETTING.take() {
                cache.set(&2, 2, t(2));
            }
            RawWaker::new(number, &TABLE)
        },
        |_| (),
        |_| (),
        |_| assert!(!DROPPING.get(), "a drop of a waker"),
    );

    fn waker(number: usize) -> Waker {
        let number = ptr::without_provenance(number);
        // SAFETY: the table does nothing with the data.
        unsafe { Waker::from_raw(RawWaker::new(number, &TABLE)) }
    }

    /// The message with which `f` panics while wakers do as told.
    fn panic_of<R>(cloning: bool, f: impl FnOnce() -> R) -> Option<&'static str> {
        CLONING.set(cloning);
        DROPPING.set(true);
        let result = catch_unwind(AssertUnwindSafe(f));
        CLONING.set(false);
        DROPPING.set(false);
        let panic = result.err()?;
        panic.downcast_ref::<&'static str>().copied()
    }

    #[test]
    fn a_wait_is_polled_by_another() {
        for cloning in [false, true] {
            let cache = Cache::<u64, super::Counted>::new();
            let [first, second] = [waker(1), waker(2)];
            let mut wait = cache.subscribe(&1, t(1));
            let mut poll = |waker| Pin::new(&mut wait).poll(&mut Context::from_waker(waker));
            assert!(poll(&first).is_pending());
            let expected = match cloning {
                true => "a clone of a waker",
                false => "a drop of a waker",
            };
            assert_eq!(panic_of(cloning, || poll(&second)), Some(expected));
            assert!(poll(&second).is_pending());
            cache.close();
            assert!(poll(&second).is_ready());
        }
    }

    #[test]
    fn a_stream_is_polled_by_another() {
        let cache = Cache::<u64, u64>::new();
        let [first, second] = [waker(1), waker(2)];
        let mut changes = cache.changes();
        let mut poll = |waker| changes.poll_next(&mut Context::from_waker(waker));
        assert!(poll(&first).is_pending());
        let panic = panic_of(false, || poll(&second));
        assert_eq!(panic, Some("a drop of a waker"));
        cache.set(&1, 1, t(1));
        assert!(poll(&second).is_ready());
    }

    #[test]
    fn they_go_with_a_wait_and_a_stream_in_a_panic() {
        let cache = Cache::<u64, super::Counted>::new();
        let own = waker(1);
        let mut wait = cache.subscribe(&1, t(1));
        let mut changes = cache.changes();
        let context = &mut Context::from_waker(&own);
        assert!(Pin::new(&mut wait).poll(context).is_pending());
        assert!(changes.poll_next(context).is_pending());
        let panic = panic_of(false, move || {
            let _both = (wait, changes);
            panic!("first");
        });
        assert_eq!(panic, Some("first"));
        assert_eq!(cache.waiters(), 0);
    }

    #[test]
    fn a_change_is_given_though_the_waker_panics() {
        let cache = Cache::<u64, u64>::new();
        let own = waker(1);
        let mut changes = cache.changes();
        let context = &mut Context::from_waker(&own);
        assert!(changes.poll_next(context).is_pending());
        cache.set(&1, 1, t(1));
        assert!(changes.poll_next(context).is_ready());

        // Set between the two looks of a poll, by the clone of its waker.
        SETTING.with_borrow_mut(|setting| *setting = Some(cache.clone()));
        let panic = panic_of(false, || assert!(changes.poll_next(context).is_ready()));
        assert_eq!(panic, None);
    }
}
