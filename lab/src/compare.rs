//! Compares Weald with its rivals in one row and one metric: which is best, and by how much.
//!
//! The best number of workers and the best allocator of a rival count; all of them are printed. A limit program is not
//! a rival: figures are multiples of its figure.

use crate::alternate::{Cell, RowResult};
use crate::limit;
use crate::metric::{Better, better};
use crate::stats::{Ratio, Summary};
use crate::system::{FORMS, WEALD};

/// One system's figure for one metric.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The system and its number of workers.
    pub cell: &'a Cell,
    /// The summary of its runs.
    pub summary: &'a Summary,
}

impl Entry<'_> {
    /// As in "go on 2".
    #[must_use]
    pub fn label(&self) -> String {
        label(self.cell)
    }
}

/// A system with its number of workers, as in "go on 2".
#[must_use]
pub fn label(cell: &Cell) -> String {
    format!("{} on {}", cell.system, cell.workers)
}

/// The system without its allocator, which follows a plus sign in names such as "tokio+mimalloc".
#[must_use]
pub fn family(system: &str) -> &str {
    system.split('+').next().unwrap_or(system)
}

/// Memory comes in huge pages of 2 MiB; a growth of fewer than four of them is mostly rounding error.
const TELLING_GROWTH: f64 = (8 << 20) as f64;

/// All figures for one metric.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    /// The metric.
    pub metric: &'a str,
    /// The size of the row: the number of processes or messages that a cost adds up over.
    pub size: Option<u64>,
    /// Weald's figures, the best first.
    pub weald: Vec<Entry<'a>>,
    /// The rivals' figures, the best first.
    pub rivals: Vec<Entry<'a>>,
    /// The figures of the limit program, the best first.
    pub limits: Vec<Entry<'a>>,
    /// Weald's figures in other forms, such as through its interface for C: shown, and never the best rival.
    pub forms: Vec<Entry<'a>>,
}

impl<'a> Comparison<'a> {
    /// All figures other than Weald's usual ones: the limit program's, those of its other forms, the rivals'.
    pub fn others(&self) -> impl Iterator<Item = &Entry<'a>> {
        self.limits.iter().chain(&self.forms).chain(&self.rivals)
    }

    /// How Weald's figure compares with the best rival's; `None` if the two cannot be compared.
    #[must_use]
    pub fn ratio(&self, ours: &Entry<'_>) -> Option<Ratio> {
        if !self.can_be_judged(ours) {
            return None;
        }
        Ratio::of(
            ours.summary,
            self.rivals.first()?.summary,
            better(self.metric),
        )
    }

    /// How many times Weald's figure with as many workers another form of Weald takes, in cost; `None` for any other
    /// system, and if the two cannot be compared.
    #[must_use]
    pub fn times_weald(&self, form: &Entry<'_>) -> Option<f64> {
        if !FORMS.contains(&form.cell.system.as_str()) || !self.can_be_judged(form) {
            return None;
        }
        let same = |ours: &&Entry<'_>| ours.cell.workers == form.cell.workers;
        let (ours, theirs) = (
            self.weald.iter().find(same)?.summary.median,
            form.summary.median,
        );
        if ours <= 0.0 || theirs <= 0.0 {
            return None;
        }
        Some(match better(self.metric) {
            Better::Lower => theirs / ours,
            Better::Higher => ours / theirs,
        })
    }

    /// How many times the limit program's best figure this is, in cost; `None` if there is none or the two cannot be
    /// compared.
    #[must_use]
    pub fn times_limit(&self, ours: &Entry<'_>) -> Option<f64> {
        let limit = self.limits.first()?.summary.median;
        let ours_is = ours.summary.median;
        if !self.can_be_judged(ours) || limit <= 0.0 || ours_is <= 0.0 {
            return None;
        }
        Some(match better(self.metric) {
            Better::Lower => ours_is / limit,
            Better::Higher => limit / ours_is,
        })
    }

    /// Whether a metric is judged. Not judged are a bare number of ticks and the gain from more workers, because their
    /// ideals are each system's own; metrics that only explain a cost, or that must have one value; and memory that
    /// grew by only a few huge pages, because rounding dominates there.
    fn can_be_judged(&self, ours: &Entry<'_>) -> bool {
        let grown = ours.summary.median * self.size.unwrap_or(0) as f64;
        match self.metric {
            "ticks" | "messages_per_poll" | "ms_serial" | "ms_outlined" | "parallel_percent"
            | "times_one_worker" | "correct" | "retries_per_commit" | "r" | "r2"
            | "intercept_bytes" => false,
            speedup if speedup.starts_with("speedup") => false,
            memory if memory.starts_with("bytes_per_") => grown >= TELLING_GROWTH,
            _ => true,
        }
    }

    /// How Weald's best figure compares with the best rival's.
    #[must_use]
    pub fn headline(&self) -> Option<Ratio> {
        self.ratio(self.weald.first()?)
    }

    /// The best figure of each system, Weald's included, the best first. A system with another allocator does
    /// not count as another system.
    #[must_use]
    pub fn best_of_each(&self) -> Vec<Entry<'a>> {
        let all = self.weald.iter().chain(&self.forms);
        let all = all.chain(&self.rivals).copied().collect();
        let mut best: Vec<Entry<'a>> = Vec::new();
        for entry in sorted(self.metric, all) {
            let name = family(&entry.cell.system);
            if !best.iter().any(|other| family(&other.cell.system) == name) {
                best.push(entry);
            }
        }
        best
    }
}

