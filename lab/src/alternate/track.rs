//! A system's share of one row: which program runs, the result of each round, and their summary.
//!
//! Invariants:
//! - a system that fails becomes a cell with a sentence;
//! - a system that misses its deadline or refuses the arguments is not run again in that row: it would
//!   only do so again.

use std::time::Duration;

use crate::child;
use crate::child::Failure;
use crate::metric::Metric;
use crate::plan::Row;
use crate::stats::Summary;
use crate::system::{Part, System};
use crate::time_budget::TimeBudget;

/// One system with one number of workers.
#[derive(Clone, Copy, Debug)]
pub struct Lane<'a> {
    /// The system.
    pub system: &'a System,
    /// Its number of workers.
    pub workers: usize,
}

/// The summary of all runs of one row on one lane.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The system's name.
    pub system: String,
    /// The system's version.
    pub version: String,
    /// Its number of workers.
    pub workers: usize,
    /// Every metric that was measured at least once, in the order of printing.
    pub figures: Vec<(String, Summary)>,
    /// Why figures are missing or rest on fewer runs than asked for; `None` if all went well.
    pub trouble: Option<String>,
}

/// The trouble of a system for which the bench had no time.
pub const TIME_IS_OVER: &str = "Not run: the time of the bench was over.";

/// What one lane of one row yields, one entry for each round.
pub(super) struct Track<'a> {
    pub(super) lane: Lane<'a>,
    pub(super) rounds: Vec<Result<Vec<Metric>, Failure>>,
    /// Whether a run was not started, or was stopped, because the time of the bench was over.
    pub(super) is_over: bool,
}

impl Track<'_> {
    /// Whether another run is worth its time.
    pub(super) fn continues(&mut self, budget: &TimeBudget) -> bool {
        let hopeless = |failure: &Failure| !matches!(failure, Failure::Wrong(_));
        let last = self.rounds.last().and_then(|round| round.as_ref().err());
        self.is_over |= budget.is_over();
        let has_time = !self.is_over && (self.rounds.is_empty() || !budget.is_behind());
        has_time && !last.is_some_and(hopeless)
    }

    /// Runs once. A run that is stopped because the time of the bench is over is none.
    pub(super) fn run(&mut self, row: &Row, limit: Duration, budget: &TimeBudget) {
        let call = self.lane.system.invocation(row, self.lane.workers);
        let left = budget.left().unwrap_or(limit).min(limit);
        match child::measure(&call, &row.workload.printable(), left) {
            Err(Failure::Late(_)) if left < limit => self.is_over = true,
            result => self.rounds.push(result),
        }
    }

    /// Summarises the rounds; `None` for a system that has no program for the row.
    pub(super) fn cell(self, row: &Row, rounds: usize) -> Option<Cell> {
        let trouble = match self.lane.system.part(row) {
            Part::Absent => return None,
            Part::TooLarge(sentence) => Some(sentence),
            Part::Runs => self.trouble(rounds),
        };
        Some(Cell {
            system: self.lane.system.name.clone(),
            version: self.lane.system.version.clone(),
            workers: self.lane.workers,
            figures: self.figures(),
            trouble,
        })
    }

    fn figures(&self) -> Vec<(String, Summary)> {
        let metrics: Vec<&Metric> = self.rounds.iter().flatten().flatten().collect();
        let mut names: Vec<&str> = Vec::new();
        for metric in &metrics {
            if !names.contains(&metric.name.as_str()) {
                names.push(&metric.name);
            }
        }
        let summary = |name: &str| {
            let values: Vec<f64> = metrics
                .iter()
                .filter(|metric| metric.name == name)
                .map(|m| m.value)
                .collect();
            Summary::of(&values)
        };
        names
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), summary(name)?)))
            .collect()
    }

    fn trouble(&self, rounds: usize) -> Option<String> {
        let good = self.rounds.iter().flatten().count();
        if self.rounds.is_empty() && self.is_over {
            return Some(TIME_IS_OVER.to_owned());
        }
        let failure = self.rounds.iter().find_map(|round| round.as_ref().err())?;
        if good == 0 {
            return Some(failure.sentence().to_owned());
        }
        let rounds = if self.is_over {
            self.rounds.len()
        } else {
            rounds
        };
        let bad = rounds - good;
        Some(format!(
            "{bad} of {rounds} runs gave no figures: {}",
            failure.sentence()
        ))
    }
}
