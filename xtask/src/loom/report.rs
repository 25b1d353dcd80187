//! What a run looks like: bars while it goes on, a table at its end, or JSON lines.

use std::collections::{BTreeSet, HashMap};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, Table, presets};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use serde::Serialize;

use super::worker::{Event, Model, Report};

/// What came of a set of models.
#[derive(Serialize, serde::Deserialize)]
pub(crate) struct Tally {
    pub(crate) set: String,
    pub(crate) mode: String,
    pub(crate) models: usize,
    pub(crate) executions: usize,
    pub(crate) outcomes: usize,
    pub(crate) seconds: f64,
    /// The time that the models took, one after the other.
    pub(crate) explored: f64,
    /// The bounds of preemptions.
    pub(crate) bounds: BTreeSet<String>,
    /// Those that were given up before their end, and after how many executions: the fewest and the
    /// most.
    pub(crate) unfinished: usize,
    pub(crate) given_up: Option<(usize, usize)>,
    /// Those that there was no time for.
    pub(crate) left_out: usize,
    #[serde(skip)]
    pub(crate) failed: Vec<(Model, Event)>,
    /// The one with the most executions.
    pub(crate) largest: Option<(Model, usize)>,
}

impl Tally {
    pub(crate) fn new(set: &str, mode: &str) -> Self {
        Tally {
            set: set.into(),
            mode: mode.into(),
            models: 0,
            executions: 0,
            outcomes: 0,
            seconds: 0.0,
            explored: 0.0,
            bounds: BTreeSet::new(),
            unfinished: 0,
            given_up: None,
            left_out: 0,
            failed: Vec::new(),
            largest: None,
        }
    }

    fn count(&mut self, model: Model, event: Event) {
        self.models += 1;
        self.bounds.insert(model.bound());
        match event {
            Event::Done {
                executions,
                outcomes,
                exhausted,
                seconds,
                ..
            } => {
                self.executions += executions;
                self.outcomes += outcomes;
                self.explored += seconds;
                if !exhausted {
                    self.unfinished += 1;
                    let (least, most) = self.given_up.unwrap_or((executions, executions));
                    self.given_up = Some((least.min(executions), most.max(executions)));
                }
                if self
                    .largest
                    .as_ref()
                    .is_none_or(|(_, most)| executions > *most)
                {
                    self.largest = Some((model, executions));
                }
            }
            Event::Failed { executions, .. } => {
                self.executions += executions;
                self.failed.push((model, event));
            }
            Event::Progress { .. } => {}
        }
    }

    /// Each failure with its interleaving and how to see more of it.
    pub(crate) fn print_failures(&mut self, epoch: bool) {
        self.failed.sort_by_key(|(model, _)| model.program.len());
        for (model, event) in &self.failed {
            let Event::Failed {
                executions,
                why,
                trace,
                ..
            } = event
            else {
                continue;
            };
            println!(
                "\nfailed: {} [{}], execution {executions}",
                model.program,
                model.bound()
            );
            println!("{}", why.trim_end());
            trace.iter().for_each(|line| println!("    {line}"));
            let bound = model
                .preemptions
                .map_or(String::new(), |n| format!(" --preemptions {n}"));
            let epoch = if epoch { " --epoch" } else { "" };
            println!(
                "  every step: cargo xtask loom{epoch}{bound} --trace --program {:?}",
                model.program
            );
        }
    }
}

/// The progress of a run on a terminal, or its events as JSON lines.
pub(crate) struct Screen {
    json: bool,
    bars: MultiProgress,
    all: ProgressBar,
    each: Vec<ProgressBar>,
    models: HashMap<usize, Model>,
    executions: usize,
    failed: usize,
    start: Instant,
    /// Where there is no terminal, a line now and then says how far it is.
    plain: bool,
    told: Instant,
}

