//! The tables of the docs, made from the runs.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::de::DeserializeOwned;

use super::mutants::{self, Caught, Mutant, Verdicts};
use super::report::Tally;
use crate::Verdict;
use crate::cargo::root;

/// What is written: shown by the page of the docs beside it.
const TABLES: &str = "src/docs/models.md";

/// Where a run of this name is kept.
pub(crate) fn kept(run: &str) -> String {
    format!("loom-tests/results/{run}.json")
}

/// Keeps what came of a run.
pub(crate) fn keep(run: &str, result: &impl serde::Serialize) -> anyhow::Result<()> {
    let path = root().join(kept(run));
    fs::create_dir_all(path.parent().expect("a file in a directory"))?;
    fs::write(&path, serde_json::to_string_pretty(result)? + "\n")?;
    Ok(())
}

/// What was kept of a run.
pub(crate) fn read<T: DeserializeOwned>(run: &str) -> anyhow::Result<Option<T>> {
    let path = kept(run);
    match fs::read_to_string(root().join(&path)) {
        Ok(text) => Ok(Some(serde_json::from_str(&text).context(path)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).context(path),
    }
}

/// Writes the tables, or says whether they are as they would be written.
pub(crate) fn write(copy: &Path, check: bool) -> Verdict {
    let mut page = String::new();
    for (run, title) in [("quick", "The quick run"), ("deep", "The deep run")] {
        writeln!(page, "# {title}\n")?;
        match read::<Vec<Tally>>(run)? {
            Some(tallies) => explored(&mut page, &tallies)?,
            None => writeln!(page, "Not run.\n")?,
        }
    }
    let verdicts: Vec<Verdicts> = read("mutants")?.unwrap_or_default();
    let table = Mutants {
        mutants: mutants::planted(copy)?,
        verdicts,
        reasons: mutants::reasons()?,
    };
    table.write(&mut page)?;
    for mutant in &table.mutants {
        if let Noticed::NotRun(why) = table.noticed(mutant) {
            println!("not run: {}{why}", mutant.name());
        }
    }
    if check {
        let right = fs::read_to_string(root().join(TABLES)).is_ok_and(|kept| kept == page);
        if !right {
            println!("{TABLES} is outdated: `cargo xtask loom --page` writes it");
        }
        return Ok(right);
    }
    fs::write(root().join(TABLES), page)?;
    println!("{TABLES} is written");
    Ok(true)
}

fn explored(page: &mut String, tallies: &[Tally]) -> anyhow::Result<()> {
    writeln!(
        page,
        "| set | reclamation | most preemptions | programs | executions | different outcomes | to the end | given up | after executions | no time for |"
    )?;
    writeln!(page, "|---|---|---|--:|--:|--:|--:|--:|--:|--:|")?;
    let explored = tallies
        .iter()
        .filter(|tally| tally.models + tally.left_out > 0);
    for tally in explored {
        let bounds: Vec<&str> = tally.bounds.iter().map(String::as_str).collect();
        let given_up = tally.given_up.map_or(String::new(), |(least, most)| {
            if least == most {
                grouped(least)
            } else {
                format!("{} to {}", grouped(least), grouped(most))
            }
        });
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {given_up} | {} |",
            tally.set,
            tally.mode,
            bounds.join(", ").replace("none", "any number"),
            grouped(tally.models),
            grouped(tally.executions),
            grouped(tally.outcomes),
            grouped(tally.models - tally.unfinished),
            grouped(tally.unfinished),
            grouped(tally.left_out),
        )?;
    }
    let sum = |of: fn(&Tally) -> usize| grouped(tallies.iter().map(of).sum());
    let minutes = tallies.iter().map(|tally| tally.explored).sum::<f64>() / 60.0;
    writeln!(
        page,
        "\n{} programs, {} executions, {minutes:.0} minutes of a processor; {} to the end, {} given up before it.\n",
        sum(|tally| tally.models),
        sum(|tally| tally.executions),
        sum(|tally| tally.models - tally.unfinished),
        sum(|tally| tally.unfinished),
    )?;
    Ok(())
}

