//! The tables of the docs, made from the runs.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::de::DeserializeOwned;

use super::mutants::{self, Verdicts};
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

/// Writes the tables, and says whether they are of the sources as they are.
pub(crate) fn write(copy: &Path, _check: bool) -> Verdict {
    let mut page = String::new();
    let mut current = true;
    for (run, title) in [("quick", "The quick run"), ("deep", "The deep run")] {
        if let Some(tallies) = read::<Vec<Tally>>(run)? {
            writeln!(page, "# {title}\n")?;
            explored(&mut page, &tallies)?;
        }
    }
    if let Some(verdicts) = read::<Vec<Verdicts>>("mutants")? {
        let now: BTreeSet<String> = mutants::planted(copy)?
            .iter()
            .map(mutants::Mutant::name)
            .collect();
        let then: BTreeSet<String> = verdicts.iter().map(|v| v.mutant.name()).collect();
        for name in now.difference(&then) {
            println!("not tried yet: {name}");
            current = false;
        }
        for name in then.difference(&now) {
            println!("not in the sources any more: {name}");
            current = false;
        }
        mutant_tables(&mut page, &verdicts)?;
    }
    fs::write(root().join(TABLES), page)?;
    println!("{TABLES} is written");
    Ok(current)
}

fn explored(page: &mut String, tallies: &[Tally]) -> anyhow::Result<()> {
    writeln!(
        page,
        "| set | reclamation | programs | executions | different outcomes | explored to the end of their bound |"
    )?;
    writeln!(page, "|---|---|--:|--:|--:|--:|")?;
    for tally in tallies {
        writeln!(
            page,
            "| {} | {} | {} | {} | {} | {} |",
            tally.set,
            tally.mode,
            tally.models,
            grouped(tally.executions),
            grouped(tally.outcomes),
            tally.models - tally.unfinished
        )?;
    }
    let models: usize = tallies.iter().map(|tally| tally.models).sum();
    let executions: usize = tallies.iter().map(|tally| tally.executions).sum();
    writeln!(
        page,
        "\n{} programs, {} executions.\n",
        grouped(models),
        grouped(executions)
    )?;
    Ok(())
}

fn mutant_tables(page: &mut String, verdicts: &[Verdicts]) -> anyhow::Result<()> {
    let caught = verdicts.iter().filter(|v| v.caught.is_some()).count();
    writeln!(page, "# Mutants\n")?;
    writeln!(page, "{} mutants, {caught} caught.\n", verdicts.len())?;
    let (steps, orderings): (Vec<_>, Vec<_>) = verdicts.iter().partition(|v| v.mutant.is_step());
    writeln!(page, "## Steps of the protocol\n")?;
    writeln!(
        page,
        "| left out or turned round | what it is for | noticed by |"
    )?;
    writeln!(page, "|---|---|---|")?;
    for v in steps {
        writeln!(
            page,
            "| {} | {} | {} |",
            v.mutant.place,
            cell(&v.mutant.was),
            noticed(v)
        )?;
    }
    writeln!(page, "\n## Orderings and fences\n")?;
    writeln!(
        page,
        "| place | ordering | weakened to | what the source says of it | noticed by |"
    )?;
    writeln!(page, "|---|---|---|---|---|")?;
    for v in orderings {
        let becomes = if v.mutant.becomes.is_empty() {
            "nothing"
        } else {
            &v.mutant.becomes
        };
        writeln!(
            page,
            "| `{}`, `{}` | {} | {becomes} | {} | {} |",
            v.mutant.file.trim_start_matches("raw/"),
            v.mutant.place,
            v.mutant.was,
            cell(&v.mutant.says),
            noticed(v)
        )?;
    }
    writeln!(page)?;
    Ok(())
}

fn noticed(verdicts: &Verdicts) -> String {
    match (&verdicts.caught, &verdicts.reason) {
        (Some(caught), _) => {
            format!(
                "`{}`, execution {}",
                cell(&caught.program),
                grouped(caught.execution)
            )
        }
        (None, Some(reason)) => format!("nobody: {}", cell(reason)),
        (None, None) => format!("nobody, in {} executions", grouped(verdicts.executions)),
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
