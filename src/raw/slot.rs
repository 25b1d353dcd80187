//! A key's place: the key, its hash, and one pointer to the present [`Node`].
//!
//! Every change of a slot is one compare-and-swap of that pointer. Null means retired: the slot
//! had neither a record nor anything to remember, will not be used again, and is on its way out
//! of the index.

use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ptr;

use super::feed::{Marked, Marks};
use super::index::Entry;
use super::node::{Current, Node};
use super::reclaim::{Guard, Shared, contain};
use super::sync::{Arc, AtomicPtr, Ordering, counted};

/// Aligned for the tags of the index on any platform.
#[repr(align(8))]
pub(crate) struct Slot<K, V> {
    node: AtomicPtr<Node<V>>,
    /// The upper half of the hash: more than any table asks for.
    hash: u32,
    marks: Marks,
    key: ManuallyDrop<K>,
    owns: PhantomData<Arc<Node<V>>>,
}

// As for a node.
impl<K, V> Unpin for Slot<K, V> {}

impl<K, V> Slot<K, V> {
    pub(crate) fn new(key: K, hash: u64, node: Arc<Node<V>>) -> Arc<Self> {
        Arc::new(Slot {
            node: AtomicPtr::new(Arc::into_raw(node).cast_mut()),
            hash: (hash >> 32) as u32,
            marks: Marks::none(),
            key: ManuallyDrop::new(key),
            owns: PhantomData,
        })
    }

    pub(crate) fn key(&self) -> &K {
        &self.key
    }

    /// The node as it is; `None` if the slot is retired.
    #[inline]
    pub(crate) fn load<'g>(&self, guard: &'g Guard) -> Option<Current<'g, V>> {
        // Acquire, with the release in `swap`. Linearization point of every read.
        let node = self.node.load(Ordering::Acquire);
        // SAFETY: loaded from the slot under the guard; slots hold nodes from `Arc::into_raw`.
        unsafe { Current::new(node, guard) }
    }

    /// Whether this very node is still in the slot. Whoever asks keeps it alive, so that no other
    /// can have its address.
    #[inline]
    pub(crate) fn still_holds(&self, node: &Arc<Node<V>>) -> bool {
        // Relaxed: compares, and follows nothing; who finds another loads it again.
        ptr::eq(self.node.load(Ordering::Relaxed), Arc::as_ptr(node))
    }

    /// Puts `new` in the place of `old`; `None` retires the slot. Linearization point of every
    /// write. The slot's reference to `old` becomes the caller's.
    pub(crate) fn swap<'g>(
        &self,
        old: *const Node<V>,
        new: Option<Arc<Node<V>>>,
        guard: &'g Guard,
    ) -> Result<Option<Current<'g, V>>, Option<Arc<Node<V>>>> {
        let new = new.map_or(ptr::null(), Arc::into_raw).cast_mut();
        // Release, with the acquire in `load`. Relaxed on failure: the caller loads again.
        match self
            .node
            .compare_exchange(old.cast_mut(), new, Ordering::AcqRel, Ordering::Relaxed)
        {
            // SAFETY: in the slot since an instant ago, and the guard is older than that.
            Ok(_) => Ok(unsafe { Current::new(new, guard) }),
            // SAFETY: made from an `Arc` above, and not published.
            Err(_) => Err((!new.is_null()).then(|| unsafe { Arc::from_raw(new) })),
        }
    }

    /// Puts `before` back in the place of the proposed node that holds its place.
    pub(crate) fn put_back(&self, proposed: *const Node<V>, before: *const Node<V>) -> bool {
        // As in `swap`; whoever loads `before` again gets it from this release.
        self.node
            .compare_exchange(
                proposed.cast_mut(),
                before.cast_mut(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Exchanges the node of a slot that is not shared yet.
    pub(crate) fn exchange(slot: &mut Arc<Self>, node: Arc<Node<V>>) -> Arc<Node<V>> {
        let slot = Arc::get_mut(slot).expect("an unpublished slot has one owner");
        let new = AtomicPtr::new(Arc::into_raw(node).cast_mut());
        let old = std::mem::replace(&mut slot.node, new);
        // SAFETY: the slot's own reference; it was never shared and never retired.
        unsafe { Arc::from_raw(old.load(Ordering::Relaxed)) }
    }

    /// Loads the node by a read-modify-write, which comes before or after each swap of it: see
    /// [`Feeds::announce`](super::feed::Feeds::announce).
    pub(crate) fn touch(&self) {
        let mut node = self.node.load(Ordering::Relaxed);
        // AcqRel, with the same in `swap`.
        while let Err(other) =
            self.node
                .compare_exchange(node, node, Ordering::AcqRel, Ordering::Relaxed)
        {
            node = other;
        }
    }
}

impl<K, V> Shared<'_, Slot<K, V>> {
    /// A counted reference, to keep beyond the guard.
    pub(crate) fn to_arc(self) -> Arc<Slot<K, V>> {
        // SAFETY: slots are `Arc`s', and this one is alive: who shares it owns a reference.
        unsafe { counted(self.as_ptr()) }
    }
}

impl<K, V> Entry for Slot<K, V> {
    #[inline]
    fn hash(&self) -> u64 {
        u64::from(self.hash) << 32
    }

    fn is_retired(&self) -> bool {
        // Acquire, with the release in `swap`: what the retirer did before is seen.
        self.node.load(Ordering::Acquire).is_null()
    }
}

impl<K, V> Marked for Slot<K, V> {
    fn marks(&self) -> &Marks {
        &self.marks
    }
}

impl<K, V> Drop for Slot<K, V> {
    // Both run user code, and may do so in the middle of somebody else's call.
    fn drop(&mut self) {
        // Relaxed: `&mut self` has seen everything.
        let node = self.node.load(Ordering::Relaxed).cast_const();
        if !node.is_null() {
            // SAFETY: the slot's reference; nobody can find the node through the slot any more. A
            // proposal that its thread left undecided still owns the node before it.
            unsafe {
                if let Some(before) = Node::undecided(node) {
                    Node::leave_slot(before);
                }
                Node::leave_slot(node);
            }
        }
        // SAFETY: not used again.
        contain(|| unsafe { ManuallyDrop::drop(&mut self.key) });
    }
}
