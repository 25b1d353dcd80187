//! The places of the sources that are changed, and how.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};

use super::steps::STEPS;

/// Where orderings and fences are not looked for: these files choose between kinds of atomics, count
/// for people, or stand in for the system, and are not compiled as they ship under loom.
const NOT_IN: &[&str] = &[
    "counters.rs",
    "mod.rs",
    "park.rs",
    "park_loom.rs",
    "published.rs",
    "sync.rs",
];

/// One change.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Mutant {
    pub(crate) id: u32,
    /// The file, below `src`.
    pub(crate) file: String,
    /// The function, or the name of the step.
    pub(crate) place: String,
    /// What stands there; of a step, what it does.
    pub(crate) was: String,
    /// What takes its place; empty if it is left out.
    pub(crate) becomes: String,
    /// What the sources say beside it.
    pub(crate) says: String,
    /// The statement that is changed, in one line: what came of a mutant holds as long as it stands.
    #[serde(default)]
    pub(crate) text: String,
}

impl Mutant {
    pub(crate) fn is_step(&self) -> bool {
        self.becomes == "step"
    }

    /// The same from run to run as long as the function is.
    pub(crate) fn name(&self) -> String {
        match (self.was.as_str(), self.becomes.as_str()) {
            (_, "step") => format!("{} {}", self.file, self.place),
            (was, "") => format!("{} {} {was} removed", self.file, self.place),
            (was, becomes) => format!("{} {} {was} to {becomes}", self.file, self.place),
        }
    }
}

/// What an ordering can be weakened to, one half at a time.
fn weaker(ordering: &str) -> &'static [&'static str] {
    match ordering {
        "Acquire" | "Release" => &["Relaxed"],
        "AcqRel" => &["Acquire", "Release"],
        "SeqCst" => &["AcqRel"],
        _ => &[],
    }
}

/// Plants all mutants in the sources at `copy`.
pub(crate) fn plant(copy: &Path) -> anyhow::Result<Vec<Mutant>> {
    let mut mutants = Vec::new();
    let mut lost = Vec::new();
    // The steps first: their texts are those of the sources.
    for step in STEPS {
        let id = mutants.len() as u32 + 1;
        for (file, text, with) in step.edits {
            let path = copy.join("src").join(file);
            let source = fs::read_to_string(&path)?;
            let found = source.matches(text).count();
            if found != 1 {
                lost.push(format!("{}: {found} times in {file}: {text}", step.name));
            }
            let with = with.replace("$on", &format!("crate::mutant::on({id})"));
            fs::write(&path, source.replace(text, &with))?;
        }
        let texts: Vec<&str> = step.edits.iter().map(|(_, text, _)| *text).collect();
        mutants.push(Mutant {
            id,
            file: step.edits[0].0.to_string(),
            place: step.name.to_string(),
            was: step.what.to_string(),
            becomes: "step".to_string(),
            says: String::new(),
            text: in_one_line(&texts.join(" … ")),
        });
    }
    ensure!(
        lost.is_empty(),
        "the texts of these steps are to be found once each:\n{}",
        lost.join("\n")
    );
    let raw = copy.join("src/raw");
    let mut files = Vec::new();
    for entry in fs::read_dir(&raw)? {
        files.extend(entry?.file_name().into_string());
    }
    files.retain(|file| file.ends_with(".rs") && !NOT_IN.contains(&file.as_str()));
    files.sort();
    for file in files {
        let path = raw.join(&file);
        let source = fs::read_to_string(&path).context(file.clone())?;
        let planted = plant_orderings(&format!("raw/{file}"), &source, &mut mutants)?;
        fs::write(&path, planted)?;
    }
    add_switch(copy)?;
    Ok(mutants)
}