/// A comparison for each metric of a row, in the order in which the row printed them.
#[must_use]
pub fn comparisons(result: &RowResult) -> Vec<Comparison<'_>> {
    let mut metrics: Vec<&str> = Vec::new();
    for (metric, _) in result.cells.iter().flat_map(|cell| &cell.figures) {
        if !metrics.contains(&metric.as_str()) {
            metrics.push(metric);
        }
    }
    metrics
        .into_iter()
        .map(|metric| compare(result, metric))
        .collect()
}

fn compare<'a>(result: &'a RowResult, metric: &'a str) -> Comparison<'a> {
    let entry = |cell: &'a Cell| {
        let (_, summary) = cell.figures.iter().find(|(name, _)| name == metric)?;
        Some(Entry { cell, summary })
    };
    let entries = result.cells.iter().filter_map(entry);
    let (weald, others): (Vec<_>, Vec<_>) =
        entries.partition(|entry: &Entry<'_>| entry.cell.system == WEALD);
    let (limits, others): (Vec<_>, Vec<_>) = others
        .into_iter()
        .partition(|entry| entry.cell.system == limit::NAME);
    let (forms, rivals) = others
        .into_iter()
        .partition(|entry| FORMS.contains(&entry.cell.system.as_str()));
    Comparison {
        metric,
        size: result.row.workload.size(&result.row.params),
        weald: sorted(metric, weald),
        rivals: sorted(metric, rivals),
        limits: sorted(metric, limits),
        forms: sorted(metric, forms),
    }
}

