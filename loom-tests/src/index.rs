//! Models of the index by itself: few keys, tables of two to eight buckets; and of what becomes of
//! what it retires.
//!
//! The sources of the index are compiled into this crate a second time, since the cache does not
//! lend its index out. Slots notice when they are released too early, twice or never; a key is a
//! loom cell, so whoever finds a slot without being ordered after its insertion fails the model.

use std::sync::atomic::{AtomicBool as StdBool, AtomicUsize as StdUsize, Ordering::SeqCst};
use std::sync::{Mutex, Weak};

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicPtr};
use loom::thread;

use crate::raw::index::{Entry, Index};
use crate::raw::reclaim::{end_thread, free_garbage, pin};
use crate::raw::sync::{Arc, Ordering};

/// A slot whose key is its number and whose hash says in its first two hexadecimal digits where
/// it goes.
struct Slot {
    hash: u64,
    /// Never written, but loom checks that whoever reads it comes after its creation.
    key: UnsafeCell<u8>,
    retired: AtomicBool,
    dropped: StdBool,
    keys: Arc<Tally>,
}

// SAFETY: the key is written before the slot is shared and only read after; loom checks exactly that.
unsafe impl Sync for Slot {}

/// How many slots are alive; and their memory, kept so that a premature drop is seen.
#[derive(Default)]
struct Tally {
    alive: StdUsize,
    memory: Mutex<Vec<Weak<Slot>>>,
}

impl Slot {
    fn check(&self) {
        assert!(
            !self.dropped.load(SeqCst),
            "released while it can be reached"
        );
    }

    fn key(&self) -> u8 {
        self.check();
        // SAFETY: it is never written.
        self.key.with(|key| unsafe { *key })
    }
}

impl Entry for Slot {
    fn hash(&self) -> u64 {
        self.check();
        self.hash
    }

    fn is_retired(&self) -> bool {
        self.check();
        self.retired.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        assert!(!self.dropped.swap(true, SeqCst), "released twice");
        self.keys.alive.fetch_sub(1, SeqCst);
    }
}

struct Keys {
    index: Index<Slot>,
    tally: Arc<Tally>,
}

/// The hash of a key: its high digit at the top, the low one (which tells apart keys of the same
/// bucket) further down.
fn hash(key: u8) -> u64 {
    (u64::from(key & 0xf0) << 56) | (u64::from(key & 0x0f) << 32)
}

impl Keys {
    fn new(keys: &[u8]) -> Arc<Self> {
        let this = Keys {
            index: Index::new(0),
            tally: Arc::default(),
        };
        for &key in keys {
            assert!(this.insert(key));
        }
        Arc::new(this)
    }

    fn insert(&self, key: u8) -> bool {
        let guard = pin();
        let slot = Arc::new(Slot {
            hash: hash(key),
            key: UnsafeCell::new(key),
            retired: AtomicBool::new(false),
            dropped: StdBool::new(false),
            keys: self.tally.clone(),
        });
        self.tally.alive.fetch_add(1, SeqCst);
        self.tally
            .memory
            .lock()
            .unwrap()
            .push(Arc::downgrade(&slot));
        match self.index.insert(slot, |slot| is(slot, key), &guard) {
            Ok(slot) => {
                slot.check();
                true
            }
            Err((found, _unused)) => {
                assert_eq!(found.key(), key);
                false
            }
        }
    }

    fn contains(&self, key: u8) -> bool {
        let guard = pin();
        let found = self.index.find(hash(key), |slot| is(slot, key), &guard);
        let live = found.is_some_and(|slot| !slot.is_retired());
        if let Some(slot) = found {
            slot.check();
        }
        live
    }

    /// Whether this call retired it.
    fn remove(&self, key: u8) -> bool {
        let guard = pin();
        let Some(slot) = self.index.find(hash(key), |slot| is(slot, key), &guard) else {
            return false;
        };
        let first = !slot.retired.swap(true, Ordering::AcqRel);
        self.index.unlink(slot, &guard);
        slot.check();
        drop(guard);
        collect();
        first
    }

