//! An immutable singly linked list whose tails are shared.
//!
//! Pushing makes a new head in constant time; the old list stays as it was for whoever holds it.
//! Every link but the last knows the length and the smallest and largest key of the list that starts with it,
//! so "is anybody here meant?" and "is everybody?" are answered without a walk.

use std::mem;

use super::sync::{Arc, sole};

/// What a list is searched by.
pub(crate) trait Keyed {
    fn key(&self) -> u64;
}

pub(crate) enum List<T> {
    Empty,
    /// By itself, for most lists are no longer.
    One(T),
    More(Arc<Link<T>>),
}

pub(crate) struct Link<T> {
    item: T,
    next: List<T>,
    len: usize,
    least: u64,
    greatest: u64,
}

impl<T: Keyed> List<T> {
    #[must_use]
    pub(crate) fn push(self, item: T) -> Self {
        if self.is_empty() {
            return List::One(item);
        }
        let key = item.key();
        List::More(Arc::new(Link {
            len: self.len() + 1,
            least: self.least().min(key),
            greatest: self.greatest().max(key),
            item,
            next: self,
        }))
    }

    /// The smallest key; the largest there can be for an empty list.
    pub(crate) fn least(&self) -> u64 {
        match self {
            List::Empty => u64::MAX,
            List::One(item) => item.key(),
            List::More(link) => link.least,
        }
    }

    /// The largest key; zero for an empty list.
    pub(crate) fn greatest(&self) -> u64 {
        match self {
            List::Empty => 0,
            List::One(item) => item.key(),
            List::More(link) => link.greatest,
        }
    }
}

impl<T> List<T> {
    pub(crate) const EMPTY: Self = List::Empty;

    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, List::Empty)
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            List::Empty => 0,
            List::One(..) => 1,
            List::More(link) => link.len,
        }
    }

    /// Newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut rest = Some(self);
        std::iter::from_fn(move || {
            let (item, next) = match rest? {
                List::Empty => return None,
                List::One(item) => (item, None),
                List::More(link) => (&link.item, Some(&link.next)),
            };
            rest = next;
            Some(item)
        })
    }
}

impl<T: Clone> Clone for List<T> {
    fn clone(&self) -> Self {
        match self {
            List::Empty => List::Empty,
            List::One(item) => List::One(item.clone()),
            List::More(link) => List::More(Arc::clone(link)),
        }
    }
}

impl<T> Drop for Link<T> {
    /// A loop: dropping link by link from inside each other would use up the stack.
    #[inline]
    fn drop(&mut self) {
        let mut rest = mem::replace(&mut self.next, List::Empty);
        while let List::More(link) = rest {
            let Some(mut link) = sole(link) else {
                return;
            };
            // Before the item goes, whose drop may panic.
            rest = mem::replace(&mut link.next, List::Empty);
        }
    }
}

#[cfg(all(test, not(podcache_loom)))]
mod tests {
    use super::*;

    impl Keyed for Arc<u64> {
        fn key(&self) -> u64 {
            **self
        }
    }

    #[test]
    fn a_list_knows_its_keys_and_shares_its_tail() {
        let empty = List::<Arc<u64>>::EMPTY;
        assert!(empty.is_empty() && empty.least() == u64::MAX && empty.greatest() == 0);
        let push = |list: &List<_>, key| list.clone().push(Arc::new(key));
        let one = push(&empty, 5);
        let (low, high) = (push(&one, 2), push(&one, 9));
        let seen = |list: &List<Arc<u64>>| list.iter().map(|key| **key).collect::<Vec<_>>();
        assert_eq!(seen(&one), [5]);
        assert_eq!(seen(&low), [2, 5]);
        assert_eq!(seen(&push(&high, 3)), [3, 9, 5]);
        let facts = |list: &List<_>| (list.len(), list.least(), list.greatest());
        assert_eq!(facts(&one), (1, 5, 5));
        assert_eq!(facts(&low), (2, 2, 5));
        assert_eq!(facts(&push(&high, 3)), (3, 3, 9));
    }

    #[test]
    fn a_long_list_goes_without_a_deep_stack_and_leaves_what_others_hold() {
        let item = Arc::new(0);
        let short = (0..10).fold(List::EMPTY, |list, _| list.push(Arc::clone(&item)));
        let long = (0..1_000_000).fold(short.clone(), |list, _| list.push(Arc::clone(&item)));
        let other = short.clone().push(Arc::clone(&item));
        drop(long);
        assert_eq!(other.iter().count(), 11);
        drop((short, other));
        assert!(item.is_unique());
    }
}