/// Sorts the best first; equal figures keep their order.
fn sorted<'a>(metric: &str, mut entries: Vec<Entry<'a>>) -> Vec<Entry<'a>> {
    let direction = better(metric);
    entries.sort_by(|a, b| {
        b.summary
            .beats(a.summary, direction)
            .cmp(&a.summary.beats(b.summary, direction))
    });
    entries
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::params::Params;
    use crate::plan::Row;

    /// A cell with one figure whose runs all gave `value`.
    pub(crate) fn cell(system: &str, workers: usize, metric: &str, value: f64) -> Cell {
        Cell {
            system: system.to_owned(),
            version: "1".to_owned(),
            workers,
            figures: vec![(metric.to_owned(), Summary::of(&[value]).unwrap())],
            trouble: None,
        }
    }

    #[test]
    fn the_best_rival_over_all_its_lanes_counts() {
        let metric = "ns_per_hop";
        let cells = vec![
            cell("weald", 1, metric, 12.0),
            cell("weald", 2, metric, 15.0),
            cell("go", 1, metric, 60.0),
            cell("go", 2, metric, 48.0),
            cell("go+mimalloc", 1, metric, 50.0),
            cell("erlang", 1, metric, 300.0),
            cell("weald-c", 1, metric, 20.0),
            cell("weald-default", 2, metric, 18.0),
        ];
        let params = Params::default()
            .with("n", 1)
            .with("m", 1)
            .with("tokens", 1);
        let result = RowResult {
            row: Row::new("ring", params),
            cells,
        };
        let all = comparisons(&result);
        let times: Vec<Option<f64>> = all[0].others().map(|it| all[0].times_weald(it)).collect();
        let others = [None; 4];
        assert_eq!(times[..2], [Some(1.2), Some(20.0 / 12.0)]);
        assert_eq!(times[2..], others);
        assert_eq!(all.len(), 1);
        let labels: Vec<String> = all[0].rivals.iter().map(Entry::label).collect();
        assert_eq!(
            labels,
            ["go on 2", "go+mimalloc on 1", "go on 1", "erlang on 1"]
        );
        assert_eq!(all[0].headline().unwrap().times_better, 4.0);
        assert_eq!(all[0].ratio(&all[0].weald[1]).unwrap().times_better, 3.2);
        let best: Vec<String> = all[0].best_of_each().iter().map(Entry::label).collect();
        assert_eq!(
            best,
            [
                "weald on 1",
                "weald-default on 2",
                "weald-c on 1",
                "go on 2",
                "erlang on 1"
            ]
        );
    }

    #[test]
    fn a_limit_program_is_no_rival() {
        for (metric, ours, limits, times) in [
            ("ns", 15.0, [12.0, 10.0], 1.5),
            ("requests_per_s", 50.0, [100.0, 90.0], 2.0),
        ] {
            let cells = vec![
                cell("weald", 1, metric, ours),
                cell("limit", 1, metric, limits[0]),
                cell("limit", 2, metric, limits[1]),
            ];
            let row = Row::new("lock", Params::default());
            let result = RowResult { row, cells };
            let all = comparisons(&result);
            assert!(all[0].rivals.is_empty() && all[0].headline().is_none());
            assert_eq!(all[0].times_limit(&all[0].weald[0]), Some(times));
        }
    }

    #[test]
    fn memory_of_few_pages_is_shown_but_not_judged() {
        let metric = "bytes_per_process";
        for (n, judged) in [(1_000, false), (1_000_000, true)] {
            let cells = vec![
                cell("weald", 1, metric, 100.0),
                cell("go", 1, metric, 2_600.0),
            ];
            let row = Row::new("spawn", Params::default().with("n", n));
            let result = RowResult { row, cells };
            assert_eq!(
                comparisons(&result)[0].headline().is_some(),
                judged,
                "n={n}"
            );
        }
    }

    #[test]
    fn what_is_not_judged_has_no_multiple_of_weald() {
        let times = |metric, ours, form| {
            let cells = vec![
                cell("weald", 1, metric, ours),
                cell("weald-c", 1, metric, form),
            ];
            let row = Row::new("spawn", Params::default().with("n", 1_000));
            let result = RowResult { row, cells };
            let all = comparisons(&result);
            all[0].times_weald(&all[0].forms[0])
        };
        assert_eq!(times("us_per_spawn", 2.0, 3.0), Some(1.5));
        assert_eq!(times("us_per_spawn", 2.0, 0.0), None);
        assert_eq!(times("bytes_per_process", 100.0, 150.0), None);
        assert_eq!(times("intercept_bytes", 100.0, -40.0), None);
        assert_eq!(times("r2", 1.0, 1.0), None);
    }

    #[test]
    fn more_ticks_are_better() {
        let metric = "ticks_percent";
        let cells = vec![
            cell("weald", 2, metric, 99.0),
            cell("tokio", 2, metric, 8.0),
        ];
        let params = Params::default().with("pingers", 1);
        let result = RowResult {
            row: Row::new("stall", params),
            cells,
        };
        assert!(comparisons(&result)[0].headline().unwrap().times_better > 12.0);
    }
}
