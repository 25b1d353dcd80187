//! The index: a lock-free hash table from keys to slots.
//!
//! A [`Table`] is an array of buckets, each one word. The *high* bits of a hash choose the bucket,
//! so a bucket covers an interval of hash positions: growing splits intervals, shrinking joins
//! them, and an iteration is a position that means the same in every table.
//!
//! # Changing a bucket
//!
//! A [`Word`] is all that a bucket holds: no slot, one slot, or a pointer to an immutable array of
//! slots. Every change is one compare-and-swap of the word. Readers take no part in it: a lookup
//! is a load of the table, a load of the word, and a walk over what it points at.
//!
//! # Changing the table
//!
//! A resize installs a new table whose words are all *uninitialised* and whose `prev` is the old
//! one. The two are divided into *units*, the intervals of the coarser table. To migrate a unit
//! (any number of threads may, at any time, all come to the same):
//!
//! 1. freeze the old words, after which no compare-and-swap of a writer succeeds on them;
//! 2. compute the new words from the frozen ones, and install each unless somebody else has.
//!
//! A word that was initialised never is uninitialised again, so a late migrator cannot bring back
//! an old state. Writers migrate the unit they need and a few more; readers that meet an
//! uninitialised word read the old one, which is authoritative until then. When all units are
//! done, `prev` becomes null and the old table is destroyed.
//!
//! A thread whose table was replaced meanwhile meets frozen words. A writer starts again with the
//! current table; a reader takes what he finds: it was true at the moment of the freeze, which came
//! after he had loaded the table.
//!
//! # Ownership
//!
//! The index owns one reference of each slot in it; migration moves it. Whoever takes a slot out
//! of an initialised, unfrozen word has that reference to release. The old table can still lead to
//! the slot as long as another word of its unit is uninitialised. Hence the rule on which every
//! read of an old word rests: *a slot is released only after its whole unit is migrated*. Who has
//! seen an uninitialised word while pinned finds all slots of that unit alive.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::iter;
use std::marker::PhantomData;
use std::mem;
use std::ops::Range;
use std::ptr;
use std::slice;

use crossbeam_utils::CachePadded;

use super::reclaim::{Guard, Shared, contain, drop_box};
use super::sync::{Arc, AtomicPtr, AtomicUsize, Ordering, null_pointers};

/// What the index has to know of a slot.
///
/// A slot is destroyed some time after it was taken out, by whichever thread comes by: the public
/// types see to it that what it holds is `Send`, `Sync` and `'static`.
pub(crate) trait Entry {
    /// The hash of its key, the same for ever, with its entropy in the high bits.
    fn hash(&self) -> u64;

    /// Whether it is to be unlinked. Once true, true for ever.
    fn is_retired(&self) -> bool;
}

/// The fewest buckets of a table. With loom small enough that few keys resize it.
const MIN_BUCKETS: usize = if cfg!(podcache_loom) { 2 } else { 64 };

/// How many units a writer migrates in passing. Deletions need 16 of them to keep pace with the
/// shrinking that they cause.
const CHUNK: usize = if cfg!(podcache_loom) { 1 } else { 32 };

/// The largest factor by which one resize changes the number of buckets: bounds a unit.
const MAX_RATIO: usize = 4;

/// With fewer slots than this there may be no writer to come that finishes a migration.
const FEW: usize = if cfg!(podcache_loom) { 1 } else { 16 };

/// Up to this many buckets (64 KiB) a table is kept sparse.
const SPARSE: usize = if cfg!(podcache_loom) { 0 } else { 1 << 13 };

/// How many slots a table of so many buckets takes before it grows.
///
/// A slot that shares its bucket costs a lookup one more load and, mostly, a mispredicted branch.
/// In small tables a quarter of the slots do at most, in large ones, where memory and the caches
/// count, two fifths.
fn room(buckets: usize) -> usize {
    if buckets <= SPARSE {
        buckets / 4
    } else {
        buckets / 2
    }
}

/// The number of buckets that so many slots should have where there are `buckets` now: more when
/// there is no room for them, fewer when they would fill at most half of a table half as large.
fn fitting(slots: usize, buckets: usize, min: usize) -> usize {
    let mut fitting = buckets;
    while slots > room(fitting) {
        fitting *= 2;
    }
    while fitting > min && slots <= room(fitting / 2) / 2 {
        fitting /= 2;
    }
    fitting.clamp(buckets / MAX_RATIO, buckets * MAX_RATIO)
}

pub(crate) struct Index<T: Entry> {
    current: AtomicPtr<Table<T>>,
    min_buckets: usize,
    /// How many slots are in. Counted after the fact, so it may be negative for a moment.
    slots: CachePadded<AtomicUsize>,
    owns: PhantomData<Arc<T>>,
}

impl<T: Entry> Index<T> {
    /// An index that takes `capacity` slots before it grows, and never shrinks below that.
    pub(crate) fn new(capacity: usize) -> Self {
        let mut buckets = MIN_BUCKETS;
        while room(buckets) < capacity {
            buckets = buckets.checked_mul(2).expect("capacity overflow");
        }
        let table = Table::new(buckets, ptr::null_mut());
        for bucket in &table.buckets {
            // Relaxed: not shared yet.
            bucket.store(Word::<T>::EMPTY.0, Ordering::Relaxed);
        }
        Index {
            current: AtomicPtr::new(Box::into_raw(Box::new(table))),
            min_buckets: buckets,
            slots: CachePadded::new(AtomicUsize::new(0)),
            owns: PhantomData,
        }
    }

