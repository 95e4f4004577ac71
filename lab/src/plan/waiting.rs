//! The rows of what units wait with: channels, selection, locks, condition variables, barriers.
//!
//! Where every message or round wakes a unit, OS threads need tens of microseconds each time, so those
//! rows are shorter than others.

use super::row::{Lanes, Level, Row};
use crate::params::Params;

const BOUNDED: &str = "bounded";
const UNBOUNDED: &str = "unbounded";
const RENDEZVOUS: &str = "rendezvous";

/// All rows of these workloads.
pub(super) fn rows(level: Level) -> Vec<Row> {
    let groups = [
        channel(level),
        select(level),
        lock(level),
        meetings(level),
        footprint(level),
    ];
    groups.into_iter().flatten().collect()
}

/// A number of messages or rounds; a tenth of it for a quick bench.
fn about(count: usize, level: Level) -> usize {
    match level {
        Level::Quick => count / 10,
        _ => count,
    }
}

fn channel(level: Level) -> Vec<Row> {
    let shapes = [
        (1, 1_000_000, BOUNDED, Some(100)),
        (1, 100_000, BOUNDED, Some(1)),
        (1, 1_000_000, UNBOUNDED, None),
        (1, 100_000, RENDEZVOUS, None),
        (100, 1_000, BOUNDED, Some(100)),
        (100, 10_000, UNBOUNDED, None),
        (100, 500, RENDEZVOUS, None),
    ];
    let row = |(senders, messages, kind, capacity): (usize, usize, &str, Option<usize>)| {
        let params = Params::default()
            .with("senders", senders)
            .with("messages", about(messages, level));
        Row::new("channel", of_kind(params, kind, capacity))
    };
    shapes.into_iter().map(row).collect()
}

fn select(level: Level) -> Vec<Row> {
    let mut rows = Vec::new();
    for (branches, messages) in [(2, 50_000), (8, 12_500)] {
        for (kind, capacity) in [(BOUNDED, Some(1)), (UNBOUNDED, None)] {
            let params = Params::default()
                .with("branches", branches)
                .with("messages", about(messages, level));
            rows.push(Row::new("select", of_kind(params, kind, capacity)));
        }
    }
    rows
}

fn of_kind(params: Params, kind: &str, capacity: Option<usize>) -> Params {
    let params = params.with("kind", kind);
    match capacity {
        Some(capacity) => params.with("capacity", capacity),
        None => params,
    }
}

fn lock(level: Level) -> Vec<Row> {
    let shapes = [
        (1, 10_000_000, "nothing"),
        (1_000, 1_000, "nothing"),
        (1_000, 50, "yield"),
    ];
    let row = |(units, rounds, inside): (usize, usize, &str)| {
        let params = Params::default()
            .with("units", units)
            .with("rounds", about(rounds, level));
        Row::new("lock", params.with("inside", inside))
    };
    shapes.into_iter().map(row).collect()
}

fn meetings(level: Level) -> Vec<Row> {
    let condvar = Params::default().with("rounds", about(100_000, level));
    let barrier = Params::default().with("units", 100);
    vec![
        Row::new("condvar", condvar),
        Row::new("barrier", barrier.with("rounds", about(1_000, level))),
    ]
}

fn footprint(level: Level) -> Vec<Row> {
    let things = [
        (1_000_000, "mutex"),
        (200_000, BOUNDED),
        (200_000, UNBOUNDED),
        (200_000, RENDEZVOUS),
    ];
    let row = |(n, what): (usize, &str)| {
        let params = Params::default().with("n", about(n, level));
        Row::new("footprint", params.with("what", what)).lanes(Lanes::Largest)
    };
    things.into_iter().map(row).collect()
}