impl Screen {
    pub(crate) fn new(set: &str, models: usize, processes: usize, json: bool) -> Self {
        let bars = MultiProgress::new();
        if json {
            bars.set_draw_target(indicatif::ProgressDrawTarget::hidden());
        }
        let style = |template: &str| {
            ProgressStyle::with_template(template).expect("a template that is written here")
        };
        let all = bars.add(ProgressBar::new(models as u64));
        all.set_style(style(
            "{prefix:>15} {bar:30} {pos}/{len} models, {msg} [{elapsed}, {eta} to go]",
        ));
        all.set_prefix(set.to_string());
        all.enable_steady_tick(Duration::from_millis(500));
        let each = (0..processes)
            .map(|_| {
                let bar = bars.add(ProgressBar::new_spinner());
                bar.set_style(style("                {elapsed:>4} {wide_msg}"));
                bar
            })
            .collect();
        Screen {
            json,
            bars,
            all,
            each,
            models: HashMap::new(),
            executions: 0,
            failed: 0,
            start: Instant::now(),
            plain: !json && !std::io::stderr().is_terminal(),
            told: Instant::now(),
        }
    }

    pub(crate) fn show(
        &mut self,
        report: Report,
        tally: &mut Tally,
        broken: &mut Option<anyhow::Error>,
    ) {
        match report {
            Report::Started(number, model) => {
                self.each[number].reset_elapsed();
                self.each[number].set_message(model.program.clone());
                self.models.insert(number, model);
            }
            Report::Progress(number, executions) => {
                let model = &self.models[&number];
                let message = format!(
                    "{executions} executions, bound {}: {}",
                    model.bound(),
                    model.program
                );
                self.each[number].set_message(message);
            }
            Report::Ended(model, event) => {
                if self.json {
                    print_json(&model, &event);
                }
                if let Event::Done { executions, .. } | Event::Failed { executions, .. } = &event {
                    self.executions += executions;
                }
                self.failed += usize::from(matches!(event, Event::Failed { .. }));
                tally.count(model, event);
                self.all.inc(1);
            }
            Report::LeftOut => {
                tally.left_out += 1;
                self.all.inc(1);
            }
            Report::Broken(error) => *broken = Some(error),
        }
        let message = format!("{} executions, {} failed", self.executions, self.failed);
        if self.plain && self.told.elapsed() > Duration::from_secs(60) {
            self.told = Instant::now();
            let (done, all) = (self.all.position(), self.all.length().unwrap_or_default());
            let set = self.all.prefix();
            let to_go = self.all.eta().as_secs().div_ceil(60);
            eprintln!("{set}: {done} of {all} models, {message}, about {to_go} minutes to go");
        }
        self.all.set_message(message);
        tally.seconds = self.start.elapsed().as_secs_f64();
    }

    pub(crate) fn clear(self) {
        self.all.finish_and_clear();
        self.each.iter().for_each(ProgressBar::finish_and_clear);
        let _ = self.bars.clear();
    }
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    model: &'a Model,
    #[serde(flatten)]
    event: &'a Event,
}

fn print_json(model: &Model, event: &Event) {
    println!(
        "{}",
        serde_json::to_string(&Line { model, event }).expect("plain data")
    );
}

/// What came of one model.
pub(crate) fn print_event(model: &Model, event: &Event, json: bool) -> anyhow::Result<()> {
    if json {
        print_json(model, event);
        return Ok(());
    }
    match event {
        Event::Done {
            executions,
            outcomes,
            seconds,
            exhausted,
            ..
        } => {
            let end = if *exhausted {
                "to the end"
            } else {
                "not to the end"
            };
            println!(
                "{executions} executions {end} in {seconds:.1} s, {outcomes} different outcomes, preemptions {}",
                model.bound()
            );
        }
        Event::Failed {
            executions, trace, ..
        } => {
            println!("failed in execution {executions}");
            trace.iter().for_each(|line| println!("    {line}"));
        }
        Event::Progress { .. } => {}
    }
    Ok(())
}

/// The sets of a run, one a line.
pub(crate) fn table(tallies: &[Tally]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "set",
        "reclamation",
        "models",
        "executions",
        "outcomes",
        "largest",
        "seconds",
        "unfinished",
        "failed",
    ]);
    for tally in tallies {
        table.add_row([
            tally.set.clone(),
            tally.mode.clone(),
            tally.models.to_string(),
            tally.executions.to_string(),
            tally.outcomes.to_string(),
            tally
                .largest
                .as_ref()
                .map_or(0, |(_, most)| *most)
                .to_string(),
            format!("{:.0}", tally.seconds),
            (tally.unfinished + tally.left_out).to_string(),
            tally.failed.len().to_string(),
        ]);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
