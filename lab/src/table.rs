//! The results as text for people: Weald's figure, the ratios to the best rival's and to the limit program's, then
//! all others.
//!
//! Rows that Weald loses are shown like the others, and listed once more at the end.

use std::fmt::Write;

use crate::alternate::RowResult;
use crate::compare::{Comparison, Entry, comparisons, label};
use crate::figure::{span, with_unit};
use crate::metric::{Better, better, meaning};
use crate::stats::Verdict;
use crate::workload::Workload;

/// One row with all its metrics.
#[must_use]
pub fn row(result: &RowResult) -> String {
    let mut text = format!("{}\n", result.row);
    for comparison in comparisons(result) {
        push_metric(&mut text, &comparison);
    }
    for cell in &result.cells {
        if let Some(trouble) = &cell.trouble {
            push(&mut text, format_args!("  {}: {trouble}\n", label(cell)));
        }
    }
    text
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    text.write_fmt(piece)
        .expect("a string takes all that is written");
}

fn push_metric(text: &mut String, comparison: &Comparison<'_>) {
    let mut heading = comparison.metric;
    // Rivals are ordered by merit; Weald's own lines have the same order in every row.
    let mut weald = comparison.weald.clone();
    weald.sort_by_key(|entry| entry.cell.workers);
    for ours in &weald {
        let limit = comparison.times_limit(ours).map(times_limit);
        let verdict = [Some(against_best(comparison, ours)), limit];
        let verdict: Vec<String> = verdict
            .into_iter()
            .flatten()
            .filter(|words| !words.is_empty())
            .collect();
        let (value, verdict) = (shown(comparison.metric, ours), verdict.join(", "));
        let line = format!("  {heading:<19} {:<10} {value:<34} {verdict}", ours.label());
        push(text, format_args!("{}\n", line.trim_end()));
        heading = "";
    }
    for rival in comparison.others() {
        let value = shown(comparison.metric, rival);
        let times = comparison.times_weald(rival);
        let times = times.map_or_else(String::new, |times| format!("{times:.2} x weald"));
        let line = format!(
            "  {heading:<19}     {:<18} {value:<30} {times}",
            rival.label()
        );
        push(text, format_args!("{}\n", line.trim_end()));
        heading = "";
    }
}

/// A value with its range and, where it is not the usual one, its number of runs.
fn shown(metric: &str, entry: &Entry<'_>) -> String {
    let value = with_unit(metric, entry.summary.median);
    match entry.summary.runs {
        1 => format!("{value} (one run)"),
        _ => format!("{value} ({})", span(entry.summary)),
    }
}

/// As in "1.25 x limit".
pub(crate) fn times_limit(times: f64) -> String {
    match times >= 100.0 {
        true => format!("{times:.0} x limit"),
        false => format!("{times:.2} x limit"),
    }
}

fn against_best(comparison: &Comparison<'_>, ours: &Entry<'_>) -> String {
    let (Some(ratio), Some(best)) = (comparison.ratio(ours), comparison.rivals.first()) else {
        return String::new();
    };
    format!("{} than {}", ratio.words(), best.label())
        .replace(", undecided than", " (undecided) than")
}

/// How many figures are better, worse and undecided, and which are the worse ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Figures in which Weald's best beats the best rival.
    pub better: usize,
    /// Figures that are too close to call.
    pub undecided: usize,
    /// Figures that Weald loses.
    pub worse: Vec<Lost>,
}

/// One figure that Weald loses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Workload and parameters.
    pub row: String,
    /// The metric.
    pub metric: String,
    /// Weald's figure.
    pub ours: String,
    /// How many times worse.
    pub ratio: String,
    /// The system with the best figure, and that figure.
    pub best: String,
}

/// Counts over all rows, with the best number of workers of Weald and of the best rival.
#[must_use]
pub fn verdicts(results: &[RowResult]) -> Verdicts {
    let mut verdicts = Verdicts::default();
    for result in results {
        for comparison in comparisons(result) {
            match comparison.headline().map(|ratio| ratio.verdict) {
                Some(Verdict::Better) => verdicts.better += 1,
                Some(Verdict::Undecided) => verdicts.undecided += 1,
                Some(Verdict::Worse) => verdicts.worse.push(lost(result, &comparison)),
                None => {}
            }
        }
    }
    verdicts
}

fn lost(result: &RowResult, comparison: &Comparison<'_>) -> Lost {
    let (ours, best) = (&comparison.weald[0], &comparison.rivals[0]);
    let value = |entry: &Entry<'_>| with_unit(comparison.metric, entry.summary.median);
    Lost {
        row: format!("{} {}", result.row.workload.name, result.row.params),
        metric: comparison.metric.to_owned(),
        ours: value(ours),
        ratio: comparison
            .headline()
            .map(|ratio| ratio.words())
            .unwrap_or_default(),
        best: format!("{} has {}", best.label(), value(best)),
    }
}

/// How to read the rows, above the first of them.
#[must_use]
pub fn explanation() -> String {
    "A row is one workload with one set of parameters: a chain if at most one unit can work at a time, parallel if \
     several can.\nA line is `metric, system on so many workers, median (smallest–largest of the runs), verdict`. \
     \"x limit\" is the multiple of\nthe figure of \"limit\": the least code of one thread that does the work and promises \
     nothing. It is what can be compared\nbetween machines. \"x weald\" stands beside Weald in another form, such as\nweald-default, which cargo's \
     own settings build.\n\n"
        .to_owned()
}

