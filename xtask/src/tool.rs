//! Tools that are not part of a Rust installation.

use std::process::{Command, Stdio};

use anyhow::ensure;

/// A subcommand of cargo that has to be installed.
pub(crate) struct Tool {
    /// Its name: `cargo <command>`.
    pub(crate) command: &'static str,
    /// What it is for.
    pub(crate) does: &'static str,
    /// The toolchain it needs beside the usual one.
    pub(crate) toolchain: Option<&'static str>,
}

impl Tool {
    /// An error that says what is missing, what for, and how to get it.
    pub(crate) fn demand(&self) -> anyhow::Result<()> {
        let Tool { command, does, .. } = self;
        if let Some(toolchain) = self.toolchain {
            ensure!(
                runs(&[&format!("+{toolchain}"), "--version"]),
                "cargo-{command} {does}, for which it needs a {toolchain} toolchain, and there is \
                 none: `rustup toolchain install {toolchain} --profile minimal`"
            );
        }
        ensure!(
            runs(&[command, "--version"]),
            "cargo-{command}, which {does}, is not installed: `cargo install --locked \
             cargo-{command}`"
        );
        Ok(())
    }
}

fn runs(args: &[&str]) -> bool {
    let status = Command::new("cargo")
        .args(args)
        // cargo sets these for its own toolchain.
        .env_remove("CARGO")
        .env_remove("RUSTUP_TOOLCHAIN")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}
