//! The agent's own children: processes that live for a while and end with the exit code they were
//! told to.

use std::{
    collections::BTreeMap,
    env, io,
    process::{Child as Process, Command, ExitStatus, Stdio, exit},
    str::FromStr,
    thread,
    time::Duration,
};

use podcache::{
    Timestamp,
    pod::{ContainerId, ContainerState, ContainerStatus, PodStatus, PodUid},
};

/// What a child is to do: live so long, then exit with this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Orders {
    pub(crate) code: u8,
    pub(crate) life: Duration,
}

impl Orders {
    /// The life of the `n`th child: half of them succeed, the others go through all the codes there
    /// are.
    pub(crate) fn for_child(n: u64, longest: Duration) -> Self {
        let random = scramble(n);
        let code = if n.is_multiple_of(2) {
            0
        } else {
            (n / 2 % 255 + 1) as u8
        };
        Self {
            code,
            life: longest.mul_f64((random >> 11) as f64 / (1u64 << 53) as f64),
        }
    }

    pub(crate) fn carry_out(self) -> ! {
        thread::sleep(self.life);
        exit(self.code.into())
    }

    /// This very program, told to be a child. In a process group of its own, so that a Ctrl-C meant
    /// for the agent does not reach it.
    fn command(self) -> io::Result<Command> {
        let mut command = Command::new(env::current_exe()?);
        command
            .arg(format!(
                "--be-child={}:{}",
                self.code,
                self.life.as_millis()
            ))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        Ok(command)
    }
}

impl FromStr for Orders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (code, millis) = text.split_once(':').ok_or("expected CODE:MILLIS")?;
        let code = code.parse().map_err(|_| "not an exit code")?;
        let millis = millis.parse().map_err(|_| "not a number of milliseconds")?;
        Ok(Self {
            code,
            life: Duration::from_millis(millis),
        })
    }
}

