//! The live table.

use std::{collections::VecDeque, io, time::Duration};

use podcache::{Timestamp, pod::PodPhase};
use ratatui::{
    DefaultTerminal, Frame,
    crossterm::event::{self, Event, KeyCode, KeyModifiers},
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Borders, Cell, Padding, Paragraph, Row as Cells, Table as Rows},
};

use crate::{
    args::Args,
    picture::{Change, Picture, Row, What},
    view::seconds,
};

/// From this width on the changes stand beside the pods, below it under them.
const WIDE: u16 = 118;

/// How many changes are kept, more than any screen has lines.
const KEPT: usize = 512;

pub(crate) struct Table {
    terminal: DefaultTerminal,
    frame: Settings,
    changes: VecDeque<Change>,
}

struct Settings {
    title: String,
    run_for: Option<Duration>,
    top: usize,
}

impl Table {
    pub(crate) fn open(args: &Args) -> io::Result<Self> {
        let period = humantime::format_duration(args.period);
        let title = format!(
            " node_agent   policy {}   a listing every {period} ",
            args.policy.name()
        );
        let frame = Settings {
            title,
            run_for: args.run_for,
            top: args.top.unwrap_or(usize::MAX),
        };
        Ok(Self {
            terminal: ratatui::try_init()?,
            frame,
            changes: VecDeque::new(),
        })
    }

    pub(crate) fn show(&mut self, change: Change) {
        self.changes.truncate(KEPT - 1);
        self.changes.push_front(change);
    }

    pub(crate) fn draw(&mut self, picture: &Picture) -> io::Result<()> {
        let Self {
            terminal,
            frame: settings,
            changes,
        } = self;
        terminal.draw(|frame| settings.draw(frame, picture, changes))?;
        Ok(())
    }

    pub(crate) fn interrupted(&mut self) -> io::Result<bool> {
        let mut interrupted = false;
        while event::poll(Duration::ZERO)? {
            if let Event::Key(key) = event::read()? {
                let ctrl_c =
                    key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                interrupted |= ctrl_c || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
            }
        }
        Ok(interrupted)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl Settings {
    fn draw(&self, frame: &mut Frame<'_>, picture: &Picture, changes: &VecDeque<Change>) {
        let [title, counts, body] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(3),
            Constraint::Fill(1),
        ])
        .areas(frame.area());
        self.draw_title(frame, title, picture);
        frame.render_widget(Paragraph::new(counts_of(picture)), counts);
        let [pods, news] = if body.width >= WIDE {
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(68)]).areas(body)
        } else {
            Layout::vertical([Constraint::Fill(3), Constraint::Fill(2)]).areas(body)
        };
        self.draw_pods(frame, pods, picture);
        draw_changes(frame, news, changes);
    }

    fn draw_title(&self, frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
        let bar = Style::new().add_modifier(Modifier::REVERSED);
        let run = clock(picture.begun.elapsed());
        let clock = match self.run_for {
            _ if picture.ending => format!(" ending, {} children to go ", picture.ledger.missing()),
            Some(run_for) => format!(" {run} of {} ", clock(run_for)),
            None => format!(" {run}   q ends "),
        };
        frame.render_widget(Paragraph::new(self.title.as_str()).style(bar), area);
        let width = area.width.min(clock.len() as u16);
        let right = Rect {
            x: area.right() - width,
            width,
            ..area
        };
        frame.render_widget(Paragraph::new(clock).style(bar), right);
    }

    fn draw_pods(&self, frame: &mut Frame<'_>, area: Rect, picture: &Picture) {
        let mut pods: Vec<_> = picture.pods.values().collect();
        pods.sort_by(|a, b| b.since.cmp(&a.since).then_with(|| a.name.cmp(&b.name)));
        let rows = pods
            .into_iter()
            .take(self.top.min(area.height.into()))
            .map(cells);
        let header = ["POD", "PHASE", "FOR", "AGE", "PROCS", "WAKES"]
            .into_iter()
            .enumerate();
        let header = Cells::new(header.map(|(column, name)| match column {
            0 | 1 => Cell::new(name),
            _ => right(name.to_owned()),
        }));
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(9),
            Constraint::Length(4),
            Constraint::Length(4),
            Constraint::Length(7),
            Constraint::Length(6),
        ];
        let table = Rows::new(rows, widths)
            .header(header.style(Style::new().add_modifier(Modifier::BOLD)))
            .block(titled(" pods, the latest change first "));
        frame.render_widget(table, area);
    }
}

