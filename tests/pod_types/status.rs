//! `PodStatus`: its helpers.

use super::*;
use ContainerState::{Created, Exited, Running};

#[test]
fn the_first_of_a_name_is_found() {
    let mut status = pod(vec![
        container("log", Running, 3),
        container("web", Running, 2),
        container("web", Exited, 1),
    ]);
    let found = status.find_container_status_by_name("web").unwrap();
    assert_eq!(found.created_at, at(2));
    assert_eq!(status.find_container_status_by_name("db"), None);

    status
        .find_container_status_by_name_mut("web")
        .unwrap()
        .reason = "Patched".into();
    assert_eq!(status.container_statuses[1].reason, "Patched");
    assert_eq!(status.container_statuses[2].reason, "");
}

#[test]
fn running_containers_in_their_order() {
    let status = pod(vec![
        container("b", Running, 1),
        container("c", Created, 2),
        container("d", Exited, 3),
        container("a", Running, 4),
    ]);
    assert_eq!(names(status.running_container_statuses()), ["b", "a"]);
}

#[test]
fn sorted_by_creation_and_else_as_listed() {
    let status = pod(vec![
        container("d", Running, 2),
        container("a", Running, 1),
        container("c", Running, 2),
        container("b", Running, 1),
    ]);
    let before = status.clone();
    assert_eq!(names(status.containers_by_creation()), ["a", "b", "d", "c"]);
    assert_eq!(status, before);
}

fn sandbox(id: &str, state: SandboxState, created_at: u64) -> SandboxStatus {
    SandboxStatus {
        state,
        created_at: at(created_at),
        ..SandboxStatus::new(id, "uid")
    }
}

#[test]
fn the_active_sandbox_is_the_newest_if_ready() {
    use SandboxState::{NotReady, Ready};
    let active = |sandbox_statuses| {
        let status = PodStatus {
            sandbox_statuses,
            ..PodStatus::new("uid")
        };
        status.active_sandbox().map(|s| s.id.clone())
    };
    assert_eq!(active(vec![]), None);
    assert_eq!(
        active(vec![sandbox("a", Ready, 1), sandbox("b", NotReady, 2)]),
        None
    );
    assert_eq!(
        active(vec![sandbox("a", NotReady, 1), sandbox("b", Ready, 2)]).unwrap(),
        "b"
    );
    assert_eq!(
        active(vec![sandbox("a", Ready, 1), sandbox("b", Ready, 1)]).unwrap(),
        "a"
    );
}

#[test]
fn active_containers_are_those_of_the_active_sandbox() {
    let in_sandbox = |name, sandbox: &str| ContainerStatus {
        sandbox_id: sandbox.into(),
        ..container(name, Running, 1)
    };
    let mut status = pod(vec![
        in_sandbox("web", "new"),
        in_sandbox("web", "old"),
        in_sandbox("log", "new"),
        in_sandbox("lost", ""),
    ]);
    assert_eq!(status.active_container_statuses().count(), 0);

    status.sandbox_statuses = vec![
        sandbox("new", SandboxState::Ready, 2),
        sandbox("old", SandboxState::NotReady, 1),
    ];
    assert_eq!(names(status.active_container_statuses()), ["web", "log"]);
}

#[test]
fn an_exit_code_is_one_of_an_exited_container() {
    let with_code = |state| ContainerStatus {
        exit_code: 3,
        ..container("web", state, 1)
    };
    assert_eq!(with_code(Exited).exit_status(), Some(3));
    assert_eq!(with_code(Running).exit_status(), None);
    assert_eq!(with_code(Created).exit_status(), None);
}
