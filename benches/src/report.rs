//! The page and the charts, made from what a run left. Every number and every claim in the text is
//! computed from the figures when the page is written.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Deserialize;

use crate::chart::{self, Panel, Series};
use crate::units::{bytes, rate, significant, time};
use crate::{ablation, goals, mixes, readme};

/// A line of [`mixes::FIGURES`].
#[derive(Debug, Clone, Deserialize)]
pub struct Figure {
    /// The mix.
    pub mix: String,
    /// What `size` counts.
    pub axis: String,
    /// Threads, waiters, pods or keys.
    pub size: usize,
    /// By whom.
    pub peer: String,
    /// What was measured.
    pub figure: String,
    /// Of the rounds.
    pub median: f64,
    /// Their lower quartile.
    pub q1: f64,
    /// Their upper quartile.
    pub q3: f64,
}

/// A line of [`mixes::LATENCIES`].
#[derive(Debug, Clone, Deserialize)]
struct Latency {
    mix: String,
    size: usize,
    peer: String,
    operation: String,
    p50: f64,
    p99: f64,
    #[serde(rename = "p99.9")]
    p999: f64,
    max: f64,
}

/// Reads what a run left.
pub fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<Vec<T>> {
    let mut reader = csv::Reader::from_path(path)
        .with_context(|| format!("there is no {}: a run leaves it", path.display()))?;
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}

/// The peer that all this is about...
pub const OURS: &str = "podcache";
/// ... and the design that it is compared with.
pub const ONE_LOCK: &str = "one lock (std)";

/// Where a run leaves what it was run on,
pub const MACHINE: &str = "machine.md";
/// by which command,
pub const COMMAND: &str = "command.txt";
/// and the table of what callgrind counted.
pub const INSTRUCTIONS: &str = "instructions.md";

/// What is written beside the figures of a mix.
fn about(mix: &str) -> &'static str {
    match mix {
        "get" => {
            "Every thread reads keys in random order. The maps that cannot wait are shown as limits."
        }
        "get beside one writer" => {
            "One thread sets keys in random order, all others read them, as fast as they go. A lock that \
             lets readers pass first makes up for its reads with sets: see both tables."
        }
        "get 99.9 %, set 0.1 %" | "get 90 %, set 10 %" | "get 50 %, set 50 %" => {
            "Every thread reads and sets keys in random order."
        }
        "get 90 %, set 10 %, zipf" => {
            "As before, but the key of rank r is chosen with a weight of 1/r."
        }
        "get 90 %, set 10 %, one key" => "As before, but everybody uses the same key.",
        "set, one key" => "All threads set the same key.",
        "set, different keys" => "Every thread sets keys that no other thread uses.",
        "paced bursts" => {
            "Every thread does 32 gets and a set at once, every millisecond. Latencies count from when \
             the burst should have begun, so the line \"no cache\" is what the clock and the scheduler \
             cost by themselves."
        }
        "wait and cancel" => "Begins to wait for a key and gives up.",
        "insert and delete" => "Sets a key of the thread's own that is not there, and deletes it.",
        "wake tasks" => {
            "A task per key waits; one `update_time` wakes them all. CPU time of the call, and until the \
             last task has run, all on one thread (in Go: wall time, on all cores). \"Bare wakers\" is a \
             list of wakers that is woken, without any cache."
        }
        "wake threads" => "The same with a blocked thread per key, in wall time.",
        "kubelet day, compressed" => {
            "A lister sets a tenth of the pods and then calls `update_time`, which wakes a worker per \
             pod; when all of them wait again it begins anew, as fast as it goes."
        }
        "kubelet day, 20 relists a second" => {
            "The same every 50 ms, while a reader does a get every 100 us, timed from when it should \
             begin."
        }
        "memory" => {
            "Bytes that are asked of the allocator, per key; the text of the key is not counted. Then \
             every key is waited for in vain once, and then all keys are deleted: what is still held."
        }
        "growth" => "CPU time per key to set so many new keys in a cache that was made empty.",
        _ => "",
    }
}

/// How a figure is shown, and whether less is better.
fn shown(figure: &str) -> (fn(f64) -> String, bool) {
    if figure.contains("bytes") {
        (bytes, true)
    } else if figure.split(' ').any(|word| word == "ns") {
        (time, true)
    } else {
        (rate, false)
    }
}

/// Groups by a name, in the order in which names first come.
fn grouped<'a, T>(all: &[&'a T], name: fn(&T) -> &str) -> Vec<(&'a str, Vec<&'a T>)> {
    let mut groups: Vec<(&str, Vec<&T>)> = Vec::new();
    for &item in all {
        match groups.iter().position(|(known, _)| *known == name(item)) {
            Some(at) => groups[at].1.push(item),
            None => groups.push((name(item), vec![item])),
        }
    }
    groups
}