fn counts_of(picture: &Picture) -> Vec<Line<'static>> {
    let Picture {
        ledger,
        counts,
        latency,
        ..
    } = picture;
    let mut pods = vec![Span::raw(format!(" pods {}", picture.pods.len()))];
    for phase in [
        PodPhase::Pending,
        PodPhase::Running,
        PodPhase::Succeeded,
        PodPhase::Failed,
        PodPhase::Unknown,
    ] {
        let number = picture.in_phase(phase);
        if number > 0 {
            pods.push(Span::styled(
                format!("   {number} {}", phase.to_string().to_lowercase()),
                colour(phase),
            ));
        }
    }
    let set_to_wake = if latency.is_empty() {
        String::new()
    } else {
        let [p50, p99, max] = [0.5, 0.99, 1.0].map(|quantile| picture.quantile(quantile));
        format!("   set to wake p50 {p50:.0?} p99 {p99:.0?} max {max:.0?}")
    };
    vec![
        Line::from(pods),
        Line::raw(format!(
            " sets {}   observes {}   deletes {}   wake-ups {}",
            counts.sets,
            counts.observes,
            counts.deletes,
            counts.wakes()
        )),
        Line::raw(format!(
            " children {}   exit codes seen {}{set_to_wake}",
            ledger.children(),
            ledger.accounted(),
        )),
    ]
}

fn cells(row: &Row) -> Cells<'static> {
    let now = Timestamp::now().as_nanos();
    let age = row
        .started
        .map(|started| now.saturating_sub(started.as_nanos()));
    Cells::new([
        Cell::new(row.name.to_string()),
        Cell::new(row.phase.to_string()).style(colour(row.phase)),
        right(short(row.since.elapsed())),
        right(age.map_or_else(|| "-".to_owned(), |age| short(Duration::from_nanos(age)))),
        right(format!("{}/{}", row.running, row.containers)),
        right(row.wakes.to_string()),
    ])
}

fn draw_changes(frame: &mut Frame<'_>, area: Rect, changes: &VecDeque<Change>) {
    let lines: Vec<_> = changes.iter().take(area.height.into()).map(line).collect();
    frame.render_widget(Paragraph::new(lines).block(titled(" changes ")), area);
}

fn line(change: &Change) -> Line<'static> {
    let at = Span::styled(format!("{:>8}  ", seconds(change.at)), Color::DarkGray);
    match &change.what {
        What::Trouble(trouble) => Line::from(vec![at, Span::styled(trouble.clone(), Color::Red)]),
        What::Turned(turn) => Line::from(vec![
            at,
            Span::raw(format!("{:<16.16} {:>9} → ", turn.name, turn.from())),
            Span::styled(
                format!("{:<9}  ", turn.to()),
                turn.to.map_or(Color::DarkGray, colour),
            ),
            Span::raw(turn.detail().unwrap_or_default()),
        ]),
    }
}

fn titled(title: &'static str) -> Block<'static> {
    Block::new()
        .borders(Borders::TOP)
        .border_style(Color::DarkGray)
        .padding(Padding::horizontal(1))
        .title(title)
}

fn right(text: String) -> Cell<'static> {
    Cell::new(Line::raw(text).alignment(Alignment::Right))
}

fn colour(phase: PodPhase) -> Color {
    match phase {
        PodPhase::Pending => Color::Yellow,
        PodPhase::Running => Color::Green,
        PodPhase::Succeeded => Color::Cyan,
        PodPhase::Failed => Color::Red,
        PodPhase::Unknown => Color::DarkGray,
    }
}

/// In one unit, the largest that leaves something.
fn short(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3600 => format!("{}m", seconds / 60),
        seconds @ 3600..86400 => format!("{}h", seconds / 3600),
        seconds => format!("{}d", seconds / 86400),
    }
}

fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds / 3600 {
        0 => format!("{:02}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let cases = [
            (0, "0s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m"),
            (3600, "1h"),
            (86399, "23h"),
            (864_000, "10d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(short(Duration::from_secs(seconds)), text);
        }
        assert_eq!(clock(Duration::from_secs(75)), "01:15");
        assert_eq!(clock(Duration::from_secs(3661)), "1:01:01");
    }
}
