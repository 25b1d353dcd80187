//! The phase: the kubelet's rules as tables, and what holds for all states.

use super::*;
use ContainerState::{Created, Exited, Running, Unknown};
use PodPhase::{Failed, Pending, Succeeded};
use RestartPolicy::{Always, Never, OnFailure};
use proptest::prelude::*;

fn running(name: &str) -> ContainerStatus {
    container(name, Running, 10)
}

fn created(name: &str) -> ContainerStatus {
    container(name, Created, 10)
}

fn unknown(name: &str) -> ContainerStatus {
    container(name, Unknown, 10)
}

fn exited(name: &str, exit_code: i32) -> ContainerStatus {
    ContainerStatus {
        exit_code,
        ..container(name, Exited, 10)
    }
}

/// The attempt before those above.
fn before(container: ContainerStatus) -> ContainerStatus {
    ContainerStatus {
        created_at: at(5),
        ..container
    }
}

/// The attempt before that.
fn exited_first(name: &str) -> ContainerStatus {
    container(name, Exited, 1)
}

fn init(policy: RestartPolicy, init: ContainerSpec) -> PodSpec {
    PodSpec {
        init_containers: vec![init],
        ..PodSpec::new(policy, ["a", "b"])
    }
}

type Cases = Vec<(Vec<ContainerStatus>, PodPhase)>;

fn check(spec: &PodSpec, cases: Cases) {
    for (containers, expected) in cases {
        assert_eq!(
            pod(containers.clone()).phase(spec),
            expected,
            "{spec:?}\n{containers:?}"
        );
    }
}

#[test]
fn the_same_for_every_policy() {
    for policy in [Always, OnFailure, Never] {
        check(
            &PodSpec::new(policy, ["a", "b"]),
            vec![
                (vec![], Pending),
                (vec![running("a")], Pending),
                (vec![exited("a", 0)], Pending),
                (vec![running("a"), created("b")], Pending),
                (
                    vec![
                        running("a"),
                        created("b"),
                        before(created("b")),
                        exited_first("b"),
                    ],
                    Pending,
                ),
                (vec![running("a"), unknown("b")], Pending),
                (vec![exited("a", 1), created("b")], Pending),
                (vec![running("a"), running("b")], PodPhase::Running),
                (vec![running("a"), exited("b", 0)], PodPhase::Running),
                (vec![running("a"), exited("b", 1)], PodPhase::Running),
                (
                    vec![running("a"), created("b"), before(exited("b", 1))],
                    PodPhase::Running,
                ),
                (
                    vec![running("a"), unknown("b"), before(exited("b", 0))],
                    PodPhase::Running,
                ),
                (
                    vec![running("a"), running("b"), exited("stranger", 1)],
                    PodPhase::Running,
                ),
            ],
        );
        check(
            &PodSpec::new(policy, [""; 0]),
            vec![(vec![], Pending), (vec![running("a")], Pending)],
        );
    }
}

#[test]
fn all_ended() {
    let well = || vec![exited("a", 0), exited("b", 0)];
    let one_badly = || vec![exited("a", 0), exited("b", 1)];
    let badly = || vec![exited("a", 137), exited("b", 1)];
    // Another attempt after a success that the policy would have left at that.
    let needless = || vec![exited("a", 0), created("b"), before(exited("b", 0))];
    let backing_off = || vec![exited("a", 0), created("b"), before(exited("b", 1))];
    for (policy, phases) in [
        (Always, [PodPhase::Running; 5]),
        (
            OnFailure,
            [
                Succeeded,
                PodPhase::Running,
                PodPhase::Running,
                PodPhase::Running,
                Failed,
            ],
        ),
        (Never, [Succeeded, Failed, Failed, Failed, Failed]),
    ] {
        let cases = [well(), one_badly(), badly(), backing_off(), needless()];
        check(
            &PodSpec::new(policy, ["a", "b"]),
            cases.into_iter().zip(phases).collect(),
        );
    }
}

