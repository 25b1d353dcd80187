//! Mutants of the sources, and which model notices each.
//!
//! All mutants are in one build: a copy of the sources in which every place that can be changed
//! asks at run time whether it is the one. So a mutant costs a run, not a build, and one run of the
//! sources as they are tells which models pass which places: only those can notice a change there.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::journal::Journal;
use super::page;
use super::report::Screen;
use super::sites;
pub(crate) use super::sites::Mutant;
use super::worker::{Event, Model, Report, Worker, explore_all, list};
use super::{Args, Tally};
use crate::Verdict;
use crate::cargo::{Build, root, target_dir};

/// What is copied.
const SOURCES: &[&str] = &["Cargo.toml", "Cargo.lock", "src", "loom-tests"];

/// Why loom does not see some mutants, and what covers them: one line each, `mutant: reason`.
const REASONS: &str = "loom-tests/survivors.txt";

/// So many executions show which places a model passes.
const GLANCE: usize = 250;

/// What came of one mutant.
#[derive(Serialize, Deserialize)]
pub(crate) struct Verdicts {
    pub(crate) mutant: Mutant,
    /// The model that noticed, in which execution, and what it saw.
    pub(crate) caught: Option<Caught>,
    /// How many models and executions did not.
    pub(crate) models: usize,
    pub(crate) executions: usize,
    /// Why it may survive.
    pub(crate) reason: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Caught {
    pub(crate) program: String,
    pub(crate) preemptions: Option<usize>,
    pub(crate) execution: usize,
    pub(crate) why: String,
}

/// The two builds that a mutant is tried on.
struct Lab {
    binary: PathBuf,
    /// Models, with the places that each passes.
    models: Vec<(Model, Vec<u32>)>,
    /// Whether the sources as they are pass. A model that they fail says nothing about mutants.
    sound: bool,
}

/// A copy of the sources to plant them in. The page has its own, so that it can be written while
/// mutants are run.
pub(crate) fn copy(name: &str) -> anyhow::Result<PathBuf> {
    let copy = target_dir().join("mutants").join(name);
    copy_sources(&copy)?;
    Ok(copy)
}

/// Plants all mutants in a copy.
pub(crate) fn planted(copy: &Path) -> anyhow::Result<Vec<Mutant>> {
    sites::plant(copy)
}

pub(crate) fn run(args: &Args) -> Verdict {
    let copy = copy(if args.list { "list" } else { "copy" })?;
    let mutants = planted(&copy)?;
    let reasons = reasons()?;
    if args.list {
        for mutant in mutants.iter().filter(|mutant| args.means(&mutant.name())) {
            if args.json {
                println!("{}", serde_json::to_string(mutant)?);
            } else {
                println!("{}", mutant.name());
            }
        }
        return Ok(true);
    }
    let labs = [
        lab(
            args,
            &copy,
            "quick",
            &["podcache_loom", "podcache_mutants"],
            "mutants/stand-in",
        )?,
        lab(
            args,
            &copy,
            "quick-freeing",
            &["podcache_loom", "crossbeam_loom", "podcache_mutants"],
            "mutants/epoch",
        )?,
    ];
    let all = mutants.clone();
    let before: Vec<Verdicts> = if args.resume {
        page::read("mutants")?.unwrap_or_default()
    } else {
        Vec::new()
    };
    let chosen: Vec<Mutant> = mutants
        .into_iter()
        .filter(|mutant| args.means(&mutant.name()))
        .filter(|mutant| !before.iter().any(|v| v.is_of(mutant)))
        .collect();

    let bar = ProgressBar::new(chosen.len() as u64).with_style(
        ProgressStyle::with_template("{bar:30} {pos}/{len} mutants, {msg} [{elapsed}]")
            .expect("a template that is written here"),
    );
    let open = Mutex::new(VecDeque::from(chosen));
    // How many mutants each model has noticed: the keenest go first, then the shortest.
    let keen: Mutex<HashMap<String, usize>> = Mutex::default();
    let done: Mutex<Vec<Verdicts>> = Mutex::default();
    let broken: Mutex<Option<anyhow::Error>> = Mutex::default();
    thread::scope(|scope| {
        for _ in 0..args.jobs {
            scope.spawn(|| {
                loop {
                    let Some(mutant) = open.lock().expect("no panic under it").pop_front() else {
                        return;
                    };
                    match examine(mutant, &labs, &keen, &reasons) {
                        Ok(verdicts) => {
                            if args.json {
                                println!(
                                    "{}",
                                    serde_json::to_string(&verdicts).expect("plain data")
                                );
                            } else {
                                bar.suspend(|| verdicts.print());
                            }
                            let mut done = done.lock().expect("no panic under it");
                            done.push(verdicts);
                            done.sort_by_key(|verdicts| verdicts.mutant.id);
                            // As it goes: a run of hours may be cut short.
                            if args.record
                                && let Err(error) = keep(&all, &done)
                            {
                                *broken.lock().expect("no panic under it") = Some(error);
                            }
                        }
                        Err(error) => *broken.lock().expect("no panic under it") = Some(error),
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(error) = broken.into_inner().expect("no panic under it") {
        return Err(error);
    }
    let done = done.into_inner().expect("no panic under it");
    let sound = labs.iter().all(|lab| lab.sound);
    Ok(conclude(&done, args) && sound)
}

/// Keeps what came of these, and of the others that are still there what came of them before.
fn keep(all: &[Mutant], done: &[Verdicts]) -> anyhow::Result<()> {
    let before: Vec<Verdicts> = page::read("mutants")?.unwrap_or_default();
    let of = |mutant: &Mutant| {
        let same = |v: &&Verdicts| v.is_of(mutant);
        done.iter().find(same).or_else(|| before.iter().find(same))
    };
    page::keep("mutants", &all.iter().filter_map(of).collect::<Vec<_>>())
}

/// Says how many survived, and is content if each has its reason and each reason its survivor.
fn conclude(done: &[Verdicts], args: &Args) -> bool {
    let caught = done.iter().filter(|v| v.caught.is_some()).count();
    let unexplained: Vec<_> = done
        .iter()
        .filter(|v| v.caught.is_none() && v.reason.is_none())
        .collect();
    let stale: Vec<_> = done
        .iter()
        .filter(|v| v.caught.is_some() && v.reason.is_some())
        .collect();
    if !args.json {
        println!(
            "{} mutants: {caught} caught, {} survived with a reason, {} without",
            done.len(),
            done.len() - caught - unexplained.len(),
            unexplained.len()
        );
        for verdicts in &unexplained {
            println!(
                "  survives without a reason in {REASONS}: {}",
                verdicts.mutant.name()
            );
        }
        for verdicts in &stale {
            println!(
                "  is caught, so its reason in {REASONS} is outdated: {}",
                verdicts.mutant.name()
            );
        }
    }
    unexplained.is_empty() && stale.is_empty()
}

/// The reasons by the name of the mutant.
pub(crate) fn reasons() -> anyhow::Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(root().join(REASONS)).with_context(|| REASONS)?;
    text.lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (name, reason) = line
                .split_once(" = ")
                .with_context(|| format!("{REASONS}: no \" = \" in {line:?}"))?;
            Ok((name.trim().to_string(), reason.trim().to_string()))
        })
        .collect()
}

fn copy_sources(copy: &Path) -> anyhow::Result<()> {
    fn tree(from: &Path, to: &Path) -> anyhow::Result<()> {
        if from.is_dir() {
            fs::create_dir_all(to)?;
            for entry in fs::read_dir(from)? {
                let name = entry?.file_name();
                if name != "target" {
                    tree(&from.join(&name), &to.join(&name))?;
                }
            }
        } else {
            fs::copy(from, to)?;
        }
        Ok(())
    }
    if copy.exists() {
        fs::remove_dir_all(copy)?;
    }
    fs::create_dir_all(copy)?;
    for name in SOURCES {
        tree(&root().join(name), &copy.join(name)).with_context(|| format!("copying {name}"))?;
    }
    // The other packages of the workspace are not copied.
    let manifest = copy.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    let start = text
        .find("members = [")
        .context("no members in Cargo.toml")?;
    let end = start
        + text[start..]
            .find(']')
            .context("no end of members in Cargo.toml")?;
    fs::write(
        &manifest,
        format!("{}members = [{}", &text[..start], &text[end..]),
    )?;
    Ok(())
}

/// Builds the copy in one way, and explores the sources as they are, to see what passes where.
fn lab(args: &Args, copy: &Path, set: &str, cfgs: &[&str], target: &str) -> anyhow::Result<Lab> {
    let workspace = &copy.join("loom-tests");
    let binary = Build {
        workspace,
        bin: "loom",
        cfgs,
        features: &[],
        target,
    }
    .run()?;
    let models = args.choose_some(list(&binary, set)?);
    let mut tally = Tally::new(set, "");
    let mut screen = Screen::new(set, models.len(), args.jobs, false);
    let mut passing = Vec::new();
    let mut pass = |model: &Model, event: &Event| {
        if let Event::Done { passed, .. } = event {
            let limit = models
                .iter()
                .find(|m| m.is_like(model))
                .and_then(|m| m.limit);
            let whole = Model {
                limit,
                ..model.clone()
            };
            passing.push((whole, passed.clone()));
        }
    };
    // What the same build has passed before, it passes again.
    let mut journal = Journal::open(&format!("mutants-{set}"), &binary, true)?;
    let mut broken = None;
    let mut left = Vec::new();
    for model in &models {
        let glance = Model {
            limit: Some(GLANCE),
            ..model.clone()
        };
        match journal.of(&glance) {
            Some(event) => {
                pass(&glance, &event);
                screen.show(Report::Ended(glance, event), &mut tally, &mut broken);
            }
            None => left.push(glance),
        }
    }
    explore_all(&binary, left, args.jobs, Some, |report| {
        if let Report::Ended(model, event) = &report {
            pass(model, event);
            if let Err(error) = journal.note(model, event) {
                broken = Some(error);
            }
        }
        screen.show(report, &mut tally, &mut broken);
    });
    screen.clear();
    if let Some(error) = broken {
        return Err(error);
    }
    tally.print_failures(set == "quick-freeing");
    Ok(Lab {
        binary,
        models: passing,
        sound: tally.failed.is_empty(),
    })
}

/// Tries a mutant on every model that passes its place, until one notices.
fn examine(
    mutant: Mutant,
    labs: &[Lab],
    keen: &Mutex<HashMap<String, usize>>,
    reasons: &BTreeMap<String, String>,
) -> anyhow::Result<Verdicts> {
    let reason = reasons.get(&mutant.name()).cloned();
    let mut verdicts = Verdicts {
        mutant,
        caught: None,
        models: 0,
        executions: 0,
        reason,
    };
    for lab in labs {
        let keenness: HashMap<String, usize> = keen.lock().expect("no panic under it").clone();
        let mut models: Vec<&Model> = lab
            .models
            .iter()
            .filter(|(_, passed)| passed.contains(&verdicts.mutant.id))
            .map(|(model, _)| model)
            .collect();
        models.sort_by_key(|model| {
            let keen = keenness.get(&model.program).copied();
            (std::cmp::Reverse(keen), model.program.len())
        });
        let env = [("PODCACHE_MUTANT", verdicts.mutant.id.to_string())];
        let mut worker = None;
        for model in models {
            if worker.is_none() {
                worker = Some(Worker::start(&lab.binary, &env)?);
            }
            let event = worker
                .as_mut()
                .expect("just started")
                .explore(model, |_| ())?;
            match event {
                Event::Done { executions, .. } => {
                    verdicts.models += 1;
                    verdicts.executions += executions;
                }
                Event::Failed {
                    executions, why, ..
                } => {
                    *keen
                        .lock()
                        .expect("no panic under it")
                        .entry(model.program.clone())
                        .or_default() += 1;
                    verdicts.caught = Some(Caught {
                        program: model.program.clone(),
                        preemptions: model.preemptions,
                        execution: executions,
                        why: in_short(&why).to_string(),
                    });
                    return Ok(verdicts);
                }
                Event::Progress { .. } => unreachable!("not a last event"),
            }
        }
    }
    Ok(verdicts)
}

/// What a model saw, without the list of its threads and without places outside of the sources: those
/// are this machine's.
fn in_short(why: &str) -> &str {
    let line = why.lines().next().unwrap_or_default();
    let ends = ["; threads = ", " (/"].map(|mark| line.find(mark));
    &line[..ends.into_iter().flatten().min().unwrap_or(line.len())]
}

impl Verdicts {
    /// Whether it is of this mutant, and of the statement that stands there now.
    pub(crate) fn is_of(&self, mutant: &Mutant) -> bool {
        self.mutant.name() == mutant.name() && self.mutant.text == mutant.text
    }

    fn print(&self) {
        match &self.caught {
            Some(caught) => println!(
                "caught    {}: {} in execution {} of {}",
                self.mutant.name(),
                caught.why,
                caught.execution,
                caught.program
            ),
            None => println!(
                "survived  {}: {} models, {} executions",
                self.mutant.name(),
                self.models,
                self.executions
            ),
        }
    }
}
