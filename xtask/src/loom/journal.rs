//! What came of each model, noted as it ends: a run of hours may be cut short and go on later.

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher};
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::worker::{Event, Model};
use crate::cargo::target_dir;

/// The notes of a set, of one build of the sources.
pub(crate) struct Journal {
    file: File,
    done: HashMap<String, Event>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    model: Model,
    event: Event,
}

impl Journal {
    /// The notes of that name, with what is in them if the run is to go on and they are of the same
    /// build.
    pub(crate) fn open(name: &str, binary: &Path, resume: bool) -> anyhow::Result<Self> {
        let path = target_dir().join("loom").join(format!("{name}.jsonl"));
        let mut build = DefaultHasher::new();
        build.write(&fs::read(binary)?);
        let build = format!("{:016x}", build.finish());
        let before = fs::read_to_string(&path).unwrap_or_default();
        let mut lines = before.lines();
        let same = lines.next() == Some(&build);
        // The last line may have been cut short.
        let entries = lines.map_while(|line| serde_json::from_str(line).ok());
        let entries = entries.filter(|_| resume && same);
        fs::create_dir_all(path.parent().expect("a file in a directory"))?;
        let mut journal = Journal {
            file: File::create(&path).with_context(|| path.display().to_string())?,
            done: HashMap::new(),
        };
        writeln!(journal.file, "{build}")?;
        for Entry { model, event } in entries {
            journal.note(&model, &event)?;
            journal.done.insert(key(&model), event);
        }
        Ok(journal)
    }

    /// What came of a model before.
    pub(crate) fn of(&self, model: &Model) -> Option<Event> {
        self.done.get(&key(model)).cloned()
    }

    /// Notes it. A failure is not: it is to be seen again.
    pub(crate) fn note(&mut self, model: &Model, event: &Event) -> anyhow::Result<()> {
        if matches!(event, Event::Done { .. }) {
            let entry = Entry {
                model: model.clone(),
                event: event.clone(),
            };
            writeln!(self.file, "{}", serde_json::to_string(&entry)?)?;
        }
        Ok(())
    }
}

/// The same however long it was given.
fn key(model: &Model) -> String {
    format!(
        "{} {} {} {:?}",
        model.program,
        model.alike,
        model.bound(),
        model.limit
    )
}
