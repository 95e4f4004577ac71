//! The gain from more workers, derived from the times of one system on one worker and on several in the
//! same round.
//!
//! Invariants:
//! - only workloads that print a speedup, or their total time in seconds, get a speedup and a parallel share;
//! - only rows that are a chain or parallel get their first metric as a multiple of that of one worker.

use super::track::Track;
use crate::child::Failure;
use crate::metric::Metric;
use crate::plan::Row;

/// Adds what a second worker brought to each lane of a row whose system also has a lane with one worker.
pub(super) fn derive(row: &Row, tracks: &mut [Track<'_>]) {
    let printable = row.workload.printable();
    if row.shape().is_some() {
        let first = row.workload.metrics[0];
        compare(tracks, |metrics| value(metrics, &[first]), add_times);
    }
    if ["speedup", "s"].iter().any(|name| printable.contains(name)) {
        compare(tracks, |metrics| value(metrics, &["ms", "s"]), add_speedup);
    }
}

/// Lets `add` compare each run on several workers with the same system's run on one in the same round.
fn compare(
    tracks: &mut [Track<'_>],
    cost: impl Fn(&[Metric]) -> Option<f64>,
    add: impl Fn(&mut Vec<Metric>, (f64, f64), usize),
) {
    let of_round = |round: &Result<Vec<Metric>, Failure>| cost(round.as_ref().ok()?);
    let alone: Vec<(String, Vec<Option<f64>>)> = tracks
        .iter()
        .filter(|track| track.lane.workers == 1)
        .map(|track| {
            let costs = track.rounds.iter().map(of_round);
            (track.lane.system.name.clone(), costs.collect())
        })
        .collect();
    for track in tracks.iter_mut().filter(|track| track.lane.workers > 1) {
        let (name, workers) = (&track.lane.system.name, track.lane.workers);
        let Some((_, one)) = alone.iter().find(|(system, _)| system == name) else {
            continue;
        };
        for (round, one) in track.rounds.iter_mut().zip(one) {
            let (Some(many), Some(one)) = (of_round(round), one) else {
                continue;
            };
            if let Ok(metrics) = round {
                add(metrics, (*one, many), workers);
            }
        }
    }
}

/// The value of the first of these metrics, if it is above zero.
fn value(metrics: &[Metric], names: &[&str]) -> Option<f64> {
    let is_wanted = |metric: &&Metric| names.contains(&metric.name.as_str());
    let value = metrics.iter().find(is_wanted)?.value;
    (value > 0.0).then_some(value)
}

fn add_times(metrics: &mut Vec<Metric>, (one, many): (f64, f64), _workers: usize) {
    metrics.push(Metric::new("times_one_worker", many / one));
}

fn add_speedup(metrics: &mut Vec<Metric>, (one, many): (f64, f64), workers: usize) {
    let shared = (1.0 - many / one) / (1.0 - 1.0 / workers as f64);
    metrics.push(Metric::new("speedup_workers", one / many));
    metrics.push(Metric::new("parallel_percent", 100.0 * shared));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alternate::Lane;
    use crate::params::Params;
    use crate::system::System;
    use std::path::Path;

    type Round = Result<Vec<Metric>, Failure>;

    fn run(metric: &str, value: f64) -> Round {
        Ok(vec![Metric::new(metric, value)])
    }

    /// What is derived for a system on `workers` from these rounds and those on one.
    fn derived(row: &Row, one: Vec<Round>, workers: usize, many: Vec<Round>) -> Vec<Round> {
        let system = System::weald(Path::new("w"));
        let track = |workers, rounds| Track {
            lane: Lane {
                system: &system,
                workers,
            },
            rounds,
            is_over: false,
        };
        let mut tracks = [track(1, one), track(workers, many)];
        derive(row, &mut tracks);
        let [_, many] = tracks;
        many.rounds
    }

    fn tree_read() -> Row {
        Row::new("tree-read", Params::default())
    }

    fn figure(round: &Round, name: &str) -> Option<f64> {
        let metrics = round.as_ref().ok()?;
        Some(metrics.iter().find(|metric| metric.name == name)?.value)
    }

    #[test]
    fn half_the_time_on_two_workers_is_all_in_parallel() {
        let times = |all: [f64; 3]| all.map(|time| run("ms", time)).into();
        let fib = Row::new("fib", Params::default());
        let rounds = derived(&fib, times([100.0; 3]), 2, times([50.0, 75.0, 100.0]));
        let shares: Vec<_> = rounds
            .iter()
            .map(|round| figure(round, "parallel_percent"))
            .collect();
        assert_eq!(shares, [Some(100.0), Some(50.0), Some(0.0)]);
        assert_eq!(figure(&rounds[0], "speedup_workers"), Some(2.0));
        assert_eq!(figure(&rounds[0], "times_one_worker"), None);
    }

    #[test]
    fn seconds_are_a_time_too() {
        let rounds = derived(&tree_read(), vec![run("s", 10.0)], 2, vec![run("s", 5.0)]);
        assert_eq!(figure(&rounds[0], "parallel_percent"), Some(100.0));
    }

    #[test]
    fn four_workers_have_more_to_share() {
        let rounds = derived(&tree_read(), vec![run("s", 100.0)], 4, vec![run("s", 40.0)]);
        let share = figure(&rounds[0], "parallel_percent").unwrap();
        assert!((share - 80.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn rounds_without_both_times_have_no_share() {
        let failed = || Err(Failure::Wrong("No.".to_owned()));
        let one = vec![run("s", 100.0), failed(), run("s", 100.0)];
        let many = vec![failed(), run("s", 50.0), run("s", 0.0)];
        for round in &derived(&tree_read(), one, 2, many) {
            assert_eq!(figure(round, "parallel_percent"), None);
        }
    }

    #[test]
    fn a_row_of_messages_says_how_much_longer_two_workers_take() {
        let ring = Row::new("ring", Params::default().with("tokens", 1));
        let one = vec![run("ns_per_hop", 20.0)];
        let rounds = derived(&ring, one, 2, vec![run("ns_per_hop", 25.0)]);
        assert_eq!(figure(&rounds[0], "times_one_worker"), Some(1.25));
        assert_eq!(figure(&rounds[0], "speedup_workers"), None);
    }
}
