//! One workload's part of the page: its charts, its tables, and the documents' figures.

use super::chart::Chart;
use super::lines::{Line, Words, lines};
use super::{bars, svg};
use crate::alternate::{Cell, RowResult};
use crate::compare::{Comparison, comparisons, family, label};
use crate::documents::{self, Document, Printed, SPAWN_SERIES};
use crate::figure::{span, with_unit};
use crate::limit;
use crate::metric::meaning;
use crate::stats::Verdict;
use crate::system::WEALD;
use crate::table;
use crate::workload::{ALL, Workload};

/// The style sheet has line styles 0 to 14 for systems, and two more for the old documents.
const STYLES: usize = 15;
const OLD_STYLES: usize = 20;

/// One workload on the page.
pub(super) struct Section {
    pub(super) name: &'static str,
    pub(super) question: &'static str,
    pub(super) remark: &'static str,
    /// Every metric with its meaning.
    pub(super) meanings: Vec<(&'static str, &'static str)>,
    pub(super) charts: Vec<Chart>,
    pub(super) overview: Vec<Overview>,
    pub(super) columns: Columns,
    pub(super) rows: Vec<RowTable>,
    pub(super) printed: Vec<&'static Printed>,
    pub(super) documents: Vec<&'static Document>,
}

/// One line of a section's overview: Weald against the best rival.
pub(super) struct Overview {
    pub(super) params: String,
    pub(super) metric: String,
    pub(super) ours: String,
    pub(super) best: String,
    pub(super) ratio: String,
    /// How many times the limit program's figure it is.
    pub(super) limit: String,
    pub(super) class: &'static str,
}

/// Which columns of an overview have something in them.
#[derive(Clone, Copy, Default)]
pub(super) struct Columns {
    /// The best rival and the ratio to it.
    pub(super) rivals: bool,
    /// The multiple of the limit program's figure.
    pub(super) limit: bool,
}

impl Columns {
    pub(super) fn of(overview: &[Overview]) -> Self {
        Self {
            rivals: overview.iter().any(|line| !line.best.is_empty()),
            limit: overview.iter().any(|line| !line.limit.is_empty()),
        }
    }
}

/// All systems in one row.
pub(super) struct RowTable {
    pub(super) caption: String,
    pub(super) metrics: Vec<String>,
    /// Whether a line has a remark.
    pub(super) has_trouble: bool,
    pub(super) lines: Vec<RowLine>,
}

/// One system with one number of workers.
pub(super) struct RowLine {
    pub(super) label: String,
    pub(super) ours: bool,
    pub(super) values: Vec<Value>,
    pub(super) trouble: String,
}

/// One figure with its range.
pub(super) struct Value {
    pub(super) median: String,
    pub(super) span: String,
    pub(super) best: bool,
}

/// The sections of all workloads that were measured, in their fixed order.
pub(super) fn sections(results: &[RowResult]) -> Vec<Section> {
    let systems = system_names(results);
    let section = |workload: &'static Workload| {
        let rows: Vec<&RowResult> = results
            .iter()
            .filter(|result| result.row.workload == workload)
            .collect();
        (!rows.is_empty()).then(|| one(workload, &rows, &systems))
    };
    ALL.iter().filter_map(section).collect()
}

/// The head of the page: for each workload the first figure of its first row that has one and is no calm run.
pub(super) fn summary(results: &[RowResult]) -> Vec<Overview> {
    let of = |workload: &'static Workload| {
        let rows = results
            .iter()
            .filter(|result| result.row.workload == workload && !result.row.is_calm());
        let mut line = rows
            .filter_map(|row| overview(row).into_iter().next())
            .next()?;
        line.params = format!("{} {}", workload.name, line.params);
        Some(line)
    };
    ALL.iter().filter_map(of).collect()
}

