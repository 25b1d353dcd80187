//! `cargo xtask ci`: everything that has to be right before a change goes in.
//!
//! The steps run one after the other with their own output, the cheap ones first, and the first
//! that fails ends it.

use std::env;
use std::fmt;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use crate::Verdict;
use crate::cargo::{root, target_dir};

/// Run all checks: format, lints, docs, tests, examples, quick models.
///
/// Stops at the first that fails, and says how to repeat it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these steps, in their usual order [default: all]
    #[arg(value_name = "STEP", value_parser = STEPS.iter().map(|step| step.name).collect::<Vec<_>>())]
    steps: Vec<String>,
}

struct Step {
    name: &'static str,
    what: &'static str,
    lines: &'static [Line],
}

/// One command, as one would type it.
struct Line {
    /// The directory, from the root.
    dir: &'static str,
    env: &'static [(&'static str, &'static str)],
    args: &'static [&'static str],
}

const fn cargo(args: &'static [&'static str]) -> Line {
    Line {
        dir: ".",
        env: &[],
        args,
    }
}

/// The same for the package that is built on loom's atomics.
const fn cargo_loom(args: &'static [&'static str]) -> Line {
    Line {
        dir: "loom-tests",
        env: &[("RUSTFLAGS", "--cfg podcache_loom")],
        args,
    }
}

const fn documented(args: &'static [&'static str]) -> Line {
    Line {
        dir: ".",
        env: &[("RUSTDOCFLAGS", "-D warnings")],
        args,
    }
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "the format of all sources",
        lines: &[
            cargo(&["fmt", "--all", "--check"]),
            cargo_loom(&["fmt", "--check"]),
        ],
    },
    Step {
        name: "clippy",
        what: "warnings of the compiler and of clippy, in all packages",
        lines: &[
            cargo(&["clippy", "--package", "podcache", "--", "-D", "warnings"]),
            cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--all-features",
                "--",
                "-D",
                "warnings",
            ]),
            cargo_loom(&["clippy", "--all-targets", "--", "-D", "warnings"]),
        ],
    },
    Step {
        name: "api",
        what: "the public face against its listing",
        lines: &[cargo(&["xtask", "api"])],
    },
    Step {
        name: "doc",
        what: "the documentation and its links, public and private",
        lines: &[
            documented(&[
                "doc",
                "--package",
                "podcache",
                "--no-deps",
                "--all-features",
            ]),
            documented(&[
                "doc",
                "--workspace",
                "--no-deps",
                "--all-features",
                "--document-private-items",
            ]),
        ],
    },
    Step {
        name: "test",
        what: "unit and integration tests",
        lines: &[cargo(&[
            "nextest",
            "run",
            "--workspace",
            "--all-targets",
            "--all-features",
        ])],
    },
    Step {
        name: "doctest",
        what: "the examples in the documentation and in the README",
        lines: &[cargo(&["test", "--workspace", "--doc", "--all-features"])],
    },
    Step {
        name: "example",
        what: "the node agent on this machine's processes",
        lines: &[cargo(&[
            "run",
            "--release",
            "--example",
            "node_agent",
            "--",
            "--for",
            "3s",
            "--churn",
            "5",
            "--plain",
        ])],
    },
    Step {
        name: "models",
        what: "the page of the model checks against what was kept of them",
        lines: &[cargo(&["xtask", "loom", "--page", "--check"])],
    },
    Step {
        name: "loom",
        what: "the quick set of model checks",
        lines: &[cargo(&["xtask", "loom"])],
    },
];

impl Line {
    fn command(&self) -> Command {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(program);
        command
            .current_dir(root().join(self.dir))
            .envs(self.env.iter().copied())
            .args(self.args);
        if self.dir != "." {
            // A build of its own beside the others, as `cargo xtask loom` keeps it.
            command
                .env_remove("CARGO_ENCODED_RUSTFLAGS")
                .env("CARGO_TARGET_DIR", target_dir().join("loom"));
        }
        command
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dir != "." {
            write!(f, "cd {} && ", self.dir)?;
        }
        for (name, value) in self.env {
            write!(f, "{name}=\"{value}\" ")?;
        }
        write!(f, "cargo {}", self.args.join(" "))
    }
}

pub(crate) fn run(args: Args) -> Verdict {
    let chosen: Vec<&Step> = STEPS
        .iter()
        .filter(|step| args.steps.is_empty() || args.steps.iter().any(|name| name == step.name))
        .collect();
    if chosen.iter().any(|step| step.name == "test") {
        let nextest = cargo(&["nextest", "--version"]).command().output();
        ensure!(
            nextest.is_ok_and(|output| output.status.success()),
            "the tests run under cargo-nextest: `cargo install --locked cargo-nextest`"
        );
    }
    let start = Instant::now();
    for (i, step) in chosen.iter().enumerate() {
        let at = format!("[{}/{}]", i + 1, chosen.len());
        println!("\n{at} {}: {}", step.name, step.what);
        let began = Instant::now();
        for line in step.lines {
            println!("$ {line}");
            let status = line.command().status().context("cargo does not start")?;
            if !status.success() {
                bail!(
                    "`{}` failed; `cargo xtask ci {}` repeats it",
                    step.name,
                    step.name
                );
            }
        }
        println!("{at} {}: passed in {}", step.name, time(began.elapsed()));
    }
    let which = if args.steps.is_empty() {
        "all checks"
    } else {
        "these checks"
    };
    println!("\n{which} passed in {}", time(start.elapsed()));
    Ok(true)
}

fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
