//! One metric over the size of a workload as lines, one for each system, on logarithmic axes.

use super::chart::{Chart, WIDTH};
use super::svg::{Anchor, At, Scale, Svg, short};

const LEFT: f64 = 44.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 10.0;
const HEIGHT: f64 = 210.0;
const LEGEND: f64 = 18.0;

/// The points of one system.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
    /// Which colour and mark to use; the same for a system in every chart.
    pub(super) style: usize,
}

/// The text of a chart.
pub(super) struct Words<'a> {
    pub(super) caption: &'a str,
    pub(super) across: &'a str,
    pub(super) note: &'a str,
}

/// Draws lines over positive values; `None` where no line has two points.
pub(super) fn lines(words: &Words<'_>, lines: &[Line]) -> Option<Chart> {
    if !lines.iter().any(|line| line.points.len() > 1) {
        return None;
    }
    let all = || lines.iter().flat_map(|line| &line.points);
    let (low_x, high_x) = ends(all().map(|(x, _)| *x));
    let (low_y, high_y) = ends(all().map(|(_, y)| *y));
    let across = Scale::logarithmic(low_x, high_x, (LEFT, WIDTH - RIGHT));
    let up = Scale::logarithmic(low_y, high_y, (TOP + HEIGHT, TOP));

    let mut svg = Svg::new();
    grid(&mut svg, &across, &up);
    svg.text(
        "tick",
        Anchor::End(WIDTH - RIGHT, TOP + HEIGHT + 30.0),
        words.across,
    );
    for (index, line) in lines.iter().enumerate() {
        draw(&mut svg, line, (&across, &up));
        legend(&mut svg, line, TOP + HEIGHT + 48.0 + index as f64 * LEGEND);
    }
    let height = TOP + HEIGHT + 48.0 + lines.len() as f64 * LEGEND;
    let svg = svg.finish((WIDTH, height), words.caption, &described(lines));
    Some(Chart {
        caption: words.caption.to_owned(),
        note: words.note.to_owned(),
        svg,
    })
}

fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, 0.0), |(low, high), value| {
        (low.min(value), high.max(value))
    })
}

fn grid(svg: &mut Svg, across: &Scale, up: &Scale) {
    let floor = TOP + HEIGHT;
    for tick in across.ticks() {
        let x = across.place(tick);
        svg.line("grid", At(x, TOP), At(x, floor));
        svg.text("tick", Anchor::Middle(x, floor + 15.0), &short(tick));
    }
    for tick in up.ticks() {
        let y = up.place(tick);
        svg.line("grid", At(LEFT, y), At(WIDTH - RIGHT, y));
        svg.text("tick", Anchor::End(LEFT - 5.0, y + 4.0), &short(tick));
    }
}

fn draw(svg: &mut Svg, line: &Line, (across, up): (&Scale, &Scale)) {
    let points: Vec<At> = line
        .points
        .iter()
        .map(|(x, y)| At(across.place(*x), up.place(*y)))
        .collect();
    svg.path(&format!("line s{}", line.style), &points);
    for point in points {
        svg.mark(&format!("mark s{}", line.style), line.style, point);
    }
}

fn legend(svg: &mut Svg, line: &Line, y: f64) {
    svg.path(
        &format!("line s{}", line.style),
        &[At(LEFT, y - 4.0), At(LEFT + 24.0, y - 4.0)],
    );
    svg.mark(
        &format!("mark s{}", line.style),
        line.style,
        At(LEFT + 12.0, y - 4.0),
    );
    svg.text("name", Anchor::Start(LEFT + 32.0, y), &line.name);
}

fn described(lines: &[Line]) -> String {
    let series: Vec<String> = lines
        .iter()
        .filter_map(|line| {
            let (first, last) = (line.points.first()?, line.points.last()?);
            let (from, to) = (short(first.0), short(last.0));
            let (begin, end) = (
                crate::figure::number(first.1),
                crate::figure::number(last.1),
            );
            Some(format!(
                "{} goes from {begin} at {from} to {end} at {to}",
                line.name
            ))
        })
        .collect();
    format!("{}.", series.join("; "))
}
