//! The part of a pod's specification that its phase depends on.

use std::fmt;

/// When containers are started again after they have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RestartPolicy {
    /// Whenever they end.
    #[default]
    Always,
    /// When they end with another exit code than 0.
    OnFailure,
    /// Never.
    Never,
}

impl RestartPolicy {
    /// Whether a container that ended with `exit_code` is started again.
    #[must_use]
    pub fn restarts(self, exit_code: i32) -> bool {
        match self {
            Self::Always => true,
            Self::OnFailure => exit_code != 0,
            Self::Never => false,
        }
    }
}

impl fmt::Display for RestartPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Always => "Always",
            Self::OnFailure => "OnFailure",
            Self::Never => "Never",
        })
    }
}

/// What a pod was asked to run: which containers, and when they are started again.
///
/// With the feature `serde` this reads the `spec` of a Kubernetes manifest and leaves out
/// everything else that is there.
///
/// ```
/// use podcache::pod::{PodSpec, RestartPolicy};
///
/// let spec = PodSpec {
///     init_containers: vec!["migrate".into()],
///     ..PodSpec::new(RestartPolicy::OnFailure, ["web", "log"])
/// };
/// # assert_eq!(spec.containers[1].name, "log");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct PodSpec {
    /// When the pod's containers are started again, where they do not say it themselves.
    pub restart_policy: RestartPolicy,
    /// The containers that run before the others: one after the other to their ends, but for
    /// [sidecars](ContainerSpec::is_sidecar).
    pub init_containers: Vec<ContainerSpec>,
    /// The pod's own containers.
    pub containers: Vec<ContainerSpec>,
}

impl PodSpec {
    /// A pod of these containers, without init containers.
    #[must_use]
    pub fn new(
        restart_policy: RestartPolicy,
        containers: impl IntoIterator<Item: Into<ContainerSpec>>,
    ) -> Self {
        Self {
            restart_policy,
            containers: containers.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    /// Whether this container is started again after it ended with `exit_code`: by the first of
    /// its own rules that applies, else by its own policy, else by the pod's.
    ///
    /// As in Kubernetes, rules count only beside a policy of the container's own.
    #[must_use]
    pub fn restarts(&self, container: &ContainerSpec, exit_code: i32) -> bool {
        match container.restart_policy {
            None => self.restart_policy.restarts(exit_code),
            Some(own) => {
                container
                    .restart_policy_rules
                    .iter()
                    .any(|rule| rule.applies(exit_code))
                    || own.restarts(exit_code)
            }
        }
    }
}

/// One container that a pod was asked to run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase", default)
)]
pub struct ContainerSpec {
    /// Its name, the only one of that name in the pod.
    pub name: String,
    /// When it is started again, if that is not left to the pod.
    pub restart_policy: Option<RestartPolicy>,
    /// Exit codes after which it is started again, whatever its policy says.
    pub restart_policy_rules: Vec<RestartRule>,
}

impl ContainerSpec {
    /// A container that leaves to the pod when it is started again.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// An init container that goes on running beside the pod's own containers.
    #[must_use]
    pub fn sidecar(name: impl Into<String>) -> Self {
        Self {
            restart_policy: Some(RestartPolicy::Always),
            ..Self::new(name)
        }
    }

    /// Whether this, as an init container, is a sidecar: its own policy is to restart always.
    #[must_use]
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy == Some(RestartPolicy::Always)
    }
}

impl From<&str> for ContainerSpec {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

impl From<String> for ContainerSpec {
    fn from(name: String) -> Self {
        Self::new(name)
    }
}

/// Exit codes after which a container is started again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase")
)]
pub struct RestartRule {
    /// What is started again.
    pub action: RestartAction,
    /// After which exit codes.
    pub exit_codes: ExitCodes,
}

impl RestartRule {
    /// Whether `exit_code` is one of its exit codes.
    #[must_use]
    pub fn applies(&self, exit_code: i32) -> bool {
        let listed = self.exit_codes.values.contains(&exit_code);
        match self.exit_codes.operator {
            ExitCodesOperator::In => listed,
            ExitCodesOperator::NotIn => !listed,
        }
    }
}

/// What a [`RestartRule`] starts again. The container itself is in either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum RestartAction {
    /// The container.
    Restart,
    /// All containers of the pod.
    RestartAllContainers,
}

/// A set of exit codes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize),
    serde(rename_all = "camelCase")
)]
pub struct ExitCodes {
    /// Whether it is the listed ones or all others.
    pub operator: ExitCodesOperator,
    /// The listed ones.
    pub values: Vec<i32>,
}

/// How [`ExitCodes`] are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ExitCodesOperator {
    /// By those that are in the set.
    In,
    /// By those that are not.
    NotIn,
}