    fn retire(&self, key: u8) {
        let guard = pin();
        let slot = self
            .index
            .find(hash(key), |slot| is(slot, key), &guard)
            .unwrap();
        slot.retired.store(true, Ordering::Release);
    }

    fn scan(&self) -> Vec<u8> {
        let mut keys = Vec::new();
        let mut next = Some(0);
        while let Some(cursor) = next {
            next = self.index.scan(cursor, &pin(), |slot| {
                if !slot.is_retired() {
                    keys.push(slot.key());
                }
            });
        }
        keys.sort_unstable();
        assert!(keys.is_sorted_by(|a, b| a < b), "twice: {keys:?}");
        keys
    }

    fn buckets(&self) -> usize {
        self.index.buckets(&pin())
    }

    /// After all threads are joined: these keys are in, and nothing leaks.
    fn end(self: Arc<Self>, keys: &[u8]) {
        assert_eq!(self.scan(), keys);
        assert_eq!(self.index.len(), keys.len());
        for &key in keys {
            assert!(self.contains(key));
        }
        let tally = self.tally.clone();
        drop(Arc::into_inner(self).expect("threads are joined"));
        free_garbage();
        // The real collector may keep something for a later epoch.
        if cfg!(not(crossbeam_loom)) {
            assert_eq!(tally.alive.load(SeqCst), 0, "leaked");
        }
    }
}

/// Frees what can be freed: from one epoch to the next, to the one after it.
fn collect() {
    if cfg!(crossbeam_loom) {
        for _ in 0..3 {
            pin().flush();
        }
    }
}

fn is(slot: &Slot, key: u8) -> bool {
    slot.key() == key
}

fn spawn<R: 'static>(
    keys: &Arc<Keys>,
    f: impl FnOnce(&Keys) -> R + 'static,
) -> thread::JoinHandle<R> {
    let keys = keys.clone();
    thread::spawn(move || {
        let result = f(&keys);
        end_thread();
        result
    })
}

/// A model: its name, and one execution of it.
pub struct Model {
    /// The name.
    pub name: &'static str,
    /// One execution. It panics if something is wrong.
    pub execute: fn(),
}

