//! The core with a choice made otherwise, measured beside the core as it is.
//!
//! A variant is a copy of the sources with a few places replaced, so what ships has no switches for
//! it. All copies are linked into one program and take turns there.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::ablation::{Line, lines};
use crate::alloc::Count;
use crate::data::{KEYS, Key, Order, Pick, Status, uuids};
use crate::harness::{Case, Member, NANOS, Run, Runner, cpu_time, flush_epochs, together};
use crate::mixes::filled;
use crate::peers::{Peer, Snapshot};
use crate::progress::Progress;
use crate::stats::histogram;
use crate::tasks;

/// A text that is replaced. It is found once in its file below `src`, or the variant is outdated.
#[derive(Debug)]
struct Edit {
    file: &'static str,
    from: &'static str,
    to: &'static str,
}

/// Something that could have been done instead.
#[derive(Debug)]
struct Variant {
    name: &'static str,
    edits: &'static [Edit],
}

/// A choice, what speaks for it, and the alternatives.
#[derive(Debug)]
struct Choice {
    title: &'static str,
    chosen: &'static str,
    instead: &'static [Variant],
    measures: &'static [Measure],
}

/// What is measured of a variant.
#[derive(Debug, Clone, Copy)]
pub enum Measure {
    /// A get, alone.
    Get,
    /// A set, alone.
    Set,
    /// Two threads set different keys.
    TwoSet,
    /// A wait that is given up, alone.
    Cancel,
    /// Two threads wait for different keys and give up.
    TwoCancel,
    /// A wait that a set ends, alone.
    Woken,
    /// `update_time` while nobody waits.
    Idle,
    /// `update_time` that wakes many tasks.
    Storm,
    /// Many threads set one key, and wait for it.
    OneKey,
    /// Growth from nothing to many keys.
    Growth,
    /// Memory per key.
    Bytes,
}

const TAIL: &str = "p99.9 ns";

impl Measure {
    /// What is told of it, by figure.
    fn figures(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Get => &[(NANOS, "get")],
            Self::Set => &[(NANOS, "set")],
            Self::TwoSet => &[(NANOS, "set, two threads, different keys")],
            Self::Cancel => &[(NANOS, "wait and cancel")],
            Self::TwoCancel => &[(NANOS, "wait and cancel, two threads, different keys")],
            Self::Woken => &[(NANOS, "wait, woken by set")],
            Self::Idle => &[(NANOS, "update_time, nobody waiting")],
            Self::Storm => &[(NANOS, "update_time waking 2,500 tasks, per task")],
            Self::OneKey => &[
                (NANOS, "one key, 4 threads set and 4 wait and cancel"),
                (TAIL, "p99.9 of a wait meanwhile"),
            ],
            Self::Growth => &[
                (NANOS, "growth to 100k keys, per key"),
                (TAIL, "p99.9 of a set meanwhile"),
            ],
            Self::Bytes => &[("bytes", "bytes per key, 100k keys")],
        }
    }

    fn rounds(self) -> usize {
        match self {
            Self::Growth => 12,
            Self::Bytes => 3,
            Self::OneKey => 25,
            Self::Storm => 30,
            _ => 40,
        }
    }

    /// How long a round of one variant takes about.
    fn seconds(self) -> f64 {
        match self {
            Self::Growth => 0.07,
            Self::Bytes => 0.03,
            Self::OneKey => 0.03,
            Self::TwoSet | Self::TwoCancel => 0.012,
            _ => 0.003,
        }
    }
}

const fn edit(file: &'static str, from: &'static str, to: &'static str) -> Edit {
    Edit { file, from, to }
}

const SHARDS: &str = "#[cfg(not(podcache_loom))]\nconst SHARDS: usize = 16;";
const ROOM: &str = "        buckets / 4\n";
const CHUNK: &str = "const CHUNK: usize = if cfg!(podcache_loom) { 1 } else { 32 };";

