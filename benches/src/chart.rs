//! Charts: up to three panels with one legend.

use std::path::Path;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::prelude::*;

/// A peer's line.
#[derive(Debug, Clone)]
pub struct Series {
    /// The peer.
    pub peer: String,
    /// Index on the x axis, and value.
    pub points: Vec<(f64, f64)>,
}

/// One diagram.
#[derive(Debug, Clone)]
pub struct Panel {
    /// What is shown, with its unit.
    pub title: String,
    /// What the x axis counts.
    pub axis: String,
    /// The values on the x axis.
    pub sizes: Vec<usize>,
    /// The lines.
    pub series: Vec<Series>,
    /// How the y axis shows a value.
    pub show: fn(f64) -> String,
    /// Whether the y axis begins at zero, where smaller values are put; it is logarithmic otherwise.
    pub from_zero: bool,
}

/// How a peer looks, the same in every chart. Hues are those of Okabe and Ito, which people with
/// any kind of colour vision can tell apart; peers of one family share one and differ by marker.
fn look(peer: &str) -> (RGBColor, Marker, u32) {
    const BLUE: RGBColor = RGBColor(0, 114, 178);
    const VERMILLION: RGBColor = RGBColor(213, 94, 0);
    const GREEN: RGBColor = RGBColor(0, 158, 115);
    const ORANGE: RGBColor = RGBColor(230, 159, 0);
    const SKY: RGBColor = RGBColor(86, 180, 233);
    const PURPLE: RGBColor = RGBColor(204, 121, 167);
    const BLACK: RGBColor = RGBColor(40, 40, 40);
    const GREY: RGBColor = RGBColor(150, 150, 150);
    match peer {
        "podcache" => (BLUE, Marker::Disc, 5),
        "one lock (std)" => (VERMILLION, Marker::Square, 2),
        "one lock (parking_lot)" => (VERMILLION, Marker::Up, 2),
        "one lock (Go)" => (VERMILLION, Marker::Cross, 2),
        "DashMap + watch" => (GREEN, Marker::Square, 2),
        "papaya + event-listener" => (ORANGE, Marker::Up, 2),
        "scc + watch" => (SKY, Marker::Cross, 2),
        "ArcSwap<HashMap>" => (PURPLE, Marker::Square, 2),
        "watch<HashMap>" => (BLACK, Marker::Cross, 2),
        "HashMap (read-only)" => (GREY, Marker::Disc, 2),
        "papaya (map only)" => (GREY, Marker::Up, 2),
        "flurry (map only)" => (GREY, Marker::Square, 2),
        _ => (GREY, Marker::Cross, 2),
    }
}

#[derive(Debug, Clone, Copy)]
enum Marker {
    Disc,
    Square,
    Up,
    Cross,
}

type Canvas<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn = anyhow::Result<()>;

/// Draws a marker at a pixel.
fn mark(
    canvas: &Canvas<'_>,
    (x, y): (i32, i32),
    (color, marker, width): (RGBColor, Marker, u32),
) -> Drawn {
    let r = if width > 2 { 8 } else { 6 };
    match marker {
        Marker::Disc => canvas.draw(&Circle::new((x, y), r, color.filled()))?,
        Marker::Square => {
            canvas.draw(&Rectangle::new(
                [(x - r + 1, y - r + 1), (x + r - 1, y + r - 1)],
                color.filled(),
            ))?;
        }
        Marker::Up => canvas.draw(&Polygon::new(
            vec![(x - r, y + r), (x, y - r), (x + r, y + r)],
            color,
        ))?,
        Marker::Cross => {
            let stroke = color.stroke_width(3);
            canvas.draw(&PathElement::new(
                vec![(x - r, y - r), (x + r, y + r)],
                stroke,
            ))?;
            canvas.draw(&PathElement::new(
                vec![(x - r, y + r), (x + r, y - r)],
                stroke,
            ))?;
        }
    }
    Ok(())
}

const TEXT: i32 = 22;
const PANEL: u32 = 570;
const HEIGHT: u32 = 560;

/// How many panels a chart has at most.
pub const PANELS: usize = 3;

/// The distance of the lines of a legend.
const LINE: u32 = 36;