/// The mutants of the sources as they are, and what came of them.
struct Mutants {
    mutants: Vec<Mutant>,
    verdicts: Vec<Verdicts>,
    reasons: BTreeMap<String, String>,
}

/// What came of a mutant.
enum Noticed<'a> {
    By(&'a Caught),
    /// With the reason why, if it is written.
    Nobody(&'a Verdicts, Option<&'a str>),
    NotRun(&'static str),
}

impl Mutants {
    fn noticed(&self, mutant: &Mutant) -> Noticed<'_> {
        let name = mutant.name();
        let Some(verdicts) = self.verdicts.iter().find(|v| v.mutant.name() == name) else {
            return Noticed::NotRun("");
        };
        if !verdicts.is_of(mutant) {
            return Noticed::NotRun(" since the statement was changed");
        }
        match &verdicts.caught {
            Some(caught) => Noticed::By(caught),
            None => Noticed::Nobody(verdicts, self.reasons.get(&name).map(String::as_str)),
        }
    }

    fn write(&self, page: &mut String) -> anyhow::Result<()> {
        let count = |is: fn(&Noticed<'_>) -> bool| {
            let those = self.mutants.iter().map(|mutant| self.noticed(mutant));
            those.filter(is).count()
        };
        writeln!(page, "# Mutants\n")?;
        writeln!(
            page,
            "{} mutants: {} caught, {} survive for a reason, {} without one, {} not run.\n",
            self.mutants.len(),
            count(|noticed| matches!(noticed, Noticed::By(_))),
            count(|noticed| matches!(noticed, Noticed::Nobody(_, Some(_)))),
            count(|noticed| matches!(noticed, Noticed::Nobody(_, None))),
            count(|noticed| matches!(noticed, Noticed::NotRun(_))),
        )?;
        let (steps, orderings): (Vec<_>, Vec<_>) = self.mutants.iter().partition(|m| m.is_step());
        writeln!(page, "## Steps of the protocol\n")?;
        writeln!(
            page,
            "| left out or turned round | what it is for | noticed by |"
        )?;
        writeln!(page, "|---|---|---|")?;
        for mutant in steps {
            writeln!(
                page,
                "| {} | {} | {} |",
                mutant.place,
                cell(&mutant.was),
                self.noticed(mutant)
            )?;
        }
        writeln!(page, "\n## Orderings and fences\n")?;
        writeln!(
            page,
            "| place | ordering | weakened to | what the source says of it | noticed by |"
        )?;
        writeln!(page, "|---|---|---|---|---|")?;
        for mutant in orderings {
            let becomes = if mutant.becomes.is_empty() {
                "nothing"
            } else {
                &mutant.becomes
            };
            writeln!(
                page,
                "| `{}`, `{}` | {} | {becomes} | {} | {} |",
                mutant.file.trim_start_matches("raw/"),
                mutant.place,
                mutant.was,
                cell(&mutant.says),
                self.noticed(mutant)
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Noticed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Noticed::By(caught) => {
                let execution = grouped(caught.execution);
                write!(f, "`{}`, execution {execution}", cell(&caught.program))
            }
            Noticed::Nobody(_, Some(reason)) => write!(f, "nobody: {}", cell(reason)),
            Noticed::Nobody(verdicts, None) => {
                write!(f, "nobody, in {} executions", grouped(verdicts.executions))
            }
            Noticed::NotRun(why) => write!(f, "not run{why}"),
        }
    }
}

/// Text as it may stand in a cell of a table.
fn cell(text: &str) -> String {
    text.replace("||", "‖").replace('|', "\\|")
}

fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }

    #[test]
    fn programs_fit_into_a_table() {
        assert_eq!(cell("get(a) || set(a,1)"), "get(a) ‖ set(a,1)");
        assert_eq!(cell("a | b"), "a \\| b");
    }
}