/// All choices.
const CHOICES: &[Choice] = &[
    Choice {
        title: "shards of the waiting set",
        chosen: "16",
        instead: &[
            Variant {
                name: "1",
                edits: &[edit("raw/waiting.rs", SHARDS, "const SHARDS: usize = 1;")],
            },
            Variant {
                name: "4",
                edits: &[edit("raw/waiting.rs", SHARDS, "const SHARDS: usize = 4;")],
            },
            Variant {
                name: "64",
                edits: &[edit("raw/waiting.rs", SHARDS, "const SHARDS: usize = 64;")],
            },
        ],
        measures: &[
            Measure::Idle,
            Measure::Cancel,
            Measure::TwoCancel,
            Measure::Storm,
        ],
    },
    Choice {
        title: "help with another's hand-over",
        chosen: "helped",
        instead: &[Variant {
            name: "left to its owner",
            edits: &[edit(
                "raw/node.rs",
                "if let Some(aux) = self.unfinished() {",
                "if let Some(aux) = self.unfinished().filter(|_| false) {",
            )],
        }],
        measures: &[Measure::Woken, Measure::OneKey, Measure::Storm],
    },
    Choice {
        title: "allocations of a set",
        chosen: "one: the value in its node",
        instead: &[Variant {
            name: "two: the value apart",
            edits: &[
                edit(
                    "raw/node.rs",
                    "    /// The record that the node itself brought.\n    Own(V),",
                    "    Own(Box<V>),",
                ),
                edit(
                    "raw/node.rs",
                    "Body::Own(value), time, time",
                    "Body::Own(Box::new(value)), time, time",
                ),
                edit(
                    "raw/node.rs",
                    "Body::Own(value) | Body::Default(value) => Some(value),",
                    "Body::Own(value) => Some(value),\n            Body::Default(value) => Some(value),",
                ),
            ],
        }],
        measures: &[
            Measure::Get,
            Measure::Set,
            Measure::TwoSet,
            Measure::Growth,
            Measure::Bytes,
        ],
    },
    Choice {
        title: "slots per bucket, at most, of a small table",
        chosen: "1/4",
        instead: &[
            Variant {
                name: "1/2",
                edits: &[edit("raw/index.rs", ROOM, "        buckets / 2\n")],
            },
            Variant {
                name: "1",
                edits: &[edit("raw/index.rs", ROOM, "        buckets\n")],
            },
        ],
        measures: &[Measure::Get, Measure::Set],
    },
    Choice {
        title: "slots per bucket, at most, of a large table",
        chosen: "1/2",
        instead: &[
            Variant {
                name: "1/4",
                edits: &[edit(
                    "raw/index.rs",
                    LARGE,
                    "    } else {\n        buckets / 4\n    }",
                )],
            },
            Variant {
                name: "1",
                edits: &[edit(
                    "raw/index.rs",
                    LARGE,
                    "    } else {\n        buckets\n    }",
                )],
            },
        ],
        measures: &[Measure::Growth, Measure::Bytes],
    },
    Choice {
        title: "buckets that a writer migrates in passing",
        chosen: "32",
        instead: &[
            Variant {
                name: "8",
                edits: &[edit("raw/index.rs", CHUNK, "const CHUNK: usize = 8;")],
            },
            Variant {
                name: "128",
                edits: &[edit("raw/index.rs", CHUNK, "const CHUNK: usize = 128;")],
            },
        ],
        measures: &[Measure::Growth],
    },
];

const LARGE: &str = "    } else {\n        buckets / 2\n    }";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the benchmarks are in the repository")
}

impl Variant {
    /// A source file as the variant has it.
    fn applied(&self, choice: &Choice, file: &str, text: String) -> anyhow::Result<String> {
        let mut edits = self.edits.iter().filter(|edit| edit.file == file);
        edits.try_fold(text, |text, edit| {
            let found = text.matches(edit.from).count();
            ensure!(
                found == 1,
                "variant text not found: {} = {}: {found} times in src/{file}, not once:\n{}",
                choice.title,
                self.name,
                edit.from
            );
            Ok(text.replace(edit.from, edit.to))
        })
    }
}

