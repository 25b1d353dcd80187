//! loom's atomic pointer, with an eye on what it points at.
//!
//! What is behind a pointer is plain memory to loom: it would not notice somebody who follows the
//! pointer without being ordered after its publication. So every published pointer has a loom cell,
//! which its publisher makes and whoever follows it reads. A missing acquire or release is then a
//! race on that cell. A relaxed load follows nothing: it compares.
//!
//! The cell is made right after the store, with no step of the model in between: it is of the same
//! instant.

use std::sync::Mutex;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{self, Ordering};

pub(crate) struct AtomicPtr<T> {
    pointer: atomic::AtomicPtr<T>,
    /// By address, without tags. Not a part of the model, so not a lock of it.
    published: Mutex<Vec<(usize, UnsafeCell<()>)>>,
}

/// Whether whoever accesses a pointer so may follow it.
#[cfg(not(podcache_mutants))]
fn follows(order: Ordering) -> bool {
    order != Ordering::Relaxed && order != Ordering::Release
}

/// A weakened access is still meant to follow.
#[cfg(podcache_mutants)]
fn follows(_: Ordering) -> bool {
    crate::mutant::follows()
}

/// Nothing, for what is no address but a mark.
fn address<T>(pointer: *mut T) -> Option<usize> {
    let address = pointer.addr() & !7;
    (address != 0).then_some(address)
}

impl<T> AtomicPtr<T> {
    pub(crate) fn new(pointer: *mut T) -> Self {
        let this = AtomicPtr {
            pointer: atomic::AtomicPtr::new(pointer),
            published: Mutex::new(Vec::new()),
        };
        this.publish(pointer);
        this
    }

    fn publish(&self, pointer: *mut T) {
        let Some(address) = address(pointer) else {
            return;
        };
        let mut published = self.published.lock().unwrap();
        // The first counts: whoever finds the pointer may have found it where it was put first.
        if !published.iter().any(|(known, _)| *known == address) {
            published.push((address, UnsafeCell::new(())));
        }
    }

    fn follow(&self, pointer: *mut T) {
        let address = address(pointer);
        let published = self.published.lock().unwrap();
        if let Some((_, cell)) = published.iter().find(|(known, _)| Some(*known) == address) {
            cell.with(|_| ());
        }
    }

    #[track_caller]
    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        let follows = follows(order);
        let pointer = self.pointer.load(order);
        if follows {
            self.follow(pointer);
        }
        pointer
    }

    #[track_caller]
    pub(crate) fn store(&self, pointer: *mut T, order: Ordering) {
        self.pointer.store(pointer, order);
        self.publish(pointer);
    }

    /// Whoever takes a pointer out this way owns it, and may free it at once.
    #[track_caller]
    pub(crate) fn swap(&self, pointer: *mut T, order: Ordering) -> *mut T {
        let follows = follows(order);
        let old = self.pointer.swap(pointer, order);
        if follows {
            self.follow(old);
        }
        self.published.lock().unwrap().clear();
        self.publish(pointer);
        old
    }

    #[track_caller]
    pub(crate) fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        let follows = follows(failure);
        let result = self
            .pointer
            .compare_exchange(current, new, success, failure);
        match result {
            Ok(_) => self.publish(new),
            Err(other) if follows => self.follow(other),
            Err(_) => {}
        }
        result
    }
}
