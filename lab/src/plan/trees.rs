//! The rows of the database of trees: reading, writing, many writers, wide nodes, snapshots.
//!
//! The document counts with 1,000 tasks. A hundred give the same figure in a tenth of the time; the full
//! bench runs all of them.

use super::row::{Lanes, Level, Row, Weight};
use crate::params::Params;

const SMALL: usize = 10_005;
const LARGE: usize = 810_156;

/// All rows of these workloads.
pub(super) fn rows(level: Level) -> Vec<Row> {
    let groups = [
        read(level),
        write(level),
        hot(level),
        durable(level),
        recover(level),
        watch(level),
        append(level),
        snapshot(level),
        index(level),
    ];
    groups.into_iter().flatten().collect()
}

fn read(level: Level) -> Vec<Row> {
    let (nodes, tasks) = match level {
        Level::Quick => (SMALL, 100),
        _ => (LARGE, 100),
    };
    let params = Params::default().with("nodes", nodes).with("tasks", tasks);
    let attribute = params.clone().with("what", "attribute");
    let rows = [params, attribute].map(|params| Row::new("tree-read", params));
    rows.map(|row| row.weight(Weight::Medium)).into()
}

fn write(level: Level) -> Vec<Row> {
    let (counts, few) = match level {
        Level::Quick => ([50, 20, 5, 5], 500),
        _ => ([1_000, 100, 20, 20], 10_000),
    };
    let row = |(mode, trees, nodes): (&str, usize, usize)| {
        let params = Params::default().with("trees", trees).with("nodes", nodes);
        Row::new("tree-write", params.with("mode", mode)).weight(Weight::Medium)
    };
    let small = [("bulk", few, 100), ("bulk", few, 1)];
    let modes = ["bulk", "edit", "versions", "commits"].into_iter();
    let modes = modes.zip(counts).map(|(mode, trees)| (mode, trees, SMALL));
    modes.chain(small).map(row).collect()
}

fn hot(level: Level) -> Vec<Row> {
    let commits = match level {
        Level::Quick => 10_000,
        _ => 100_000,
    };
    let row = |kind: &str, retention: &str, writers: usize| {
        let params = Params::default()
            .with("writers", writers)
            .with("commits", commits)
            .with("nodes", SMALL)
            .with("kind", kind);
        Row::new("hot-tree", params.with("retention", retention))
    };
    let mut rows = Vec::new();
    for kind in ["threads", "processes"] {
        rows.extend([1, 2, 8, 64, 1_000].map(|writers| row(kind, "kept", writers)));
        rows.extend([1, 64].map(|writers| row(kind, "none", writers)));
    }
    rows
}

fn durable(level: Level) -> Vec<Row> {
    let mut rows = Vec::new();
    for kind in ["none", "buffered", "durable"] {
        for writers in [1, 8, 64, 1_000] {
            // A commit that waits for a sync takes as long as some hundred that do not.
            let most = match (kind, level) {
                ("durable", Level::Quick) => 500 + 20 * writers,
                ("durable", _) => 5_000 + 100 * writers,
                (_, Level::Quick) => 10_000,
                _ => 200_000,
            };
            let params = Params::default()
                .with("writers", writers)
                .with("commits", most);
            let row = Row::new("durable", params.with("level", kind));
            let mut row = row.lanes(Lanes::Largest);
            row.only_weald = kind == "none";
            rows.push(row);
        }
    }
    rows
}

fn recover(level: Level) -> Vec<Row> {
    let (commits, nodes) = match level {
        Level::Quick => (5_000, SMALL),
        _ => (200_000, LARGE),
    };
    let row = |(what, nodes): (&str, usize)| {
        let params = Params::default()
            .with("commits", commits)
            .with("nodes", nodes);
        let row = Row::new("recover", params.with("what", what));
        row.lanes(Lanes::Largest)
            .weight(Weight::Medium)
            .only_weald()
    };
    let size = Params::default()
        .with("commits", 5 * commits)
        .with("nodes", 156)
        .with("what", "size");
    let size = Row::new("recover", size).lanes(Lanes::Largest).only_weald();
    let rows = [("records", 156), ("checkpoint", nodes), ("at", nodes)].map(row);
    rows.into_iter().chain([size]).collect()
}

fn watch(level: Level) -> Vec<Row> {
    let row = |(what, watchers, commits): (&str, usize, usize)| {
        let commits = match level {
            Level::Quick => commits / 10,
            _ => commits,
        };
        let params = Params::default()
            .with("what", what)
            .with("watchers", watchers);
        let row = Row::new("watch", params.with("commits", commits));
        row.lanes(Lanes::Largest).only_weald()
    };
    [
        ("memory", 1, 100_000),
        ("memory", 1_000, 1_000),
        ("durable", 1, 10_000),
        ("durable", 1_000, 1_000),
        ("missed", 1, 20_000),
    ]
    .map(row)
    .into()
}

fn append(level: Level) -> Vec<Row> {
    let row = |children: usize| {
        let params = Params::default().with("children", children);
        Row::new("append", params.with("commits", 200)).lanes(Lanes::Largest)
    };
    match level {
        Level::Quick => [1_000, 10_000].map(row).into(),
        _ => [1_000, 1_000_000].map(row).into(),
    }
}

fn snapshot(level: Level) -> Vec<Row> {
    let reads = match level {
        Level::Quick => 1_000_000,
        _ => 10_000_000,
    };
    let row = |what: &str| {
        let params = Params::default().with("reads", reads).with("nodes", SMALL);
        Row::new("snapshot", params.with("what", what))
    };
    ["borrowed", "owned"].map(row).into()
}

fn index(level: Level) -> Vec<Row> {
    let rounds = match level {
        Level::Quick => 1_000,
        _ => 10_000,
    };
    let row = |(what, rounds): (&str, usize)| {
        let params = Params::default()
            .with("nodes", SMALL)
            .with("rounds", rounds);
        let row = Row::new("index", params.with("what", what));
        row.lanes(Lanes::Largest).only_weald()
    };
    // A walk looks at every node.
    let rows = [("find", rounds), ("walk", rounds / 10), ("commit", rounds)];
    rows.map(row).into()
}