    /// The slot of the key, if there is one. It may be retired.
    ///
    /// Wait-free: no loop but the walk over the slots that share the bucket.
    #[inline]
    pub(crate) fn find<'g>(
        &self,
        hash: u64,
        mut is_key: impl FnMut(&T) -> bool,
        guard: &'g Guard,
    ) -> Option<Shared<'g, T>> {
        let table = self.current(guard);
        let mut word = load(table.bucket(hash));
        if word.is_uninit() {
            word = table.in_migration(hash).1;
        }
        // SAFETY: read while pinned, from this table or under an uninitialised word.
        unsafe { word.find(hash, &mut is_key) }
    }

    /// Puts `slot` in, in place of a retired slot of the same key if there is one.
    ///
    /// # Errors
    ///
    /// A slot of that key, not retired when it was looked at, is in already: that slot, and the
    /// unused one.
    pub(crate) fn insert<'g>(
        &self,
        slot: Arc<T>,
        mut is_key: impl FnMut(&T) -> bool,
        guard: &'g Guard,
    ) -> Result<Shared<'g, T>, (Shared<'g, T>, Arc<T>)> {
        let new = Pair {
            hash: slot.hash(),
            slot: Arc::as_ptr(&slot),
        };
        loop {
            let table = self.current(guard);
            let Some((bucket, word)) = table.open(new.hash) else {
                continue;
            };
            // SAFETY: read while pinned.
            let pairs = unsafe { word.pairs::<'g>() };
            // SAFETY: as above.
            let same = pairs
                .clone()
                .find(|p| p.hash == new.hash && is_key(unsafe { p.slot() }.get()));
            if let Some(same) = same {
                // SAFETY: as above.
                let found = unsafe { same.slot::<'g>() };
                if !found.is_retired() {
                    return Err((found, slot));
                }
            }
            let others = pairs.filter(|p| same.is_none_or(|same| same.slot != p.slot));
            let next = Word::pack(others.chain(iter::once(new)));
            if !replace(bucket, word, next, guard) {
                continue;
            }
            // The bucket has our reference now.
            mem::forget(slot);
            match same {
                Some(retired) => {
                    // SAFETY: this thread took it out of the open word.
                    unsafe { table.release(retired, guard) };
                    table.help(guard);
                }
                None => {
                    // Relaxed: if a table too small is missed here, the next insert grows it.
                    let slots = self.slots.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
                    self.adjust(slots, guard);
                }
            }
            // SAFETY: as above; whoever unlinks it leaves it alive while we are pinned.
            return Ok(unsafe { new.slot() });
        }
    }

    /// Takes a retired slot out, unless somebody did already.
    pub(crate) fn unlink(&self, slot: Shared<'_, T>, guard: &Guard) {
        debug_assert!(slot.is_retired());
        let gone = Pair {
            hash: slot.hash(),
            slot: slot.as_ptr(),
        };
        loop {
            let table = self.current(guard);
            let Some((bucket, word)) = table.open(gone.hash) else {
                continue;
            };
            // SAFETY: read while pinned.
            let pairs = unsafe { word.pairs() };
            let Some(gone) = pairs.clone().find(|p| p.slot == gone.slot) else {
                return;
            };
            let next = Word::pack(pairs.filter(|p| p.slot != gone.slot));
            if !replace(bucket, word, next, guard) {
                continue;
            }
            // SAFETY: this thread took it out of the open word.
            unsafe { table.release(gone, guard) };
            // Acquire: see `adjust`.
            let slots = self.slots.fetch_sub(1, Ordering::Acquire).wrapping_sub(1);
            return self.adjust(slots, guard);
        }
    }

    /// Does a bounded piece of the migration in progress, if there is one.
    #[inline]
    pub(crate) fn assist(&self, guard: &Guard) {
        let table = self.current(guard);
        if table.prev().is_some() {
            table.help(guard);
        }
    }

    /// Calls `f` with every slot, retired or not, whose hash is at least `cursor` and in the same
    /// bucket. Returns the position after that bucket, from where to go on.
    ///
    /// Going on from 0 to the end visits each slot that is there throughout once, however the
    /// table is resized meanwhile. No guard need be held from one call to the next.
    pub(crate) fn scan(
        &self,
        cursor: u64,
        guard: &Guard,
        mut f: impl FnMut(Shared<'_, T>),
    ) -> Option<u64> {
        let table = self.current(guard);
        let mut last = table.last_position(cursor);
        let mut word = load(table.bucket(cursor));
        if word.is_uninit() {
            let (source, found) = table.in_migration(cursor);
            // If the old bucket covers more, then outside of the new one it is outdated.
            last = last.min(source.last_position(cursor));
            word = found;
        }
        // SAFETY: read while pinned, from this table or under an uninitialised word.
        for pair in unsafe { word.pairs() } {
            if (cursor..=last).contains(&pair.hash) {
                // SAFETY: as above.
                f(unsafe { pair.slot() });
            }
        }
        last.checked_add(1)
    }

    /// How many slots are in, retired ones included.
    pub(crate) fn len(&self) -> usize {
        // Relaxed: a number that may be outdated at once anyway.
        at_least_zero(self.slots.load(Ordering::Relaxed))
    }

    /// How many buckets there are.
    pub(crate) fn buckets(&self, guard: &Guard) -> usize {
        self.current(guard).buckets.len()
    }

    /// The memory of the index itself, without the slots.
    pub(crate) fn bytes(&self, guard: &Guard) -> usize {
        let table = self.current(guard);
        mem::size_of::<Self>() + table.bytes() + table.prev().map_or(0, |prev| prev.bytes())
    }

    #[inline]
    fn current<'g>(&self, _: &'g Guard) -> Shared<'g, Table<T>> {
        // Acquire: pairs with the Release in `install`.
        // SAFETY: a replaced table is destroyed after all guards of its time are gone.
        let table = unsafe { Shared::new(self.current.load(Ordering::Acquire)) };
        // SAFETY: never null.
        unsafe { table.unwrap_unchecked() }
    }

    /// After a change to `slots` slots: helps with the migration in progress, and resizes the
    /// table when it is due.
    ///
    /// A table too large is never left over. Of two threads, one that takes a slot out and then
    /// looks at the table, and one that installs a table and then looks at the number of slots, at
    /// least one sees what the other did, since both use read-modify-writes of the number. If that
    /// of the installer comes first, its Release pairs with the Acquire of the other, who finds the
    /// new table; else the installer finds the new number.
    fn adjust(&self, mut slots: usize, guard: &Guard) {
        loop {
            let table = self.current(guard);
            let unclaimed = table.help(guard);
            let present = at_least_zero(slots);
            let buckets = fitting(present, table.buckets.len(), self.min_buckets);
            if buckets == table.buckets.len() {
                return;
            }
            if unclaimed && present >= FEW {
                // The writers to come finish what is in progress.
                return;
            }
            table.finish(guard);
            self.install(table, buckets);
            // Release: as said above.
            slots = self.slots.fetch_add(0, Ordering::Release);
        }
    }

    /// Replaces `table`, which is not being migrated into, by one of another size; unless somebody
    /// else replaced it.
    fn install(&self, table: Shared<'_, Table<T>>, buckets: usize) {
        let old = table.as_ptr();
        let new = Box::into_raw(Box::new(Table::new(buckets, old)));
        // Release: pairs with the Acquire in `current`. Relaxed: the other table is not used.
        let installed =
            self.current
                .compare_exchange(old, new, Ordering::Release, Ordering::Relaxed);
        if installed.is_err() {
            // SAFETY: it was never shared.
            drop(unsafe { Box::from_raw(new) });
        }
    }
}