/// A bijection that leaves no pattern to see (the finalizer of SplitMix64).
fn scramble(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// The part of the node that the agent runs itself. A child stays listed after its end until it is
/// released, as a container runtime keeps a dead container: its exit code is the last thing there
/// is to know about it.
#[derive(Debug, Default)]
pub(crate) struct Children(BTreeMap<PodUid, Child>);

#[derive(Debug)]
struct Child {
    name: String,
    orders: Orders,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Admitted,
    Started {
        process: Process,
        at: Timestamp,
    },
    Ended {
        pid: u32,
        started: Timestamp,
        /// When it was found to have ended.
        at: Timestamp,
        code: i32,
    },
}

impl Children {
    /// Makes a pod known that is to be started soon.
    pub(crate) fn admit(&mut self, uid: PodUid, name: String, orders: Orders) {
        self.0.insert(
            uid,
            Child {
                name,
                orders,
                stage: Stage::Admitted,
            },
        );
    }

    /// Starts an admitted pod. One that cannot be started is forgotten.
    pub(crate) fn start(&mut self, uid: &PodUid) -> io::Result<()> {
        let Some(child) = self.0.get_mut(uid) else {
            return Ok(());
        };
        match child
            .orders
            .command()
            .and_then(|mut command| command.spawn())
        {
            Ok(process) => {
                child.stage = Stage::Started {
                    process,
                    at: Timestamp::now(),
                }
            }
            Err(error) => {
                self.0.remove(uid);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Forgets a child, its exit code included.
    pub(crate) fn release(&mut self, uid: &PodUid) {
        self.0.remove(uid);
    }

    /// Learns the exit codes of those that ended, and says which.
    pub(crate) fn reap(&mut self) -> io::Result<Vec<(PodUid, i32)>> {
        let mut reaped = Vec::new();
        for (uid, child) in &mut self.0 {
            if let Stage::Started { process, at } = &mut child.stage
                && let Some(status) = process.try_wait()?
            {
                let code = exit_code(status);
                child.stage = Stage::Ended {
                    pid: process.id(),
                    started: *at,
                    at: Timestamp::now(),
                    code,
                };
                reaped.push((uid.clone(), code));
            }
        }
        Ok(reaped)
    }

    /// Ends those that still run.
    pub(crate) fn kill(&mut self) {
        for child in self.0.values_mut() {
            if let Stage::Started { process, .. } = &mut child.stage {
                // Fails for one that has just ended by itself, and that is as good.
                let _ = process.kill();
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn ended(&self) -> impl Iterator<Item = &PodUid> {
        self.0
            .iter()
            .filter(|(_, child)| matches!(child.stage, Stage::Ended { .. }))
            .map(|(uid, _)| uid)
    }

    pub(crate) fn pids(&self) -> impl Iterator<Item = u32> {
        self.0.values().filter_map(|child| match &child.stage {
            Stage::Admitted => None,
            Stage::Started { process, .. } => Some(process.id()),
            Stage::Ended { pid, .. } => Some(*pid),
        })
    }

    pub(crate) fn pods(&self) -> impl Iterator<Item = (PodUid, PodStatus)> {
        self.0
            .iter()
            .map(|(uid, child)| (uid.clone(), child.status(uid)))
    }
}

impl Child {
    fn status(&self, uid: &PodUid) -> PodStatus {
        let id = |pid: u32| ContainerId::new("process", pid.to_string());
        let container = ContainerStatus::new(ContainerId::default(), "main");
        let container = match &self.stage {
            Stage::Admitted => ContainerStatus {
                state: ContainerState::Created,
                ..container
            },
            Stage::Started { process, at } => ContainerStatus {
                id: id(process.id()),
                state: ContainerState::Running,
                started_at: *at,
                ..container
            },
            Stage::Ended {
                pid,
                started,
                at,
                code,
            } => ContainerStatus {
                id: id(*pid),
                state: ContainerState::Exited,
                started_at: *started,
                finished_at: *at,
                exit_code: *code,
                ..container
            },
        };
        PodStatus {
            name: self.name.clone(),
            container_statuses: vec![container],
            ..PodStatus::new(uid)
        }
    }
}

/// As a shell gives it: 128 and the signal for a process that was ended by one.
fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status
        .code()
        .expect("a process that has exited has an exit code or was ended by a signal")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn orders_survive_the_command_line() {
        assert_eq!(
            "7:1500".parse(),
            Ok(Orders {
                code: 7,
                life: Duration::from_millis(1500)
            })
        );
        for wrong in ["", "7", "256:1", "-1:1", "7:soon"] {
            assert!(wrong.parse::<Orders>().is_err(), "{wrong:?} was taken");
        }
    }

    #[test]
    fn children_end_in_every_way_within_their_time() {
        let longest = Duration::from_secs(2);
        let orders: Vec<_> = (0..512).map(|n| Orders::for_child(n, longest)).collect();
        let codes: BTreeSet<_> = orders.iter().map(|orders| orders.code).collect();
        assert_eq!(codes.len(), 256);
        assert!(orders.iter().all(|orders| orders.life <= longest));
        assert!(orders.iter().any(|orders| orders.life < longest / 8));
        assert!(orders.iter().any(|orders| orders.life > longest * 7 / 8));
    }

    #[test]
    fn an_admitted_pod_is_listed_before_it_runs() {
        let mut children = Children::default();
        let uid = PodUid::from("child-0");
        children.admit(
            uid.clone(),
            "child/0".into(),
            Orders::for_child(0, Duration::ZERO),
        );
        let pods: Vec<_> = children.pods().collect();
        assert_eq!(pods.len(), 1);
        assert_eq!(
            pods[0].1.container_statuses[0].state,
            ContainerState::Created
        );
        assert_eq!((children.pids().count(), children.ended().count()), (0, 0));
        children.release(&uid);
        assert!(children.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn the_exit_code_of_a_signal_is_a_shells() {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(exit_code(ExitStatus::from_raw(42 << 8)), 42);
        assert_eq!(exit_code(ExitStatus::from_raw(9)), 137);
    }
}