fn plant_orderings(file: &str, source: &str, mutants: &mut Vec<Mutant>) -> anyhow::Result<String> {
    const MARK: &str = "Ordering::";
    let mut planted = String::new();
    let mut function = String::new();
    let mut seen: Vec<(String, usize)> = Vec::new();
    let lines: Vec<&str> = source.lines().collect();
    let mut number_of = |place: String| -> String {
        match seen.iter_mut().find(|(p, _)| *p == place) {
            Some((_, n)) => {
                *n += 1;
                format!("{place} #{n}")
            }
            None => {
                seen.push((place.clone(), 1));
                place
            }
        }
    };
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            // Tests come last in a file.
            planted.extend(lines[at..].iter().flat_map(|line| [line, "\n"]));
            break;
        }
        let code = line.trim_start();
        if let Some(name) = function_name(code) {
            function = name.to_string();
        }
        if code.starts_with("//") || code.starts_with("use ") || !line.contains(MARK) {
            planted.push_str(line);
            planted.push('\n');
            continue;
        }
        let (code, comment) = line.split_once("//").unwrap_or((line, ""));
        let says = says(&lines, at, comment);
        let text = statement(&lines, at);
        let is_fence = code.trim_start().starts_with("fence(");
        let mut rest = code;
        let mut new = String::new();
        while let Some(start) = rest.find(MARK) {
            let name_at = start + MARK.len();
            let length = rest[name_at..]
                .find(|c: char| !c.is_alphanumeric())
                .unwrap_or(rest.len() - name_at);
            let ordering = &rest[name_at..name_at + length];
            new.push_str(&rest[..start]);
            let options = weaker(ordering);
            if ordering == "Relaxed" {
                new.push_str("crate::mutant::relaxed()");
            } else if options.is_empty() {
                new.push_str(&rest[start..name_at + length]);
            } else {
                let what = if is_fence {
                    format!("fence {ordering}")
                } else {
                    ordering.to_string()
                };
                let place = number_of(format!("{function} {what}"));
                let place = place.replacen(&format!(" {what}"), "", 1);
                let mut choices = String::new();
                for becomes in options {
                    let id = mutants.len() as u32 + 1;
                    choices += &format!("({id}, Ordering::{becomes}), ");
                    mutants.push(Mutant {
                        id,
                        file: file.to_string(),
                        place: place.clone(),
                        was: what.clone(),
                        becomes: (*becomes).to_string(),
                        says: says.clone(),
                        text: text.clone(),
                    });
                }
                new += &format!("crate::mutant::order(Ordering::{ordering}, &[{choices}])");
            }
            rest = &rest[name_at + length..];
        }
        new.push_str(rest);
        if is_fence {
            ensure!(
                new.trim_end().ends_with(");"),
                "{file}: a fence that is no statement: {line}"
            );
            let id = mutants.len() as u32 + 1;
            let last = mutants.last().context("a fence has an ordering")?.clone();
            mutants.push(Mutant {
                id,
                becomes: String::new(),
                ..last
            });
            new = format!("if !crate::mutant::on({id}) {{ {} }}", new.trim());
        }
        planted.push_str(&new);
        planted.push('\n');
    }
    Ok(planted)
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The statement around a line, without comments.
fn statement(lines: &[&str], at: usize) -> String {
    let code = |line: &&str| {
        line.split("//")
            .next()
            .unwrap_or_default()
            .trim()
            .to_string()
    };
    let ends = |code: &String| code.is_empty() || code.ends_with([';', '{', '}']);
    let mut before: Vec<String> = lines[..at]
        .iter()
        .rev()
        .map(code)
        .take_while(|code| !ends(code))
        .collect();
    before.reverse();
    let rest: Vec<String> = lines[at..].iter().map(code).collect();
    let last = rest.iter().position(ends).unwrap_or(rest.len() - 1);
    before.extend_from_slice(&rest[..=last]);
    in_one_line(&before.join(" "))
}

/// The name in a line that begins a function.
fn function_name(code: &str) -> Option<&str> {
    let at = code.find("fn ")?;
    let before = code[..at].trim();
    let words = before.split_whitespace().all(|word| {
        matches!(word, "pub" | "unsafe" | "const") || word.starts_with("pub(") || word == "raw)"
    });
    let name = &code[at + 3..];
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    (words && end > 0).then(|| &name[..end])
}

/// The comment beside an ordering: on its line, or the nearest above it in the statement.
fn says(lines: &[&str], at: usize, on_line: &str) -> String {
    if !on_line.trim().is_empty() {
        return on_line.trim().to_string();
    }
    let mut first = at;
    while first > 0 && at - first < 12 && !lines[first - 1].trim_start().starts_with("//") {
        let line = lines[first - 1].trim();
        if line.is_empty() || line == "}" || function_name(line).is_some() {
            return String::new();
        }
        first -= 1;
    }
    let mut text: Vec<&str> = Vec::new();
    while first > 0 {
        let line = lines[first - 1].trim_start();
        match line.strip_prefix("//") {
            Some(comment) if !line.starts_with("///") => text.push(comment.trim()),
            _ => break,
        }
        first -= 1;
    }
    text.reverse();
    let text = text.join(" ");
    // What follows about safety is about something else.
    text.split("SAFETY:")
        .next()
        .unwrap_or_default()
        .trim()
        .to_string()
}

