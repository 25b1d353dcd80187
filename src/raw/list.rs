//! An immutable singly linked list whose tails are shared.
//!
//! Pushing makes a new head in constant time; the old list stays as it was for whoever holds it.
//! Every link knows the length and the smallest and largest key of the list that starts with it,
//! so "is anybody here meant?" and "is everybody?" are answered without a walk.

use super::sync::Arc;

pub(crate) struct List<T>(Option<Arc<Link<T>>>);

struct Link<T> {
    item: T,
    next: List<T>,
    len: usize,
    least: u64,
    greatest: u64,
}

impl<T> List<T> {
    pub(crate) const EMPTY: Self = List(None);

    #[must_use]
    pub(crate) fn push(self, item: T, key: u64) -> Self {
        List(Some(Arc::new(Link {
            len: self.len() + 1,
            least: self.least().min(key),
            greatest: self.greatest().max(key),
            item,
            next: self,
        })))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |link| link.len)
    }

    /// The smallest key; the largest there can be for an empty list.
    pub(crate) fn least(&self) -> u64 {
        self.0.as_ref().map_or(u64::MAX, |link| link.least)
    }

    /// The largest key; zero for an empty list.
    pub(crate) fn greatest(&self) -> u64 {
        self.0.as_ref().map_or(0, |link| link.greatest)
    }

    /// Newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut rest = self;
        std::iter::from_fn(move || {
            let link = rest.0.as_deref()?;
            rest = &link.next;
            Some(&link.item)
        })
    }
}

impl<T> Clone for List<T> {
    fn clone(&self) -> Self {
        List(self.0.clone())
    }
}

impl<T> Drop for List<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            unlink(link);
        }
    }
}

/// A loop: dropping link by link from inside each other would use up the stack.
fn unlink<T>(link: Arc<Link<T>>) {
    let mut rest = Some(link);
    while let Some(mut link) = rest.take().and_then(Arc::into_inner) {
        // Before the item goes, whose drop may panic.
        rest = link.next.0.take();
    }
}
