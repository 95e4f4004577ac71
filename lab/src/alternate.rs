//! Runs the systems of a group of rows in turns, A B C A B C, so that a machine that drifts drifts
//! for all of them. Gathers what they print.
//!
//! Invariants:
//! - a system that fails does not stop the others;
//! - once the time of the bench is over, nothing is started; while it is behind, a row gets one round;
//! - a share of ticks compares with the same system's calm run in the same round, and the gain from more
//!   workers with the same system's time on one worker.

mod scaling;
mod track;

use std::time::Duration;

use crate::child::Failure;
use crate::error::Error;
use crate::metric::Metric;
use crate::plan::{Group, Row};
use crate::system::Part;
use crate::time_budget::TimeBudget;
use track::Track;

pub use track::{Cell, Lane, TIME_IS_OVER};

/// A row with the cells of all systems.
#[derive(Clone, Debug)]
pub struct RowResult {
    /// The row.
    pub row: Row,
    /// The cells, Weald's first.
    pub cells: Vec<Cell>,
}

/// What is about to run, for whatever shows progress.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// The row.
    pub row: &'a Row,
    /// The lane.
    pub lane: Lane<'a>,
    /// The round, counted from one.
    pub round: usize,
    /// The number of rounds.
    pub rounds: usize,
    /// How long the rest of the bench will take, about.
    pub left: Duration,
}

/// The number of rounds and the time limit.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The number of rounds.
    pub rounds: usize,
    /// How long one child may take.
    pub limit: Duration,
}

/// Measures a group. `lanes` holds the lanes of each of its rows; `turn` is called before each child
/// starts, and may end the bench with an error.
pub fn alternate<'a>(
    group: &'a Group,
    lanes: &[Vec<Lane<'a>>],
    (terms, budget): (Terms, &mut TimeBudget),
    turn: &mut dyn FnMut(Turn<'_>) -> Result<(), Error>,
) -> Result<Vec<RowResult>, Error> {
    let mut tracks: Vec<Vec<Track<'a>>> = lanes.iter().map(|lanes| begin(lanes)).collect();
    for round in 1..=terms.rounds {
        for (row, tracks) in group.rows.iter().zip(&mut tracks) {
            let runs = |track: &&mut Track<'_>| track.lane.system.part(row) == Part::Runs;
            for track in tracks.iter_mut().filter(runs) {
                if track.continues(budget) {
                    turn(Turn {
                        row,
                        lane: track.lane,
                        round,
                        rounds: terms.rounds,
                        left: budget.estimate(),
                    })?;
                    track.run(row, terms.limit, budget);
                }
                budget.done(row.expected());
            }
        }
    }
    derive_tick_shares(group, &mut tracks);
    for (row, tracks) in group.rows.iter().zip(&mut tracks) {
        scaling::derive(row, tracks);
    }
    let results = group
        .rows
        .iter()
        .zip(tracks)
        .map(|(row, tracks)| RowResult {
            row: row.clone(),
            cells: tracks
                .into_iter()
                .filter_map(|track| track.cell(row, terms.rounds))
                .collect(),
        });
    Ok(results.collect())
}

fn begin<'a>(lanes: &[Lane<'a>]) -> Vec<Track<'a>> {
    lanes
        .iter()
        .map(|lane| Track {
            lane: *lane,
            rounds: Vec::new(),
            is_over: false,
        })
        .collect()
}

const TICKS_PERCENT: &str = "ticks_percent";

/// Relates the ticks of each row to those of the calm row in its group that it is judged by, if there is one.
fn derive_tick_shares(group: &Group, tracks: &mut [Vec<Track<'_>>]) {
    for (index, row) in group.rows.iter().enumerate() {
        let mut rows = group.rows.iter();
        let Some(calm) = rows.position(|calm| row.is_judged_by(calm)) else {
            continue;
        };
        let ideals: Vec<(String, usize, Vec<Option<f64>>)> =
            tracks[calm].iter().map(ticks_by_round).collect();
        for track in &mut tracks[index] {
            let lane = track.lane;
            let of_lane = |(name, workers, _): &&(String, usize, Vec<Option<f64>>)| {
                *name == lane.system.name && *workers == lane.workers
            };
            if let Some((_, _, ideal)) = ideals.iter().find(of_lane) {
                add_tick_share(&mut track.rounds, ideal);
            }
        }
    }
}

fn ticks_by_round(track: &Track<'_>) -> (String, usize, Vec<Option<f64>>) {
    let ticks = track
        .rounds
        .iter()
        .map(|round| ticks(round.as_ref().ok()?))
        .collect();
    (track.lane.system.name.clone(), track.lane.workers, ticks)
}

/// The ticks as a share of what the clock has room for; of programs that print no share, their number.
fn ticks(metrics: &[Metric]) -> Option<f64> {
    let value = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.name == name)?;
        Some(metric.value)
    };
    value(TICKS_PERCENT).or_else(|| value("ticks"))
}

fn add_tick_share(rounds: &mut [Result<Vec<Metric>, Failure>], ideal: &[Option<f64>]) {
    for (round, ideal) in rounds.iter_mut().zip(ideal) {
        let (Ok(metrics), Some(ideal)) = (round, ideal) else {
            continue;
        };
        if let Some(ticks) = ticks(metrics).filter(|_| *ideal > 0.0) {
            metrics.retain(|metric| metric.name != TICKS_PERCENT);
            metrics.insert(0, Metric::new(TICKS_PERCENT, 100.0 * ticks / ideal));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_of_the_same_round() {
        let run = |ticks: f64| Ok(vec![Metric::new("ticks", ticks)]);
        let failed = || Err(Failure::Wrong("No.".to_owned()));
        let mut rounds = [run(50.0), run(30.0), failed(), run(10.0)];
        add_tick_share(&mut rounds, &[Some(100.0), Some(60.0), Some(100.0), None]);
        let shares: Vec<Option<f64>> = rounds
            .iter()
            .map(|round| Some(round.as_ref().ok()?.first()?).filter(|m| m.name == "ticks_percent"))
            .map(|metric| metric.map(|m| m.value))
            .collect();
        assert_eq!(shares, [Some(50.0), Some(50.0), None, None]);
    }

    #[test]
    fn a_printed_share_becomes_one_of_the_calm_share() {
        let metrics = vec![
            Metric::new("ticks", 300.0),
            Metric::new("ticks_percent", 40.0),
        ];
        assert_eq!(ticks(&metrics), Some(40.0));
        let mut rounds = [Ok(metrics)];
        add_tick_share(&mut rounds, &[Some(80.0)]);
        let shown = rounds[0].as_ref().ok().unwrap();
        assert_eq!(
            *shown,
            [
                Metric::new("ticks_percent", 50.0),
                Metric::new("ticks", 300.0)
            ]
        );
    }
}