#[test]
fn a_pod_that_is_being_ended_restarts_nothing() {
    for policy in [Always, OnFailure, Never] {
        let spec = PodSpec::new(policy, ["a", "b"]);
        let phase = |containers| pod(containers).terminal_phase(&spec);
        assert_eq!(phase(vec![exited("a", 0), exited("b", 0)]), Succeeded);
        assert_eq!(phase(vec![exited("a", 0), exited("b", 1)]), Failed);
        assert_eq!(phase(vec![exited("a", 0), running("b")]), PodPhase::Running);
        assert_eq!(phase(vec![exited("a", 0)]), Pending);
    }
}

#[test]
fn init_containers() {
    for (policy, after_a_failure) in [(Always, Pending), (OnFailure, Pending), (Never, Failed)] {
        check(
            &init(policy, "setup".into()),
            vec![
                (vec![], Pending),
                (vec![created("setup")], Pending),
                (vec![running("setup")], Pending),
                (vec![exited("setup", 0)], Pending),
                (vec![exited("setup", 1)], after_a_failure),
                (
                    vec![created("setup"), before(exited("setup", 1))],
                    after_a_failure,
                ),
                (vec![created("setup"), before(exited("setup", 0))], Pending),
                (vec![running("setup"), before(exited("setup", 1))], Pending),
                (
                    vec![exited("setup", 0), running("a"), running("b")],
                    PodPhase::Running,
                ),
                (vec![running("setup"), running("a"), running("b")], Pending),
                // Once the pod's own containers are there, it may have been forgotten.
                (vec![running("a"), running("b")], PodPhase::Running),
                (vec![running("a")], Pending),
            ],
        );
    }
}

#[test]
fn sidecars() {
    for (policy, all_done) in [
        (Always, PodPhase::Running),
        (OnFailure, Succeeded),
        (Never, Succeeded),
    ] {
        let done = |sidecar| vec![sidecar, exited("a", 0), exited("b", 0)];
        check(
            &init(policy, ContainerSpec::sidecar("proxy")),
            vec![
                (vec![], Pending),
                (vec![running("proxy")], Pending),
                (vec![exited("proxy", 1)], Pending),
                (vec![running("proxy"), running("a")], Pending),
                (
                    vec![running("proxy"), running("a"), running("b")],
                    PodPhase::Running,
                ),
                (
                    vec![exited("proxy", 1), running("a"), running("b")],
                    PodPhase::Running,
                ),
                (vec![created("proxy"), running("a"), running("b")], Pending),
                (vec![running("a"), running("b")], Pending),
                (done(running("proxy")), PodPhase::Running),
                (done(exited("proxy", 0)), all_done),
                (done(exited("proxy", 1)), all_done),
            ],
        );
    }
}

#[test]
fn a_containers_own_policy_goes_before_the_pods() {
    let own = |name: &str, policy| ContainerSpec {
        restart_policy: Some(policy),
        ..ContainerSpec::new(name)
    };
    for (pod_policy, own_policy, expected) in [
        (Always, Never, Failed),
        (Always, OnFailure, PodPhase::Running),
        (Never, Always, PodPhase::Running),
        (Never, OnFailure, PodPhase::Running),
    ] {
        check(
            &PodSpec::new(pod_policy, [own("a", own_policy)]),
            vec![(vec![exited("a", 1)], expected)],
        );
    }
    check(
        &PodSpec::new(Always, [own("a", OnFailure)]),
        vec![(vec![exited("a", 0)], Succeeded)],
    );
    check(
        &PodSpec::new(Never, [own("a", Always), "b".into()]),
        vec![(vec![exited("a", 0), exited("b", 1)], PodPhase::Running)],
    );
    check(
        &init(Always, own("setup", Never)),
        vec![(vec![exited("setup", 1)], Failed)],
    );
    check(
        &init(Never, own("setup", OnFailure)),
        vec![(vec![exited("setup", 1)], Pending)],
    );
}

