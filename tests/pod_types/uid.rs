//! `PodUid`: text by any way in, alike borrowed and owned.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

#[test]
fn clones_share_the_text() {
    let uid = PodUid::from("8f1c");
    assert!(std::ptr::eq(uid.as_str(), uid.clone().as_str()));
}

#[test]
fn all_ways_to_one() {
    let uid = PodUid::new("8f1c");
    assert_eq!(uid, PodUid::from("8f1c"));
    assert_eq!(uid, PodUid::from(String::from("8f1c")));
    assert_eq!(uid, PodUid::from(&String::from("8f1c")));
    assert_eq!(uid, PodUid::from(Box::<str>::from("8f1c")));
    assert_eq!(uid, PodUid::from(std::borrow::Cow::from("8f1c")));
    assert_eq!(uid, PodUid::from(Arc::<str>::from("8f1c")));
    assert_eq!(uid, PodUid::from(&uid));
    assert_eq!("8f1c", uid);
    assert_eq!(uid, *"8f1c");
    assert_eq!(String::from(uid.clone()), "8f1c");
    assert_eq!(&*Arc::<str>::from(uid), "8f1c");
}

#[test]
fn text() {
    let uid = PodUid::from("8f1c");
    assert_eq!(format!("[{uid:>6}]"), "[  8f1c]");
    assert_eq!(format!("{uid:?}"), "\"8f1c\"");
}

#[test]
fn a_map_of_them_is_asked_with_text() {
    let map = HashMap::from([(PodUid::from("8f1c"), 1)]);
    assert_eq!(map.get("8f1c"), Some(&1));
    let set = BTreeSet::from([PodUid::from("b"), PodUid::from("a")]);
    assert!(set.contains("a"));
    assert_eq!(set.first().unwrap(), &"a");
}

proptest! {
    #[test]
    fn borrowed_and_owned_are_alike(a in "\\PC{0,4}", b in "\\PC{0,4}") {
        let (uid_a, uid_b) = (PodUid::from(&a), PodUid::from(&b));
        let hasher = RandomState::new();
        prop_assert_eq!(hasher.hash_one(&uid_a), hasher.hash_one(a.as_str()));
        prop_assert_eq!(uid_a == uid_b, a == b);
        prop_assert_eq!(uid_a.cmp(&uid_b), a.cmp(&b));
    }
}