/// What a workload asks and what its metrics mean, above its first row.
#[must_use]
pub fn legend(workload: &Workload) -> String {
    let mut text = format!("== {} ==\n{}\n", workload.name, workload.question);
    if !workload.remark.is_empty() {
        push(&mut text, format_args!("{}\n", workload.remark));
    }
    for name in workload.printable() {
        let direction = match better(name) {
            Better::Lower => "lower",
            Better::Higher => "higher",
        };
        let sentence = match (name, meaning(name)) {
            (_, None) => continue,
            // The metric explains a cost; neither direction is better.
            ("messages_per_poll", Some(meaning)) => meaning.to_owned(),
            (_, Some(meaning)) => format!("{meaning}; {direction} is better"),
        };
        push(&mut text, format_args!("  {name:<20} {sentence}\n"));
    }
    text + "\n"
}

/// The closing lines; empty if no rival was measured.
#[must_use]
pub fn closing(results: &[RowResult]) -> String {
    let verdicts = verdicts(results);
    let (better, undecided, worse) = (verdicts.better, verdicts.undecided, verdicts.worse.len());
    if better + undecided + worse == 0 {
        return String::new();
    }
    let mut text = format!(
        "Weald's best against the best rival: {better} figures better, {undecided} undecided, \
         {worse} worse.\n"
    );
    for Lost {
        row,
        metric,
        ours,
        ratio,
        best,
    } in &verdicts.worse
    {
        push(
            &mut text,
            format_args!("  {row}: {metric} {ours} is {ratio}, {best}\n"),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::tests::cell;
    use crate::params::Params;
    use crate::plan::Row;

    fn result() -> RowResult {
        let mut late = cell("erlang", 2, "ns_per_round_trip", 900.0);
        late.figures.clear();
        late.trouble = Some("It had not ended after 60 s and was stopped.".to_owned());
        RowResult {
            row: Row::new("ping-pong", Params::default().with("rounds", 10)),
            cells: vec![
                cell("weald", 1, "ns_per_round_trip", 50.0),
                cell("weald", 2, "ns_per_round_trip", 80.0),
                cell("go", 2, "ns_per_round_trip", 200.0),
                cell("may", 1, "ns_per_round_trip", 40.0),
                late,
            ],
        }
    }

    #[test]
    fn a_row_shows_everyone_and_every_trouble() {
        let text = row(&result());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ping-pong rounds=10 (a chain)");
        assert!(lines[1].contains("weald on 1"), "{text}");
        assert!(lines[1].ends_with("1.25x WORSE than may on 1"), "{text}");
        assert!(lines[2].ends_with("2.00x WORSE than may on 1"), "{text}");
        assert!(
            lines[3].contains("may on 1") && lines[4].contains("go on 2"),
            "{text}"
        );
        assert_eq!(
            lines[5],
            "  erlang on 2: It had not ended after 60 s and was stopped."
        );
    }

    #[test]
    fn the_limit_program_stands_beside_and_above_the_rivals() {
        let mut result = result();
        result
            .cells
            .push(cell("limit", 1, "ns_per_round_trip", 20.0));
        let text = row(&result);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[1].ends_with("1.25x WORSE than may on 1, 2.50 x limit"),
            "{text}"
        );
        assert!(lines[3].contains("limit on 1"), "{text}");
        result
            .cells
            .retain(|cell| ["weald", "limit"].contains(&cell.system.as_str()));
        let text = row(&result);
        assert!(
            text.lines()
                .nth(1)
                .unwrap()
                .ends_with("(one run) 2.50 x limit")
                || text.contains("2.50 x limit"),
            "{text}"
        );
        assert!(closing(&[result]).is_empty(), "it is not a rival");
    }

    #[test]
    fn another_form_of_weald_is_a_multiple_of_weald() {
        let mut result = result();
        let default = cell("weald-default", 2, "ns_per_round_trip", 82.0);
        result.cells.push(default);
        let text = row(&result);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[3].contains("weald-default on 2"), "{text}");
        assert!(lines[3].ends_with(" 1.02 x weald"), "{text}");
        assert!(
            !text.contains("than weald-default"),
            "it is no rival: {text}"
        );
    }

    #[test]
    fn weald_has_the_order_of_workers_whichever_is_better() {
        let mut result = result();
        for (one, two) in [(50.0, 80.0), (80.0, 50.0)] {
            result.cells[0] = cell("weald", 1, "ns_per_round_trip", one);
            result.cells[1] = cell("weald", 2, "ns_per_round_trip", two);
            let text = row(&result);
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines[1].contains("weald on 1"), "{text}");
            assert!(lines[2].contains("weald on 2"), "{text}");
        }
    }

    #[test]
    fn a_workload_explains_its_metrics() {
        let text = legend(result().row.workload);
        assert!(text.starts_with("== ping-pong ==\n"), "{text}");
        assert_eq!(text.matches("ns_per_round_trip").count(), 1, "{text}");
        assert!(text.contains("time for a message and its answer; lower is better"));
    }

    #[test]
    fn lost_rows_are_listed_at_the_end() {
        let text = closing(&[result()]);
        assert!(
            text.contains("0 figures better, 0 undecided, 1 worse"),
            "{text}"
        );
        assert!(
            text.contains("50.0 ns is 1.25x WORSE, may on 1 has 40.0 ns"),
            "{text}"
        );
    }

    #[test]
    fn nothing_is_closed_without_rivals() {
        let mut alone = result();
        alone.cells.truncate(2);
        assert_eq!(closing(&[alone]), "");
    }
}
