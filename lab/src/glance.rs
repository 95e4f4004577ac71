//! The table of `weald bench` without options: a dozen figures, each beside what it was elsewhere, with a verdict.
//!
//! Figures of two machines cannot be compared, but multiples of the limit program's can. So a figure is judged by its
//! multiple where there is one, and else only by its order of magnitude. Where a rival was measured here, it is judged
//! by the rival.

use crate::alternate::RowResult;
use crate::compare::{Comparison, Entry, comparisons};
use crate::figure::{number, with_unit};
use crate::metric::{Better, better};

/// One line of the table.
#[derive(Debug)]
pub struct GlanceLine {
    /// What is measured, in words.
    pub what: &'static str,
    workload: &'static str,
    metric: &'static str,
    elsewhere: Elsewhere,
}

/// What was measured on another machine.
#[derive(Debug)]
struct Elsewhere {
    /// Weald's figure; 0 where none was written down.
    weald: f64,
    /// It as a multiple of the limit program's, where that was written down, by the least of the runs.
    times_limit: Option<f64>,
    /// The best of the rivals that were measured beside it, and its figure.
    rival: Option<(&'static str, f64)>,
}

/// The machines that the table calls "elsewhere", and where their figures stand.
pub const ELSEWHERE: &str = "machines of two cores without other work, in November 2026 (docs/decisions/0025, 0026, 0038, 0044, 0048;\n\
     README.md names the processors); for a thread and for commits to one tree a shared machine (0034); requests on 1,000\n\
     connections";

/// The lines, in the order in which their rows run.
pub static LINES: [GlanceLine; 14] = [
    line(
        "a process, spawned",
        "spawn",
        "ns_per_spawn",
        (45.0, Some(7.3), Some(("Tokio", 833.0))),
    ),
    line(
        "the same, in memory while it waits",
        "spawn",
        "bytes_per_process",
        (105.0, None, None),
    ),
    line(
        "a message and its answer",
        "ping-pong",
        "ns_per_round_trip",
        (58.0, None, Some(("Tokio", 141.0))),
    ),
    line(
        "a message in a ring of 1,000 processes",
        "ring",
        "ns_per_hop",
        (20.6, Some(3.0), Some(("Tokio", 57.0))),
    ),
    line(
        "a message through a channel for 100",
        "channel",
        "ns_per_message",
        (17.7, Some(2.8), Some(("flume", 21.3))),
    ),
    line(
        "a lock that 1,000 units want",
        "lock",
        "ns",
        (6.3, Some(2.9), Some(("Go", 9.3))),
    ),
    line(
        "a thread, created and joined",
        "thread",
        "ns",
        (194.0, None, None),
    ),
    line(
        "a timer, started by a unit",
        "timers",
        "ns_per_after",
        (15.4, None, None),
    ),
    line("a fork", "fib", "ns_per_fork", (1.4, None, None)),
    line(
        "a sort of 808,080 numbers on all cores",
        "quicksort",
        "ms",
        (29.0, None, Some(("rayon", 25.0))),
    ),
    line(
        "a million HTTP requests, processor time",
        "hello",
        "cpu_s_per_million",
        (12.7, None, Some(("hyper", 11.6))),
    ),
    line(
        "commits to one tree by 64 processes",
        "hot-tree",
        "commits_per_s",
        (252_000.0, None, None),
    ),
    line(
        "durable commits by 64 processes",
        "durable",
        "commits_per_s",
        (181_000.0, None, None),
    ),
    line(
        "ticks of 1,000 while 4 units block",
        "stall",
        "ticks_percent",
        (100.0, None, None),
    ),
];

type Figures = (f64, Option<f64>, Option<(&'static str, f64)>);

const fn line(
    what: &'static str,
    workload: &'static str,
    metric: &'static str,
    (weald, times_limit, rival): Figures,
) -> GlanceLine {
    GlanceLine {
        what,
        workload,
        metric,
        elsewhere: Elsewhere {
            weald,
            times_limit,
            rival,
        },
    }
}

/// The lines of the table that this row gives figures for.
fn lines_of(result: &RowResult) -> impl Iterator<Item = &'static GlanceLine> {
    let name = result.row.workload.name;
    let is_calm = result.row.is_calm();
    LINES
        .iter()
        .filter(move |line| line.workload == name && !is_calm)
}

/// The heading of the table.
#[must_use]
pub fn heading() -> String {
    columns(
        ["", "here", "elsewhere", "x limit (there)", "a rival there"],
        "verdict",
    )
}

/// The lines of a row that is finished.
#[must_use]
pub fn text(result: &RowResult) -> String {
    let comparisons = comparisons(result);
    let find = |line: &GlanceLine| comparisons.iter().find(|found| found.metric == line.metric);
    lines_of(result)
        .map(|line| line.text(find(line), result))
        .collect()
}

fn columns([what, here, elsewhere, limit, rival]: [&str; 5], verdict: &str) -> String {
    let text = format!("{what:<40} {here:>9} {elsewhere:>10} {limit:>15}  {rival:<17} {verdict}");
    format!("{}\n", text.trim_end())
}

impl GlanceLine {
    fn text(&self, found: Option<&Comparison<'_>>, result: &RowResult) -> String {
        let there = &self.elsewhere;
        let value = |value| match value > 0.0 {
            true => with_unit(self.metric, value),
            false => String::new(),
        };
        let ours = found.and_then(|found| Some((found, found.weald.first()?)));
        let trouble = || result.cells.iter().find_map(|cell| cell.trouble.clone());
        let here = ours.map(|(_, ours)| value(ours.summary.median));
        let limit = match (
            ours.and_then(|(found, ours)| found.times_limit(ours)),
            there.times_limit,
        ) {
            (Some(here), Some(there)) => format!("{} ({})", number(here), number(there)),
            (Some(here), None) => number(here),
            _ => String::new(),
        };
        let rival = there
            .rival
            .map(|(name, figure)| format!("{name} {}", value(figure)));
        let verdict = match ours {
            Some((found, ours)) => self.verdict(found, ours),
            None => trouble().unwrap_or_else(|| "no figure".to_owned()),
        };
        let (here, rival) = (here.unwrap_or_default(), rival.unwrap_or_default());
        columns(
            [self.what, &here, &value(there.weald), &limit, &rival],
            &verdict,
        )
    }

    fn verdict(&self, found: &Comparison<'_>, ours: &Entry<'_>) -> String {
        if let (Some(ratio), Some(rival)) = (found.headline(), found.rivals.first()) {
            return format!("{}: {}", rival.label(), ratio.words());
        }
        let there = &self.elsewhere;
        if self.metric == TICKS {
            return promise(ours.summary.median).to_owned();
        }
        if there.weald <= 0.0 {
            return "not measured there".to_owned();
        }
        let (times, margin) = match (found.times_limit(ours), there.times_limit) {
            (Some(here), Some(of_limit)) => {
                let figure = there.times_worse(ours.summary.median, self.metric);
                if is_contradicted(here / of_limit, figure) {
                    return UNDECIDED.to_owned();
                }
                (here / of_limit, CLOSE)
            }
            _ => (
                there.times_worse(ours.summary.median, self.metric),
                SAME_ORDER,
            ),
        };
        compared(times, margin)
    }
}

impl Elsewhere {
    fn times_worse(&self, here: f64, metric: &str) -> f64 {
        match better(metric) {
            Better::Lower => here / self.weald,
            Better::Higher => self.weald / here,
        }
    }
}

/// The metric of the promise itself.
const TICKS: &str = "ticks_percent";
/// Multiples of the limit program's figure that differ by less than this factor count as equal.
const CLOSE: f64 = 1.3;
/// The same for bare figures: processors, disks and kernels differ by that much.
const SAME_ORDER: f64 = 2.0;
/// The share of ticks that a stall must leave.
const PROMISED_PERCENT: f64 = 95.0;

fn promise(percent: f64) -> &'static str {
    match percent >= PROMISED_PERCENT {
        true => "kept: the stall delayed nobody",
        false => "NOT KEPT: the stall delayed others",
    }
}

/// What is said where the figure and the multiple point in opposite directions.
const UNDECIDED: &str = "undecided: by its figure it is the other way round";

/// Whether the multiple says that this machine is better, and the figure that it is worse, or the reverse. So it is if
/// something has disturbed only the runs of the limit program, or only those of Weald.
fn is_contradicted(by_limit: f64, by_figure: f64) -> bool {
    let is_far = by_limit.max(1.0 / by_limit) > CLOSE && by_figure.max(1.0 / by_figure) > CLOSE;
    is_far && (by_limit > 1.0) != (by_figure > 1.0)
}

fn compared(times_worse: f64, margin: f64) -> String {
    if times_worse > margin {
        format!("{}x WORSE than there", number(times_worse))
    } else if times_worse * margin < 1.0 {
        format!("{}x better than there", number(1.0 / times_worse))
    } else {
        "as elsewhere".to_owned()
    }
}

/// What the columns mean.
#[must_use]
pub fn legend() -> String {
    format!(
        "\nFigures are medians of three runs, unless `--runs` says otherwise or time is short; of one worker where the units can \
         only work\nin turns, else of all. Lower is better, except of commits and ticks, which are per second and in \
         percent.\nElsewhere: {ELSEWHERE}.\nx limit: Weald's figure as a multiple of that of the least code that does the \
         work and promises nothing; it can be compared\nbetween machines. A verdict compares it, or the bare figure if \
         there is none.\nIt also falls when only the limit program was disturbed; so there is no verdict where the figure points the \
         other way.\n`weald bench --full` measures all workloads at all sizes; `--rivals=tokio,go` measures others \
         beside these rows.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::cell;
    use crate::plan::{Level, plan};

    fn planned(workload: &str, metric: &str, figures: &[(&str, f64)]) -> RowResult {
        let groups = plan(Level::Glance, &[]);
        let mut rows = groups.into_iter().flat_map(|group| group.rows);
        let row = rows.find(|row| row.workload.name == workload && !row.is_calm());
        let cells = figures
            .iter()
            .map(|(system, value)| cell(system, 1, metric, *value));
        RowResult {
            row: row.unwrap(),
            cells: cells.collect(),
        }
    }

    #[test]
    fn every_line_has_a_row_that_prints_its_metric_and_every_row_a_line() {
        let groups = plan(Level::Glance, &[]);
        let rows: Vec<_> = groups.iter().flat_map(|group| &group.rows).collect();
        for line in &LINES {
            let row = rows.iter().find(|row| row.workload.name == line.workload);
            assert!(
                row.unwrap().workload.metrics.contains(&line.metric),
                "{line:?}"
            );
        }
        for row in rows.iter().filter(|row| !row.is_calm()) {
            assert!(
                LINES.iter().any(|line| line.workload == row.workload.name),
                "{row}"
            );
        }
    }

    #[test]
    fn a_multiple_of_the_limit_is_judged_where_there_is_one() {
        let line = line("spawn", "spawn", "ns_per_spawn", (150.0, Some(3.0), None));
        // A machine that is three times slower at everything; and one where only Weald is slower.
        for (limit, wanted) in [(150.0, "as elsewhere"), (50.0, "3.00x WORSE than there")] {
            let row = planned(
                "spawn",
                "ns_per_spawn",
                &[("weald", 450.0), ("limit", limit)],
            );
            let found = comparisons(&row);
            assert_eq!(line.verdict(&found[0], &found[0].weald[0]), wanted);
        }
    }

    #[test]
    fn a_multiple_that_the_figure_contradicts_decides_nothing() {
        let line = line("spawn", "spawn", "ns_per_spawn", (45.0, Some(7.3), None));
        let cases = [
            (219.0, 109.0, UNDECIDED),
            (20.0, 2.0, UNDECIDED),
            (50.0, 25.0, "3.65x better than there"),
        ];
        for (ours, limit, wanted) in cases {
            let row = planned(
                "spawn",
                "ns_per_spawn",
                &[("weald", ours), ("limit", limit)],
            );
            let found = comparisons(&row);
            assert_eq!(line.verdict(&found[0], &found[0].weald[0]), wanted);
        }
    }

    #[test]
    fn a_rival_that_was_measured_here_judges() {
        let row = planned(
            "ping-pong",
            "ns_per_round_trip",
            &[("weald", 50.0), ("go", 200.0)],
        );
        assert!(
            text(&row).trim_end().ends_with("go on 1: 4.00x better"),
            "{}",
            text(&row)
        );
    }

    #[test]
    fn a_promise_is_kept_or_not() {
        for (percent, wanted) in [(99.0, "kept:"), (60.0, "NOT KEPT:")] {
            let row = planned("stall", TICKS, &[("weald", percent)]);
            assert!(text(&row).contains(wanted), "{}", text(&row));
        }
        let calm = plan(Level::Glance, &[]).pop().unwrap().rows.remove(0);
        assert!(calm.is_calm());
        assert_eq!(
            text(&RowResult {
                row: calm,
                cells: Vec::new()
            }),
            ""
        );
    }

    #[test]
    fn a_row_without_a_figure_says_why() {
        let mut row = planned("lock", "ns", &[("weald", 1.0)]);
        row.cells[0].figures.clear();
        row.cells[0].trouble = Some("Not run.".to_owned());
        assert!(
            text(&row).trim_end().ends_with("Not run."),
            "{}",
            text(&row)
        );
    }

    #[test]
    fn bare_figures_are_judged_by_their_order_only() {
        assert_eq!(compared(1.9, SAME_ORDER), "as elsewhere");
        assert_eq!(compared(0.25, SAME_ORDER), "4.00x better than there");
        assert_eq!(compared(2.5, SAME_ORDER), "2.50x WORSE than there");
    }
}
