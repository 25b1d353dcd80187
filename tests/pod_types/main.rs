//! The kubelet's types: identities, helpers, errors, phase and their serialized forms.

mod cache;
mod container_id;
mod error;
mod phase;
mod record;
#[cfg(feature = "serde")]
mod serde;
mod status;
mod uid;

use podcache::Timestamp;
use podcache::pod::*;

const fn at(nanos: u64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

/// A container made at `created_at`.
fn container(name: &str, state: ContainerState, created_at: u64) -> ContainerStatus {
    ContainerStatus {
        state,
        created_at: at(created_at),
        ..ContainerStatus::new(
            ContainerId::new("test", format!("{name}-{created_at}")),
            name,
        )
    }
}

fn pod(container_statuses: Vec<ContainerStatus>) -> PodStatus {
    PodStatus {
        container_statuses,
        ..PodStatus::new("uid")
    }
}

fn names<'a>(containers: impl IntoIterator<Item = &'a ContainerStatus>) -> Vec<&'a str> {
    containers.into_iter().map(|c| c.name.as_str()).collect()
}

#[test]
fn everything_can_go_anywhere() {
    fn check<T: Send + Sync + Unpin + Clone + std::fmt::Debug + Eq + 'static>() {}
    check::<PodUid>();
    check::<PodRecord>();
    check::<PodStatus>();
    check::<PodError>();
    check::<PodPhase>();
    check::<PodSpec>();
    check::<RestartRule>();
    check::<ContainerId>();
    check::<ParseContainerIdError>();
    check::<ContainerStatus>();
    check::<ContainerState>();
    check::<ContainerResources>();
    check::<ContainerUser>();
    check::<Mount>();
    check::<SandboxStatus>();
}
