//! One figure as one line of JSON, in a form that tools and later runs rely on.
//!
//! A line is `{"workload", "system", "version", "params", "metric", "unit", "median", "min",
//! "max", "runs", "workers"}`, in this order. Systems without figures have no line; their sentences go to
//! stderr, the table or the page.

use serde::Serialize;

use crate::alternate::RowResult;
use crate::metric::unit;
use crate::params::Params;

/// One line.
#[derive(Clone, Debug, Serialize)]
pub struct Record<'a> {
    /// The workload's name.
    pub workload: &'a str,
    /// `weald`, `limit` or a rival's name.
    pub system: &'a str,
    /// The system's version.
    pub version: &'a str,
    /// The row's parameters, with numbers as numbers.
    pub params: &'a Params,
    /// The metric's name.
    pub metric: &'a str,
    /// The metric's unit.
    pub unit: &'a str,
    /// The median of the runs.
    pub median: f64,
    /// The smallest of the runs.
    pub min: f64,
    /// The largest of the runs.
    pub max: f64,
    /// The number of runs that gave figures.
    pub runs: usize,
    /// The number of workers.
    pub workers: usize,
}

impl Record<'_> {
    /// The line, without its end.
    ///
    /// # Panics
    ///
    /// Never: names, texts and finite numbers are always JSON.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("a record holds nothing that JSON cannot say")
    }
}

/// All records of a row.
pub fn records(result: &RowResult) -> impl Iterator<Item = Record<'_>> {
    result.cells.iter().flat_map(|cell| {
        cell.figures.iter().map(|(metric, summary)| Record {
            workload: result.row.workload.name,
            system: &cell.system,
            version: &cell.version,
            params: &result.row.params,
            metric,
            unit: unit(metric),
            median: summary.median,
            min: summary.min,
            max: summary.max,
            runs: summary.runs,
            workers: cell.workers,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alternate::Cell;
    use crate::plan::Row;
    use crate::stats::Summary;

    #[test]
    fn a_record_is_one_line_in_the_fixed_order() {
        let params = Params::default()
            .with("k", 100_000)
            .with("payload", "shared");
        let summary = Summary {
            median: 7.5,
            min: 7.0,
            max: 9.25,
            runs: 5,
        };
        let result = RowResult {
            row: Row::new("mailbox", params),
            cells: vec![Cell {
                system: "weald".to_owned(),
                version: "0.1.0".to_owned(),
                workers: 2,
                figures: vec![("ns_per_send".to_owned(), summary)],
                trouble: None,
            }],
        };
        let lines: Vec<String> = records(&result).map(|record| record.line()).collect();
        let want = concat!(
            r#"{"workload":"mailbox","system":"weald","version":"0.1.0","#,
            r#""params":{"k":100000,"payload":"shared"},"metric":"ns_per_send","unit":"ns","#,
            r#""median":7.5,"min":7.0,"max":9.25,"runs":5,"workers":2}"#,
        );
        assert_eq!(lines, [want]);
    }
}