impl<T: Entry> Drop for Index<T> {
    fn drop(&mut self) {
        // Relaxed, here and in what is called: access is exclusive.
        // SAFETY: `current` is the one owner of its table.
        let table = unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) };
        if let Some(prev) = table.prev() {
            for unit in 0..table.units(&prev) {
                table.migrate(&prev, unit);
            }
            // SAFETY: `prev` owns it, and it is not used again.
            drop(unsafe { Box::from_raw(prev.as_ptr()) });
        }
        for bucket in &table.buckets {
            // SAFETY: what is in the current table is alive.
            for pair in unsafe { load::<T>(bucket).pairs() } {
                // SAFETY: the reference that the index owns.
                contain(|| drop(unsafe { Arc::from_raw(pair.slot) }));
            }
        }
    }
}

fn at_least_zero(slots: usize) -> usize {
    slots.cast_signed().max(0).cast_unsigned()
}

struct Table<T: Entry> {
    /// The bucket of a hash is `hash >> shift`.
    shift: u32,
    buckets: Box<[AtomicPtr<()>]>,
    /// The table from which this one is being migrated; null when that is complete.
    prev: AtomicPtr<Table<T>>,
    progress: CachePadded<Progress>,
}

/// The units of a migration in chunks: those that somebody has begun, and those that are done.
struct Progress {
    claimed: AtomicUsize,
    done: AtomicUsize,
}

impl<T: Entry> Table<T> {
    fn new(buckets: usize, prev: *mut Table<T>) -> Self {
        let buckets = null_pointers(buckets);
        debug_assert!(buckets.len().is_power_of_two() && buckets.len() > 1);
        Table {
            shift: u64::BITS - buckets.len().trailing_zeros(),
            buckets,
            prev: AtomicPtr::new(prev),
            progress: CachePadded::new(Progress {
                claimed: AtomicUsize::new(0),
                done: AtomicUsize::new(0),
            }),
        }
    }

    #[inline]
    fn position(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }

    #[inline]
    fn bucket(&self, hash: u64) -> &AtomicPtr<()> {
        // SAFETY: there are 2^(64 - shift) buckets.
        unsafe { self.buckets.get_unchecked(self.position(hash)) }
    }

    /// The last hash position in the bucket of `hash`.
    fn last_position(&self, hash: u64) -> u64 {
        hash | ((1 << self.shift) - 1)
    }

