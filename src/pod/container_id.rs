//! `type://id`, the name of a container across runtimes.

use std::fmt;
use std::str::FromStr;

/// A container's identity: the runtime that knows it and the runtime's own name for it.
///
/// Its text is `type://id`, as in a pod's API status, and that text is also its serde form.
///
/// ```
/// use podcache::pod::ContainerId;
///
/// let id: ContainerId = "containerd://4f2a9c".parse()?;
///
/// assert_eq!(id, ContainerId::new("containerd", "4f2a9c"));
/// assert_eq!(id.to_string(), "containerd://4f2a9c");
/// # Ok::<(), podcache::pod::ParseContainerIdError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ContainerId {
    /// The runtime: `containerd`, `cri-o`.
    pub r#type: String,
    /// The name that the runtime gave it.
    pub id: String,
}

impl ContainerId {
    /// The container that the runtime `type` calls `id`. If one of them contains `://`, the text of
    /// it all cannot be read back.
    #[must_use]
    pub fn new(r#type: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            r#type: r#type.into(),
            id: id.into(),
        }
    }

    /// Whether both parts are empty: no container has been named.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.r#type.is_empty() && self.id.is_empty()
    }
}

impl fmt::Display for ContainerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.r#type, self.id)
    }
}

impl FromStr for ContainerId {
    type Err = ParseContainerIdError;

    /// Reads `type://id`, also within double quotes, as the kubelet does. Either part may be empty.
    ///
    /// # Errors
    ///
    /// If `://` is not there exactly once.
    fn from_str(text: &str) -> Result<Self, ParseContainerIdError> {
        let mut parts = text.trim_matches('"').split("://");
        match (parts.next(), parts.next(), parts.next()) {
            (Some(r#type), Some(id), None) => Ok(Self::new(r#type, id)),
            _ => Err(ParseContainerIdError(text.into())),
        }
    }
}

/// The text, which it keeps, is not a [`ContainerId`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a container ID of the form type://id: {0:?}")]
pub struct ParseContainerIdError(Box<str>);

#[cfg(feature = "serde")]
mod serde_impls {
    use super::ContainerId;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use std::borrow::Cow;

    impl Serialize for ContainerId {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for ContainerId {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            Cow::<'_, str>::deserialize(deserializer)?
                .parse()
                .map_err(de::Error::custom)
        }
    }
}
