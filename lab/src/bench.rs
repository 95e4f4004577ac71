//! The course of a bench: plan, assign lanes, alternate group by group, pass the results on.

use std::time::Duration;

use crate::alternate::{Lane, RowResult, Terms, Turn, alternate};
use crate::error::Error;
use crate::plan::{Group, Level, Row, plan};
use crate::system::{Part, System};
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
}

/// Is notified of the course of a bench.
pub trait Listener {
    /// At most this many children will be run.
    fn planned(&mut self, children: usize);
    /// A child is about to run.
    fn turn(&mut self, turn: Turn<'_>) -> Result<(), Error>;
    /// A group of rows is finished.
    fn finished(&mut self, rows: &[RowResult]) -> Result<(), Error>;
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
        .map(|group| assign(group, systems, options.level, &offered))
        .collect();
    let pairs = || groups.iter().zip(&lanes);
    listener.planned(
        pairs()
            .map(|(group, lanes)| children(group, lanes, options))
            .sum(),
    );

    let mut results = Vec::new();
    for (group, lanes) in pairs() {
        let terms = Terms {
            rounds: rounds(group, options),
            limit: options.timeout,
        };
        let rows = alternate(group, lanes, terms, &mut |turn| listener.turn(turn))?;
        let rows: Vec<RowResult> = rows
            .into_iter()
            .filter(|row| !row.cells.is_empty())
            .collect();
        listener.finished(&rows)?;
        results.extend(rows);
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
fn assign<'a>(
    group: &Group,
    systems: &'a [System],
    level: Level,
    offered: &[usize],
) -> Vec<Vec<Lane<'a>>> {
    let lanes_of = |row: &Row| {
        let workers = row.workers(level, offered);
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

fn children(group: &Group, lanes: &[Vec<Lane<'_>>], options: &Options) -> usize {
    let running = |(row, lanes): (&Row, &Vec<Lane<'_>>)| {
        lanes
            .iter()
            .filter(|lane| lane.system.part(row) == Part::Runs)
            .count()
    };
    group.rows.iter().zip(lanes).map(running).sum::<usize>() * rounds(group, options)
}