    fn prev(&self) -> Option<Shared<'_, Table<T>>> {
        // Acquire: who finds null, by the Release in `detach`, finds all words initialised.
        // SAFETY: destroyed only after all guards from before `detach` are gone; callers hold one.
        unsafe { Shared::new(self.prev.load(Ordering::Acquire)) }
    }

    /// The word that a reader of `hash` has to read after he found an uninitialised one, and the
    /// table in which it is.
    #[cold]
    #[inline(never)]
    fn in_migration(&self, hash: u64) -> (&Table<T>, Word<T>) {
        // Without `prev` it is complete by now.
        let table = self.prev().map_or(self, Shared::get);
        (table, load(table.bucket(hash)))
    }

    /// The bucket for `hash` and its word, for a writer: initialised by himself if need be. `None`
    /// if it is frozen, so that another table is current by now.
    fn open(&self, hash: u64) -> Option<(&AtomicPtr<()>, Word<T>)> {
        let bucket = self.bucket(hash);
        let mut word = load(bucket);
        if word.is_uninit() {
            self.migrate_for(hash);
            word = load(bucket);
        }
        (!word.is_frozen()).then_some((bucket, word))
    }

    /// Drops the index's reference of a slot, when nobody can reach the slot through it any more.
    ///
    /// # Safety
    ///
    /// The caller took the slot out of an open word of this table.
    unsafe fn release(&self, gone: Pair<T>, guard: &Guard) {
        // Otherwise the old table could lead to it.
        self.migrate_for(gone.hash);
        // SAFETY: now nothing does. The reference is the caller's. For threads, see `Entry`.
        unsafe { guard.retire(gone.slot.cast_mut(), |slot| drop(Arc::from_raw(slot))) };
    }

    fn units(&self, prev: &Table<T>) -> usize {
        self.buckets.len().min(prev.buckets.len())
    }

    /// Migrates the unit to which `hash` belongs, if it is not yet.
    fn migrate_for(&self, hash: u64) {
        if let Some(prev) = self.prev() {
            self.migrate(&prev, (hash >> self.shift.max(prev.shift)) as usize);
        }
    }

    /// Migrates one unit. Nothing but loads where that is done.
    fn migrate(&self, prev: &Table<T>, unit: usize) {
        let units = self.units(prev);
        let of_unit = |table: &Table<T>| -> Range<usize> {
            let ratio = table.buckets.len() / units;
            unit * ratio..(unit + 1) * ratio
        };
        let mut frozen = [Word::<T>::EMPTY; MAX_RATIO];
        for (word, i) in frozen.iter_mut().zip(of_unit(prev)) {
            *word = freeze(&prev.buckets[i]);
        }
        // SAFETY: only evaluated while pinned and under an uninitialised word.
        let pairs = frozen.iter().flat_map(|word| unsafe { word.pairs() });
        for i in of_unit(self).filter(|&i| load::<T>(&self.buckets[i]).is_uninit()) {
            let word = Word::pack(pairs.clone().filter(|p| self.position(p.hash) == i));
            // Release: pairs with the Acquire in `load`. Relaxed: what is there is not used.
            let first = self.buckets[i].compare_exchange(
                ptr::null_mut(),
                word.0,
                Ordering::Release,
                Ordering::Relaxed,
            );
            if first.is_err() {
                // SAFETY: it was never shared.
                unsafe { word.free() };
            }
        }
    }

    /// Migrates a chunk of units that nobody has begun. Returns whether there are more of them.
    fn help(&self, guard: &Guard) -> bool {
        let Some(prev) = self.prev() else {
            return false;
        };
        let units = self.units(&prev);
        // Relaxed: only shares out the work; the words themselves carry the data.
        if self.progress.claimed.load(Ordering::Relaxed) >= units {
            return false;
        }
        // Relaxed: as above.
        let start = self
            .progress
            .claimed
            .fetch_add(CHUNK, Ordering::Relaxed)
            .min(units);
        let end = (start + CHUNK).min(units);
        for unit in start..end {
            self.migrate(&prev, unit);
        }
        let mine = end - start;
        // AcqRel: who completes the count comes after all others who counted.
        let done = mine + self.progress.done.fetch_add(mine, Ordering::AcqRel);
        if mine > 0 && done == units {
            self.detach(prev, guard);
        }
        end < units
    }

    /// Completes the migration into this table, also the chunks that others have begun: nobody has
    /// to wait for a thread that was stopped within one.
    fn finish(&self, guard: &Guard) {
        if let Some(prev) = self.prev() {
            for unit in 0..self.units(&prev) {
                self.migrate(&prev, unit);
            }
            self.detach(prev, guard);
        }
    }

    /// Destroys the old table after all its units were seen migrated.
    fn detach(&self, prev: Shared<'_, Table<T>>, guard: &Guard) {
        let old = prev.as_ptr();
        // Release: pairs with the Acquire in `prev`. Relaxed: somebody else was first.
        let detached =
            self.prev
                .compare_exchange(old, ptr::null_mut(), Ordering::Release, Ordering::Relaxed);
        if detached.is_ok() {
            // SAFETY: `prev` was the last way to it, and owned it.
            unsafe { guard.retire(old, drop_box) };
        }
    }

    fn bytes(&self) -> usize {
        let words = self.buckets.iter().map(|bucket| load::<T>(bucket).bytes());
        mem::size_of::<Self>() + words.sum::<usize>()
    }
}

/// A table owns the arrays of its words, but not the slots.
impl<T: Entry> Drop for Table<T> {
    fn drop(&mut self) {
        for bucket in &self.buckets {
            // SAFETY: nobody else sees this table any more.
            unsafe { load::<T>(bucket).free() };
        }
    }
}