/// Draws the panels to an SVG file: two beside each other, with the legend where there is room.
pub fn draw(path: &Path, panels: &[Panel]) -> Drawn {
    let mut peers: Vec<&str> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if !peers.contains(&series.peer.as_str()) {
            peers.push(&series.peer);
        }
    }
    let (width, rows) = (2 * PANEL, panels.len().div_ceil(2) as u32);
    // Two panels have their legend below them, in columns.
    let columns = if panels.len() == 2 { 3 } else { 1 };
    let below = match columns {
        1 => 0,
        _ => LINE * peers.len().div_ceil(columns) as u32 + 20,
    };
    let root = SVGBackend::new(path, (width, rows * HEIGHT + below)).into_drawing_area();
    root.fill(&WHITE)?;
    let (top, bottom) = root.split_vertically(rows * HEIGHT);
    let mut areas = top.split_evenly((rows as usize, 2));
    let legend = match columns {
        1 => areas.pop().expect("an odd number of panels leaves a place"),
        _ => bottom,
    };
    for (panel, area) in panels.iter().zip(areas) {
        draw_panel(&area, panel)?;
    }
    let (left, top) = if columns == 1 { (100, 50) } else { (20, 18) };
    let in_column = peers.len().div_ceil(columns);
    for (at, peer) in peers.iter().enumerate() {
        let x = left + (at / in_column) as i32 * (width as i32 / columns as i32);
        let y = top + (at % in_column) as i32 * LINE as i32;
        let look = look(peer);
        legend.draw(&PathElement::new(
            vec![(x, y), (x + 40, y)],
            look.0.stroke_width(look.2),
        ))?;
        mark(&legend, (x + 20, y), look)?;
        let style = ("sans-serif", TEXT - 1).into_font().color(&BLACK);
        legend.draw(&Text::new((*peer).to_owned(), (x + 50, y - 12), style))?;
    }
    root.present()?;
    Ok(())
}

/// 1, 2 and 5 times the powers of ten from `low` to `high`; the powers alone if that is many.
fn ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let steps: &[f64] = if high / low > 2e3 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let all = decades.flat_map(|decade| steps.iter().map(move |step| step * 10_f64.powi(decade)));
    all.filter(|tick| (low..=high).contains(tick)).collect()
}

/// Round steps from zero to `high`.
fn even_ticks(high: f64) -> Vec<f64> {
    let rough = high / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter();
    let step = step
        .into_iter()
        .find(|step| *step >= rough)
        .unwrap_or(rough);
    (0..)
        .map(|n| f64::from(n) * step)
        .take_while(|tick| *tick <= high)
        .collect()
}

/// A number as the x axis shows it.
fn short(value: usize) -> String {
    match value {
        v if v >= 1_000_000 => format!("{}M", v as f64 / 1e6),
        v if v >= 1_000 => format!("{}k", v as f64 / 1e3),
        v => v.to_string(),
    }
}

/// A round number as the y axis shows it: without zeros that say nothing.
fn label(show: fn(f64) -> String, value: f64) -> String {
    let text = show(value);
    match text.split_once(' ') {
        Some((number, unit)) if number.contains('.') => {
            format!(
                "{} {unit}",
                number.trim_end_matches('0').trim_end_matches('.')
            )
        }
        _ => text,
    }
}

/// An axis whose marks are given.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<(f64, String)>,
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let at = |value: f64| if self.logarithmic { value.ln() } else { value };
        let share = (at(*value) - at(self.low)) / (at(self.high) - at(self.low));
        limit.0 + (share * f64::from(limit.1 - limit.0)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.iter().map(|(value, _)| *value).collect()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let tick = self.ticks.iter().find(|(tick, _)| tick == value);
        tick.map_or_else(String::new, |(_, label)| label.clone())
    }
}

fn draw_panel(area: &Canvas<'_>, panel: &Panel) -> Drawn {
    let values = || {
        panel
            .series
            .iter()
            .flat_map(|s| s.points.iter().map(|p| p.1))
    };
    let largest = values().fold(f64::MIN_POSITIVE, f64::max);
    let smallest = values().filter(|v| *v > 0.0).fold(largest, f64::min);
    let (low, high) = if panel.from_zero {
        (0.0, largest * 1.1)
    } else {
        (smallest / 1.5, largest * 1.5)
    };
    let marks = if panel.from_zero {
        even_ticks(high)
    } else {
        ticks(low, high)
    };
    let x_axis = Axis {
        low: -0.25,
        high: panel.sizes.len() as f64 - 0.75,
        logarithmic: false,
        ticks: (0_u32..)
            .map(f64::from)
            .zip(panel.sizes.iter().map(|&n| short(n)))
            .collect(),
    };
    let ticks = marks
        .into_iter()
        .map(|mark| (mark, label(panel.show, mark)))
        .collect();
    let y_axis = Axis {
        low,
        high,
        logarithmic: !panel.from_zero,
        ticks,
    };
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .margin_top(14)
        .caption(&panel.title, ("sans-serif", TEXT + 1))
        .x_label_area_size(64)
        .y_label_area_size(96)
        .build_cartesian_2d(x_axis, y_axis)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(220, 220, 220))
        .x_desc(&panel.axis)
        .axis_desc_style(("sans-serif", TEXT))
        .label_style(("sans-serif", TEXT))
        .draw()?;
    // Ours comes last, so that it is on top.
    let mut order: Vec<_> = panel.series.iter().collect();
    order.sort_by_key(|series| series.peer == "podcache");
    for series in order {
        let look = look(&series.peer);
        let points = series
            .points
            .iter()
            .filter(|(_, y)| panel.from_zero || *y > 0.0);
        let points: Vec<_> = points.map(|&(x, y)| (x, y.max(low))).collect();
        chart.draw_series(LineSeries::new(points.clone(), look.0.stroke_width(look.2)))?;
        for point in points {
            let (x, y) = chart.backend_coord(&point);
            let base = area.get_base_pixel();
            mark(area, (x - base.0, y - base.1), look)?;
        }
    }
    Ok(())
}
