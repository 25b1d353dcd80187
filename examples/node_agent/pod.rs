//! What the cache holds, and what a pod comes to.

use std::time::Instant;

use podcache::{
    DefaultFor, Timestamp,
    pod::{ContainerState, PodPhase, PodStatus, PodUid},
};

/// The cached value: a pod's status, and when the lister handed it to the cache, so that whoever is
/// woken by it can tell how long that took.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    pub(crate) status: PodStatus,
    pub(crate) set_at: Option<Instant>,
}

impl DefaultFor<PodUid> for Report {
    fn default_for(uid: &PodUid) -> Self {
        Self {
            status: PodStatus::default_for(uid),
            set_at: None,
        }
    }
}

/// The phase of a pod that runs what it happens to run, and nothing twice. (The kubelet's own
/// rules, [`PodStatus::phase`], start from a specification, and a session has none.)
pub(crate) fn phase(status: &PodStatus) -> PodPhase {
    let any = |state| {
        let mut states = status.container_statuses.iter().map(|c| c.state);
        states.any(|s| s == state)
    };
    if any(ContainerState::Created) {
        PodPhase::Pending
    } else if any(ContainerState::Running) {
        PodPhase::Running
    } else if exit_codes(status).any(|code| code != 0) {
        PodPhase::Failed
    } else if any(ContainerState::Unknown) || status.container_statuses.is_empty() {
        PodPhase::Unknown
    } else {
        PodPhase::Succeeded
    }
}

/// What its containers exited with, as far as they have.
pub(crate) fn exit_codes(status: &PodStatus) -> impl Iterator<Item = i32> {
    status
        .container_statuses
        .iter()
        .filter_map(|c| c.exit_status())
}

/// When the first of its containers started.
pub(crate) fn started(status: &PodStatus) -> Option<Timestamp> {
    let times = status.container_statuses.iter().map(|c| c.started_at);
    times.filter(|&time| time > Timestamp::ZERO).min()
}

#[cfg(test)]
mod tests {
    use podcache::pod::{ContainerId, ContainerStatus};

    use super::*;
    use ContainerState::{Created, Exited, Running, Unknown};

    fn pod(states: &[(ContainerState, i32)]) -> PodStatus {
        let containers = states.iter().map(|&(state, exit_code)| ContainerStatus {
            state,
            exit_code,
            ..ContainerStatus::new(ContainerId::default(), "c")
        });
        PodStatus {
            container_statuses: containers.collect(),
            ..PodStatus::new("pod")
        }
    }

    #[test]
    fn the_phase_follows_from_the_containers() {
        let cases: &[(&[(ContainerState, i32)], PodPhase)] = &[
            (&[], PodPhase::Unknown),
            (&[(Created, 0)], PodPhase::Pending),
            (&[(Running, 0), (Created, 0)], PodPhase::Pending),
            (&[(Exited, 1), (Created, 0)], PodPhase::Pending),
            (&[(Running, 0)], PodPhase::Running),
            (&[(Exited, 1), (Running, 0)], PodPhase::Running),
            (&[(Unknown, 0), (Running, 0)], PodPhase::Running),
            (&[(Exited, 0)], PodPhase::Succeeded),
            (&[(Exited, 0), (Exited, 0)], PodPhase::Succeeded),
            (&[(Exited, 0), (Exited, 3)], PodPhase::Failed),
            (&[(Exited, 3), (Unknown, 0)], PodPhase::Failed),
            (&[(Unknown, 0)], PodPhase::Unknown),
            (&[(Unknown, 0), (Exited, 0)], PodPhase::Unknown),
        ];
        for (states, expected) in cases {
            assert_eq!(phase(&pod(states)), *expected, "{states:?}");
        }
    }

    #[test]
    fn a_missing_pod_is_one_of_which_nothing_is_known() {
        let report = Report::default_for(&PodUid::from("child-7"));
        assert_eq!(report.status.id, "child-7");
        assert_eq!(phase(&report.status), PodPhase::Unknown);
        assert_eq!(report.set_at, None);
    }

    #[test]
    fn only_a_container_that_has_exited_has_an_exit_code() {
        let codes: Vec<_> = exit_codes(&pod(&[(Running, 7), (Exited, 42)])).collect();
        assert_eq!(codes, [42]);
    }

    #[test]
    fn a_pod_has_started_with_its_first_container() {
        let mut pod = pod(&[(Running, 0), (Running, 0), (Created, 0)]);
        pod.container_statuses[0].started_at = Timestamp::from_nanos(9);
        pod.container_statuses[1].started_at = Timestamp::from_nanos(5);
        assert_eq!(started(&pod), Some(Timestamp::from_nanos(5)));
    }
}
