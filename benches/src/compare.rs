//! Two runs side by side: which quotients did not come out alike.

use std::collections::HashMap;
use std::path::Path;

use crate::goals;
use crate::mixes;
use crate::report::{Figure, ONE_LOCK, OURS, read};
use crate::units::significant;

/// What a run has to say again when it is repeated, by name.
type Quotients = Vec<(String, f64)>;

/// The goals of a run, and of each mix the quotient of podcache and the one lock.
fn quotients(out: &Path) -> anyhow::Result<[(&'static str, Quotients); 2]> {
    let rows: Vec<goals::Row> = read(&out.join(goals::ROWS))?;
    let goals = rows.into_iter().map(|row| (row.what, row.measured));
    let mut mixes: Quotients = Vec::new();
    let path = out.join(mixes::FIGURES);
    if path.exists() {
        let figures: Vec<Figure> = read(&path)?;
        for ours in figures.iter().filter(|figure| figure.peer == OURS) {
            let same = |other: &&Figure| {
                other.peer == ONE_LOCK
                    && (&other.mix, other.size, &other.figure)
                        == (&ours.mix, ours.size, &ours.figure)
            };
            if let Some(lock) = figures.iter().find(same)
                && lock.median != 0.0
            {
                let name = format!("{}, {} {}: {}", ours.mix, ours.size, ours.axis, ours.figure);
                mixes.push((name, ours.median / lock.median));
            }
        }
    }
    Ok([
        ("goals", goals.collect()),
        ("podcache / one lock (std)", mixes),
    ])
}

/// Prints the quotients of two runs that differ by more than so many percent.
pub fn print(before: &Path, after: &Path, percent: f64) -> anyhow::Result<()> {
    for ((title, before), (_, after)) in quotients(before)?.into_iter().zip(quotients(after)?) {
        let after: HashMap<_, _> = after.into_iter().collect();
        let both: Vec<_> = before
            .iter()
            .filter_map(|(name, a)| Some((name, *a, *after.get(name)?)))
            .collect();
        let mut apart: Vec<_> = both
            .iter()
            .map(|&(name, a, b)| (name, a, b, (a.max(b) / a.min(b) - 1.0) * 100.0))
            .filter(|(.., difference)| *difference > percent)
            .collect();
        apart.sort_by(|a, b| b.3.total_cmp(&a.3));
        println!(
            "{title}: {} of {} differ by more than {percent} %",
            apart.len(),
            both.len()
        );
        for (name, a, b, difference) in apart {
            println!(
                "  {difference:4.0} %  {:>8} {:>8}  {name}",
                significant(a),
                significant(b)
            );
        }
    }
    Ok(())
}
