//! The dozen rows that `weald bench` runs without options, so small that all of them together end within a minute.
//!
//! Each runs with one number of workers: one if its units can only work in turns, else as many as the machine has; or
//! with the number that was asked for.

use super::row::{Group, Lanes, Row};
use crate::params::Params;

/// The groups, in the order of the table.
pub(super) fn plan() -> Vec<Group> {
    let alone = [
        one("spawn", "n=100000"),
        one("ping-pong", "rounds=100000"),
        one("ring", "n=1000 m=100 tokens=1"),
        one(
            "channel",
            "senders=1 messages=100000 kind=bounded capacity=100",
        ),
        one("lock", "units=1000 rounds=100 inside=nothing"),
        one("thread", "n=10000 what=create-join"),
        one("timers", "pending=100000"),
        one("fib", "n=27 forking=yes"),
        all("quicksort", "n=808080 data=random forking=yes"),
        all("hello", "connections=100 requests=5000"),
        all(
            "hot-tree",
            "writers=64 commits=10000 nodes=10005 kind=processes retention=kept",
        ),
        all("durable", "writers=64 commits=1780 level=durable"),
    ];
    let stall = ["offender=none offenders=0", "offender=blocks offenders=4"];
    let stall = stall.map(|kind| all("stall", &format!("{kind} burst=no pingers=1000 seconds=1")));
    let groups = alone.into_iter().map(|row| Group { rows: vec![row] });
    groups.chain([Group { rows: stall.into() }]).collect()
}

fn one(workload: &str, words: &str) -> Row {
    row(workload, words).lanes(Lanes::Smallest)
}

fn all(workload: &str, words: &str) -> Row {
    row(workload, words).lanes(Lanes::Largest)
}

fn row(workload: &str, words: &str) -> Row {
    let words: Vec<&str> = words.split(' ').collect();
    let params = Params::parse(&words).expect("a plan names each key once, with its value");
    Row::new(workload, params)
}
