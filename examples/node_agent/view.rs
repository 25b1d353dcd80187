//! How what happens is shown: as a table on a terminal, elsewhere as a line per change.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    time::Duration,
};

use crate::{
    args::Args,
    picture::{Change, Picture, Turn, What},
    table::Table,
};

pub(crate) enum View {
    Lines,
    Table(Table),
}

impl View {
    pub(crate) fn open(args: &Args) -> io::Result<Self> {
        if args.plain || !io::stdout().is_terminal() {
            Ok(Self::Lines)
        } else {
            Table::open(args).map(Self::Table)
        }
    }

    pub(crate) fn show(&mut self, change: Change) -> io::Result<()> {
        match self {
            Self::Lines => writeln!(io::stdout(), "{change}"),
            Self::Table(table) => {
                table.show(change);
                Ok(())
            }
        }
    }

    pub(crate) fn draw(&mut self, picture: &Picture) -> io::Result<()> {
        match self {
            Self::Lines => Ok(()),
            Self::Table(table) => table.draw(picture),
        }
    }

    /// Whether a key was pressed that means the end. The table takes Ctrl-C as a key, so that
    /// nothing is echoed into it.
    pub(crate) fn interrupted(&mut self) -> io::Result<bool> {
        match self {
            Self::Lines => Ok(false),
            Self::Table(table) => table.interrupted(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9}  ", seconds(self.at))?;
        match &self.what {
            What::Trouble(trouble) => f.write_str(trouble),
            What::Turned(turn) => {
                let (name, from, to) = (&turn.name, turn.from(), turn.to());
                write!(f, "{name:<22} {from:>9} -> {to}")?;
                match turn.detail() {
                    Some(detail) => {
                        write!(f, "{:1$}{detail}", "", 11usize.saturating_sub(to.len()))
                    }
                    None => Ok(()),
                }
            }
        }
    }
}

impl Turn {
    pub(crate) fn from(&self) -> String {
        self.from
            .map_or_else(|| "new".to_owned(), |phase| phase.to_string())
    }

    pub(crate) fn to(&self) -> String {
        self.to
            .map_or_else(|| "gone".to_owned(), |phase| phase.to_string())
    }

    /// The exit code, and how long after the `set` the worker went on.
    pub(crate) fn detail(&self) -> Option<String> {
        match (self.exit, self.latency) {
            (Some(code), Some(latency)) => Some(format!("exit {code:<3}  {latency:.0?}")),
            (Some(code), None) => Some(format!("exit {code}")),
            (None, Some(latency)) => Some(format!("{latency:.0?}")),
            (None, None) => None,
        }
    }
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.3}s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use podcache::pod::PodPhase;

    use super::*;

    fn shown(turn: Turn) -> String {
        let at = Duration::from_millis(3004);
        Change {
            at,
            what: What::Turned(turn),
        }
        .to_string()
    }

    #[test]
    fn a_change_is_a_line() {
        let turn = Turn {
            name: "child/17".into(),
            from: Some(PodPhase::Running),
            to: Some(PodPhase::Failed),
            exit: Some(42),
            latency: Some(Duration::from_micros(38)),
        };
        assert_eq!(
            shown(turn),
            "   3.004s  child/17                 Running -> Failed     exit 42   38µs"
        );
    }

    #[test]
    fn a_line_has_no_blanks_at_its_end() {
        for to in [None, Some(PodPhase::Running)] {
            let name = "sh/7".to_owned();
            let turn = Turn {
                name,
                from: None,
                to,
                exit: None,
                latency: None,
            };
            let line = shown(turn);
            assert_eq!(line, line.trim_end());
        }
    }
}
