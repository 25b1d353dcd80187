//! The node: this machine's processes, grouped into pods.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use podcache::{
    Timestamp,
    pod::{ContainerId, ContainerState, ContainerStatus, PodStatus, PodUid},
};
use sysinfo::{ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, ThreadKind};

use crate::{children::Children, diff::Listing};

#[derive(Debug, Default)]
pub(crate) struct Node {
    system: System,
    sessions: Sessions,
}

impl Node {
    /// Looks at all processes.
    pub(crate) fn refresh(&mut self) {
        let that_they_are_there = ProcessRefreshKind::nothing().without_tasks();
        self.system
            .refresh_processes_specifics(ProcessesToUpdate::All, true, that_they_are_there);
    }

    /// Groups what was looked at last into pods. The agent's own children are listed by what it
    /// knows of them itself: that is more, since it has their exit codes, and newer, since it may
    /// have reaped them after the look.
    pub(crate) fn list(&mut self, children: &Children) -> Listing {
        let own: HashSet<u32> = children.pids().collect();
        let mut sessions = BTreeMap::<u32, Vec<Process>>::new();
        for (pid, process) in self.system.processes() {
            let pid = pid.as_u32();
            if own.contains(&pid) || process.thread_kind() == Some(ThreadKind::Kernel) {
                continue;
            }
            // A process that is gone by now has no session either.
            let Some(session) = process.session_id() else {
                continue;
            };
            sessions.entry(session.as_u32()).or_default().push(Process {
                pid,
                name: process.name().to_string_lossy().into_owned(),
                started: Timestamp::ZERO + Duration::from_secs(process.start_time()),
                // Only the parent of a process learns what it exited with.
                lives: !matches!(
                    process.status(),
                    ProcessStatus::Zombie | ProcessStatus::Dead
                ),
            });
        }
        let mut listing = self.sessions.identify(sessions);
        listing.extend(children.pods());
        listing
    }
}

#[derive(Clone, Debug)]
struct Process {
    pid: u32,
    name: String,
    started: Timestamp,
    lives: bool,
}

impl From<Process> for ContainerStatus {
    fn from(process: Process) -> Self {
        Self {
            state: if process.lives {
                ContainerState::Running
            } else {
                ContainerState::Unknown
            },
            started_at: process.started,
            ..Self::new(
                ContainerId::new("process", process.pid.to_string()),
                process.name,
            )
        }
    }
}

/// Gives sessions UIDs. Their numbers will not do: a session's number is its leader's process ID,
/// and is used again.
#[derive(Debug, Default)]
struct Sessions(HashMap<u32, Identity>);

#[derive(Clone, Debug)]
struct Identity {
    uid: PodUid,
    name: String,
    started: Timestamp,
}

impl Sessions {
    fn identify(&mut self, listed: BTreeMap<u32, Vec<Process>>) -> Listing {
        let mut known = HashMap::with_capacity(listed.len());
        let mut listing = Listing::new();
        for (session, mut processes) in listed {
            processes.sort_by_key(|process| process.pid);
            let leader = processes.iter().find(|process| process.pid == session);
            let identity = match (self.0.remove(&session), leader) {
                // A leader may leave its session to others, but another leader leads another one.
                (Some(identity), None) => identity,
                (Some(identity), Some(leader)) if identity.started == leader.started => identity,
                (_, leader) => Identity::new(session, leader.unwrap_or(&processes[0])),
            };
            let status = PodStatus {
                name: identity.name.clone(),
                container_statuses: processes.into_iter().map(ContainerStatus::from).collect(),
                ..PodStatus::new(&identity.uid)
            };
            listing.insert(identity.uid.clone(), status);
            known.insert(session, identity);
        }
        self.0 = known;
        listing
    }
}

impl Identity {
    fn new(session: u32, first: &Process) -> Self {
        Self {
            uid: format!("session-{session}-{}", first.started.as_nanos()).into(),
            name: format!("{}/{session}", first.name),
            started: first.started,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, name: &str, started: u64) -> Process {
        let started = Timestamp::from_nanos(started);
        Process {
            pid,
            name: name.into(),
            started,
            lives: true,
        }
    }

    fn uids(sessions: &mut Sessions, listed: &[(u32, &[Process])]) -> Vec<PodUid> {
        let listed = listed
            .iter()
            .map(|(session, processes)| (*session, processes.to_vec()));
        sessions.identify(listed.collect()).into_keys().collect()
    }

    #[test]
    fn a_session_keeps_its_uid_when_its_leader_leaves() {
        let mut sessions = Sessions::default();
        let (leader, follower) = (process(10, "sh", 100), process(11, "sleep", 101));
        let first = uids(&mut sessions, &[(10, &[follower.clone(), leader])]);
        assert_eq!(first, ["session-10-100"]);
        assert_eq!(uids(&mut sessions, &[(10, &[follower])]), first);
    }

    #[test]
    fn a_number_used_again_is_another_pod() {
        let mut sessions = Sessions::default();
        let first = uids(&mut sessions, &[(10, &[process(10, "sh", 100)])]);
        assert_eq!(first, ["session-10-100"]);
        let second = uids(&mut sessions, &[(10, &[process(10, "sh", 200)])]);
        assert_eq!(second, ["session-10-200"]);
    }

    #[test]
    fn a_session_that_is_gone_is_forgotten() {
        let mut sessions = Sessions::default();
        uids(&mut sessions, &[(10, &[process(10, "sh", 100)])]);
        assert!(uids(&mut sessions, &[]).is_empty());
        assert!(sessions.0.is_empty());
    }

    #[test]
    fn a_session_led_from_elsewhere_is_named_after_its_first_process() {
        let listed = [(0, vec![process(7, "late", 2), process(1, "init", 1)])].into();
        let pods = Sessions::default().identify(listed);
        let pod = pods.values().next().unwrap();
        assert_eq!(pod.name, "init/0");
        let names: Vec<_> = pod.container_statuses.iter().map(|c| &c.name).collect();
        assert_eq!(names, ["init", "late"]);
    }

    #[test]
    fn of_a_dead_process_nothing_is_known() {
        let dead = Process {
            lives: false,
            ..process(10, "sh", 100)
        };
        assert_eq!(ContainerStatus::from(dead).state, ContainerState::Unknown);
    }
}
