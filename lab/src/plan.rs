//! Which rows are measured, at which sizes and how often: the documents' sizes and larger ones.
//!
//! Rows that must be compared within one round of an alternation form a group: a stalled run is judged
//! by the calm run of the same round.

mod forking;
mod glance;
mod network;
mod processes;
mod row;
mod shape;
mod trees;
mod waiting;
mod worked;

use crate::params::Params;
use crate::workload::Workload;
use row::{Lanes, Weight, weight_of};

pub use row::{Group, Level, Row};
pub use shape::RowShape;

/// The groups of all workloads in `only`, or of all workloads if `only` is empty.
#[must_use]
pub fn plan(level: Level, only: &[&'static Workload]) -> Vec<Group> {
    if level == Level::Glance {
        let groups = glance::plan().into_iter();
        return groups.filter(|group| is_wanted(group, only)).collect();
    }
    let groups = [
        alone(spawn(level)),
        alone(ring(level)),
        alone(mailbox(level)),
        alone(messages(level)),
        alone(processes::rows(level)),
        alone(burst_send(level)),
        vec![Group { rows: stall(level) }],
        alone(vec![handoff(level), trim(level)]),
        alone(callbacks(level)),
        alone(vec![timers(level)]),
        alone(sleep_loop().into()),
        alone(waiting::rows(level)),
        alone(worked::rows(level)),
        alone(forking::rows(level)),
        alone(trees::rows(level)),
        alone(network::rows(level)),
    ];
    groups
        .into_iter()
        .flatten()
        .filter(|group| is_wanted(group, only))
        .collect()
}

fn is_wanted(group: &Group, only: &[&'static Workload]) -> bool {
    only.is_empty() || only.contains(&group.rows[0].workload)
}

fn alone(rows: Vec<Row>) -> Vec<Group> {
    rows.into_iter()
        .map(|row| Group { rows: vec![row] })
        .collect()
}

fn spawn(level: Level) -> Vec<Row> {
    let sizes: &[usize] = match level {
        Level::Quick => &[1_000, 10_000, 100_000],
        _ => &[
            1_000, 5_000, 10_000, 50_000, 100_000, 200_000, 1_000_000, 10_000_000,
        ],
    };
    let row = |n: usize| Row::new("spawn", Params::default().with("n", n)).weight(weight_of(n));
    let mut rows: Vec<Row> = sizes.iter().map(|n| row(*n)).collect();
    if level != Level::Quick {
        let mut small_pages = row(1_000_000).only_weald();
        small_pages.params = small_pages.params.with("huge", "off");
        rows.push(small_pages);
    }
    rows
}

fn callbacks(level: Level) -> Vec<Row> {
    let sizes: &[usize] = match level {
        Level::Quick => &[50_000],
        // OS threads come in thousands only.
        _ => &[2_000, 50_000, 1_000_000, 10_000_000],
    };
    let row = |n: usize, kind: &str| {
        let params = Params::default().with("n", n).with("kind", kind);
        Row::new("callbacks", params)
            .weight(weight_of(n))
            .lanes(Lanes::Largest)
    };
    let mut rows = Vec::new();
    for n in sizes {
        let mut unowned = row(*n, "once").only_weald();
        unowned.params = unowned.params.with("owner", "runtime");
        rows.extend([row(*n, "once"), unowned, row(*n, "loop")]);
    }
    rows
}

fn timers(level: Level) -> Row {
    let pending = if level == Level::Quick {
        100_000
    } else {
        1_000_000
    };
    Row::new("timers", Params::default().with("pending", pending)).weight(weight_of(pending))
}

fn sleep_loop() -> [Row; 2] {
    ["nothing", "pingers"].map(|beside| {
        Row::new("sleep-loop", Params::default().with("beside", beside)).lanes(Lanes::Largest)
    })
}

fn ring(level: Level) -> Vec<Row> {
    let shapes: &[(usize, usize, usize)] = match level {
        Level::Quick => &[(100, 1_000, 1), (1_000, 100, 1), (1_000, 10, 100)],
        _ => &[
            (100, 1_000, 1),
            (1_000, 1_000, 1),
            (10_000, 1_000, 1),
            (10_000, 1, 1_000),
        ],
    };
    shapes
        .iter()
        .map(|(n, m, tokens)| {
            let params = Params::default()
                .with("n", n)
                .with("m", m)
                .with("tokens", tokens);
            Row::new("ring", params).weight(weight_of(n * m * tokens / 2))
        })
        .collect()
}

fn mailbox(level: Level) -> Vec<Row> {
    let sizes: &[usize] = match level {
        Level::Quick => &[100_000],
        _ => &[100_000, 1_000_000, 10_000_000],
    };
    let mut rows = Vec::new();
    for k in sizes {
        for bytes in [20, 50] {
            for payload in ["shared", "fresh"] {
                let params = Params::default().with("k", k).with("bytes", bytes);
                let row = Row::new("mailbox", params.with("payload", payload));
                rows.push(row.weight(weight_of(*k)));
            }
        }
    }
    rows
}

fn messages(level: Level) -> Vec<Row> {
    let (each, to_one, rounds) = match level {
        Level::Quick => (100, 1_000, 100_000),
        _ => (1_000, 10_000, 1_000_000),
    };
    let many = Params::default()
        .with("processes", 1_000)
        .with("messages", each);
    let fan_in = Params::default()
        .with("senders", 100)
        .with("messages", to_one);
    let ping_pong = Params::default().with("rounds", rounds);
    vec![
        Row::new("many-to-many", many),
        Row::new("fan-in", fan_in),
        Row::new("ping-pong", ping_pong),
    ]
}

fn burst_send(level: Level) -> Vec<Row> {
    let messages = match level {
        Level::Quick => 600_000,
        _ => 3_000_000,
    };
    let mut rows = Vec::new();
    for receivers in [1, 60] {
        for cores in [1, 2] {
            let params = Params::default()
                .with("receivers", receivers)
                .with("cores", cores);
            rows.push(Row::new("burst-send", params.with("messages", messages)));
        }
    }
    rows
}

fn stall(level: Level) -> Vec<Row> {
    let (pingers, seconds) = match level {
        Level::Quick => (1_000, 1),
        _ => (10_000, 10),
    };
    let mut kinds = vec![("none", 0)];
    for offender in ["blocks", "computes"] {
        kinds.extend([1, 2, 4].map(|offenders| (offender, offenders)));
    }
    let others = [
        "holds",
        "just-below",
        "waker",
        "destructor",
        "subscriber",
        "hook",
        "unwinding",
        "receptor",
        "sends",
    ];
    kinds.extend(others.map(|offender| (offender, 4)));
    // What their ticks do takes time even if nobody offends. The 600 are more than files may hold turns.
    kinds.extend([("file", 0), ("file", 600)]);
    let bursts: &[(&str, usize)] = match level {
        Level::Quick => &[("blocks", 50), ("computes", 50)],
        _ => &[
            ("blocks", 50),
            ("computes", 50),
            ("blocks", 600),
            ("computes", 600),
            ("callback", 600),
        ],
    };
    let row = |(offender, offenders): (&str, usize), burst: &str, seconds: usize| {
        let params = Params::default()
            .with("offender", offender)
            .with("offenders", offenders)
            .with("burst", burst);
        let params = params.with("pingers", pingers).with("seconds", seconds);
        Row::new("stall", params)
            .weight(Weight::Heavy)
            .lanes(Lanes::Largest)
    };
    let alone = kinds.into_iter().map(|kind| row(kind, "no", seconds));
    // A burst lasts two seconds.
    let bursts = bursts.iter().map(|kind| row(*kind, "yes", seconds.min(2)));
    let alone = alone.chain(bursts).chain(large_commits(level));
    alone.chain(journal_offenders(level)).collect()
}

/// Large commits, beside small ones to another tree. The first row is the one without.
fn large_commits(level: Level) -> impl Iterator<Item = Row> {
    let (nodes, seconds) = match level {
        Level::Quick => (20_000, 1),
        _ => (1_000_000, 10),
    };
    let kinds = [
        ("rename", "no", 0),
        ("rename", "no", 1),
        ("splice", "no", 1),
        ("splice", "yes", 1),
        ("delete", "no", 1),
        ("delete", "yes", 1),
        ("restore", "no", 1),
        ("restore", "yes", 1),
        ("erase", "no", 1),
        ("copy", "no", 1),
    ];
    kinds.into_iter().map(move |(what, overtaken, offenders)| {
        let params = Params::default()
            .with("offender", "commit")
            .with("offenders", offenders)
            .with("what", what)
            .with("overtaken", overtaken)
            .with("nodes", nodes);
        let params = params.with("pingers", 0).with("seconds", seconds);
        Row::new("stall", params)
            .weight(Weight::Heavy)
            .lanes(Lanes::Largest)
            .only_weald()
    })
}

/// A journal that is busy, beside small buffered commits. The first row of each kind has no such journal.
fn journal_offenders(level: Level) -> impl Iterator<Item = Row> {
    let (bytes, seconds) = match level {
        Level::Quick => (10_000_000, 1),
        _ => (100_000_000, 10),
    };
    let row = move |(offender, offenders): (&str, usize)| {
        let params = Params::default()
            .with("offender", offender)
            .with("offenders", offenders);
        let params = match offender {
            "append" => params.with("bytes", bytes),
            _ => params,
        };
        let params = params.with("pingers", 0).with("seconds", seconds);
        Row::new("stall", params)
            .weight(Weight::Heavy)
            .lanes(Lanes::Largest)
            .only_weald()
    };
    [("sync", 0), ("sync", 1), ("append", 0), ("append", 1)]
        .into_iter()
        .map(row)
}

fn handoff(level: Level) -> Row {
    let rounds = match level {
        Level::Quick => 10,
        _ => 20,
    };
    Row::new("handoff", Params::default().with("rounds", rounds)).lanes(Lanes::AtLeastTwo)
}

fn trim(level: Level) -> Row {
    let n = if level == Level::Quick {
        100_000
    } else {
        1_000_000
    };
    Row::new("trim", Params::default().with("n", n))
        .weight(weight_of(n))
        .only_weald()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    const LEVELS: [Level; 2] = [Level::Quick, Level::Full];

    #[test]
    fn every_row_has_the_keys_of_its_workload() {
        for level in LEVELS {
            for row in plan(level, &[]).iter().flat_map(|group| &group.rows) {
                let params = row.params.clone().with("workers", 1);
                row.workload.check(&params).unwrap();
            }
        }
    }

    #[test]
    fn every_workload_is_planned_and_can_be_singled_out() {
        for level in LEVELS {
            for workload in &workload::ALL {
                let groups = plan(level, &[workload]);
                assert!(!groups.is_empty(), "{}", workload.name);
                assert!(
                    groups
                        .iter()
                        .flat_map(|g| &g.rows)
                        .all(|row| row.workload == workload)
                );
            }
        }
    }

    #[test]
    fn a_stall_group_begins_with_its_calm_run() {
        for level in LEVELS {
            let groups = plan(level, &[workload::find("stall").unwrap()]);
            assert_eq!(groups.len(), 1);
            let rows = &groups[0].rows;
            assert!(rows[0].is_calm());
            let offender = |row: &Row| row.params.get("offender").unwrap().to_owned();
            let calm: Vec<String> = rows
                .iter()
                .filter(|row| row.is_calm())
                .map(offender)
                .collect();
            assert_eq!(calm, ["none", "file"]);
            // A row whose ticks read files is judged by one whose ticks do so too.
            for row in rows.iter().filter(|row| !row.is_calm()) {
                let judge = rows.iter().find(|calm| row.is_judged_by(calm)).unwrap();
                let is_file = |row: &Row| offender(row) == "file";
                assert_eq!(is_file(judge), is_file(row), "{row}");
            }
        }
    }

    #[test]
    fn the_documents_sizes_are_there() {
        let text: Vec<String> = plan(Level::Full, &[])
            .iter()
            .flat_map(|group| &group.rows)
            .map(|row| format!("{} {}", row.workload.name, row.params))
            .collect();
        for wanted in [
            "spawn n=200000",
            "spawn n=10000000",
            "spawn n=1000000 huge=off",
            "ring n=10000 m=1000 tokens=1",
            "mailbox k=10000000 bytes=50 payload=fresh",
            "stall offender=computes offenders=4 burst=no pingers=10000 seconds=10",
            "stall offender=subscriber offenders=4 burst=no pingers=10000 seconds=10",
            "stall offender=hook offenders=4 burst=no pingers=10000 seconds=10",
            "stall offender=sends offenders=4 burst=no pingers=10000 seconds=10",
            "stall offender=file offenders=600 burst=no pingers=10000 seconds=10",
            "stall offender=blocks offenders=600 burst=yes pingers=10000 seconds=2",
            "stall offender=callback offenders=600 burst=yes pingers=10000 seconds=2",
            "lifecycle n=100000",
            "call rounds=1000000 callee=server timeout=yes",
            "call-behind-queue waiting=1000000 rounds=100000",
            "broadcast members=10000 rounds=100",
            "burst-send receivers=60 cores=1 messages=3000000",
            "lock units=1000 rounds=1000 inside=nothing",
            "barrier units=100 rounds=1000",
            "quicksort n=808080 data=seed forking=yes",
            "quicksort n=10000000 data=random forking=never",
            "fib n=38 forking=yes",
            "thread n=1000000 what=parked",
            "tree-read nodes=810156 tasks=100",
            "tree-write trees=1000 nodes=10005 mode=bulk",
            "hot-tree writers=1000 commits=100000 nodes=10005 kind=threads retention=kept",
            "append children=1000000 commits=200",
            "echo connections=10000 requests=100000",
            "hello connections=1000 requests=100000",
            "idle-connections connections=10000 rest_ms=3000",
            "idle-connections connections=10000 rest_ms=3000 asked=at-once",
        ] {
            assert!(
                text.iter().any(|line| line == wanted),
                "{wanted} is missing in {text:#?}"
            );
        }
    }

    #[test]
    fn rows_with_work_are_parallel_and_short() {
        let all = plan(Level::Quick, &[]);
        let rows = all.iter().flat_map(|group| &group.rows);
        let worked: Vec<&Row> = rows
            .filter(|row| row.params.get("work") == Some("2us"))
            .collect();
        assert_eq!(worked.len(), 10);
        for row in worked {
            assert_eq!(row.shape(), Some(RowShape::Parallel), "{row}");
            assert_eq!(row.workers(&[1, 2]), [1, 2], "{row}");
        }
    }

    #[test]
    fn lanes_follow_the_row() {
        assert_eq!(handoff(Level::Quick).workers(&[1, 2]), [2]);
        assert!(handoff(Level::Quick).workers(&[1]).is_empty());
        assert_eq!(stall(Level::Quick)[0].workers(&[1, 2]), [2]);
        assert_eq!(trim(Level::Quick).workers(&[1]), [1]);
    }
}
