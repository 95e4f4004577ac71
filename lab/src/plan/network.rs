//! The rows of servers and connections.

use super::row::{Lanes, Level, Row, Weight};
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
    rows.extend(boards(level));
    rows
}

fn boards(level: Level) -> Vec<Row> {
    let (connections, requests) = match level {
        Level::Quick => (50, 8_000),
        _ => (1_000, 1_000_000),
    };
    // With one worker the visitors have a processor of their own, with two they share both.
    let lanes = match level {
        Level::Quick => Lanes::Largest,
        _ => Lanes::All,
    };
    let board = |connections: usize, requests: usize, op: &str| {
        Params::default()
            .with("connections", connections)
            .with("requests", requests)
            .with("op", op)
    };
    let busy = |op: &str| {
        let params = board(connections, requests, op);
        match level {
            Level::Quick => params,
            _ => params.with("seconds", 20),
        }
    };
    let mut rows = vec![
        Row::new("board", busy("read")),
        Row::new("board", busy("read").with("kept", "yes")).only_weald(),
        Row::new("board", busy("page")),
        Row::new("board", busy("search")).only_weald(),
        Row::new("board", busy("write")),
        Row::new("board", busy("write").with("durability", "buffered")),
        Row::new("board", busy("durable")).only_weald(),
    ];
    // Runs of so many requests are not repeated.
    rows = rows
        .into_iter()
        .map(|row| row.weight(Weight::Heavy))
        .collect();
    let (reads, readers, news, messages) = match level {
        Level::Quick => (300, 100, 5, 2_000),
        _ => (10_000, 10_000, 20, 1_000_000),
    };
    let hot = board(connections / 10, reads, "hot");
    let listen = board(1, news, "listen").with("readers", readers);
    let beside = [
        Row::new("board", hot.clone()),
        Row::new("board", hot.with("durability", "buffered")).only_weald(),
        Row::new("board", listen).only_weald(),
    ];
    rows.extend(beside.map(|row| row.weight(Weight::Medium)));
    rows = rows.into_iter().map(|row| row.lanes(lanes)).collect();
    let large = board(connections / 10, requests.min(30_000), "large");
    let large = large
        .with("durability", "buffered")
        .with("messages", messages);
    let large = Row::new("board", large).only_weald();
    rows.push(large.weight(Weight::Medium).lanes(Lanes::Largest));
    rows
}

fn busy(workload: &str, connections: usize, requests: usize) -> Row {
    let params = Params::default().with("connections", connections);
    Row::new(workload, params.with("requests", requests))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_board_is_read_on_one_worker_and_on_two_and_briefly_on_the_largest_number() {
        for (level, workers) in [(Level::Quick, &[2][..]), (Level::Full, &[1, 2])] {
            let read = boards(level).swap_remove(0);
            assert_eq!(read.params.get("op"), Some("read"));
            assert!(!read.only_weald);
            assert_eq!(read.workers(&[1, 2]), workers);
        }
    }
}
