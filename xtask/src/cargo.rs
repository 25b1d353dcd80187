//! Where things are, and how cargo is called.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask is in the root")
}

/// Where builds go. Every way to build the crate has a place of its own below it, so that they do
/// not throw each other out.
pub(crate) fn target_dir() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// How many processors there are.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A binary of `loom-tests`, built in one of the ways it can be.
pub(crate) struct Build<'a> {
    /// The directory with the workspace.
    pub(crate) workspace: &'a Path,
    /// The binary.
    pub(crate) bin: &'a str,
    /// The cfgs that choose the atomics and the reclamation.
    pub(crate) cfgs: &'a [&'a str],
    /// The features.
    pub(crate) features: &'a [&'a str],
    /// The name of the target directory.
    pub(crate) target: &'a str,
}

impl Build<'_> {
    /// Builds it and says where it is.
    pub(crate) fn run(&self) -> anyhow::Result<PathBuf> {
        let target = target_dir().join(self.target);
        // Whatever RUSTFLAGS the caller has would take the place of the cfgs: they are set here.
        // Never empty: then those of the directory's configuration would count.
        let mut flags = vec!["-Cdebug-assertions=yes".to_string()];
        flags.extend(self.cfgs.iter().map(|cfg| format!("--cfg {cfg}")));
        let status = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(self.workspace)
            .env("RUSTFLAGS", flags.join(" "))
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env("CARGO_TARGET_DIR", &target)
            .args([
                "build",
                "--quiet",
                "--bin",
                self.bin,
                "--features",
                &self.features.join(","),
            ])
            .status()
            .context("cargo does not start")?;
        ensure!(status.success(), "{} does not build", self.bin);
        Ok(target.join("debug").join(self.bin))
    }
}