fn one(workload: &'static Workload, rows: &[&RowResult], systems: &[String]) -> Section {
    let overview: Vec<Overview> = rows.iter().flat_map(|row| overview(row)).collect();
    Section {
        name: workload.name,
        question: workload.question,
        remark: workload.remark,
        meanings: meanings(workload),
        charts: charts(workload, rows, systems),
        columns: Columns::of(&overview),
        overview,
        rows: rows.iter().map(|row| row_table(row)).collect(),
        printed: documents::printed(workload.name).collect(),
        documents: documents::sources(workload.name),
    }
}

fn meanings(workload: &Workload) -> Vec<(&'static str, &'static str)> {
    let of = |name: &&'static str| Some((*name, meaning(name)?));
    workload.printable().iter().filter_map(of).collect()
}

/// All systems in the order of measuring, so that each keeps its style in every chart.
fn system_names(results: &[RowResult]) -> Vec<String> {
    let mut names = vec![WEALD.to_owned()];
    let cells = results.iter().flat_map(|result| &result.cells);
    for cell in cells.filter(|cell| cell.system != limit::NAME) {
        let name = family(&cell.system);
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

fn charts(workload: &Workload, rows: &[&RowResult], systems: &[String]) -> Vec<Chart> {
    let mut charts = Vec::new();
    if workload.name == "spawn" {
        let measured = spawn_lines(rows, systems);
        charts.extend(cost_chart(&measured));
        charts.extend(flatness_chart(measured));
    }
    charts.extend(charted(rows).iter().flat_map(|row| row_bars(row)));
    charts
}

fn cost_chart(measured: &[Line]) -> Option<Chart> {
    let words = Words {
        caption: "ns_per_spawn over the number of processes",
        across: "processes",
        note: "Lower is better; both axes are logarithmic; each system at its best number of workers.",
    };
    lines(&words, measured)
}

/// The documents' series beside the measured ones, each divided by its own first value: absolute
/// times of old machines say nothing, but whether a line stays flat does.
fn flatness_chart(measured: Vec<Line>) -> Option<Chart> {
    let old = SPAWN_SERIES.iter().enumerate().map(|(index, series)| Line {
        name: series.system.to_owned(),
        points: series.points.to_vec(),
        style: OLD_STYLES + index,
    });
    let all: Vec<Line> = measured
        .into_iter()
        .take(STYLES - 2)
        .chain(old)
        .map(relative)
        .collect();
    let words = Words {
        caption: "Cost of a spawn relative to the smallest size, over the number of processes",
        across: "processes",
        note: "Each line is divided by its own value at its smallest size, so 1 is flat. \
               This is the only way to compare the old documents' lines.",
    };
    lines(&words, &all)
}

fn relative(mut line: Line) -> Line {
    if let Some(first) = line.points.first().map(|(_, y)| *y).filter(|y| *y > 0.0) {
        line.points.iter_mut().for_each(|(_, y)| *y /= first);
    }
    line
}

/// The cost of a spawn for each system over all sizes with pages of the default size.
fn spawn_lines(rows: &[&RowResult], systems: &[String]) -> Vec<Line> {
    let point = |row: &RowResult, system: &str| {
        let size = row.row.workload.size(&row.row.params)?;
        let all = comparisons(row);
        let best = all
            .iter()
            .find(|c| c.metric == "ns_per_spawn")?
            .best_of_each();
        let entry = best
            .iter()
            .find(|entry| family(&entry.cell.system) == system)?;
        Some((size as f64, entry.summary.median)).filter(|(_, y)| *y > 0.0)
    };
    let usual: Vec<&&RowResult> = rows
        .iter()
        .filter(|row| row.row.params.get("huge").is_none())
        .collect();
    systems
        .iter()
        .enumerate()
        .map(|(index, system)| Line {
            name: system.clone(),
            points: usual.iter().filter_map(|row| point(row, system)).collect(),
            style: index % STYLES,
        })
        .filter(|line| !line.points.is_empty())
        .collect()
}

/// The rows to draw: the last size with the most systems for workloads that are run at many sizes, every
/// size for the others.
fn charted<'a>(rows: &[&'a RowResult]) -> Vec<&'a RowResult> {
    let many_sizes = ["spawn", "mailbox"];
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    if !many_sizes.contains(&first.row.workload.name) {
        return rows.to_vec();
    }
    let systems = |row: &&&RowResult| row.cells.iter().filter(|c| !c.figures.is_empty()).count();
    let most = rows.iter().map(|row| systems(&row)).max().unwrap_or(0);
    let size = |row: &RowResult| row.row.workload.size(&row.row.params);
    let full = || rows.iter().filter(|row| systems(row) == most);
    let largest = full().filter_map(|row| size(row)).max();
    full().filter(|row| size(row) == largest).copied().collect()
}

