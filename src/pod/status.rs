//! What the runtime says of one pod.

use super::{ContainerStatus, PodUid, SandboxStatus};
use crate::{DefaultFor, Timestamp};

/// The status of a pod: its containers and sandboxes as the runtime reported them at one time.
///
/// A container's name may be there more than once: its present attempt, and former ones of which
/// the runtime still knows. The kubelet lists the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct PodStatus {
    /// The pod's UID.
    pub id: PodUid,
    /// The pod's name.
    pub name: String,
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's addresses.
    pub ips: Vec<String>,
    /// Its containers, of all its sandboxes.
    pub container_statuses: Vec<ContainerStatus>,
    /// Its sandboxes: the one that it runs in and those that it ran in before.
    pub sandbox_statuses: Vec<SandboxStatus>,
    /// When the runtime was asked. Take it *before* asking: what is asked after a time may be
    /// newer than that time, never older.
    pub timestamp: Timestamp,
}

impl PodStatus {
    /// A pod of which no more than its UID is known: what a pod that the cache has never heard of
    /// reads as.
    #[must_use]
    pub fn new(id: impl Into<PodUid>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// The first container of this name in the list.
    #[must_use]
    pub fn find_container_status_by_name(&self, name: &str) -> Option<&ContainerStatus> {
        self.container_statuses.iter().find(|c| c.name == name)
    }

    /// The first container of this name in the list, to be changed: for a status that you own, as
    /// within [`edit`](Self::edit).
    #[must_use]
    pub fn find_container_status_by_name_mut(
        &mut self,
        name: &str,
    ) -> Option<&mut ContainerStatus> {
        self.container_statuses.iter_mut().find(|c| c.name == name)
    }

    /// The containers that are running, in the list's order.
    pub fn running_container_statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.container_statuses.iter().filter(|c| c.is_running())
    }

    /// The containers in the order in which they were made, the oldest first. Those made at the
    /// same time stay in the list's order.
    ///
    /// What is sorted are references: the status itself, which others may be reading, stays as it
    /// is.
    ///
    /// ```
    /// # use podcache::Timestamp;
    /// # use podcache::pod::{ContainerId, ContainerStatus, PodStatus};
    /// # let container = |name: &str, at| ContainerStatus {
    /// #     created_at: Timestamp::from_nanos(at),
    /// #     ..ContainerStatus::new(ContainerId::default(), name)
    /// # };
    /// let status = PodStatus {
    ///     container_statuses: vec![container("second", 20), container("first", 10)],
    ///     ..PodStatus::new("8f1c36a2")
    /// };
    ///
    /// let names: Vec<_> = status.containers_by_creation().iter().map(|c| &c.name).collect();
    /// assert_eq!(names, ["first", "second"]);
    /// assert_eq!(status.container_statuses[0].name, "second");
    /// ```
    #[must_use]
    pub fn containers_by_creation(&self) -> Vec<&ContainerStatus> {
        let mut containers: Vec<_> = self.container_statuses.iter().collect();
        containers.sort_by_key(|c| c.created_at);
        containers
    }

    /// The sandbox that the pod runs in: the one made last, if it is ready.
    #[must_use]
    pub fn active_sandbox(&self) -> Option<&SandboxStatus> {
        let newest = self.sandbox_statuses.iter().reduce(|newest, s| {
            if s.created_at > newest.created_at {
                s
            } else {
                newest
            }
        });
        newest.filter(|s| s.is_ready())
    }

    /// The containers of the [active sandbox](Self::active_sandbox), in the list's order. Those of
    /// which the sandbox is not known are none of it.
    pub fn active_container_statuses(&self) -> impl Iterator<Item = &ContainerStatus> {
        let active = self.active_sandbox().map(|s| s.id.as_str());
        self.container_statuses
            .iter()
            .filter(move |c| !c.sandbox_id.is_empty() && Some(c.sandbox_id.as_str()) == active)
    }

    /// A changed copy. See [`PodRecord::edit`](super::PodRecord::edit).
    #[must_use = "the status itself is not changed"]
    pub fn edit(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut copy = self.clone();
        change(&mut copy);
        copy
    }
}

impl DefaultFor<str> for PodStatus {
    fn default_for(uid: &str) -> Self {
        Self::new(uid)
    }
}

impl DefaultFor<PodUid> for PodStatus {
    fn default_for(uid: &PodUid) -> Self {
        Self::new(uid)
    }
}