#[test]
fn rules_go_before_the_containers_own_policy() {
    let rule = |operator| RestartRule {
        action: RestartAction::Restart,
        exit_codes: ExitCodes {
            operator,
            values: vec![42, 43],
        },
    };
    let spec = |restart_policy, operator| {
        let container = ContainerSpec {
            restart_policy,
            restart_policy_rules: vec![rule(operator)],
            ..ContainerSpec::new("a")
        };
        PodSpec::new(Never, [container])
    };
    use ExitCodesOperator::{In, NotIn};
    check(
        &spec(Some(Never), In),
        vec![
            (vec![exited("a", 42)], PodPhase::Running),
            (vec![exited("a", 1)], Failed),
        ],
    );
    check(
        &spec(Some(Never), NotIn),
        vec![
            (vec![exited("a", 42)], Failed),
            (vec![exited("a", 0)], PodPhase::Running),
        ],
    );
    check(&spec(None, In), vec![(vec![exited("a", 42)], Failed)]);
}

#[test]
fn which_phases_are_final() {
    let terminal = |phase: PodPhase| phase.is_terminal();
    assert!(terminal(Succeeded) && terminal(Failed));
    assert!(!terminal(Pending) && !terminal(PodPhase::Running) && !terminal(PodPhase::Unknown));
}

/// Up to three attempts at each of three containers, no two made at the same time.
fn statuses() -> impl Strategy<Value = Vec<ContainerStatus>> {
    let state = prop::sample::select(vec![Created, Running, Exited, Unknown]);
    let attempt = (prop::sample::select(vec!["a", "b", "setup"]), state, 0..2);
    prop::collection::vec(attempt, 0..9).prop_map(|attempts| {
        let made = (1..).zip(attempts);
        made.map(|(created_at, (name, state, exit_code))| ContainerStatus {
            exit_code,
            ..container(name, state, created_at)
        })
        .collect()
    })
}

fn specs() -> impl Strategy<Value = PodSpec> {
    let policy = prop::sample::select(vec![Always, OnFailure, Never]);
    let setup = vec![
        None,
        Some("setup".into()),
        Some(ContainerSpec::sidecar("setup")),
    ];
    (policy, prop::sample::select(setup)).prop_map(|(policy, init)| PodSpec {
        init_containers: init.into_iter().collect(),
        ..PodSpec::new(policy, ["a", "b"])
    })
}

proptest! {
    #[test]
    fn the_lists_order_does_not_matter(
        (listed, shuffled) in statuses().prop_flat_map(|s| (Just(s.clone()), Just(s).prop_shuffle())),
        spec in specs(),
    ) {
        prop_assert_eq!(pod(listed.clone()).phase(&spec), pod(shuffled.clone()).phase(&spec));
        prop_assert_eq!(pod(listed).terminal_phase(&spec), pod(shuffled).terminal_phase(&spec));
    }

    #[test]
    fn what_each_phase_says(containers in statuses(), spec in specs()) {
        let status = pod(containers);
        let newest = |c: &ContainerSpec| {
            let attempts = status.container_statuses.iter().filter(|s| s.name == c.name);
            attempts.max_by_key(|s| s.created_at)
        };
        let runs = |c: &ContainerSpec| newest(c).is_some_and(ContainerStatus::is_running);
        let own = &spec.containers;
        let all = || own.iter().chain(&spec.init_containers);
        match status.phase(&spec) {
            PodPhase::Running => {
                prop_assert!(own.iter().all(|c| newest(c).is_some()));
                prop_assert!(all().any(runs) || spec.restart_policy != Never);
            }
            Succeeded => {
                prop_assert!(own.iter().all(|c| newest(c).unwrap().exit_status() == Some(0)));
                prop_assert!(!all().any(runs));
                prop_assert_ne!(spec.restart_policy, Always);
            }
            Failed => {
                let restarts = |c: &ContainerSpec| newest(c).unwrap().exit_status().is_none();
                prop_assert_ne!(spec.restart_policy, Always);
                prop_assert!(spec.restart_policy == Never || own.iter().any(restarts));
            }
            Pending => prop_assert!(
                all().any(|c| newest(c).is_none_or(|s| s.exit_status().is_none()))
            ),
            PodPhase::Unknown => prop_assert!(false, "a status has a phase"),
        }
    }

    #[test]
    fn ending_a_pod_only_ends_its_restarts(containers in statuses(), spec in specs()) {
        let status = pod(containers);
        let (phase, ending) = (status.phase(&spec), status.terminal_phase(&spec));
        prop_assert!(phase == ending || phase == PodPhase::Running && ending.is_terminal());
    }
}