fn row_bars(row: &RowResult) -> Vec<Chart> {
    let shown = row.row.params.to_string();
    // The tables hold these; as charts they would only repeat their neighbours.
    let repeating = [
        "ticks",
        "ms_with_setup",
        "lateness_p999_ms",
        "lateness_p50_ms",
        "messages_per_poll",
        "ms_serial",
        "ms_outlined",
        "speedup_outlined",
        "speedup_bound",
        "times_one_worker",
    ];
    let drawn = |comparison: &Comparison<'_>| !repeating.contains(&comparison.metric);
    comparisons(row)
        .iter()
        .filter(|comparison| drawn(comparison))
        .filter_map(|comparison| bars::bars(&shown, comparison))
        .collect()
}

fn overview(row: &RowResult) -> Vec<Overview> {
    comparisons(row)
        .iter()
        .filter_map(|comparison| {
            let ours = comparison.weald.first()?;
            let ratio = comparison.headline();
            let value = |entry: &crate::compare::Entry<'_>| {
                let median = with_unit(comparison.metric, entry.summary.median);
                format!("{median} ({})", entry.label())
            };
            Some(Overview {
                params: match row.row.shape() {
                    Some(shape) => format!("{} ({shape})", row.row.params),
                    None => row.row.params.to_string(),
                },
                metric: comparison.metric.to_owned(),
                ours: value(ours),
                best: comparison.rivals.first().map(value).unwrap_or_default(),
                ratio: ratio.map(|ratio| ratio.words()).unwrap_or_default(),
                limit: comparison
                    .times_limit(ours)
                    .map(table::times_limit)
                    .unwrap_or_default(),
                class: match ratio.map(|ratio| ratio.verdict) {
                    Some(Verdict::Better) => "better",
                    Some(Verdict::Worse) => "worse",
                    _ => "",
                },
            })
        })
        .collect()
}

fn row_table(row: &RowResult) -> RowTable {
    let comparisons = comparisons(row);
    let line = |cell: &Cell| RowLine {
        label: label(cell),
        ours: cell.system == WEALD,
        values: comparisons
            .iter()
            .map(|comparison| value(comparison, cell))
            .collect(),
        trouble: cell.trouble.clone().unwrap_or_default(),
    };
    RowTable {
        caption: row.row.to_string(),
        has_trouble: row.cells.iter().any(|cell| cell.trouble.is_some()),
        metrics: comparisons.iter().map(|c| c.metric.to_owned()).collect(),
        lines: row.cells.iter().map(line).collect(),
    }
}

fn value(comparison: &Comparison<'_>, cell: &Cell) -> Value {
    let Some((_, summary)) = cell
        .figures
        .iter()
        .find(|(name, _)| name == comparison.metric)
    else {
        return Value {
            median: String::new(),
            span: String::new(),
            best: false,
        };
    };
    let best = comparison.best_of_each();
    Value {
        median: with_unit(comparison.metric, summary.median),
        span: span(summary),
        best: best.len() > 1
            && best
                .first()
                .is_some_and(|entry| std::ptr::eq(entry.cell, cell)),
    }
}

/// An anchor for a section's name, which holds nothing that needs escaping.
pub(super) fn anchor(name: &str) -> String {
    svg::escape(name).replace(' ', "-")
}
