//! The goals as they stand in the README, with a reason for each that is missed.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::goals::Row;
use crate::units::significant;

/// Why a goal is missed: headings that name goals, and below them one text for all of these.
const REASONS: &str = include_str!("../reasons.md");

const BEGIN: &str = "<!-- generated: goals (begin) -->";
const END: &str = "<!-- generated: goals (end) -->";

/// A text and the goals whose miss it explains.
#[derive(Debug)]
struct Reason<'a> {
    goals: Vec<&'a str>,
    text: String,
}

fn reasons(text: &str) -> Vec<Reason<'_>> {
    let mut reasons: Vec<Reason<'_>> = Vec::new();
    for line in text.lines() {
        if let Some(goal) = line.strip_prefix("## ") {
            match reasons.last_mut().filter(|last| last.text.is_empty()) {
                Some(last) => last.goals.push(goal),
                None => reasons.push(Reason {
                    goals: vec![goal],
                    text: String::new(),
                }),
            }
        } else if let Some(last) = reasons.last_mut()
            && !(line.is_empty() && last.text.is_empty())
        {
            last.text.push_str(line);
            last.text.push('\n');
        }
    }
    reasons
}

/// Text that is none of Markdown's markup.
fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// The table of the goals.
pub fn table(rows: &[Row]) -> String {
    let mut table = "| what | demanded | measured | quartiles | met | figures |\n\
        |---|--:|--:|--:|---|---|\n"
        .to_owned();
    for row in rows {
        let [measured, low, high] = [row.measured, row.low, row.high].map(significant);
        let _ = writeln!(
            table,
            "| {} | {} | {measured} | {low}–{high} | {} | {} |",
            escaped(&row.what),
            row.demanded,
            if row.met { "yes" } else { "**NO**" },
            escaped(&row.figures),
        );
    }
    table
}

/// For the goals that are missed: where it loses, and why.
pub fn losses(rows: &[Row]) -> String {
    let reasons = reasons(REASONS);
    let missed = |goal: &str| rows.iter().any(|row| row.what == goal && !row.met);
    let mut text = String::new();
    let mut tell = |goals: &[&str], reason: &str| {
        let goals: Vec<_> = goals.iter().map(|goal| escaped(goal)).collect();
        let _ = writeln!(text, "* **{}.**\n  {reason}", goals.join("; "));
    };
    for reason in &reasons {
        let goals: Vec<_> = reason.goals.iter().copied().filter(|g| missed(g)).collect();
        if !goals.is_empty() {
            let text = reason.text.trim_end().replace('\n', "\n  ");
            tell(&goals, &text.replace("\n  \n", "\n\n"));
        }
    }
    for row in rows.iter().filter(|row| !row.met) {
        let what = row.what.as_str();
        if !reasons.iter().any(|reason| reason.goals.contains(&what)) {
            tell(&[what], "It is not known yet why.");
        }
    }
    text
}

/// Writes the goals between their marks in a README.
pub fn update(readme: &Path, rows: &[Row], machine: &str, command: &str) -> anyhow::Result<()> {
    let text = fs::read_to_string(readme)
        .with_context(|| format!("{} cannot be read", readme.display()))?;
    let place = || Some((text.find(BEGIN)? + BEGIN.len(), text.find(END)?));
    let (begin, end) = place().context("the README has no marks for the goals")?;
    ensure!(begin <= end, "the marks for the goals are in disorder");
    let met = rows.iter().filter(|row| row.met).count();
    let mut goals = format!(
        "\n\n{met} of {} are met. Medians of quotients within one run of\n\
        `{command}`; 1024 keys, UUID texts, unless the row says\n\
        otherwise.\n\n{}\n\n{}\n",
        rows.len(),
        machine.trim(),
        table(rows)
    );
    let losses = losses(rows);
    if !losses.is_empty() {
        let _ = write!(
            goals,
            "Where it loses, and why, as far as is known:\n\n{losses}\n"
        );
    }
    fs::write(readme, [&text[..begin], &goals, &text[end..]].concat())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_a_goal() {
        let goals = include_str!("goals.rs");
        for reason in reasons(REASONS) {
            assert!(!reason.text.trim().is_empty(), "{:?}", reason.goals);
            for goal in reason.goals {
                assert!(
                    goals.contains(&format!("\"{goal}\"")),
                    "no goal is called {goal}"
                );
            }
        }
    }

    #[test]
    fn only_what_is_missed_is_explained() {
        let row = |what: &str, met| Row {
            what: what.to_owned(),
            demanded: "≤ 1.00".to_owned(),
            measured: 1.0,
            low: 1.0,
            high: 1.0,
            of_minima: 1.0,
            met,
            figures: String::new(),
        };
        let [missed, known] = ["a row without a reason", "reads beside a writer / papaya's"];
        assert_eq!(losses(&[row(missed, true), row(known, true)]), "");
        assert!(losses(&[row(missed, false)]).contains(missed));
        let text = losses(&[row(known, false)]);
        assert!(text.starts_with("* **reads beside a writer / papaya's.**\n  "));
        assert_eq!(text.matches("**").count(), 2);
    }
}
