//! What the runtime says of a pod's sandbox.

use super::PodUid;
use crate::Timestamp;
use std::collections::BTreeMap;
use std::fmt;

/// Whether containers can be started in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase")
)]
pub enum SandboxState {
    /// They can.
    Ready,
    /// They cannot, not any more.
    #[default]
    NotReady,
}

impl fmt::Display for SandboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ready => "ready",
            Self::NotReady => "not ready",
        })
    }
}

/// The status of one of a pod's sandboxes: the one it runs in, or one that it has run in before.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct SandboxStatus {
    /// Its ID in the runtime.
    pub id: String,
    /// The UID of the pod that it was made for.
    pub uid: PodUid,
    /// The name of that pod.
    pub name: String,
    /// The namespace of that pod.
    pub namespace: String,
    /// How many sandboxes the pod had before this one.
    pub attempt: u32,
    /// Whether containers can be started in it.
    pub state: SandboxState,
    /// When it was made.
    pub created_at: Timestamp,
    /// Its addresses. Empty in the host's network.
    pub ips: Vec<String>,
    /// The runtime handler it runs under. Empty: the runtime's default.
    pub runtime_handler: String,
    /// The labels it was made with.
    pub labels: BTreeMap<String, String>,
    /// The annotations it was made with.
    pub annotations: BTreeMap<String, String>,
}

impl SandboxStatus {
    /// A sandbox of which no more than its ID and its pod are known.
    #[must_use]
    pub fn new(id: impl Into<String>, uid: impl Into<PodUid>) -> Self {
        Self {
            id: id.into(),
            uid: uid.into(),
            ..Self::default()
        }
    }

    /// Whether containers can be started in it.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == SandboxState::Ready
    }
}
