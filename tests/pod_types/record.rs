//! `PodRecord`: status, error and changed copies.

use super::*;
use podcache::DefaultFor;

#[test]
fn an_unheard_of_pod_has_its_uid_and_nothing_else() {
    let expected = PodRecord {
        status: Some(PodStatus {
            id: "8f1c".into(),
            ..PodStatus::default()
        }),
        error: None,
    };
    assert_eq!(PodRecord::default_for("8f1c"), expected);
    let uid = PodUid::from("8f1c");
    let record = PodRecord::default_for(&uid);
    assert_eq!(record, expected);
    assert!(std::ptr::eq(
        record.status.unwrap().id.as_str(),
        uid.as_str()
    ));
}

#[test]
fn an_error_goes_before_a_status() {
    let status = PodStatus::new("8f1c");
    let error = PodError::new("deadline exceeded");
    let both = PodRecord::new(Some(status.clone()), Some(error.clone()));

    assert_eq!(both.result(), Err(&error));
    assert_eq!(PodRecord::from(error.clone()).result(), Err(&error));
    assert_eq!(PodRecord::from(status.clone()).result(), Ok(Some(&status)));
    assert_eq!(PodRecord::default().result(), Ok(None));
    assert_eq!(PodRecord::from(Ok(status.clone())), status.into());
    assert_eq!(PodRecord::from(Err(error.clone())), error.into());
}

#[test]
fn an_edit_leaves_the_original() {
    let before = PodRecord::from(pod(vec![container("web", ContainerState::Running, 1)]));
    let kept = before.clone();
    let after = before.edit(|record| {
        record.error = Some("gone".into());
        let status = record.status.as_mut().unwrap();
        status
            .find_container_status_by_name_mut("web")
            .unwrap()
            .state = ContainerState::Exited;
    });

    assert_eq!(before, kept);
    assert_eq!(after.error, Some(PodError::new("gone")));
    let web = &after.status.as_ref().unwrap().container_statuses[0];
    assert_eq!(web.exit_status(), Some(0));

    let status = before.status.as_ref().unwrap();
    let named = status.edit(|s| s.name = "shop".into());
    assert_eq!((status.name.as_str(), named.name.as_str()), ("", "shop"));
}

#[test]
fn the_phase_without_a_status_is_not_known() {
    let spec = PodSpec::new(RestartPolicy::Always, ["web"]);
    assert_eq!(
        PodRecord::from(PodError::new("gone")).phase(&spec),
        PodPhase::Unknown
    );
    assert_eq!(
        PodRecord::default_for("uid").phase(&spec),
        PodPhase::Pending
    );
}
