//! Serialized forms: names, leniency, and everything there and back.

use super::*;
use ::serde::Serialize;
use ::serde::de::DeserializeOwned;
use proptest::prelude::*;
use serde_json::json;
use std::fmt::Debug;

/// There and back: through JSON, and through a binary format without names.
fn there_and_back<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let json = serde_json::to_string(value).unwrap();
    prop_assert_eq!(&serde_json::from_str::<T>(&json).unwrap(), value);
    let tree = serde_json::to_value(value).unwrap();
    prop_assert_eq!(&serde_json::from_value::<T>(tree).unwrap(), value);
    let bytes = postcard::to_allocvec(value).unwrap();
    prop_assert_eq!(&postcard::from_bytes::<T>(&bytes).unwrap(), value);
    Ok(())
}

#[test]
fn names_are_those_of_kubernetes() {
    let status = PodStatus {
        name: "shop".into(),
        ips: vec!["10.1.0.7".into()],
        container_statuses: vec![ContainerStatus {
            id: ContainerId::new("containerd", "4f2a"),
            exit_code: 137,
            reason: "OOMKilled".into(),
            ..container("web", ContainerState::Exited, 1)
        }],
        ..PodStatus::new("8f1c")
    };
    let error = PodError::with_source("no status", PodError::new("timed out"));
    let tree = serde_json::to_value(PodRecord::new(Some(status), Some(error))).unwrap();

    assert_eq!(tree["status"]["id"], "8f1c");
    assert_eq!(tree["status"]["ips"], json!(["10.1.0.7"]));
    let web = &tree["status"]["containerStatuses"][0];
    assert_eq!(web["id"], "containerd://4f2a");
    assert_eq!(web["state"], "exited");
    assert_eq!(web["exitCode"], 137);
    assert_eq!(web["createdAt"], "1970-01-01T00:00:00.000000001Z");
    assert_eq!(
        tree["error"],
        json!({"message": "no status", "causes": ["timed out"]})
    );
    assert_eq!(
        serde_json::to_value(MountPropagation::HostToContainer).unwrap(),
        "HostToContainer"
    );
    assert_eq!(
        serde_json::to_value(SandboxState::NotReady).unwrap(),
        "notReady"
    );
    assert_eq!(
        serde_json::to_value(PodPhase::Succeeded).unwrap(),
        "Succeeded"
    );
}

#[test]
fn what_is_missing_is_default_and_what_is_strange_is_ignored() {
    let read: PodRecord = serde_json::from_value(json!({
        "status": {"id": "8f1c", "qosClass": "BestEffort", "containerStatuses": [{"name": "web"}]},
    }))
    .unwrap();
    let web = ContainerStatus::new(ContainerId::default(), "web");
    let expected = PodStatus {
        container_statuses: vec![web],
        ..PodStatus::new("8f1c")
    };
    assert_eq!(read, expected.into());
    assert_eq!(
        serde_json::from_value::<PodRecord>(json!({})).unwrap(),
        PodRecord::default()
    );
    let error: PodError = serde_json::from_value(json!({"message": "gone"})).unwrap();
    assert_eq!(error, PodError::new("gone"));
}

#[test]
fn what_is_wrong_is_refused() {
    let refused = |tree| {
        serde_json::from_value::<ContainerStatus>(tree)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(json!({"id": "4f2a"})).contains("not a container ID"));
    assert!(refused(json!({"state": "paused"})).contains("unknown variant"));
    assert!(
        refused(json!({"createdAt": "1969-01-01T00:00:00Z"})).contains("before the Unix epoch")
    );
}

#[test]
fn a_specification_is_read_from_a_manifest() {
    let manifest = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "shop"},
        "spec": {
            "restartPolicy": "OnFailure",
            "nodeName": "n1",
            "initContainers": [
                {"name": "migrate", "image": "shop:1"},
                {"name": "proxy", "image": "envoy:1", "restartPolicy": "Always"},
            ],
            "containers": [{
                "name": "web",
                "image": "shop:1",
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}},
                ],
            }],
        },
    });
    let spec: PodSpec = serde_json::from_value(manifest["spec"].clone()).unwrap();

    assert_eq!(spec.restart_policy, RestartPolicy::OnFailure);
    assert_eq!(
        spec.init_containers,
        ["migrate".into(), ContainerSpec::sidecar("proxy")]
    );
    assert!(spec.restarts(&spec.containers[0], 42));
    assert!(!spec.restarts(&spec.containers[0], 41));

    let bare: PodSpec = serde_json::from_value(json!({"containers": [{"name": "a"}]})).unwrap();
    assert_eq!(bare, PodSpec::new(RestartPolicy::Always, ["a"]));
    serde_json::from_value::<PodSpec>(json!({"restartPolicy": "Sometimes"})).unwrap_err();
}

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,6}"
}

fn time() -> impl Strategy<Value = Timestamp> {
    any::<u64>().prop_map(at)
}

fn list<T: Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Vec<T>> {
    prop::collection::vec(of, 0..3)
}

fn mounts() -> impl Strategy<Value = Mount> {
    use MountPropagation::{Bidirectional, HostToContainer, Private};
    let propagation = prop::sample::select(vec![Private, HostToContainer, Bidirectional]);
    let texts = (text(), text(), prop::option::of(text()), text());
    (texts, any::<[bool; 3]>(), propagation).prop_map(
        |((container_path, host_path, image, image_sub_path), flags, propagation)| Mount {
            container_path,
            host_path,
            read_only: flags[0],
            recursive_read_only: flags[1],
            selinux_relabel: flags[2],
            propagation,
            image,
            image_sub_path,
        },
    )
}

