//! What the runtime says of one container.

use super::{ContainerId, Mount};
use crate::Timestamp;
use std::fmt;

/// Where a container is in its life, as the runtime sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "lowercase")
)]
pub enum ContainerState {
    /// Made, but not yet started.
    Created,
    /// Its first process lives.
    Running,
    /// It ran and ended: with what is in [`ContainerStatus::exit_code`].
    Exited,
    /// Everything else, and what could not be found out.
    #[default]
    Unknown,
}

impl fmt::Display for ContainerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "created",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Unknown => "unknown",
        })
    }
}

/// The status of one container, of the present or of a former attempt to run it.
///
/// [`Timestamp::ZERO`] in a time means: not yet. Write it with `..`, so that a field added later
/// does not stop your code from compiling:
///
/// ```
/// use podcache::pod::{ContainerId, ContainerState, ContainerStatus};
///
/// let web = ContainerStatus {
///     state: ContainerState::Running,
///     image: "nginx:1.29".into(),
///     ..ContainerStatus::new(ContainerId::new("containerd", "4f2a9c"), "web")
/// };
/// # assert_eq!(web.name, "web");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct ContainerStatus {
    /// Its identity, unlike that of all other attempts.
    pub id: ContainerId,
    /// Its name in the pod's specification, the same for all attempts.
    pub name: String,
    /// The ID of the sandbox in which it was made; empty if that is not known.
    pub sandbox_id: String,
    /// Where it is in its life.
    pub state: ContainerState,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its first process started.
    pub started_at: Timestamp,
    /// When its first process ended.
    pub finished_at: Timestamp,
    /// What its first process ended with. It says something only of an exited container.
    pub exit_code: i32,
    /// The image's name as it was asked for, `name:tag`.
    pub image: String,
    /// The image's ID in the runtime.
    pub image_id: String,
    /// The image's name with its digest, which names its content.
    pub image_ref: String,
    /// The runtime handler that the image was pulled for, if it was for a particular one.
    pub image_runtime_handler: String,
    /// A hash of the container's specification: another hash is another specification.
    pub hash: u64,
    /// How many attempts there were before this one.
    pub restart_count: u32,
    /// Why it is in this state, in one word: `Completed`, `OOMKilled`.
    pub reason: String,
    /// What it had to say at its end, or more on the reason.
    pub message: String,
    /// The resources that it has been given, where the runtime reports them.
    pub resources: Option<ContainerResources>,
    /// As whom its first process runs, where the runtime reports it.
    pub user: Option<ContainerUser>,
    /// What is mounted in it.
    pub mounts: Vec<Mount>,
    /// The signal that asks it to stop, such as `SIGTERM`, where the runtime reports it.
    pub stop_signal: Option<String>,
}

impl ContainerStatus {
    /// A container of which no more than its ID and its name are known.
    #[must_use]
    pub fn new(id: ContainerId, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            ..Self::default()
        }
    }

    /// Whether it is running.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.state == ContainerState::Running
    }

    /// What it exited with, if it has exited.
    #[must_use]
    pub fn exit_status(&self) -> Option<i32> {
        (self.state == ContainerState::Exited).then_some(self.exit_code)
    }
}

/// The resources of a running container. `None`: not set, or not reported.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct ContainerResources {
    /// Processor time set aside for it, in thousandths of a core.
    pub cpu_request_milli: Option<u64>,
    /// The most processor time it gets, in thousandths of a core.
    pub cpu_limit_milli: Option<u64>,
    /// Memory set aside for it, in bytes.
    pub memory_request_bytes: Option<u64>,
    /// The most memory it gets, in bytes.
    pub memory_limit_bytes: Option<u64>,
}

/// As whom the first process of a container runs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct ContainerUser {
    /// Its identity on Linux.
    pub linux: Option<LinuxContainerUser>,
}

/// A process's identity on Linux.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct LinuxContainerUser {
    /// The user.
    pub uid: i64,
    /// The primary group.
    pub gid: i64,
    /// The other groups.
    pub supplemental_groups: Vec<i64>,
}
