//! The example `node_agent` on this machine's own processes: every exit code of its children comes
//! through, and it ends as it should.

use std::{
    env,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{
        OnceLock,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

/// After this it hangs.
const WATCHDOG: Duration = Duration::from_secs(120);

/// The example beside this test, `target/<profile>/examples/node_agent`. Cargo builds it along with
/// the tests, unless it is asked for only some of them.
fn node_agent() -> Command {
    static EXAMPLE: OnceLock<PathBuf> = OnceLock::new();
    Command::new(EXAMPLE.get_or_init(|| {
        let test = env::current_exe().unwrap();
        let profile = test.parent().and_then(Path::parent).unwrap();
        let example = format!("node_agent{}", env::consts::EXE_SUFFIX);
        let example = profile.join("examples").join(example);
        if !example.exists() {
            build(profile);
        }
        example
    }))
}

fn build(into: &Path) {
    let profile = match into.file_name().and_then(|name| name.to_str()).unwrap() {
        "debug" => "dev",
        profile => profile,
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--example", "node_agent", "--profile", profile])
        .arg("--target-dir")
        .arg(into.parent().unwrap())
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(status.success(), "the example does not build");
}

/// Aborts the test unless what this returns is dropped in time.
fn watchdog() -> Sender<()> {
    let (ended, watch) = mpsc::channel();
    thread::spawn(move || {
        if watch.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout) {
            eprintln!("node_agent hangs");
            std::process::abort();
        }
    });
    ended
}

struct Run {
    status: ExitStatus,
    out: String,
    err: String,
}

/// Runs it to its end and shows each of its lines to `watch`.
fn run(command: &mut Command, mut watch: impl FnMut(&str, &Child)) -> Run {
    let _watchdog = watchdog();
    let mut agent = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = agent.stderr.take().unwrap();
    let err = thread::spawn(move || {
        let mut err = String::new();
        stderr.read_to_string(&mut err).unwrap();
        err
    });
    let mut out = String::new();
    for line in BufReader::new(agent.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        watch(&line, &agent);
        out += &line;
        out.push('\n');
    }
    let status = agent.wait().unwrap();
    let err = err.join().unwrap();
    Run { status, out, err }
}

impl Run {
    /// The numbers in a line of the summary.
    fn numbers(&self, title: &str) -> Vec<u64> {
        let line = self.out.lines().find(|line| line.starts_with(title));
        let line = line.unwrap_or_else(|| panic!("no {title:?} in\n{}\n{}", self.out, self.err));
        let words = line.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    }

    /// Every child is accounted for; returns how many there were.
    fn check_the_books(&self) -> u64 {
        assert!(
            self.status.success(),
            "{}\n{}\n{}",
            self.status,
            self.out,
            self.err
        );
        let [accounted, children, lost] = self.numbers("exit codes")[..] else {
            panic!()
        };
        assert_eq!((accounted, lost), (children, 0));
        let [left, closed, _, waits] = self.numbers("workers")[..] else {
            panic!()
        };
        assert_eq!(waits, 0);
        assert!(left + closed >= children, "a child without a worker");
        let [deletes, at_once] = self.numbers("deletes")[..] else {
            panic!()
        };
        assert!(at_once <= deletes && children <= deletes);
        children
    }
}

fn churn(policy: &str) -> Command {
    let mut command = node_agent();
    command.args([
        "--churn",
        "40",
        "--child-life",
        "500ms",
        "--period",
        "200ms",
        "--policy",
        policy,
    ]);
    command
}

#[test]
fn no_exit_code_is_lost() {
    for policy in ["overwrite", "reject-older", "monotonic"] {
        let run = run(churn(policy).args(["--for", "2s"]), |_, _| {});
        let children = run.check_the_books();
        assert!(children > 0);

        // Every child's end is a line of its own, with its exit code.
        let ends = run
            .out
            .lines()
            .filter(|line| line.contains("  child/") && line.contains("  exit "));
        assert_eq!(ends.count() as u64, children, "{}", run.out);
        let [_, refused] = run.numbers("sets")[..] else {
            panic!()
        };
        assert_eq!(refused, 0);
    }
}

#[test]
fn a_pod_deleted_right_after_its_only_status_is_seen() {
    let mut command = node_agent();
    command.args([
        "--churn",
        "60",
        "--child-life",
        "0s",
        "--period",
        "500ms",
        "--for",
        "2s",
    ]);
    let run = run(&mut command, |_, _| {});
    run.check_the_books();
    let [_, at_once] = run.numbers("deletes")[..] else {
        panic!()
    };
    assert!(at_once > 0, "{}", run.out);
}

#[test]
fn without_churn_it_only_watches() {
    let run = run(
        node_agent().args(["--churn", "0", "--period", "100ms", "--for", "500ms"]),
        |_, _| {},
    );
    assert_eq!(run.check_the_books(), 0);
    // At least the session that this test runs in.
    assert!(run.numbers("pods")[0] > 0);
    assert!(run.out.contains("-> Running"));
}

#[cfg(unix)]
#[test]
fn an_interrupt_ends_it_in_order() {
    // It would go on for ever, and its children for long.
    let mut command = node_agent();
    command.args(["--churn", "20", "--child-life", "60s", "--period", "100ms"]);
    let mut interrupted = false;
    let run = run(&mut command, |line, agent| {
        if !interrupted && line.contains("  child/") && line.contains("-> Running") {
            interrupted = true;
            let pid = agent.id().to_string();
            let kill = Command::new("kill").args(["-INT", &pid]).status();
            assert!(kill.unwrap().success());
        }
    });
    assert!(run.check_the_books() > 0);
    assert!(run.out.contains("ended before their time"), "{}", run.out);
    let [_, closed, ..] = run.numbers("workers")[..] else {
        panic!()
    };
    assert!(closed > 0, "no worker left at the close:\n{}", run.out);
}

#[test]
fn a_reader_that_leaves_ends_it() {
    let _watchdog = watchdog();
    let mut agent = churn("overwrite").stdout(Stdio::piped()).spawn().unwrap();
    drop(agent.stdout.take());
    assert!(agent.wait().unwrap().success());
}

#[test]
fn a_wrong_flag_gets_a_clear_message() {
    let cases = [
        (&["--period", "0s"][..], "longer than nothing"),
        (&["--period", "soon"], "--period"),
        (&["--churn", "1001"], "1001 is not in 0..=1000"),
        (&["--policy", "newest"], "reject-older"),
        (&["--top", "0"], "without rows"),
        (&["--for"], "--for <TIME>"),
        (&["--fro", "10s"], "unexpected argument '--fro'"),
    ];
    for (flags, message) in cases {
        let run = run(node_agent().args(flags), |_, _| {});
        assert_eq!(run.status.code(), Some(2), "{flags:?}");
        assert!(run.err.contains(message), "{flags:?}: {}", run.err);
        assert!(run.out.is_empty());
    }
}