/// Whether all texts that the variants replace are there.
pub fn check() -> anyhow::Result<()> {
    for choice in CHOICES {
        for variant in choice.instead {
            let files: HashSet<_> = variant.edits.iter().map(|edit| edit.file).collect();
            for file in files {
                let text = fs::read_to_string(root().join("src").join(file))?;
                variant.applied(choice, file, text)?;
            }
        }
    }
    Ok(())
}

/// The variants with the names of their copies: first the core as it is.
fn copies() -> impl Iterator<Item = (String, Option<(&'static Choice, &'static Variant)>)> {
    let all = CHOICES
        .iter()
        .flat_map(|choice| choice.instead.iter().map(move |variant| (choice, variant)));
    let all = std::iter::once(None).chain(all.map(Some));
    all.enumerate()
        .map(|(at, variant)| (format!("variant_{at}"), variant))
}

/// Copies the sources below `from`, with the places of a variant replaced.
fn copy(
    from: &Path,
    to: &Path,
    below: &Path,
    variant: Option<(&Choice, &Variant)>,
) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let name = entry?.file_name();
        let (from, to, below) = (from.join(&name), to.join(&name), below.join(&name));
        if from.is_dir() {
            copy(&from, &to, &below, variant)?;
            continue;
        }
        let mut text = fs::read_to_string(&from)?;
        if let Some((choice, variant)) = variant {
            let file = below.to_string_lossy().replace('\\', "/");
            text = variant.applied(choice, &file, text)?;
        }
        // What has not changed keeps its date, and is not built again.
        if fs::read_to_string(&to).ok().as_ref() != Some(&text) {
            fs::write(&to, text)?;
        }
    }
    Ok(())
}

/// The sections of a manifest whose header `wanted` accepts.
fn sections(manifest: &str, wanted: impl Fn(&str) -> bool) -> String {
    let mut inside = false;
    let mut kept = String::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            inside = wanted(line);
        }
        if inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Writes a workspace with all copies and the program that runs them; gives its directory.
fn prepare(directory: &Path) -> anyhow::Result<PathBuf> {
    let workspace = std::path::absolute(directory)?.join("variants");
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let dependencies = sections(&manifest, |header| {
        header == "[features]"
            || (header.ends_with("dependencies]") && header != "[dev-dependencies]")
    });
    let mut main = String::from("podcache_benches::run_variants! {\n");
    let mut members = String::new();
    for (name, variant) in copies() {
        let package = workspace.join(&name);
        copy(
            &root().join("src"),
            &package.join("src"),
            Path::new(""),
            variant,
        )?;
        fs::write(
            package.join("Cargo.toml"),
            format!(
                "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                [lints.rust]\nunused = \"allow\"\nunexpected_cfgs = \"allow\"\n\n{dependencies}"
            ),
        )?;
        writeln!(main, "    {name},")?;
        writeln!(members, "{name} = {{ path = \"{name}\" }}")?;
    }
    main.push_str("}\n");
    fs::create_dir_all(workspace.join("src"))?;
    fs::write(workspace.join("src/main.rs"), main)?;
    let benches = env!("CARGO_MANIFEST_DIR");
    let profile = sections(&manifest, |header| header == "[profile.release]");
    fs::write(
        workspace.join("Cargo.toml"),
        format!(
            "[workspace]\n\n[package]\nname = \"podcache-variants\"\nversion = \"0.0.0\"\n\
            edition = \"2024\"\n\n[dependencies]\nanyhow = \"1\"\n\
            podcache-benches = {{ path = {benches:?} }}\n{members}\n{profile}"
        ),
    )?;
    fs::copy(root().join("Cargo.lock"), workspace.join("Cargo.lock"))?;
    Ok(workspace)
}

/// How many lines of progress the program writes, and how long each takes about.
fn steps() -> impl Iterator<Item = f64> {
    CHOICES.iter().flat_map(|choice| {
        let alternatives = choice.instead.len() as f64 + 1.0;
        choice
            .measures
            .iter()
            .map(move |m| m.seconds() * (m.rounds() + 1) as f64 * alternatives)
    })
}

