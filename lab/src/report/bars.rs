//! One metric of one row as horizontal bars, the best system on top, with the range of its runs.

use super::chart::{Chart, WIDTH};
use super::svg::{Anchor, At, Scale, Svg, short};
use crate::compare::{Comparison, Entry};
use crate::figure::with_unit;
use crate::metric::{Better, better};
use crate::system::WEALD;

const LINE: f64 = 36.0;
const BAR: f64 = 11.0;
const AXIS: f64 = 24.0;
const MARGIN: f64 = 8.0;

/// Draws the best figure of each system; `None` where there is only one to show.
pub(super) fn bars(row: &str, comparison: &Comparison<'_>) -> Option<Chart> {
    let entries = comparison.best_of_each();
    if entries.len() < 2 {
        return None;
    }
    let values: Vec<f64> = entries
        .iter()
        .flat_map(|entry| [entry.summary.min, entry.summary.median, entry.summary.max])
        .collect();
    let scale = Scale::fitting(&values, MARGIN, WIDTH - MARGIN - 8.0);
    let bottom = entries.len() as f64 * LINE;
    let mut svg = Svg::new();
    grid(&mut svg, &scale, bottom);
    for (index, entry) in entries.iter().enumerate() {
        bar(
            &mut svg,
            &scale,
            entry,
            (comparison.metric, index as f64 * LINE),
        );
    }
    let caption = format!("{}, {row}", comparison.metric);
    let drawing = svg.finish(
        (WIDTH, bottom + AXIS),
        &caption,
        &described(comparison, &entries),
    );
    Some(Chart {
        caption,
        note: note(comparison.metric, &scale),
        svg: drawing,
    })
}

fn grid(svg: &mut Svg, scale: &Scale, bottom: f64) {
    for tick in scale.ticks() {
        let x = scale.place(tick);
        svg.line("grid", At(x, 0.0), At(x, bottom));
        svg.text("tick", Anchor::Middle(x, bottom + 15.0), &short(tick));
    }
}

/// A label line with the value at its end, and the bar with its whisker below.
fn bar(svg: &mut Svg, scale: &Scale, entry: &Entry<'_>, (metric, top): (&str, f64)) {
    let ours = entry.cell.system == WEALD;
    let (name_class, bar_class) = if ours {
        ("name ours", "bar ours")
    } else {
        ("name", "bar")
    };
    svg.text(
        name_class,
        Anchor::Start(MARGIN, top + 14.0),
        &entry.label(),
    );
    let value = with_unit(metric, entry.summary.median);
    svg.text(name_class, Anchor::End(WIDTH - MARGIN, top + 14.0), &value);
    let (left, right) = (MARGIN, scale.place(entry.summary.median));
    svg.rect(
        bar_class,
        At(left, top + 19.0),
        ((right - left).max(1.0), BAR),
    );
    whisker(svg, scale, entry, top + 19.0 + BAR / 2.0);
}

fn whisker(svg: &mut Svg, scale: &Scale, entry: &Entry<'_>, y: f64) {
    if entry.summary.runs < 2 {
        return;
    }
    let (low, high) = (
        scale.place(entry.summary.min),
        scale.place(entry.summary.max),
    );
    svg.line("whisker", At(low, y), At(high, y));
    for x in [low, high] {
        svg.line("whisker", At(x, y - 4.0), At(x, y + 4.0));
    }
}

fn described(comparison: &Comparison<'_>, entries: &[Entry<'_>]) -> String {
    let figures: Vec<String> = entries
        .iter()
        .map(|entry| {
            let value = |v| with_unit(comparison.metric, v);
            let (median, min, max) = (entry.summary.median, entry.summary.min, entry.summary.max);
            format!(
                "{} {}, from {} to {}",
                entry.label(),
                value(median),
                value(min),
                value(max)
            )
        })
        .collect();
    format!("Bars from best to worst: {}.", figures.join("; "))
}

fn note(metric: &str, scale: &Scale) -> String {
    let direction = match better(metric) {
        Better::Lower => "Shorter is better",
        Better::Higher => "Longer is better",
    };
    let axis = if scale.is_logarithmic() {
        "; logarithmic axis"
    } else {
        ""
    };
    format!("{direction}{axis}.")
}