/// The sizes of a mix, from small to large.
fn sizes<T>(all: &[&T], size: fn(&T) -> usize) -> Vec<usize> {
    let mut sizes: Vec<_> = all.iter().map(|item| size(item)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// A file name for a mix.
fn slug(mix: &str) -> String {
    let spelled = mix.replace("99.9 %", "999").replace(" %", "");
    let words = spelled
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

/// A difference below this factor, or one that the quartiles do not confirm, is not spoken of.
const NOTICEABLE: f64 = 1.1;

/// What a peer reached at a size, with its quartiles.
#[derive(Debug, Clone, Copy)]
struct Reached<'a> {
    peer: &'a str,
    size: usize,
    value: f64,
    low: f64,
    high: f64,
}

impl<'a> From<&'a Figure> for Reached<'a> {
    fn from(f: &'a Figure) -> Self {
        Self {
            peer: &f.peer,
            size: f.size,
            value: f.median,
            low: f.q1,
            high: f.q3,
        }
    }
}

impl<'a> From<&'a Latency> for Reached<'a> {
    fn from(l: &'a Latency) -> Self {
        Self {
            peer: &l.peer,
            size: l.size,
            value: l.p999,
            low: l.p999,
            high: l.p999,
        }
    }
}

/// Two sentences on what was reached, computed from it: one on the smallest size, one on the largest.
fn sentences(what: &str, all: &[Reached<'_>], axis: &str) -> String {
    let (show, less_is_better) = shown(what);
    // By how much `a` is better than `b`.
    let better = |a: f64, b: f64| if less_is_better { b / a } else { a / b };
    let ahead_of = |a: &Reached<'_>, b: &Reached<'_>| {
        let apart = if less_is_better {
            a.high < b.low
        } else {
            a.low > b.high
        };
        apart && better(a.value, b.value) > NOTICEABLE
    };
    let mut sizes: Vec<_> = all.iter().map(|r| r.size).collect();
    sizes.sort_unstable();
    let mut ends = vec![sizes[0], sizes[sizes.len() - 1]];
    ends.dedup();
    let mut text = String::new();
    for size in ends {
        let at_size = || all.iter().filter(move |r| r.size == size);
        let Some(ours) = at_size().find(|r| r.peer == OURS) else {
            continue;
        };
        let others = || at_size().filter(|r| r.peer != OURS && !is_limit(r.peer));
        let mut ahead: Vec<_> = others().filter(|r| ahead_of(r, ours)).collect();
        ahead.sort_by(|a, b| better(b.value, a.value).total_cmp(&1.0));
        let behind = others().filter(|r| ahead_of(ours, r)).count();
        let total = others().count();
        let _ = write!(
            text,
            "At {}, podcache has {}",
            counted(size, axis),
            show(ours.value)
        );
        if let Some(lock) = at_size().find(|r| r.peer == ONE_LOCK) {
            let factor = better(ours.value, lock.value);
            let (factor, word) = if factor >= 1.0 {
                (factor, "better")
            } else {
                (1.0 / factor, "worse")
            };
            let _ = write!(
                text,
                ", {} times {word} than the one lock of the standard library ({})",
                significant(factor),
                show(lock.value)
            );
        }
        let _ = match ahead.len() {
            0 => write!(
                text,
                "; of the {total} other caches none is clearly ahead of it"
            ),
            _ => {
                let names = ahead.iter().map(|r| {
                    format!(
                        "{} ({} times)",
                        code(r.peer),
                        significant(better(r.value, ours.value))
                    )
                });
                write!(
                    text,
                    "; clearly ahead of it: {}",
                    names.collect::<Vec<_>>().join(", ")
                )
            }
        };
        let _ = write!(text, "; clearly behind it: {behind} of {total}. ");
    }
    text.trim_end().to_owned()
}

/// A size in words.
fn counted(size: usize, axis: &str) -> String {
    let axis = if size == 1 {
        axis.trim_end_matches('s')
    } else {
        axis
    };
    format!("{size} {axis}")
}

/// What is shown as a limit and does not do the whole job.
fn is_limit(peer: &str) -> bool {
    peer.contains("only") || peer == "bare wakers" || peer == "no cache"
}

/// Whether a mix does a given amount of work, so that only its latencies say something.
fn is_paced(mix: &str) -> bool {
    mix.starts_with("paced") || mix.ends_with("a second")
}

fn sentence_case(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Names with angle brackets as code.
pub fn code(peer: &str) -> String {
    if peer.contains('<') {
        format!("`{peer}`")
    } else {
        peer.to_owned()
    }
}

/// A table with a row per peer and a column per size.
fn figure_table(all: &[&Figure], axis: &str) -> String {
    let (show, _) = shown(&all[0].figure);
    let sizes = sizes(all, |f| f.size);
    let mut text = format!("| {} |", title(&all[0].figure));
    sizes
        .iter()
        .for_each(|size| _ = write!(text, " {} |", counted(*size, axis)));
    text.push_str("\n|---|");
    sizes.iter().for_each(|_| text.push_str("--:|"));
    for (peer, rows) in grouped(all, |f| &f.peer) {
        let _ = write!(text, "\n| {} |", code(peer));
        for size in &sizes {
            match rows.iter().find(|f| f.size == *size) {
                None => text.push_str(" |"),
                Some(f) if f.q1 == f.q3 => _ = write!(text, " {} |", show(f.median)),
                Some(f) => {
                    let spread = (f.q3 - f.q1) / f.median / 2.0 * 100.0;
                    let _ = write!(text, " {} ±{spread:.0} % |", show(f.median));
                }
            }
        }
    }
    text
}

fn latency_table(all: &[&Latency], axis: &str) -> String {
    let mut text = format!(
        "| peer | {axis} | operation | p50 | p99 | p99.9 | max |\n|---|--:|---|--:|--:|--:|--:|"
    );
    for l in all {
        let _ = write!(
            text,
            "\n| {} | {} | {} | {} | {} | {} | {} |",
            code(&l.peer),
            l.size,
            l.operation,
            time(l.p50),
            time(l.p99),
            time(l.p999),
            time(l.max)
        );
    }
    text
}

/// One line per peer over the sizes of a mix.
fn panel(what: &str, axis: &str, all: &[Reached<'_>]) -> Panel {
    let (show, _) = shown(what);
    let mut sizes: Vec<_> = all.iter().map(|r| r.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut series: Vec<Series> = Vec::new();
    for reached in all {
        let at = sizes
            .iter()
            .position(|&size| size == reached.size)
            .expect("one of the sizes");
        let point = (at as f64, reached.value);
        match series.iter_mut().find(|series| series.peer == reached.peer) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                peer: reached.peer.to_owned(),
                points: vec![point],
            }),
        }
    }
    Panel {
        title: title(what),
        axis: axis.to_owned(),
        sizes,
        series,
        show,
        from_zero: what.contains("bytes"),
    }
}

/// A figure's name above a chart or a table.
fn title(what: &str) -> String {
    match what {
        "call ns" => "the waking call".to_owned(),
        "all ns" => "until all have run".to_owned(),
        _ => match what.strip_suffix("/s") {
            Some(what) => format!("{what} a second"),
            None => what.trim_end_matches(" ns").to_owned(),
        },
    }
}

/// The charts' folder, beside the benchmarks.
const CHARTS: &str = "benches/charts";

/// Writes the page and its charts below `root`, from what the runs left in `out`.
pub fn write(root: &Path, out: &Path) -> anyhow::Result<()> {
    let figures: Vec<Figure> = read(&out.join(mixes::FIGURES))?;
    let latencies: Vec<Latency> = read(&out.join(mixes::LATENCIES))?;
    let figures: Vec<_> = figures.iter().collect();
    let latencies: Vec<_> = latencies.iter().collect();
    let charts = root.join(CHARTS);
    fs::create_dir_all(&charts)?;

    let mut page = String::from(METHOD);
    let kept = |file: &str| fs::read_to_string(out.join(file)).unwrap_or_default();
    let machine = kept(MACHINE);
    section(&mut page, "Machine", &machine);
    let rows: Vec<goals::Row> = read(&out.join(goals::ROWS))?;
    let goals = format!(
        "Quotients of figures that were measured in turn.\n\n{}\n{}",
        readme::table(&rows),
        readme::losses(&rows)
    );
    section(&mut page, "Goals", &goals);
    page.push_str("\n## Mixes\n");
    for (mix, rows) in grouped(&figures, |f| &f.mix) {
        let axis = rows[0].axis.as_str();
        let times: Vec<_> = latencies.iter().filter(|l| l.mix == mix).copied().collect();
        let by_figure = grouped(&rows, |f| &f.figure);
        let mut views: Vec<(String, Vec<Reached<'_>>)> = by_figure
            .iter()
            .map(|(figure, rows)| {
                (
                    (*figure).to_owned(),
                    rows.iter().map(|&f| f.into()).collect(),
                )
            })
            .collect();
        if is_paced(mix) {
            // How much was done is given beforehand.
            views.clear();
        }
        views.extend(
            grouped(&times, |l| &l.operation)
                .into_iter()
                .map(|(operation, rows)| {
                    (
                        format!("p99.9 of {operation} ns"),
                        rows.into_iter().map(Reached::from).collect(),
                    )
                }),
        );
        let panels: Vec<_> = views
            .iter()
            .take(chart::PANELS)
            .map(|(what, all)| panel(what, axis, all))
            .collect();
        let file = format!("{}.svg", slug(mix));
        chart::draw(&charts.join(&file), &panels)?;

        let _ = write!(page, "\n### {mix}\n\n{}\n\n", about(mix));
        let _ = write!(page, "![{mix}, by {axis}]({CHARTS}/{file})\n\n");
        let (what, all) = &views[0];
        let _ = write!(
            page,
            "**{}.** {}\n\n",
            sentence_case(&title(what)),
            sentences(what, all, axis)
        );
        if !is_paced(mix) {
            for (_, rows) in &by_figure {
                let _ = write!(page, "{}\n\n", figure_table(rows, axis));
            }
        }
        if !times.is_empty() {
            let table = latency_table(&times, axis);
            let _ = write!(
                page,
                "<details><summary>Latencies</summary>\n\n{table}\n\n</details>\n"
            );
        }
    }
    let lines: Vec<ablation::Line> = read(&out.join(ablation::LINES))?;
    let text = format!(
        "What could have been done instead; × is the quotient of it and of what was chosen. Copies of \
        the sources with a few places replaced, which take turns in one program.\n\n{}",
        ablation::markdown(&lines)
    );
    section(&mut page, "Ablations", &text);
    let counts = kept(INSTRUCTIONS);
    if !counts.is_empty() {
        let text = format!("Per call, on one thread, after warming up.\n\n{counts}");
        section(&mut page, "Instructions", &text);
    }
    fs::write(root.join("BENCHMARKS.md"), page)?;
    let command = kept(COMMAND);
    readme::update(&root.join("README.md"), &rows, &machine, command.trim())
}

/// Puts in a section, if there is something to say.
fn section(page: &mut String, title: &str, text: &str) {
    if !text.is_empty() {
        let _ = write!(page, "\n## {title}\n\n{}\n", text.trim_end());
    }
}

const METHOD: &str = "\
# Benchmarks

This page, its charts and its sentences are written by a program from the figures of one run:

    cargo xtask bench --full --report

`--quick` takes a few minutes and shows the order of the peers; `--filter` takes a pattern; the raw
figures, one line per slice, are left in `target/bench`.

## Method

- **Peers.** Each does the whole job behind one small trait (`benches/src/peers`): read at once, set,
  delete, wait until newer than a time, and `update_time`, which says that everything is at least that
  new. *One lock* is the kubelet's own design, a readers-writer lock around everything and a channel per
  waiter, with the lock of the standard library, of parking_lot, and written in Go. The others are what
  one would put together from well-known crates: a concurrent map with a `tokio::sync::watch` channel
  or an `event_listener::Event` per key, a copy-on-write map behind an `ArcSwap`, a whole map in one
  watch channel. Their waiters are woken to look again, so they may miss the status that woke them;
  podcache and the one-lock caches hand it over.
- **Data.** Keys are UUID texts behind an `Arc<str>`, 1024 unless the mix says otherwise, hashed by
  foldhash everywhere. A value is 168 bytes wide, as the kubelet's pod status. Peers keep it behind an
  `Arc`, and a read gives a counted reference.
- **Slices.** The cases of a mix run in turn, in slices of some milliseconds, over many rounds, each
  round beginning with another case, after one round that does not count. What disturbs the machine
  disturbs all cases of a round alike: a quotient is the median of the rounds' quotients, a figure the
  median of the rounds, and ± is half the distance of its quartiles. Between slices the shared
  epoch collector is emptied.
- **Threads** of a slice are released together and pinned to the cores in turn. More threads than cores
  is intended: what then happens to the tail when the holder of a lock is preempted is the point.
- **Time.** What one thread does alone is measured in CPU time of that thread. Latencies are sampled
  (one call in 16, all rare ones). In the closed mixes they are those of the calls; in the paced ones they
  count from when the call should have begun, whether or not the one before it was through.
- **Instructions** are counted by callgrind, on the uncontended paths: the same on every run, however
  noisy the machine.
";
