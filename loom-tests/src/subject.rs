//! What the cache under test holds: keys and values that notice when they are misused.
//!
//! Under loom, the bytes of a key and of a value are in a loom cell, so that whoever reads them
//! without being ordered after the one who wrote them fails the model. That makes visible what
//! publishing, finding and freeing a slot or a node promises, though the cache's own nodes are
//! plain memory to loom. Everywhere, a value notices a second drop and a read after the first, and
//! all values together notice a leak.

use std::cell::Cell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU32, AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};

use podcache::{Cache, Changes, DefaultFor, Snapshot, Subscription, Tracker};

use crate::spec::{Key, Reading, Record, Value};

/// The cache under test.
pub type Subject = Cache<Uid, Status, Spread>;

/// What follows a key of it.
pub type Following = Tracker<Uid, Status, Spread>;

/// Its change stream.
pub type Stream = Changes<Uid, Status, Spread>;

/// Its waits.
pub type Waiting = Subscription<Status>;

#[cfg(all(podcache_loom, not(podcache_shuttle)))]
use loom::cell::UnsafeCell;
#[cfg(all(podcache_loom, not(podcache_shuttle)))]
use loom::thread_local;
#[cfg(podcache_shuttle)]
use shuttle::thread_local;

/// `std`'s cell with loom's access.
#[cfg(any(not(podcache_loom), podcache_shuttle))]
struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(any(not(podcache_loom), podcache_shuttle))]
impl<T> UnsafeCell<T> {
    fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Bytes that are written once, when they are made.
struct Written<T>(UnsafeCell<T>);

// SAFETY: written before it is shared, only read after; loom checks exactly that.
unsafe impl<T: Sync> Sync for Written<T> {}

impl<T: Copy + Default> Written<T> {
    fn new(value: T) -> Self {
        let cell = UnsafeCell::new(T::default());
        // SAFETY: nobody else has it yet.
        cell.with_mut(|p| unsafe { *p = value });
        Written(cell)
    }

    fn read(&self) -> T {
        // SAFETY: nobody writes once it is shared.
        self.0.with(|p| unsafe { *p })
    }

    /// Nobody may be reading, or have read without being ordered before this.
    fn end(&self) {
        self.0.with_mut(|_| ());
    }
}

/// A key as the cache stores it.
pub struct Uid(Written<u8>);

static UIDS: AtomicIsize = AtomicIsize::new(0);

impl From<Key> for Uid {
    fn from(key: Key) -> Self {
        UIDS.fetch_add(1, SeqCst);
        Uid(Written::new(key.0))
    }
}

impl Uid {
    /// How many there are in this process.
    pub fn alive() -> isize {
        UIDS.load(SeqCst)
    }

    /// Which key it is.
    pub fn key(&self) -> Key {
        Key(self.0.read())
    }
}

impl Drop for Uid {
    fn drop(&mut self) {
        UIDS.fetch_sub(1, SeqCst);
    }
}

impl Clone for Uid {
    fn clone(&self) -> Self {
        Uid::from(self.key())
    }
}

impl PartialEq for Uid {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Uid {}

impl PartialOrd for Uid {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Uid {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Uid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.key().0);
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key())
    }
}

/// Hashes that do not change from run to run, as an exhaustive exploration needs.
#[derive(Clone, Copy, Debug)]
pub enum Spread {
    /// Different keys, different hashes.
    Apart,
    /// All keys hash alike.
    Alike,
}

/// The hasher of [`Spread`].
#[derive(Debug)]
pub struct SpreadHasher(Spread, u64);

impl BuildHasher for Spread {
    type Hasher = SpreadHasher;

    fn build_hasher(&self) -> SpreadHasher {
        SpreadHasher(*self, 0)
    }
}

impl Hasher for SpreadHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.1 = (self.1 + u64::from(*byte) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(&self) -> u64 {
        match self.0 {
            Spread::Apart => self.1,
            Spread::Alike => 0x5555_5555_5555_5555,
        }
    }
}

static ALIVE: AtomicIsize = AtomicIsize::new(0);

const LIVING: u32 = 0x11fe_11fe;
const DEAD: u32 = 0xdead_dead;

/// A value.
pub struct Status {
    id: Written<Value>,
    mark: AtomicU32,
}

impl Status {
    /// The value that the set with this number brings.
    pub fn new(id: Value) -> Self {
        ALIVE.fetch_add(1, SeqCst);
        Status {
            id: Written::new(id),
            mark: AtomicU32::new(LIVING),
        }
    }

    /// Which set brought it.
    ///
    /// # Panics
    ///
    /// If it was dropped before.
    pub fn id(&self) -> Value {
        assert_eq!(
            self.mark.load(SeqCst),
            LIVING,
            "a value was read after it was dropped"
        );
        self.id.read()
    }

    /// How many there are in this process.
    pub fn alive() -> isize {
        ALIVE.load(SeqCst)
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        let mark = self.mark.swap(DEAD, SeqCst);
        assert_eq!(mark, LIVING, "a value was dropped twice");
        ALIVE.fetch_sub(1, SeqCst);
        // Only if nothing is freed within an execution: the reference counts that order the last
        // drop after all reads are std's, and loom does not see them.
        if cfg!(not(crossbeam_loom)) {
            self.id.end();
        }
    }
}

impl PartialEq for Status {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl DefaultFor<Uid> for Status {
    fn default_for(_: &Uid) -> Self {
        Status::new(0)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.id())
    }
}

/// What a snapshot says.
///
/// # Panics
///
/// If its parts contradict each other.
pub fn reading(snapshot: &Snapshot<Status>) -> Reading {
    let times = (snapshot.modified(), snapshot.observed());
    match (snapshot.value().id(), times, snapshot.is_present()) {
        (0, (None, None), false) => None,
        (value, (Some(modified), Some(observed)), true) if value != 0 => Some(Record {
            value,
            modified: modified.as_nanos(),
            observed: observed.as_nanos(),
        }),
        parts => panic!("a snapshot contradicts itself: {parts:?}"),
    }
}

thread_local! {
    /// Whether this thread is in a call that wakes nobody.
    // loom has no form for a constant.
    #[allow(clippy::missing_const_for_thread_local)]
    static IS_QUIET: Cell<bool> = Cell::new(false);
}

/// Makes a call in which no waker may be called if it is `quiet`.
pub fn calling<R>(quiet: bool, f: impl FnOnce() -> R) -> R {
    IS_QUIET.with(|is_quiet| is_quiet.set(quiet));
    let result = f();
    IS_QUIET.with(|is_quiet| is_quiet.set(false));
    result
}

/// Counts the calls of its wakers, and notices one that is not ordered after its making.
pub struct Bell {
    rung: AtomicUsize,
    made: Written<u8>,
}

impl Default for Bell {
    fn default() -> Self {
        Bell {
            rung: AtomicUsize::new(0),
            made: Written::new(1),
        }
    }
}

impl Bell {
    /// How often it was called.
    pub fn rung(&self) -> usize {
        self.rung.load(SeqCst)
    }
}

/// What rings a bell: counted as often as there are wakers that do.
#[derive(Debug, Default)]
pub struct Ringer(Arc<Bell>);

impl Ringer {
    /// Its bell.
    pub fn bell(&self) -> Arc<Bell> {
        Arc::clone(&self.0)
    }

    /// A waker.
    pub fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl Wake for Ringer {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        assert!(
            !IS_QUIET.with(Cell::get),
            "a call that wakes nobody has called a task"
        );
        self.0.made.read();
        self.0.rung.fetch_add(1, SeqCst);
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rung {} times", self.rung())
    }
}