fn resources() -> impl Strategy<Value = ContainerResources> {
    any::<[Option<u64>; 4]>().prop_map(
        |[
            cpu_request_milli,
            cpu_limit_milli,
            memory_request_bytes,
            memory_limit_bytes,
        ]| {
            ContainerResources {
                cpu_request_milli,
                cpu_limit_milli,
                memory_request_bytes,
                memory_limit_bytes,
            }
        },
    )
}

fn users() -> impl Strategy<Value = ContainerUser> {
    let linux = any::<(i64, i64, [i64; 2])>().prop_map(|(uid, gid, groups)| LinuxContainerUser {
        uid,
        gid,
        supplemental_groups: groups.into(),
    });
    prop::option::of(linux).prop_map(|linux| ContainerUser { linux })
}

fn containers() -> impl Strategy<Value = ContainerStatus> {
    use ContainerState::{Created, Exited, Running, Unknown};
    let id = ("[a-z]{0,6}", "[0-9a-f]{0,8}");
    let state = prop::sample::select(vec![Created, Running, Exited, Unknown]);
    let texts = prop::collection::vec(text(), 8);
    let numbers = any::<(i32, u64, u32)>();
    let rest = (
        prop::option::of(resources()),
        prop::option::of(users()),
        list(mounts()),
        prop::option::of(text()),
    );
    (id, state, texts, (time(), time(), time()), numbers, rest).prop_map(
        |(id, state, texts, times, numbers, (resources, user, mounts, stop_signal))| {
            let mut texts = texts.into_iter();
            let mut next = || texts.next().unwrap();
            ContainerStatus {
                id: ContainerId::new(id.0, id.1),
                name: next(),
                sandbox_id: next(),
                state,
                created_at: times.0,
                started_at: times.1,
                finished_at: times.2,
                exit_code: numbers.0,
                image: next(),
                image_id: next(),
                image_ref: next(),
                image_runtime_handler: next(),
                hash: numbers.1,
                restart_count: numbers.2,
                reason: next(),
                message: next(),
                resources,
                user,
                mounts,
                stop_signal,
            }
        },
    )
}

fn sandboxes() -> impl Strategy<Value = SandboxStatus> {
    let state = prop::sample::select(vec![SandboxState::Ready, SandboxState::NotReady]);
    let map = || prop::collection::btree_map(text(), text(), 0..3);
    let texts = prop::collection::vec(text(), 5);
    (
        texts,
        any::<u32>(),
        state,
        time(),
        list(text()),
        map(),
        map(),
    )
        .prop_map(
            |(texts, attempt, state, created_at, ips, labels, annotations)| {
                let mut texts = texts.into_iter();
                let mut next = || texts.next().unwrap();
                SandboxStatus {
                    id: next(),
                    uid: next().into(),
                    name: next(),
                    namespace: next(),
                    attempt,
                    state,
                    created_at,
                    ips,
                    runtime_handler: next(),
                    labels,
                    annotations,
                }
            },
        )
}

fn statuses() -> impl Strategy<Value = PodStatus> {
    (
        text(),
        text(),
        text(),
        list(text()),
        list(containers()),
        list(sandboxes()),
        time(),
    )
        .prop_map(
            |(id, name, namespace, ips, container_statuses, sandbox_statuses, timestamp)| {
                PodStatus {
                    id: id.into(),
                    name,
                    namespace,
                    ips,
                    container_statuses,
                    sandbox_statuses,
                    timestamp,
                }
            },
        )
}

fn errors() -> impl Strategy<Value = PodError> {
    (text(), list(text())).prop_map(|(message, causes)| {
        causes
            .into_iter()
            .fold(PodError::new(message), |cause, message| {
                PodError::with_source(message, cause)
            })
    })
}

fn policies() -> impl Strategy<Value = RestartPolicy> {
    use RestartPolicy::{Always, Never, OnFailure};
    prop::sample::select(vec![Always, OnFailure, Never])
}

fn rules() -> impl Strategy<Value = RestartRule> {
    use {ExitCodesOperator::*, RestartAction::*};
    let action = prop::sample::select(vec![Restart, RestartAllContainers]);
    let operator = prop::sample::select(vec![In, NotIn]);
    (action, operator, list(any::<i32>())).prop_map(|(action, operator, values)| RestartRule {
        action,
        exit_codes: ExitCodes { operator, values },
    })
}

fn container_specs() -> impl Strategy<Value = ContainerSpec> {
    (text(), prop::option::of(policies()), list(rules())).prop_map(
        |(name, restart_policy, restart_policy_rules)| ContainerSpec {
            name,
            restart_policy,
            restart_policy_rules,
        },
    )
}

fn specs() -> impl Strategy<Value = PodSpec> {
    (policies(), list(container_specs()), list(container_specs())).prop_map(
        |(restart_policy, init_containers, containers)| PodSpec {
            restart_policy,
            init_containers,
            containers,
        },
    )
}

proptest! {
    #[test]
    fn records(status in prop::option::of(statuses()), error in prop::option::of(errors())) {
        there_and_back(&PodRecord::new(status, error))?;
    }

    #[test]
    fn specifications(spec in specs()) {
        there_and_back(&spec)?;
    }
}