/// The module that says which mutant is on, and notes which places were passed.
const SWITCH: &str = r#"//! Which mutant is on.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::raw::Order as Ordering;

const PLACES: usize = 1024;

static ON: LazyLock<u32> = LazyLock::new(|| {
    std::env::var("PODCACHE_MUTANT").ok().and_then(|id| id.parse().ok()).unwrap_or(0)
});

static PASSED: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

pub(crate) fn on(id: u32) -> bool {
    PASSED[id as usize].store(true, Relaxed);
    *ON == id
}

std::thread_local! {
    /// Whether the source says that the access to come acquires.
    static FOLLOWS: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

pub(crate) fn follows() -> bool {
    FOLLOWS.take()
}

pub(crate) fn relaxed() -> Ordering {
    FOLLOWS.set(false);
    Ordering::Relaxed
}

pub(crate) fn order(order: Ordering, weaker: &[(u32, Ordering)]) -> Ordering {
    FOLLOWS.set(order != Ordering::Release);
    weaker.iter().find(|(id, _)| on(*id)).map_or(order, |(_, weaker)| *weaker)
}

/// The places that were passed since the last call.
pub fn passed() -> Vec<u32> {
    (0..PLACES as u32).filter(|id| PASSED[*id as usize].swap(false, Relaxed)).collect()
}
"#;

fn add_switch(copy: &Path) -> anyhow::Result<()> {
    fs::write(copy.join("src/mutant.rs"), SWITCH)?;
    for (file, line) in [
        ("src/lib.rs", "\n#[doc(hidden)]\npub mod mutant;\n"),
        (
            "src/raw/mod.rs",
            "\npub(crate) use sync::Ordering as Order;\n",
        ),
        // The index is compiled there once more.
        (
            "loom-tests/src/lib.rs",
            "\n#[doc(hidden)]\n#[path = \"../../src/mutant.rs\"]\npub mod mutant;\n",
        ),
    ] {
        let path = copy.join(file);
        let text = fs::read_to_string(&path)?;
        if text.contains("mod mutant") {
            bail!("{file} has a module of that name");
        }
        fs::write(&path, text + line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_what_it_is_however_it_is_laid_out() {
        let broken = [
            "    let before = self",
            "        .word // The futex.",
            "        .swap(1, Ordering::AcqRel);",
            "    }",
        ];
        let whole = "let before = self .word .swap(1, Ordering::AcqRel);";
        assert_eq!(statement(&broken, 2), whole);
        assert_eq!(statement(&broken, 1), whole);
        assert_eq!(statement(&[whole], 0), whole);
    }

    #[test]
    fn orderings_and_fences_are_found() {
        let source = "\
use x::Ordering;
fn take(&self) {
    // Acquire, with the release in `put`.
    self.word.compare_exchange(a, b, Ordering::AcqRel, Ordering::Acquire);
    // With the fence in `put`.
    fence(Ordering::SeqCst);
    self.word.load(Ordering::Relaxed); // Relaxed: a count.
}
";
        let mut mutants = Vec::new();
        let planted = plant_orderings("raw/x.rs", source, &mut mutants).unwrap();
        let names: Vec<String> = mutants.iter().map(Mutant::name).collect();
        assert_eq!(
            names,
            [
                "raw/x.rs take AcqRel to Acquire",
                "raw/x.rs take AcqRel to Release",
                "raw/x.rs take Acquire to Relaxed",
                "raw/x.rs take fence SeqCst to AcqRel",
                "raw/x.rs take fence SeqCst removed",
            ]
        );
        assert_eq!(
            mutants[2].text,
            "self.word.compare_exchange(a, b, Ordering::AcqRel, Ordering::Acquire);"
        );
        assert_eq!(mutants[2].says, "Acquire, with the release in `put`.");
        assert!(planted.contains("if !crate::mutant::on(5) { fence(crate::mutant::order(Ordering::SeqCst, &[(4, Ordering::AcqRel), ])); }"));
        assert!(planted.contains("    self.word.load(crate::mutant::relaxed());"));
    }
}
