//! The key of the pod cache.

use std::borrow::{Borrow, Cow};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A pod's UID: a string that costs one reference count to clone.
///
/// It hashes, compares and sorts as its text does and borrows as [`str`], so a map that is keyed
/// by it can be asked with a plain `&str`. Comparing two clones of one UID does not look at the
/// text.
///
/// # With a cache
///
/// What never has to keep the key takes either form: `get`, `try_get_newer_than`, `contains`,
/// `set_observed_time`, `delete`. What may have to keep it, `set` and the waits, takes `&PodUid`
/// and clones it only then:
///
/// ```
/// use podcache::Timestamp;
/// use podcache::pod::{PodCache, PodRecord, PodStatus, PodUid};
///
/// let cache = PodCache::new();
/// let uid = PodUid::from("8f1c36a2");
///
/// cache.set(&uid, PodRecord::from(PodStatus::new(uid.clone())), Timestamp::now());
///
/// assert!(cache.get("8f1c36a2").is_present());
/// assert!(cache.get(&uid).is_present());
/// ```
///
/// `PodUid::from` copies the text: make the UID once per pod, where the pod is first heard of, and
/// hand out clones.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(transparent)
)]
pub struct PodUid(Arc<str>);

impl PodUid {
    /// The UID with this text.
    #[must_use]
    pub fn new(uid: impl Into<Arc<str>>) -> Self {
        Self(uid.into())
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for PodUid {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for PodUid {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for PodUid {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for PodUid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl From<&str> for PodUid {
    fn from(uid: &str) -> Self {
        Self(uid.into())
    }
}

impl From<&String> for PodUid {
    fn from(uid: &String) -> Self {
        Self(uid.as_str().into())
    }
}

impl From<String> for PodUid {
    fn from(uid: String) -> Self {
        Self(uid.into())
    }
}

impl From<Box<str>> for PodUid {
    fn from(uid: Box<str>) -> Self {
        Self(uid.into())
    }
}

impl From<Cow<'_, str>> for PodUid {
    fn from(uid: Cow<'_, str>) -> Self {
        Self(uid.into())
    }
}

impl From<Arc<str>> for PodUid {
    fn from(uid: Arc<str>) -> Self {
        Self(uid)
    }
}

impl From<&PodUid> for PodUid {
    fn from(uid: &PodUid) -> Self {
        uid.clone()
    }
}

impl From<PodUid> for Arc<str> {
    fn from(uid: PodUid) -> Self {
        uid.0
    }
}

impl From<PodUid> for String {
    fn from(uid: PodUid) -> Self {
        uid.as_str().into()
    }
}

impl PartialEq<str> for PodUid {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for PodUid {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl PartialEq<PodUid> for str {
    fn eq(&self, other: &PodUid) -> bool {
        self == &*other.0
    }
}

impl PartialEq<PodUid> for &str {
    fn eq(&self, other: &PodUid) -> bool {
        *self == &*other.0
    }
}
