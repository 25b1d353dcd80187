//! The command line.

use std::time::Duration;

use clap::{Parser, ValueEnum};
use podcache::WritePolicy;

use crate::children::Orders;

/// Follows this machine's processes as pods, through a podcache.
#[derive(Debug, Parser)]
#[command(
    name = "node_agent",
    max_term_width = 100,
    after_help = "\
Ends after --for, once the last child has ended, or with Ctrl-C, which ends the children. The exit
status is 0 if the worker of every child's pod has seen the child's exit code, 1 if not, and 2 for
wrong flags."
)]
pub(crate) struct Args {
    /// Time from one listing of the node to the next
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = positive)]
    pub(crate) period: Duration,

    /// How many short-lived children to start each second
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=1000))]
    pub(crate) churn: u32,

    /// The longest that such a child lives
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    pub(crate) child_life: Duration,

    /// How long to go on [default: until Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) run_for: Option<Duration>,

    /// What the cache does with a write that is older than what it holds
    #[arg(long, value_enum, default_value_t = Policy::Overwrite)]
    pub(crate) policy: Policy,

    /// Show at most N pods in the table [default: as many as fit]
    #[arg(long, value_name = "N", value_parser = parse_top)]
    pub(crate) top: Option<usize>,

    /// Print a line per change, as when the output is not a terminal, instead of the table
    #[arg(long)]
    pub(crate) plain: bool,

    /// Be one of the agent's children
    #[arg(long, hide = true, exclusive = true, value_name = "CODE:MILLIS")]
    pub(crate) be_child: Option<Orders>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Policy {
    /// store every write
    Overwrite,
    /// refuse a status older than the one held
    RejectOlder,
    /// never let any time go back
    Monotonic,
}

impl From<Policy> for WritePolicy {
    fn from(policy: Policy) -> Self {
        match policy {
            Policy::Overwrite => Self::Overwrite,
            Policy::RejectOlder => Self::RejectOlder,
            Policy::Monotonic => Self::Monotonic,
        }
    }
}

impl Policy {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::RejectOlder => "reject-older",
            Self::Monotonic => "monotonic",
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|error| format!("{error}; a time is written as 10s, 250ms or 1m 30s"))
}

fn positive(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("it must be longer than nothing".into()),
        time => Ok(time),
    }
}

fn parse_top(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a table without rows shows nothing".into()),
        Ok(rows) => Ok(rows),
        Err(_) => Err("not a number of rows".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let refused = [
            &["--period", "0s"][..],
            &["--period", "soon"],
            &["--churn", "-1"],
            &["--churn", "1001"],
            &["--policy", "newest"],
            &["--top", "0"],
            &["--for"],
            &["now"],
        ];
        for flags in refused {
            let line = ["node_agent"].iter().chain(flags);
            let error = Args::try_parse_from(line).expect_err("it is refused");
            // It is the flag that is named, not what stands behind it.
            assert!(error.to_string().contains(flags[0]), "{flags:?}: {error}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        let args =
            Args::try_parse_from(["node_agent", "--period", "250ms", "--for", "1m 30s"]).unwrap();
        assert_eq!(args.period, Duration::from_millis(250));
        assert_eq!(args.run_for, Some(Duration::from_secs(90)));
    }
}