/// How long building takes about.
const BUILDING: f64 = 60.0;

/// How long all of it takes about.
pub fn seconds(effort: f64) -> f64 {
    BUILDING + effort * steps().sum::<f64>()
}

/// Builds all variants into one program, and has it measure them.
pub fn measure(out: &Path, effort: f64, progress: &Rc<Progress>) -> anyhow::Result<Vec<Line>> {
    progress.step("building the variants", 0.0);
    let workspace = prepare(out)?;
    let target = std::env::current_exe()?;
    let target = target
        .ancestors()
        .nth(2)
        .context("the program is in no target directory")?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = Command::new(cargo)
        .args(["build", "--release", "--quiet"])
        .current_dir(&workspace)
        .env("CARGO_TARGET_DIR", target)
        .output()
        .context("cargo does not start")?;
    ensure!(
        build.status.success(),
        "the variants do not build:\n{}",
        String::from_utf8_lossy(&build.stderr)
    );
    progress.next(BUILDING);
    let mut program = Command::new(target.join("release").join("podcache-variants"))
        .arg(out)
        .arg(effort.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .context("the variants do not start")?;
    let told = BufReader::new(program.stdout.take().expect("piped"));
    for (what, seconds) in told.lines().zip(steps()) {
        progress.next(seconds * effort);
        progress.step(&what?, 0.0);
    }
    ensure!(program.wait()?.success(), "the variants failed");
    crate::report::read(&out.join(LINES))
}

/// Where the program of the variants leaves its lines.
const LINES: &str = "variants.csv";

/// Makes a case of a variant.
pub type Make = fn(Measure, &'static str) -> Case<'static>;

/// What the program of the variants does; `made` are the cases of the copies, in their order.
pub fn run(made: &[Make]) -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let out = PathBuf::from(arguments.next().context("no directory")?);
    let effort = arguments.next().context("no effort")?;
    let effort = effort.to_string_lossy().parse()?;
    let mut runner = Runner::new(effort, &out.join("variants-raw.csv"), &Progress::silent())?;
    let mut kept = csv::Writer::from_path(out.join(LINES))?;
    let (base, mut rest) = made.split_first().context("no variants")?;
    for choice in CHOICES {
        let (instead, others) = rest.split_at(choice.instead.len());
        rest = others;
        let names: Vec<_> = std::iter::once(choice.chosen)
            .chain(choice.instead.iter().map(|variant| variant.name))
            .collect();
        for &measure in choice.measures {
            let makes = std::iter::once(base).chain(instead);
            let cases = makes.zip(&names).map(|(make, name)| make(measure, name));
            let experiment = format!("{}: {}", choice.title, measure.figures()[0].1);
            let samples = runner.interleave(&experiment, measure.rounds(), cases.collect());
            for (figure, what) in measure.figures() {
                for line in lines(choice.title, what, &names, &samples, figure) {
                    kept.serialize(line)?;
                }
            }
            println!("{experiment}");
        }
    }
    kept.flush()?;
    Ok(())
}

/// How long slices are.
const ALONE: Duration = Duration::from_millis(2);
const TOGETHER: Duration = Duration::from_millis(10);
/// Long enough that the scheduler takes threads off their cores.
const CROWDED: Duration = Duration::from_millis(25);

/// A case of a peer that is one of the variants.
pub fn case<P: Peer>(measure: Measure, name: &'static str) -> Case<'static> {
    match measure {
        Measure::Growth => {
            let keys = uuids(100_000);
            Case::new(name, &[NANOS, TAIL], move || grow::<P>(&keys))
        }
        Measure::Bytes => {
            let keys = uuids(100_000);
            Case::new(name, &["bytes"], move || vec![bytes::<P>(&keys)])
        }
        Measure::Storm => {
            let keys = uuids(2_500);
            let (peer, runtime) = (filled::<P>(&keys), tasks::runtime());
            let mut time = 1;
            Case::new(name, &[NANOS], move || {
                time += 1;
                let storm = tasks::peer_storm(&runtime, &peer, &keys, time - 1);
                vec![storm.call.as_nanos() as f64 / keys.len() as f64]
            })
        }
        _ => {
            let keys: Arc<[Key]> = uuids(KEYS).into();
            let peer = filled::<P>(&keys);
            let mut order = Order::new(Pick::Uniform, KEYS, 1);
            let mut time = 1;
            let alone = |op: Box<dyn FnMut()>| {
                let mut op = op;
                Case::new(name, &[NANOS], move || {
                    vec![crate::harness::nanos_alone(ALONE, &mut op)]
                })
            };
            match measure {
                Measure::Get => alone(Box::new(move || {
                    black_box(peer.get(&keys[order.next()]).status().generation);
                })),
                Measure::Set => alone(Box::new(move || {
                    time += 1;
                    peer.set(&keys[order.next()], Status::new(time), time);
                })),
                Measure::Cancel => {
                    alone(Box::new(move || wait_in_vain(&*peer, &keys[order.next()])))
                }
                Measure::Woken => alone(Box::new(move || {
                    let key = &keys[order.next()];
                    let mut wait = std::pin::pin!(peer.newer_than(key, time));
                    let mut context = Context::from_waker(Waker::noop());
                    assert!(wait.as_mut().poll(&mut context).is_pending(), "it waits");
                    time += 1;
                    peer.set(key, Status::new(time), time);
                    assert!(wait.as_mut().poll(&mut context).is_ready(), "it was woken");
                })),
                Measure::Idle => alone(Box::new(move || {
                    time += 1;
                    peer.update_time(time);
                })),
                Measure::TwoSet | Measure::TwoCancel => Case::new(name, &[NANOS], move || {
                    vec![two(&*peer, &keys, matches!(measure, Measure::TwoSet))]
                }),
                _ => Case::new(name, &[NANOS, TAIL], move || one_key(&*peer, &keys[0])),
            }
        }
    }
}

fn wait_in_vain<P: Peer>(peer: &P, key: &Key) {
    let mut wait = std::pin::pin!(peer.newer_than(key, u64::MAX - 1));
    let polled = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "nobody wakes it");
}

/// Nanoseconds of wall time between operations of two threads, each on its own half of the keys.
fn two<P: Peer>(peer: &P, keys: &[Key], set: bool) -> f64 {
    let halves = keys.split_at(keys.len() / 2);
    let members = [halves.0, halves.1].map(|own| -> Member<'_, u64> {
        Box::new(move |run: &Run| {
            let mut order = Order::new(Pick::Uniform, own.len(), 2);
            let mut time = 1;
            run.count(|| {
                let key = &own[order.next()];
                if set {
                    time += 1;
                    peer.set(key, Status::new(time), time);
                } else {
                    wait_in_vain(peer, key);
                }
            })
        })
    });
    let done = together(TOGETHER, members.into());
    done.took.as_nanos() as f64 / done.results.iter().sum::<u64>() as f64
}

