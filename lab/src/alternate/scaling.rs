//! The gain from more workers, derived from the times of one system on one worker and on several in the
//! same round.
//!
//! Invariant: only workloads that print a speedup, or their total time in seconds, get these figures.

use super::track::Track;
use crate::child::Failure;
use crate::metric::Metric;
use crate::plan::Row;

/// The rounds of one lane.
type Rounds = [Result<Vec<Metric>, Failure>];

/// Adds `speedup_workers` and `parallel_percent` to each lane of a row whose system also has a lane with
/// one worker.
pub(super) fn derive(row: &Row, tracks: &mut [Track<'_>]) {
    let printable = row.workload.printable();
    if !["speedup", "s"].iter().any(|name| printable.contains(name)) {
        return;
    }
    let alone: Vec<(String, Vec<Option<f64>>)> = tracks
        .iter()
        .filter(|track| track.lane.workers == 1)
        .map(|track| (track.lane.system.name.clone(), times(&track.rounds)))
        .collect();
    for track in tracks.iter_mut().filter(|track| track.lane.workers > 1) {
        let name = &track.lane.system.name;
        if let Some((_, one)) = alone.iter().find(|(system, _)| system == name) {
            add(&mut track.rounds, one, track.lane.workers);
        }
    }
}

fn times(rounds: &Rounds) -> Vec<Option<f64>> {
    rounds
        .iter()
        .map(|round| time(round.as_ref().ok()?))
        .collect()
}

fn time(metrics: &[Metric]) -> Option<f64> {
    let is_time = |metric: &&Metric| ["ms", "s"].contains(&metric.name.as_str());
    let time = metrics.iter().find(is_time)?.value;
    (time > 0.0).then_some(time)
}

fn add(rounds: &mut Rounds, one: &[Option<f64>], workers: usize) {
    for (round, one) in rounds.iter_mut().zip(one) {
        let (Ok(metrics), Some(one)) = (round, one) else {
            continue;
        };
        if let Some(many) = time(metrics) {
            let shared = (1.0 - many / one) / (1.0 - 1.0 / workers as f64);
            metrics.push(Metric::new("speedup_workers", one / many));
            metrics.push(Metric::new("parallel_percent", 100.0 * shared));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(ms: f64) -> Result<Vec<Metric>, Failure> {
        Ok(vec![Metric::new("ms", ms)])
    }

    fn figure(round: &Result<Vec<Metric>, Failure>, name: &str) -> Option<f64> {
        let metrics = round.as_ref().ok()?;
        Some(metrics.iter().find(|metric| metric.name == name)?.value)
    }

    #[test]
    fn half_the_time_on_two_workers_is_all_in_parallel() {
        let mut rounds = [run(50.0), run(75.0), run(100.0)];
        add(&mut rounds, &[Some(100.0); 3], 2);
        let shares = rounds
            .each_ref()
            .map(|round| figure(round, "parallel_percent"));
        assert_eq!(shares, [Some(100.0), Some(50.0), Some(0.0)]);
        assert_eq!(figure(&rounds[0], "speedup_workers"), Some(2.0));
    }

    #[test]
    fn seconds_are_a_time_too() {
        let mut rounds = [Ok(vec![Metric::new("s", 5.0)])];
        add(&mut rounds, &times(&[Ok(vec![Metric::new("s", 10.0)])]), 2);
        assert_eq!(figure(&rounds[0], "parallel_percent"), Some(100.0));
    }

    #[test]
    fn four_workers_have_more_to_share() {
        let mut rounds = [run(40.0)];
        add(&mut rounds, &[Some(100.0)], 4);
        let share = figure(&rounds[0], "parallel_percent").unwrap();
        assert!((share - 80.0).abs() < 1e-9, "{share}");
    }

    #[test]
    fn rounds_without_both_times_have_no_share() {
        let failed = || Err(Failure::Wrong("No.".to_owned()));
        let mut rounds = [failed(), run(50.0), run(0.0)];
        add(&mut rounds, &[Some(100.0), None, Some(100.0)], 2);
        for round in &rounds {
            assert_eq!(figure(round, "parallel_percent"), None);
        }
    }
}
