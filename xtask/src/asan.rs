//! `cargo xtask asan`: the stress tests and the histories under AddressSanitizer.

use std::process::Command;

use anyhow::{Context, ensure};

use crate::cargo::{root, target_dir};
use crate::{Verdict, histories};

/// Run the tests under AddressSanitizer (needs a nightly toolchain).
///
/// Use after free on the real collector, at full speed: what loom's stand-in leaves out. Leaks are not
/// looked for, since some tests forget things on purpose: those that care count what is alive.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long the random histories run after the tests.
    #[arg(long, default_value_t = 30)]
    seconds: u64,
    /// Only the tests whose name contains this; `none` for the histories alone.
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
}

/// The one target for which a nightly can be had wherever this runs.
const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(crate) fn run(args: Args) -> Verdict {
    let cargo = |dir: &str| {
        let mut cargo = Command::new("cargo");
        cargo
            .arg("+nightly")
            .current_dir(root().join(dir))
            // cargo sets these for its own toolchain.
            .env_remove("CARGO")
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("CARGO_TARGET_DIR", target_dir().join("asan"));
        cargo
    };
    if args.filter.as_deref() != Some("none") {
        let tests = cargo(".")
            .args([
                "test",
                "--package",
                "podcache",
                "--target",
                TARGET,
                "--profile",
                "release",
            ])
            .args(["--lib", "--tests"])
            .args(args.filter.iter())
            .status()
            .context("no nightly cargo")?;
        if !tests.success() {
            return Ok(false);
        }
    }
    let built = cargo("loom-tests")
        .args([
            "build",
            "--quiet",
            "--bin",
            "histories",
            "--features",
            "histories",
        ])
        .args(["--target", TARGET])
        .status()
        .context("no nightly cargo")?;
    ensure!(
        built.success(),
        "the histories do not build under AddressSanitizer"
    );
    let binary = target_dir()
        .join("asan")
        .join(TARGET)
        .join("debug/histories");
    histories::judge(&binary, &histories::Args::for_seconds(args.seconds), &[])
}
