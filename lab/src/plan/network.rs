//! The rows of servers and connections.

use super::row::{Lanes, Level, Row};
use crate::params::Params;

/// All rows of these workloads.
pub(super) fn rows(level: Level) -> Vec<Row> {
    let (echoes, requests): (&[usize], _) = match level {
        Level::Quick => (&[1, 100], 5_000),
        _ => (&[1, 1_000, 10_000], 100_000),
    };
    let mut rows: Vec<Row> = echoes
        .iter()
        .map(|connections| busy("echo", *connections, requests))
        .collect();
    let hellos: &[usize] = match level {
        Level::Quick => &[1, 100],
        _ => &[1, 64, 1_000],
    };
    rows.extend(
        hellos
            .iter()
            .map(|connections| busy("hello", *connections, requests)),
    );
    // After half a second at the latest, an idle connection of Weald has given up its buffers.
    let (connections, rest) = match level {
        Level::Quick => (500, 10),
        _ => (10_000, 3_000),
    };
    let params = Params::default().with("connections", connections);
    let params = params.with("rest_ms", rest);
    for params in [params.clone(), params.with("asked", "at-once")] {
        rows.push(Row::new("idle-connections", params).lanes(Lanes::Largest));
    }
    let seconds = match level {
        Level::Quick => 1,
        _ => 10,
    };
    for (offender, offenders) in [("none", 0), ("blocks", 4), ("computes", 4), ("panics", 4)] {
        let params = Params::default()
            .with("offenders", offenders)
            .with("offender", offender);
        let stall = Row::new("stall-requests", params.with("seconds", seconds));
        rows.push(stall.lanes(Lanes::Largest));
    }
    rows
}

fn busy(workload: &str, connections: usize, requests: usize) -> Row {
    let params = Params::default().with("connections", connections);
    Row::new(workload, params.with("requests", requests))
}