macro_rules! models {
    ($($(#[$doc:meta])* $name:ident $body:block)*) => {
        $($(#[$doc])* fn $name() $body)*

        /// All of them.
        pub const MODELS: &[Model] =
            &[$(Model { name: stringify!($name), execute: $name }),*];
    };
}

/// Those in which a slot or a table is freed while somebody may be in it: for the real collector.
pub const FREEING: &[&str] = &[
    "insert_insert_same_key",
    "insert_insert_same_bucket",
    "insert_insert_unlink_retired",
    "insert_unlink_find",
    "unlink_unlink",
    "grow_find",
    "insert_grow_find",
    "grow_insert",
    "grow_unlink",
    "unlink_in_half_a_unit_find",
    "shrink_insert",
    "retired_and_kept",
    "retired_and_given_up",
];

/// A model by its name.
pub fn model(name: &str) -> Option<&'static Model> {
    MODELS.iter().find(|model| model.name == name)
}

models! {
    /// One of two inserts of a key wins.
    insert_insert_same_key {
        let keys = Keys::new(&[]);
        let other = spawn(&keys, |keys| keys.insert(0x10));
        let mine = keys.insert(0x10);
        let others = other.join().unwrap();
        assert!(mine != others);
        keys.end(&[0x10]);
    }

    /// Both inserts into a bucket stay. The second one grows the table.
    insert_insert_same_bucket {
        let keys = Keys::new(&[]);
        let other = spawn(&keys, |keys| assert!(keys.insert(0x10)));
        assert!(keys.insert(0x11));
        other.join().unwrap();
        assert_eq!(keys.buckets(), 4);
        keys.end(&[0x10, 0x11]);
    }

    /// A retired slot is replaced by one of two, or unlinked by a third.
    insert_insert_unlink_retired {
        let keys = Keys::new(&[0x10]);
        keys.retire(0x10);
        let insert = spawn(&keys, |keys| keys.insert(0x10));
        let unlink = spawn(&keys, |keys| {
            let guard = pin();
            let slot = keys.index.find(hash(0x10), |slot| is(slot, 0x10), &guard).unwrap();
            if slot.is_retired() {
                keys.index.unlink(slot, &guard);
            }
        });
        let mine = keys.insert(0x10);
        assert!(mine != insert.join().unwrap());
        unlink.join().unwrap();
        keys.end(&[0x10]);
    }

    /// A key is removed while it is looked for and inserted.
    insert_unlink_find {
        let keys = Keys::new(&[0x10]);
        let remove = spawn(&keys, |keys| assert!(keys.remove(0x10)));
        let insert = spawn(&keys, |keys| keys.insert(0x10));
        keys.contains(0x10);
        remove.join().unwrap();
        if insert.join().unwrap() {
            keys.end(&[0x10]);
        } else {
            keys.end(&[]);
        }
    }

    /// Two remove the same key: the index's reference is released once.
    unlink_unlink {
        let keys = Keys::new(&[0x10, 0x11]);
        let remove = spawn(&keys, |keys| keys.remove(0x10));
        let mine = keys.remove(0x10);
        let others = remove.join().unwrap();
        assert!(mine != others);
        keys.end(&[0x11]);
    }

    /// Keys are found before, during and after a growth; also one whose bucket nobody migrates.
    grow_find {
        let keys = Keys::new(&[0x10]);
        let grow = spawn(&keys, |keys| assert!(keys.insert(0x90)));
        assert!(keys.contains(0x10));
        assert!(!keys.contains(0x50));
        let seen = keys.contains(0x90);
        assert!(!seen || keys.contains(0x90));
        grow.join().unwrap();
        keys.end(&[0x10, 0x90]);
    }

    /// A slot that one thread inserted and another moved to a new table is complete for a third.
    insert_grow_find {
        let keys = Keys::new(&[0x90]);
        let insert = spawn(&keys, |keys| assert!(keys.insert(0x10)));
        let find = spawn(&keys, |keys| keys.contains(0x10));
        assert!(keys.insert(0xa0));
        insert.join().unwrap();
        find.join().unwrap();
        keys.end(&[0x10, 0x90, 0xa0]);
    }

    /// A key is inserted where another thread's growth is at work.
    grow_insert {
        let keys = Keys::new(&[0x10]);
        let grow = spawn(&keys, |keys| assert!(keys.insert(0x50)));
        assert!(keys.insert(0x90));
        assert!(keys.contains(0x10));
        grow.join().unwrap();
        assert!(keys.buckets() >= 4);
        keys.end(&[0x10, 0x50, 0x90]);
    }

    /// Two threads migrate the same unit and insert the same key there.
    migrate_migrate {
        // Of the two units only the lower one is migrated.
        let keys = Keys::new(&[0x80, 0xc0]);
        let other = spawn(&keys, |keys| keys.insert(0x81));
        let mine = keys.insert(0x81);
        assert!(mine != other.join().unwrap());
        keys.end(&[0x80, 0x81, 0xc0]);
    }

    /// A slot leaves a bucket whose sibling is not migrated, while that is searched.
    unlink_in_unit_find {
        let keys = Keys::new(&[0x80, 0xc0]);
        let remove = spawn(&keys, |keys| assert!(keys.remove(0x80)));
        assert!(keys.contains(0xc0));
        assert!(!keys.contains(0xc1));
        remove.join().unwrap();
        keys.end(&[0xc0]);
    }

    /// A unit is half migrated when a slot leaves the new half: through the other half a reader
    /// still comes to the old word that leads to it. (Needs the real reclamation to mean anything.)
    unlink_in_half_a_unit_find {
        let keys = Keys::new(&[0x00, 0x80]);
        let migrate = spawn(&keys, |keys| {
            keys.index.assist(&pin());
            collect();
        });
        let remove = spawn(&keys, |keys| assert!(keys.remove(0x80)));
        assert!(!keys.contains(0xc0));
        migrate.join().unwrap();
        remove.join().unwrap();
        keys.end(&[0x00]);
    }

    /// A key is removed while the table grows.
    grow_unlink {
        let keys = Keys::new(&[0x10]);
        let grow = spawn(&keys, |keys| assert!(keys.insert(0x11)));
        assert!(keys.remove(0x10));
        assert!(!keys.contains(0x10));
        grow.join().unwrap();
        keys.end(&[0x11]);
    }

    /// A key is inserted while the table shrinks.
    shrink_insert {
        let keys = Keys::new(&[0x10, 0x90]);
        assert_eq!(keys.buckets(), 4);
        assert!(keys.remove(0x90));
        let shrink = spawn(&keys, |keys| assert!(keys.remove(0x10)));
        assert!(keys.insert(0x50));
        assert!(keys.contains(0x50));
        shrink.join().unwrap();
        keys.end(&[0x50]);
    }

    /// Whatever the order of the last removals, the table ends at its smallest.
    shrink_shrink {
        let keys = Keys::new(&[0x10, 0x90]);
        let other = spawn(&keys, |keys| assert!(keys.remove(0x10)));
        assert!(keys.remove(0x90));
        other.join().unwrap();
        assert_eq!(keys.buckets(), 2);
        keys.end(&[]);
    }

    /// A table that was grown in vain is shrunk by whoever comes last.
    grow_shrink {
        let keys = Keys::new(&[0x10]);
        let other = spawn(&keys, |keys| {
            assert!(keys.insert(0x90));
            assert!(keys.remove(0x90));
        });
        assert!(keys.remove(0x10));
        other.join().unwrap();
        assert_eq!(keys.buckets(), 2);
        keys.end(&[]);
    }

    /// The same where the one who grows the table does nothing more.
    grow_remove {
        let keys = Keys::new(&[0x10]);
        let grow = spawn(&keys, |keys| assert!(keys.insert(0x90)));
        assert!(keys.remove(0x10));
        let all = keys.remove(0x90);
        grow.join().unwrap();
        if all {
            assert_eq!(keys.buckets(), 2);
            keys.end(&[]);
        } else {
            keys.end(&[0x90]);
        }
    }

    /// Who completes a migration passes on what the others did of it.
    detach_find {
        // Of the four units one is migrated.
        let keys = Keys::new(&[0x00, 0x40, 0x80]);
        let one = spawn(&keys, |keys| keys.index.assist(&pin()));
        let two = spawn(&keys, |keys| {
            keys.index.assist(&pin());
            keys.index.assist(&pin());
        });
        assert!(keys.contains(0x40));
        one.join().unwrap();
        two.join().unwrap();
        keys.end(&[0x00, 0x40, 0x80]);
    }

    /// A scan gives once what is there throughout, while the table grows.
    scan_grow {
        let keys = Keys::new(&[0x50]);
        let grow = spawn(&keys, |keys| assert!(keys.insert(0x90)));
        let seen = keys.scan();
        assert!(seen == [0x50] || seen == [0x50, 0x90]);
        grow.join().unwrap();
        keys.end(&[0x50, 0x90]);
    }

    /// The same across a pending migration that others work on.
    scan_migrate {
        let keys = Keys::new(&[0x80, 0xc0]);
        let other = spawn(&keys, |keys| {
            assert!(keys.insert(0x81));
            assert!(keys.remove(0x81));
        });
        let seen = keys.scan();
        assert!(seen == [0x80, 0xc0] || seen == [0x80, 0x81, 0xc0]);
        other.join().unwrap();
        keys.end(&[0x80, 0xc0]);
    }

    /// The same while it shrinks. In the new table each bucket covers two of the old ones.
    scan_shrink {
        let keys = Keys::new(&[0x00, 0x40, 0xe0]);
        for _ in 0..3 {
            keys.index.assist(&pin());
        }
        assert_eq!(keys.buckets(), 8);
        assert!(keys.remove(0x00));
        assert!(keys.remove(0x40));
        assert_eq!(keys.buckets(), 4);
        let other = spawn(&keys, |keys| assert!(keys.insert(0xc0)));
        let seen = keys.scan();
        assert!(seen == [0xe0] || seen == [0xc0, 0xe0]);
        other.join().unwrap();
        keys.end(&[0xc0, 0xe0]);
    }

    /// All are removed during a scan.
    scan_remove_all {
        let keys = Keys::new(&[0x10, 0x90]);
        let remove = spawn(&keys, |keys| {
            assert!(keys.remove(0x10));
            assert!(keys.remove(0x90));
        });
        keys.scan();
        remove.join().unwrap();
        assert_eq!(keys.buckets(), 2);
        keys.end(&[]);
    }

    /// Two growths in a row and a search: a thread stopped within its chunk holds up nobody.
    grow_grow_find {
        let keys = Keys::new(&[0x10, 0x90]);
        let other = spawn(&keys, |keys| keys.index.assist(&pin()));
        assert!(keys.insert(0x50));
        assert_eq!(keys.buckets(), 8);
        assert!(keys.contains(0x90));
        other.join().unwrap();
        keys.end(&[0x10, 0x50, 0x90]);
    }

    /// An object that is destroyed by the thread that retired it comes after its reader, though it
    /// is the reader who sees that its time has come.
    retired_and_kept {
        let place = Place::new();
        let reader = place.reader();
        place.retire();
        for _ in 0..3 {
            retire(Seen::new());
        }
        reader.join().unwrap();
        free_garbage();
    }

    /// The same by whoever is second, the reader or the thread that gives up what it retired.
    retired_and_given_up {
        let place = Place::new();
        let reader = place.reader();
        place.retire();
        retire(Seen::new());
        pin().flush();
        reader.join().unwrap();
        free_garbage();
    }
}

/// Loom sees who looks into it, and who destroys it.
struct Seen(UnsafeCell<()>);

impl Seen {
    fn new() -> *mut Seen {
        Box::into_raw(Box::new(Seen(UnsafeCell::new(()))))
    }

    unsafe fn destroy(this: *mut Seen) {
        // SAFETY: made above, and destroyed once.
        let seen = unsafe { Box::from_raw(this) };
        seen.0.with_mut(|_| ());
    }
}

fn retire(seen: *mut Seen) {
    // SAFETY: the caller has taken it out of its place, or never put it into one.
    unsafe { pin().retire(seen, |seen| Seen::destroy(seen)) };
}

/// A place where readers find an object.
#[derive(Clone)]
struct Place(Arc<AtomicPtr<Seen>>);

impl Place {
    fn new() -> Self {
        Place(Arc::new(AtomicPtr::new(Seen::new())))
    }

    /// A thread that reads the object, if it is there, and then sees to it that time goes on.
    fn reader(&self) -> thread::JoinHandle<()> {
        let place = self.0.clone();
        thread::spawn(move || {
            let guard = pin();
            // SAFETY: loaded under the guard.
            if let Some(seen) = unsafe { place.load(Ordering::Acquire).as_ref() } {
                seen.0.with(|_| ());
            }
            drop(guard);
            collect();
            end_thread();
        })
    }

    fn retire(&self) {
        let guard = pin();
        let seen = self.0.swap(std::ptr::null_mut(), Ordering::AcqRel);
        drop(guard);
        retire(seen);
    }
}
