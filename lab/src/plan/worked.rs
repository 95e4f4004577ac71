//! The rows in which the units work for 2 µs with each message or in each round, so that a second worker can pay.
//!
//! They tell what a second worker brings, so the number of messages is small: the work takes most of the time.

use super::row::{Level, Row};
use crate::params::Params;

/// All rows with work, for Weald alone.
pub(super) fn rows(level: Level) -> Vec<Row> {
    // All messages or rounds of a row together.
    let total = match level {
        Level::Quick => 5_000,
        _ => 50_000,
    };
    let channel = |kind: &str| {
        let params = Params::default()
            .with("senders", 100)
            .with("messages", total / 100)
            .with("kind", kind);
        match kind {
            "bounded" => ("channel", params.with("capacity", 100)),
            _ => ("channel", params),
        }
    };
    let select = |branches: usize| {
        let params = Params::default()
            .with("branches", branches)
            .with("messages", total / branches);
        ("select", params.with("kind", "unbounded"))
    };
    let many = || Params::default().with("processes", 1_000);
    let rows = [
        ("ring", ring(total)),
        ("many-to-many", many().with("messages", total / 1_000)),
        (
            "fan-in",
            Params::default()
                .with("senders", 100)
                .with("messages", total / 100),
        ),
        channel("bounded"),
        channel("unbounded"),
        channel("rendezvous"),
        select(2),
        select(8),
        (
            "lock",
            Params::default()
                .with("units", 1_000)
                .with("rounds", total / 1_000)
                .with("inside", "nothing"),
        ),
        (
            "barrier",
            Params::default()
                .with("units", 100)
                .with("rounds", total / 100),
        ),
    ];
    let row = |(workload, params): (&str, Params)| Row::new(workload, params.with("work", "2us"));
    rows.map(|named| row(named).only_weald()).into()
}

/// A token at each of a hundred processes; they make as many rounds as there are messages for.
fn ring(total: usize) -> Params {
    Params::default()
        .with("n", 100)
        .with("m", (total / 10_000).max(1))
        .with("tokens", 100)
}
