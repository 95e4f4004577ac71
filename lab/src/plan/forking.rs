//! The rows of the programs that fork and join, and of threads of direct-style code.
//!
//! Only Weald runs the serial programs as rows: a rival prints its own serial times beside its forking
//! ones.

use super::row::{Lanes, Level, Row, Weight, weight_of};
use crate::params::Params;

/// All rows of these workloads.
pub(super) fn rows(level: Level) -> Vec<Row> {
    let groups = [
        quicksort(level),
        counted("fib", of(level, &[22], &[22, 27, 35, 38])),
        counted("nqueens", of(level, &[8], &[8, 12])),
        after_a_pause(),
        idle(level),
        tree_search(level),
        items(level),
        thread(level),
    ];
    groups.into_iter().flatten().collect()
}

fn of<T>(level: Level, quick: &'static [T], all: &'static [T]) -> &'static [T] {
    match level {
        Level::Quick => quick,
        _ => all,
    }
}

/// The serial program and the forking one.
fn both(workload: &str, params: &Params) -> [Row; 2] {
    let row = |forking| Row::new(workload, params.clone().with("forking", forking));
    [row("never").lanes(Lanes::One).only_weald(), row("yes")]
}

fn quicksort(level: Level) -> Vec<Row> {
    let mut rows = Vec::new();
    for n in of(level, &[2_020, 80_800], &[2_020, 808_080, 10_000_000]) {
        for data in ["seed", "random"] {
            let params = Params::default().with("n", n).with("data", data);
            rows.extend(both("quicksort", &params).map(|row| row.weight(weight_of(n / 2))));
        }
    }
    rows
}

fn counted(workload: &str, sizes: &[usize]) -> Vec<Row> {
    let rows = |n| both(workload, &Params::default().with("n", n));
    sizes.iter().flat_map(rows).collect()
}

/// Forks of some 0.1 to 0.4 ms, each run after a millisecond in which all workers sleep: the second worker must begin
/// early, or it does not help at all.
fn after_a_pause() -> Vec<Row> {
    let row = |(workload, n, data): (&str, usize, Option<&str>)| {
        let params = Params::default().with("n", n);
        let params = match data {
            Some(data) => params.with("data", data),
            None => params,
        };
        Row::new(
            workload,
            params.with("forking", "yes").with("pause_us", 1_000),
        )
    };
    let rows = [
        ("fib", 22, None),
        ("fib", 25, None),
        ("nqueens", 8, None),
        ("nqueens", 9, None),
        ("quicksort", 20_000, Some("random")),
    ];
    rows.into_iter().map(row).collect()
}

/// What is left after forks: a program that has nothing to do takes no processor time.
fn idle(level: Level) -> Vec<Row> {
    let seconds = if level == Level::Quick { 1 } else { 5 };
    let params = Params::default().with("seconds", seconds);
    vec![Row::new("idle", params).only_weald()]
}

fn tree_search(level: Level) -> Vec<Row> {
    let small = [(72_621, 7, "random"), (32_768, 64, "left")];
    let large = [(4_622_484, 10, "random"), (2_097_152, 1_024, "left")];
    let shapes = match level {
        Level::Quick => small.to_vec(),
        _ => [small, large].concat(),
    };
    let rows = |(n, depth, shape)| {
        let params = Params::default().with("n", n).with("depth", depth);
        both("tree-search", &params.with("shape", shape))
    };
    shapes.into_iter().flat_map(rows).collect()
}

fn items(level: Level) -> Vec<Row> {
    let chains = [
        "filter",
        "chunks",
        "zip",
        "fold",
        "flat-map",
        "find",
        "sort",
        "sort-unstable",
        "sort-texts",
        "sort-texts-unstable",
    ];
    let sizes = of(level, &[1_000_000], &[10_000, 1_000_000, 10_000_000]);
    let row = |n: &usize, chain: &str| {
        let params = Params::default().with("n", n).with("chain", chain);
        Row::new("items", params)
    };
    let rows = |n| chains.map(|chain| row(n, chain));
    sizes.iter().flat_map(rows).collect()
}

fn thread(level: Level) -> Vec<Row> {
    let kinds = [
        ("create-join", 100_000, None),
        ("create-all", 100_000, None),
        ("parked", 100_000, None),
        ("yield", 1_000_000, None),
        ("lock", 10_000_000, None),
        ("lock-contended", 1_000, Some(1_000)),
        ("barrier", 1_000, Some(100)),
        ("condvar", 100_000, None),
    ];
    let row = |(what, n, threads): (&str, usize, Option<usize>)| {
        let n = if level == Level::Quick { n / 10 } else { n };
        let params = Params::default().with("n", n).with("what", what);
        let params = match threads {
            Some(threads) => params.with("threads", threads),
            None => params,
        };
        // Two threads that yield to each other on two workers would never have to.
        let lanes = if what == "yield" {
            Lanes::One
        } else {
            Lanes::All
        };
        Row::new("thread", params).lanes(lanes)
    };
    let mut rows: Vec<Row> = kinds.into_iter().map(row).collect();
    if level != Level::Quick {
        let many = Params::default().with("n", 1_000_000);
        rows.push(Row::new("thread", many.with("what", "parked")).weight(Weight::Medium));
    }
    rows
}