/// Four threads set a key that four others wait for: nanoseconds of wall time between operations,
/// and the tail of waits that are given up.
fn one_key<P: Peer>(peer: &P, key: &Key) -> Vec<f64> {
    let members = (0..8).map(|at| -> Member<'_, _> {
        Box::new(move |run: &Run| {
            let clock = quanta::Clock::new();
            let mut times = histogram();
            let mut time = 1;
            let count = run.count(|| {
                if at % 2 == 0 {
                    time += 1;
                    peer.set(key, Status::new(time), time);
                } else {
                    let start = clock.raw();
                    wait_in_vain(peer, key);
                    times.saturating_record(clock.delta_as_nanos(start, clock.raw()));
                }
            });
            (count, times)
        })
    });
    let done = together(CROWDED, members.collect());
    let mut times = histogram();
    let mut count = 0;
    for (some, own) in &done.results {
        count += some;
        times.add(own).expect("histograms of one shape");
    }
    let between = done.took.as_nanos() as f64 / count as f64;
    vec![between, times.value_at_quantile(0.999) as f64]
}

fn grow<P: Peer>(keys: &[Key]) -> Vec<f64> {
    let clock = quanta::Clock::new();
    let mut times = histogram();
    let peer = P::with_capacity(0);
    let start = cpu_time();
    for key in keys {
        let begun = clock.raw();
        peer.set(key, Status::new(1), 1);
        times.saturating_record(clock.delta_as_nanos(begun, clock.raw()));
    }
    let spent = cpu_time() - start;
    vec![
        spent.as_nanos() as f64 / keys.len() as f64,
        times.value_at_quantile(0.999) as f64,
    ]
}

