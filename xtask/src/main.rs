//! Commands that are longer than one line of cargo.
//!
//! A command is a file with its `Args` and a `run`; to add one, add a module and a line to
//! [`Command`].

mod api;
mod asan;
mod bench;
mod cargo;
mod ci;
mod deny;
mod dependent;
mod histories;
mod loom;
mod semver;
mod shuttle;
mod tool;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What every command returns: whether what it checked is right.
type Verdict = anyhow::Result<bool>;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Checks of podcache"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure podcache and its peers, and write the page of the figures.
    Bench(bench::Args),
    /// Run all checks: format, lints, docs, tests, examples, quick models.
    Ci(ci::Args),
    /// Explore small programs exhaustively under loom.
    Loom(loom::Args),
    /// Check the example of a dependent that runs loom on itself.
    Dependent(dependent::Args),
    /// Run longer programs under shuttle's random schedulers.
    Shuttle(shuttle::Args),
    /// Judge what real threads did.
    Histories(histories::Args),
    /// Run the tests under AddressSanitizer (needs a nightly toolchain).
    Asan(asan::Args),
    /// Compare the public face with its listing in `public-api.txt`.
    Api(api::Args),
    /// Compare the public face with that of an earlier revision (needs cargo-semver-checks).
    Semver(semver::Args),
    /// Check the dependencies: advisories, licences, sources (needs cargo-deny).
    Deny(deny::Args),
}

fn main() -> ExitCode {
    let verdict = match Cli::parse().command {
        Command::Bench(args) => bench::run(args),
        Command::Ci(args) => ci::run(args),
        Command::Loom(args) => loom::run(args),
        Command::Dependent(args) => dependent::run(args),
        Command::Shuttle(args) => shuttle::run(args),
        Command::Histories(args) => histories::run(args),
        Command::Asan(args) => asan::run(args),
        Command::Api(args) => api::run(args),
        Command::Semver(args) => semver::run(args),
        Command::Deny(args) => deny::run(args),
    };
    match verdict {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