#[inline]
fn load<T: Entry>(bucket: &AtomicPtr<()>) -> Word<T> {
    // Acquire: pairs with the Release that put the word there, in `replace` or `migrate`. Who
    // finds it frozen, by the Release in `freeze`, finds the next table current.
    Word(bucket.load(Ordering::Acquire), PhantomData)
}

/// Changes an open word, and disposes of the array that is not needed any more. Returns whether it
/// did.
fn replace<T: Entry>(bucket: &AtomicPtr<()>, word: Word<T>, next: Word<T>, guard: &Guard) -> bool {
    // Release: pairs with the Acquire in `load`. Relaxed: the caller loads it again.
    if bucket
        .compare_exchange(word.0, next.0, Ordering::Release, Ordering::Relaxed)
        .is_ok()
    {
        if word.is_many() {
            // SAFETY: only this word led to its array.
            unsafe { guard.retire(word.0, |word| Word::<T>(word, PhantomData).free()) };
        }
        true
    } else {
        // SAFETY: it was never shared.
        unsafe { next.free() };
        false
    }
}

/// Ends all changes to a word of an old table. Returns it.
fn freeze<T: Entry>(bucket: &AtomicPtr<()>) -> Word<T> {
    let mut word = load::<T>(bucket);
    while !word.is_frozen() {
        let frozen = Word(word.0.map_addr(|a| a | FROZEN), PhantomData);
        // Release: hands on, to those who load it, what came before: the word itself and the
        // table that is current now. Relaxed: it is loaded again.
        match bucket.compare_exchange(word.0, frozen.0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return frozen,
            Err(_) => word = load(bucket),
        }
    }
    word
}

const FROZEN: usize = 1;
/// The address is that of a [`Many`].
const MANY: usize = 2;
/// There is no address.
const NONE: usize = 4;
const TAGS: usize = 7;

/// What a bucket holds. Null: not initialised.
struct Word<T>(*mut (), PhantomData<*const T>);

impl<T> Clone for Word<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Word<T> {}

impl<T: Entry> Word<T> {
    const EMPTY: Word<T> = Word(ptr::without_provenance_mut(NONE), PhantomData);

    #[inline]
    fn is_uninit(self) -> bool {
        self.0.is_null()
    }

    fn is_frozen(self) -> bool {
        self.0.addr() & FROZEN != 0
    }

    #[inline]
    fn is_many(self) -> bool {
        self.0.addr() & MANY != 0
    }

    /// The address without the tags; null if there is none.
    #[inline]
    fn address(self) -> *mut () {
        self.0.map_addr(|a| a & !TAGS)
    }

    /// # Safety
    ///
    /// The array, if it is one, has not been freed.
    unsafe fn many<'g>(self) -> &'g [Pair<T>] {
        if self.is_many() {
            // SAFETY: the caller's promise.
            unsafe { Many::as_slice(self.address().cast()) }
        } else {
            &[]
        }
    }

    /// Frees the array, if it is one.
    ///
    /// # Safety
    ///
    /// The caller owns it.
    unsafe fn free(self) {
        if self.is_many() {
            // SAFETY: the caller's promise.
            unsafe { Many::free(self.address().cast::<Many<T>>()) };
        }
    }

    /// The memory of the bucket.
    fn bytes(self) -> usize {
        // SAFETY: callers have just loaded it from a table while pinned.
        let pairs = unsafe { self.many() };
        let array = if pairs.is_empty() {
            0
        } else {
            Many::<T>::layout(pairs.len()).size()
        };
        mem::size_of::<Self>() + array
    }
}

impl<T: Entry> Word<T> {
    /// A word with these slots.
    fn pack(mut pairs: impl Iterator<Item = Pair<T>> + Clone) -> Self {
        const { assert!(mem::align_of::<T>() > TAGS) };
        let address = match pairs.clone().count() {
            0 => return Self::EMPTY,
            1 => pairs
                .next()
                .map_or(ptr::null_mut(), |p| p.slot.cast_mut().cast::<()>()),
            len => Many::new(pairs, len).cast::<()>().map_addr(|a| a | MANY),
        };
        Word(address, PhantomData)
    }