fn bytes<P: Peer>(keys: &[Key]) -> f64 {
    Count::start();
    let peer = P::with_capacity(0);
    keys.iter().for_each(|key| peer.set(key, Status::new(1), 1));
    flush_epochs();
    let live = Count::stop().live;
    drop(peer);
    live as f64 / keys.len() as f64
}

/// The program of the variants: makes a peer of each copy, and runs them.
#[macro_export]
macro_rules! run_variants {
    ($($variant:ident),* $(,)?) => {
        $(mod $variant {
            $crate::peer!($variant);
        })*

        fn main() -> anyhow::Result<()> {
            let made: &[$crate::variants::Make] = &[
                $(|measure, name| $crate::variants::case::<$variant::Copy>(measure, name)),*
            ];
            $crate::variants::run(made)
        }
    };
}

/// A peer from a crate that has podcache's public face.
#[macro_export]
macro_rules! peer {
    ($core:ident) => {
        use $crate::data::{Hasher, Key, Status};

        /// The copy as a peer.
        #[derive(Debug)]
        pub(crate) struct Copy(::$core::Cache<Key, Value, Hasher>);

        /// The status, as a type that the copy knows the default of.
        #[derive(Debug, Clone)]
        pub(crate) struct Value(Status);

        impl ::$core::DefaultFor<Key> for Value {
            fn default_for(_: &Key) -> Self {
                Self(Status::new(0))
            }
        }

        /// What it gives.
        #[derive(Debug)]
        pub(crate) struct Snapshot(::$core::Snapshot<Value>);

        impl $crate::peers::Snapshot for Snapshot {
            #[inline]
            fn status(&self) -> &Status {
                &self.0.value().0
            }
        }

        impl $crate::peers::Peer for Copy {
            const NAME: &'static str = stringify!($core);
            type Snapshot = Snapshot;

            fn with_capacity(keys: usize) -> Self {
                let builder = ::$core::Cache::<Key, Value>::builder();
                Self(builder.capacity(keys).hasher(Hasher::default()).build())
            }

            #[inline]
            fn get(&self, key: &Key) -> Snapshot {
                Snapshot(self.0.get(key))
            }

            #[inline]
            fn set(&self, key: &Key, status: Status, time: u64) {
                let time = ::$core::Timestamp::from_nanos(time);
                self.0.set(key, Value(status), time);
            }

            #[inline]
            fn delete(&self, key: &Key) {
                self.0.delete(key);
            }

            #[inline]
            fn update_time(&self, time: u64) {
                self.0.update_time(::$core::Timestamp::from_nanos(time));
            }

            async fn newer_than(&self, key: &Key, min: u64) -> Snapshot {
                let min = ::$core::Timestamp::from_nanos(min);
                Snapshot(self.0.subscribe(key, min).await.expect("an open cache"))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_texts_of_all_variants_are_found() {
        super::check().unwrap();
    }

    mod podcache_itself {
        crate::peer!(podcache);
    }

    #[test]
    fn a_copy_is_a_peer() {
        use crate::data::{Status, uuids};
        use crate::peers::{Peer, Snapshot};

        let keys = uuids(1);
        let peer = podcache_itself::Copy::with_capacity(1);
        assert_eq!(peer.get(&keys[0]).status().generation, 0);
        peer.set(&keys[0], Status::new(7), 2);
        assert_eq!(peer.wait_newer_than(&keys[0], 1).status().generation, 7);
        peer.delete(&keys[0]);
        peer.update_time(3);
        assert_eq!(peer.wait_newer_than(&keys[0], 2).status().generation, 0);
    }
}
