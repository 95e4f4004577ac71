//! The course of a bench: plan, assign lanes, alternate group by group, pass the results on.

use std::time::Duration;

use crate::alternate::{Lane, RowResult, Terms, Turn, alternate};
use crate::error::Error;
use crate::plan::{Group, Level, Row, plan};
use crate::system::{Part, System};
use crate::time_budget::TimeBudget;
use crate::workload::Workload;

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// How much to measure.
    pub level: Level,
    /// Only these workloads; all of them if empty.
    pub only: Vec<&'static Workload>,
    /// Only this number of workers; otherwise one, and as many as the machine allows.
    pub workers: Option<usize>,
    /// This many rounds for every row; otherwise as many as the plan says.
    pub runs: Option<usize>,
    /// How long one child may take.
    pub timeout: Duration,
    /// How long the whole bench may take; rows that it has no time for are left out, each with a sentence.
    pub within: Option<Duration>,
}

/// Is notified of the course of a bench.
pub trait Listener {
    /// At most this many children will be run, which will take about this long.
    fn planned(&mut self, children: usize, estimate: Duration) -> Result<(), Error>;
    /// A child is about to run.
    fn turn(&mut self, turn: Turn<'_>) -> Result<(), Error>;
    /// The last rows of `results`, from the one with this index on, are finished.
    fn finished(&mut self, results: &[RowResult], from: usize) -> Result<(), Error>;
}

/// Runs the bench and returns every row.
pub fn run(
    options: &Options,
    systems: &[System],
    listener: &mut dyn Listener,
) -> Result<Vec<RowResult>, Error> {
    let groups = plan(options.level, &options.only);
    let offered = offered_workers(options.workers);
    let lanes: Vec<Vec<Vec<Lane<'_>>>> = groups
        .iter()
        .map(|group| assign(group, systems, &offered))
        .collect();
    let pairs = || groups.iter().zip(&lanes);
    let children = || pairs().flat_map(|(group, lanes)| children(group, lanes, options));
    let mut budget = TimeBudget::begin(children().sum(), options.within);
    listener.planned(children().count(), budget.estimate())?;

    let mut results = Vec::new();
    for (group, lanes) in pairs() {
        let terms = Terms {
            rounds: rounds(group, options),
            limit: options.timeout,
        };
        let turn = &mut |turn: Turn<'_>| listener.turn(turn);
        let rows = alternate(group, lanes, (terms, &mut budget), turn)?;
        let from = results.len();
        results.extend(rows.into_iter().filter(|row| !row.cells.is_empty()));
        listener.finished(&results, from)?;
    }
    Ok(results)
}

/// One worker, and as many as this machine allows; or only the number that was asked for.
#[must_use]
pub fn offered_workers(asked: Option<usize>) -> Vec<usize> {
    match (asked, weald::available_workers()) {
        (Some(workers), _) => vec![workers],
        (None, 0 | 1) => vec![1],
        (None, all) => vec![1, all],
    }
}

/// The lanes of each row of a group, Weald's first.
fn assign<'a>(group: &Group, systems: &'a [System], offered: &[usize]) -> Vec<Vec<Lane<'a>>> {
    let lanes_of = |row: &Row| {
        let workers = row.workers(offered);
        systems
            .iter()
            .flat_map(|system| {
                let lanes = system.lanes(row, &workers).iter();
                lanes.map(move |workers| Lane {
                    system,
                    workers: *workers,
                })
            })
            .collect()
    };
    group.rows.iter().map(lanes_of).collect()
}

fn rounds(group: &Group, options: &Options) -> usize {
    options
        .runs
        .unwrap_or_else(|| group.rows[0].runs(options.level))
}

/// The expected time of each child of a group.
fn children<'a>(
    group: &'a Group,
    lanes: &'a [Vec<Lane<'a>>],
    options: &Options,
) -> impl Iterator<Item = Duration> + 'a {
    let rounds = rounds(group, options);
    let of_row = move |(row, lanes): (&'a Row, &'a Vec<Lane<'a>>)| {
        let running = lanes
            .iter()
            .filter(|lane| lane.system.part(row) == Part::Runs);
        std::iter::repeat_n(row.expected(), running.count() * rounds)
    };
    group.rows.iter().zip(lanes).flat_map(of_row)
}