    /// The slots of this word.
    ///
    /// # Safety
    ///
    /// For `'g`, neither its array nor its slots are destroyed.
    unsafe fn pairs<'g>(self) -> impl Iterator<Item = Pair<T>> + Clone + use<'g, T>
    where
        T: 'g,
    {
        let one = if self.is_many() {
            ptr::null_mut()
        } else {
            self.address().cast::<T>()
        };
        // SAFETY: the caller's promise.
        let one = unsafe { Shared::<'g, T>::new(one) };
        let one = one.map(|slot| Pair {
            hash: slot.hash(),
            slot: slot.as_ptr(),
        });
        // SAFETY: the caller's promise.
        one.into_iter()
            .chain(unsafe { self.many::<'g>() }.iter().copied())
    }

    /// The slot among them that has this hash and this key.
    ///
    /// # Safety
    ///
    /// As for [`pairs`](Self::pairs).
    #[inline]
    unsafe fn find<'g>(
        self,
        hash: u64,
        is_key: &mut impl FnMut(&T) -> bool,
    ) -> Option<Shared<'g, T>> {
        if self.is_many() {
            // SAFETY: the caller's promise.
            let pairs = unsafe { Many::<T>::as_slice::<'g>(self.address().cast()) };
            for pair in pairs {
                if pair.hash == hash {
                    // SAFETY: the caller's promise.
                    let slot = unsafe { pair.slot() };
                    if is_key(&slot) {
                        return Some(slot);
                    }
                }
            }
            None
        } else {
            // SAFETY: the caller's promise.
            let slot = unsafe { Shared::<'g, T>::new(self.address().cast()) };
            slot.filter(|slot| slot.hash() == hash && is_key(slot))
        }
    }
}

/// A slot, and its hash beside it: a mismatch is seen without touching the slot.
struct Pair<T> {
    hash: u64,
    slot: *const T,
}

impl<T> Clone for Pair<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Pair<T> {}

impl<T: Entry> Pair<T> {
    /// # Safety
    ///
    /// For `'g`, the slot is not destroyed.
    #[inline]
    unsafe fn slot<'g>(self) -> Shared<'g, T> {
        // SAFETY: the caller's promise; never null.
        unsafe { Shared::new(self.slot).unwrap_unchecked() }
    }
}

/// An immutable array of pairs behind a thin pointer: the length, then the pairs.
#[repr(C, align(8))]
struct Many<T> {
    len: usize,
    pairs: [Pair<T>; 0],
}

impl<T: Entry> Many<T> {
    fn layout(len: usize) -> Layout {
        let pairs = Layout::array::<Pair<T>>(len);
        let layout = pairs.and_then(|pairs| Layout::new::<Self>().extend(pairs));
        layout.expect("more slots than memory").0
    }

    /// `pairs` gives `len` of them.
    fn new(pairs: impl Iterator<Item = Pair<T>>, len: usize) -> *mut Self {
        let layout = Self::layout(len);
        // SAFETY: the size is not zero.
        let this = unsafe { alloc(layout) }.cast::<Self>();
        if this.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: there is room for the length and for `len` pairs.
        unsafe {
            (&raw mut (*this).len).write(len);
            let first = (&raw mut (*this).pairs).cast::<Pair<T>>();
            for (i, pair) in pairs.take(len).enumerate() {
                first.add(i).write(pair);
            }
        }
        this
    }

    /// # Safety
    ///
    /// `this` comes from `new` and lives for `'g`.
    #[inline]
    unsafe fn as_slice<'g>(this: *const Self) -> &'g [Pair<T>] {
        // SAFETY: the caller's promise; the provenance is that of the whole allocation.
        unsafe { slice::from_raw_parts((&raw const (*this).pairs).cast(), (*this).len) }
    }

    /// # Safety
    ///
    /// `this` comes from `new` and is not used again.
    unsafe fn free(this: *mut Self) {
        // SAFETY: allocated with this layout; the pairs need no drop.
        unsafe { dealloc(this.cast(), Self::layout((*this).len)) };
    }
}

#[cfg(all(test, not(podcache_loom)))]
mod tests {
    use std::collections::HashSet;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::thread;

    use super::super::reclaim::pin;
    use super::super::sync::AtomicBool;
    use super::*;

    /// Counts what is alive, and never goes below zero.
    #[derive(Clone, Default)]
    struct Alive(Arc<AtomicUsize>);

    impl Alive {
        fn count(&self) -> usize {
            self.0.load(Ordering::SeqCst)
        }

        /// Waits, collecting, for all garbage of slots to be freed.
        fn settles_at(&self, expected: usize) {
            while self.count() != expected {
                pin().flush();
                thread::yield_now();
            }
        }
    }

    struct Slot {
        hash: u64,
        key: u64,
        retired: AtomicBool,
        alive: Alive,
    }

    impl Drop for Slot {
        fn drop(&mut self) {
            assert_ne!(
                self.alive.0.fetch_sub(1, Ordering::SeqCst),
                0,
                "dropped twice"
            );
        }
    }

    impl Entry for Slot {
        fn hash(&self) -> u64 {
            self.hash
        }

        fn is_retired(&self) -> bool {
            self.retired.load(Ordering::SeqCst)
        }
    }

    fn spread(key: u64) -> u64 {
        (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    struct Keys {
        index: Index<Slot>,
        hash: fn(u64) -> u64,
        alive: Alive,
    }

    impl Keys {
        fn new(hash: fn(u64) -> u64) -> Self {
            Keys {
                index: Index::new(0),
                hash,
                alive: Alive::default(),
            }
        }

        fn contains(&self, key: u64) -> bool {
            let guard = pin();
            let slot = self
                .index
                .find((self.hash)(key), |slot| slot.key == key, &guard);
            slot.is_some_and(|slot| {
                assert_eq!(slot.key, key);
                !slot.is_retired()
            })
        }

        fn insert(&self, key: u64) -> bool {
            let guard = pin();
            self.alive.0.fetch_add(1, Ordering::SeqCst);
            let slot = Arc::new(Slot {
                hash: (self.hash)(key),
                key,
                retired: AtomicBool::new(false),
                alive: self.alive.clone(),
            });
            self.index
                .insert(slot, |slot| slot.key == key, &guard)
                .is_ok()
        }

        /// Marks the slot of the key as retired. The caller is the one who did.
        fn retire(&self, key: u64) -> bool {
            let guard = pin();
            let slot = self
                .index
                .find((self.hash)(key), |slot| slot.key == key, &guard);
            slot.is_some_and(|slot| !slot.retired.swap(true, Ordering::SeqCst))
        }

        fn remove(&self, key: u64) -> bool {
            let guard = pin();
            let slot = self
                .index
                .find((self.hash)(key), |slot| slot.key == key, &guard);
            slot.is_some_and(|slot| {
                let won = !slot.retired.swap(true, Ordering::SeqCst);
                self.index.unlink(slot, &guard);
                won
            })
        }

        fn scan(&self) -> Vec<u64> {
            let mut keys = Vec::new();
            let mut cursor = Some(0);
            while let Some(position) = cursor {
                cursor = self.index.scan(position, &pin(), |slot| {
                    if !slot.is_retired() {
                        keys.push(slot.key);
                    }
                });
                assert!(cursor.is_none_or(|next| next > position));
            }
            keys
        }

        fn buckets(&self) -> usize {
            self.index.buckets(&pin())
        }
    }

    fn sorted(mut keys: Vec<u64>) -> Vec<u64> {
        keys.sort_unstable();
        keys
    }

    #[test]
    fn a_key_has_one_slot() {
        let keys = Keys::new(spread);
        assert!(!keys.contains(7));
        assert!(keys.insert(7));
        assert!(!keys.insert(7));
        assert!(keys.contains(7));
        assert_eq!(keys.index.len(), 1);
        keys.alive.settles_at(1);
        assert!(keys.remove(7));
        assert!(!keys.remove(7));
        assert!(!keys.contains(7));
        assert_eq!(keys.index.len(), 0);
        keys.alive.settles_at(0);
    }

    #[test]
    fn a_retired_slot_is_replaced() {
        for hash in [spread, |_| 42] {
            let keys = Keys::new(hash);
            for key in 0..3 {
                assert!(keys.insert(key));
            }
            assert!(keys.retire(1));
            let guard = pin();
            let retired = keys
                .index
                .find(hash(1), |slot| slot.key == 1, &guard)
                .unwrap();
            assert!(keys.insert(1));
            assert_eq!(keys.index.len(), 3);
            // It is out already; the key's new slot is not affected.
            keys.index.unlink(retired, &guard);
            assert_eq!(keys.index.len(), 3);
            drop(guard);
            keys.alive.settles_at(3);
            assert_eq!(sorted(keys.scan()), [0, 1, 2]);
        }
    }

    #[test]
    fn equal_hashes_are_slow_but_right() {
        for hash in [0, u64::MAX] {
            let keys = if hash == 0 {
                Keys::new(|_| 0)
            } else {
                Keys::new(|_| u64::MAX)
            };
            for key in 0..300 {
                assert!(keys.insert(key));
            }
            assert_eq!(sorted(keys.scan()), (0..300).collect::<Vec<_>>());
            for key in 0..300 {
                assert!(keys.contains(key));
                assert!(keys.remove(key));
                assert!(!keys.contains(key));
            }
            keys.alive.settles_at(0);
        }
    }

    #[test]
    fn the_size_follows_the_slots() {
        let keys = Keys::new(spread);
        assert_eq!(keys.buckets(), MIN_BUCKETS);
        for key in 0..10_000 {
            assert!(keys.insert(key));
            assert!(keys.buckets() >= 2 * (key as usize));
        }
        assert_eq!(keys.buckets(), 32_768);
        let bytes = keys.index.bytes(&pin());
        assert!((32_768 * 8..40 * 10_000).contains(&bytes));
        assert_eq!(sorted(keys.scan()), (0..10_000).collect::<Vec<_>>());
        for key in 0..10_000 {
            assert!(keys.contains(key));
        }
        for key in 0..10_000 {
            assert!(keys.remove(key));
            let left = 10_000 - 1 - key as usize;
            assert!(keys.buckets() <= (left * 32).max(MIN_BUCKETS));
        }
        assert_eq!(keys.buckets(), MIN_BUCKETS);
        keys.alive.settles_at(0);
    }

    #[test]
    fn a_capacity_is_kept() {
        let keys = Keys {
            index: Index::new(1000),
            ..Keys::new(spread)
        };
        assert_eq!(keys.buckets(), 4096);
        for key in 0..1000 {
            keys.insert(key);
        }
        assert_eq!(keys.buckets(), 4096);
        for key in 1000..5000 {
            keys.insert(key);
        }
        for key in 0..5000 {
            keys.remove(key);
        }
        assert_eq!(keys.buckets(), 4096);
    }

    #[test]
    fn the_index_drops_its_slots() {
        for n in 0..500 {
            let keys = Keys::new(spread);
            for key in 0..n {
                keys.insert(key);
            }
            // At some of these sizes a migration is under way.
            let alive = keys.alive.clone();
            drop(keys);
            assert_eq!(alive.count(), 0);
        }
    }

    #[test]
    fn a_panic_in_eq_leaves_everything_intact() {
        let keys = Keys::new(|_| 0);
        for key in 0..3 {
            keys.insert(key);
        }
        let slot = || {
            keys.alive.0.fetch_add(1, Ordering::SeqCst);
            Arc::new(Slot {
                hash: 0,
                key: 3,
                retired: AtomicBool::new(false),
                alive: keys.alive.clone(),
            })
        };
        let failed = catch_unwind(AssertUnwindSafe(|| {
            let _ = keys.index.insert(slot(), |_| panic!("eq"), &pin());
        }));
        assert!(failed.is_err());
        let failed = catch_unwind(AssertUnwindSafe(|| {
            let _ = keys.index.find(0, |_| panic!("eq"), &pin());
        }));
        assert!(failed.is_err());
        keys.alive.settles_at(3);
        assert!(keys.insert(3));
        assert_eq!(sorted(keys.scan()), [0, 1, 2, 3]);
    }

    #[test]
    fn eq_may_use_the_index() {
        let keys = Keys::new(|_| 0);
        keys.insert(0);
        let guard = pin();
        let found = keys
            .index
            .find(0, |slot| slot.key == 0 && keys.insert(1), &guard);
        assert!(found.is_some());
        assert!(keys.contains(1));
    }

    /// Each thread has keys of its own, and always knows which of them are in, whatever the others
    /// do to the buckets and the table. The number of keys goes up and down in waves.
    #[test]
    fn threads_do_not_disturb_each_other() {
        const THREADS: u64 = 4;
        const STEPS: u64 = if cfg!(debug_assertions) {
            30_000
        } else {
            200_000
        };
        const WAVE: u64 = 8_000;
        for hash in [spread, |key| spread(key) >> 54 << 54] {
            let keys = Keys::new(hash);
            let barrier = Barrier::new(THREADS as usize);
            thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (keys, barrier) = (&keys, &barrier);
                    scope.spawn(move || {
                        let mut random = thread + 1;
                        let mut mine = HashSet::new();
                        barrier.wait();
                        for step in 0..STEPS {
                            random = spread(random);
                            let key = (random >> 32) % 1000 * THREADS + thread;
                            let growing = step % WAVE < WAVE / 2;
                            match random % 8 {
                                0 => assert_eq!(keys.contains(key), mine.contains(&key)),
                                // Retired by one, unlinked or replaced by another call.
                                1 => {
                                    assert_eq!(keys.retire(key), mine.remove(&key));
                                    assert!(!keys.contains(key));
                                    if growing {
                                        assert!(keys.insert(key));
                                        mine.insert(key);
                                    } else {
                                        assert!(!keys.remove(key));
                                    }
                                }
                                2 if step % 500 == 0 => {
                                    let scanned = keys.scan();
                                    let own = scanned.iter().filter(|&k| k % THREADS == thread);
                                    let own: Vec<_> = own.copied().collect();
                                    assert_eq!(own.len(), mine.len());
                                    assert_eq!(own.into_iter().collect::<HashSet<_>>(), mine);
                                }
                                _ if growing => assert_eq!(keys.insert(key), mine.insert(key)),
                                _ => assert_eq!(keys.remove(key), mine.remove(&key)),
                            }
                        }
                        for key in mine {
                            assert!(keys.remove(key));
                        }
                    });
                }
            });
            assert_eq!(keys.index.len(), 0);
            assert_eq!(keys.buckets(), MIN_BUCKETS);
            keys.alive.settles_at(0);
        }
    }

    /// Threads insert and remove until each key was inserted and removed often; some keys stay.
    #[test]
    fn threads_agree() {
        const THREADS: u64 = 4;
        const ROUNDS: u64 = if cfg!(debug_assertions) { 12 } else { 60 };
        for hash in [spread, |key| spread(key) >> 56 << 56] {
            let keys = Keys::new(hash);
            let staying = 1_000_000..1_000_100;
            for key in staying.clone() {
                keys.insert(key);
            }
            let inserted = AtomicUsize::new(0);
            let removed = AtomicUsize::new(0);
            let barrier = Barrier::new(THREADS as usize + 1);
            let done = AtomicBool::new(false);
            thread::scope(|scope| {
                let writers: Vec<_> = (0..THREADS)
                    .map(|thread| {
                        let (keys, barrier) = (&keys, &barrier);
                        let (inserted, removed) = (&inserted, &removed);
                        scope.spawn(move || {
                            barrier.wait();
                            for round in 0..ROUNDS {
                                // All the same keys, from different ends.
                                let width = 40 << (round % 6);
                                let order = |i| if thread % 2 == 0 { i } else { width - 1 - i };
                                for key in (0..width).map(order) {
                                    inserted.fetch_add(keys.insert(key) as usize, Ordering::SeqCst);
                                }
                                for key in (0..width).map(order) {
                                    removed.fetch_add(keys.remove(key) as usize, Ordering::SeqCst);
                                }
                            }
                        })
                    })
                    .collect();
                let reader = scope.spawn(|| {
                    barrier.wait();
                    while !done.load(Ordering::SeqCst) {
                        for key in staying.clone() {
                            assert!(keys.contains(key));
                        }
                        let scanned = keys.scan();
                        let unique: HashSet<_> = scanned.iter().collect();
                        assert_eq!(unique.len(), scanned.len());
                        assert!(staying.clone().all(|key| unique.contains(&key)));
                    }
                });
                for writer in writers {
                    writer.join().unwrap();
                }
                done.store(true, Ordering::SeqCst);
                reader.join().unwrap();
            });
            assert_eq!(inserted.into_inner(), removed.into_inner());
            assert_eq!(sorted(keys.scan()), staying.clone().collect::<Vec<_>>());
            assert_eq!(keys.index.len(), 100);
            keys.alive.settles_at(100);
            for key in staying {
                assert!(keys.remove(key));
            }
            assert_eq!(keys.index.len(), 0);
            assert_eq!(keys.buckets(), MIN_BUCKETS);
            keys.alive.settles_at(0);
        }
    }
}
