//! What it all came to.

use std::{fmt, time::Duration};

use crate::{args::Args, picture::Picture};

#[derive(Debug)]
pub(crate) struct Summary<'a> {
    pub(crate) args: &'a Args,
    pub(crate) picture: &'a Picture,
    pub(crate) took: Duration,
    /// Waits that are still registered with every worker gone.
    pub(crate) waits_left: usize,
}

impl Summary<'_> {
    /// Whether all is as it must be.
    pub(crate) fn holds(&self) -> bool {
        self.picture.ledger.missing() == 0 && self.waits_left == 0
    }
}

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Picture {
            ledger,
            counts,
            latency,
            ..
        } = self.picture;
        let period = humantime::format_duration(self.args.period);
        let mean = counts
            .listing
            .checked_div(counts.listings.try_into().unwrap_or(u32::MAX))
            .unwrap_or_default();

        writeln!(
            f,
            "node_agent ran for {:.1?}, policy {}",
            self.took,
            self.args.policy.name()
        )?;
        writeln!(f)?;
        writeln!(
            f,
            "listings     {}, {period} apart (closer while the last children end), {mean:.1?} each",
            counts.listings
        )?;
        writeln!(
            f,
            "pods         {} seen; {} children were started",
            counts.pods,
            ledger.children()
        )?;
        writeln!(
            f,
            "sets         {}, {} refused",
            counts.sets, counts.refused
        )?;
        writeln!(f, "observes     {}", counts.observes)?;
        writeln!(
            f,
            "deletes      {}, {} right after the pod's only status",
            counts.deletes, counts.deletes_at_once
        )?;
        writeln!(
            f,
            "wake-ups     {}: {} news, {} confirmed, {} same time, {} pod gone",
            counts.wakes(),
            counts.news,
            counts.confirmed,
            counts.same_time,
            counts.left_deleted
        )?;
        write!(f, "set to wake  ")?;
        if latency.is_empty() {
            writeln!(f, "no worker was woken by a set")?;
        } else {
            for (name, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
                write!(f, "{name} {:.1?}, ", self.picture.quantile(quantile))?;
            }
            writeln!(f, "of {} measured", latency.len())?;
        }
        writeln!(
            f,
            "workers      {} left with their pod, {} at the close, {} at most; {} waits left",
            counts.left_deleted, counts.left_closed, counts.workers_at_most, self.waits_left
        )?;
        writeln!(f)?;
        let zero = ledger
            .codes()
            .find(|&(code, _)| code == 0)
            .map_or(0, |(_, times)| times);
        let others = ledger.codes().filter(|&(code, _)| code != 0).count();
        writeln!(
            f,
            "exit codes   {} of {} accounted for, {} lost",
            ledger.accounted(),
            ledger.children(),
            ledger.missing()
        )?;
        write!(
            f,
            "             {zero} times 0, {} times one of {others} others",
            ledger.accounted() - zero
        )?;
        if ledger.ended_otherwise() > 0 {
            write!(f, ", {} ended before their time", ledger.ended_otherwise())?;
        }
        Ok(())
    }
}
