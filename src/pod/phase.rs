//! A pod's phase, derived from the states of its containers.

use super::{ContainerState, ContainerStatus, PodSpec, PodStatus};
use std::cmp::Reverse;
use std::fmt;

/// A pod's life in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum PodPhase {
    /// Some container has not been started yet.
    Pending,
    /// All have been started, and one runs or is about to be started again.
    Running,
    /// All have ended well, and none will be started again.
    Succeeded,
    /// All have ended, not all of them well, and none will be started again.
    Failed,
    /// The containers' states are not known.
    #[default]
    Unknown,
}

impl PodPhase {
    /// Whether a pod in this phase stays in it.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl fmt::Display for PodPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
        })
    }
}

/// # Phase
impl PodStatus {
    /// The phase of a pod that was asked to run `spec`, as the kubelet derives it.
    ///
    /// Of each container in `spec` the newest attempt counts, by the time at which it was made.
    /// One that is not there is *waiting*. So is one that is only created or in an unknown state,
    /// unless the attempt before it has exited: then it is *restarting*. The first line that fits
    /// gives the phase:
    ///
    /// | if | phase |
    /// |---|---|
    /// | an init container exited with a failure and is not started again | `Failed` |
    /// | any container is waiting, or an init container runs that is no sidecar | `Pending` |
    /// | a sidecar or one of the pod's own containers runs | `Running` |
    /// | the pod has no container of its own | `Pending` |
    /// | one of the pod's own containers will be started again | `Running` |
    /// | all of them exited with 0 | `Succeeded` |
    /// | nothing of the above | `Failed` |
    ///
    /// Whether a container is started again is what [`PodSpec::restarts`] says of the code that
    /// it, or the attempt before it, exited with. A sidecar that has exited counts for nothing.
    /// Nor does an init container that is not there, unless it is a sidecar: the runtime may forget
    /// it once it has done its work, and until it has the pod's own containers are waiting.
    ///
    /// # What the kubelet knows beyond this
    ///
    /// These take part in the kubelet's phase and are not known from the runtime's status and the
    /// specification:
    ///
    /// * the pod's phase so far: a terminal phase is never left, and a container that is gone or
    ///   unknown but was reported as running before has failed rather than waiting;
    /// * startup probes: to the kubelet a sidecar has started when its probe says so, here when it
    ///   runs;
    /// * eviction, which makes a pod `Failed`;
    /// * that the pod is being ended: see [`terminal_phase`](Self::terminal_phase).
    ///
    /// # Examples
    ///
    /// ```
    /// use podcache::pod::{ContainerId, ContainerState, ContainerStatus};
    /// use podcache::pod::{PodPhase, PodSpec, PodStatus, RestartPolicy};
    ///
    /// let status = PodStatus {
    ///     container_statuses: vec![ContainerStatus {
    ///         state: ContainerState::Exited,
    ///         exit_code: 1,
    ///         ..ContainerStatus::new(ContainerId::new("containerd", "4f2a9c"), "job")
    ///     }],
    ///     ..PodStatus::new("8f1c36a2")
    /// };
    ///
    /// let retried = PodSpec::new(RestartPolicy::OnFailure, ["job"]);
    /// let only_once = PodSpec::new(RestartPolicy::Never, ["job"]);
    /// assert_eq!(status.phase(&retried), PodPhase::Running);
    /// assert_eq!(status.phase(&only_once), PodPhase::Failed);
    /// ```
    #[must_use]
    pub fn phase(&self, spec: &PodSpec) -> PodPhase {
        self.derive_phase(spec, false)
    }

    /// The phase of a pod that is being ended: as [`phase`](Self::phase), but of the pod's own
    /// containers none is started again, whatever `spec` says.
    ///
    /// The kubelet does not use it for static pods.
    #[must_use]
    pub fn terminal_phase(&self, spec: &PodSpec) -> PodPhase {
        self.derive_phase(spec, true)
    }

    fn derive_phase(&self, spec: &PodSpec, terminal: bool) -> PodPhase {
        let attempts = Attempts::of(self);

        let (mut waiting, mut running) = (false, false);
        for container in &spec.init_containers {
            let sidecar = container.is_sidecar();
            match attempts.state(&container.name) {
                State::Running if sidecar => running = true,
                // Forgotten after it ran, or not made yet: then nor are the pod's own containers.
                State::Missing if !sidecar => {}
                State::Missing | State::Waiting | State::Running => waiting = true,
                State::Exited(code) | State::Restarting(code) => {
                    if code != 0 && !spec.restarts(container, code) {
                        return PodPhase::Failed;
                    }
                }
            }
        }

        let (mut restarting, mut failed) = (false, false);
        for container in &spec.containers {
            match attempts.state(&container.name) {
                State::Missing | State::Waiting => waiting = true,
                State::Running => running = true,
                State::Exited(code) => {
                    restarting |= spec.restarts(container, code);
                    failed |= code != 0;
                }
                State::Restarting(code) => {
                    restarting |= spec.restarts(container, code);
                    failed = true;
                }
            }
        }

        if waiting {
            PodPhase::Pending
        } else if running {
            PodPhase::Running
        } else if spec.containers.is_empty() {
            PodPhase::Pending
        } else if restarting && !terminal {
            PodPhase::Running
        } else if failed {
            PodPhase::Failed
        } else {
            PodPhase::Succeeded
        }
    }
}

/// A pod's containers, the newest first.
struct Attempts<'a>(Vec<&'a ContainerStatus>);

/// What the attempts at one container come to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The runtime knows of none.
    Missing,
    /// The newest has not been started, or nothing is known of it, and none exited before it.
    Waiting,
    /// The newest runs.
    Running,
    /// The newest has exited.
    Exited(i32),
    /// The newest is as in `Waiting`, the one before it has exited.
    Restarting(i32),
}

impl<'a> Attempts<'a> {
    fn of(status: &'a PodStatus) -> Self {
        let mut containers: Vec<_> = status.container_statuses.iter().collect();
        containers.sort_by_key(|c| Reverse(c.created_at));
        Self(containers)
    }

    fn state(&self, name: &str) -> State {
        let mut attempts = self.0.iter().filter(|c| c.name == name);
        let Some(newest) = attempts.next() else {
            return State::Missing;
        };
        match newest.state {
            ContainerState::Running => State::Running,
            ContainerState::Exited => State::Exited(newest.exit_code),
            ContainerState::Created | ContainerState::Unknown => {
                match attempts.next().and_then(|previous| previous.exit_status()) {
                    Some(code) => State::Restarting(code),
                    None => State::Waiting,
                }
            }
        }
    }
}
