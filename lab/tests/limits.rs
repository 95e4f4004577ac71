//! The limit programs do the work of their rows, in a small size, and say so in the same words.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use weald_lab::error::Error;
use weald_lab::metric::Metric;
use weald_lab::plan::{Level, plan};
use weald_lab::{bench_one, limit, workload};

fn run(words: &str) -> Result<Vec<Metric>, Error> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    bench_one::run(limit::NAME, &words)
}

/// Runs a limit program, which checks its own result, with each number of workers.
fn check(name: &str, words: &str) {
    for workers in [1, 2] {
        let metrics = run(&format!("{name} {words} workers={workers}")).unwrap();
        let printable = workload::find(name).unwrap().printable();
        assert!(!metrics.is_empty());
        for metric in &metrics {
            let name = metric.name.as_str();
            assert!(printable.contains(&name), "{metric:?}");
            let is_memory = name.starts_with("bytes_");
            assert!(metric.value.is_finite(), "{metric:?}");
            assert!(is_memory || metric.value > 0.0, "{metric:?}");
        }
    }
}

#[test]
fn spawn() {
    check("spawn", "n=10000");
    check("spawn", "n=1");
}

#[test]
fn ring() {
    check("ring", "n=100 m=20 tokens=1");
    check("ring", "n=100 m=3 tokens=7");
    check("ring", "n=1 m=5 tokens=1");
}

#[test]
fn one_token_is_one_message_at_a_time() {
    let metrics = run("ring n=10 m=10 tokens=1 workers=1").unwrap();
    let polls = metrics
        .iter()
        .find(|metric| metric.name == "messages_per_poll");
    assert_eq!(polls.unwrap().value, 1.0);
}

#[test]
fn mailbox() {
    check("mailbox", "k=1000 bytes=20 payload=shared");
    check("mailbox", "k=1000 bytes=50 payload=fresh");
}

#[test]
fn messages() {
    check("ping-pong", "rounds=100");
    check("ping-pong", "rounds=1");
    check("fan-in", "senders=7 messages=30");
    check("fan-in", "senders=1 messages=1");
    check("many-to-many", "processes=20 messages=50");
    check("many-to-many", "processes=1 messages=3");
    for callee in ["process", "oneshot", "server"] {
        check("call", &format!("rounds=100 callee={callee} timeout=no"));
    }
}

#[test]
fn select() {
    for branches in [2, 8] {
        for kind in ["bounded capacity=1", "bounded capacity=7", "unbounded"] {
            check(
                "select",
                &format!("branches={branches} messages=300 kind={kind}"),
            );
        }
    }
}

#[test]
fn barrier() {
    check("barrier", "units=10 rounds=20");
    check("barrier", "units=1 rounds=3");
}

#[test]
fn timers() {
    check("timers", "pending=3000");
    check("timers", "pending=1");
}

#[test]
fn channel() {
    for senders in [1, 7] {
        for kind in [
            "bounded capacity=1",
            "bounded capacity=100",
            "unbounded",
            "rendezvous",
        ] {
            check(
                "channel",
                &format!("senders={senders} messages=300 kind={kind}"),
            );
        }
    }
}

#[test]
fn lock() {
    check("lock", "units=1 rounds=1000 inside=nothing");
    check("lock", "units=10 rounds=100 inside=nothing");
    check("lock", "units=10 rounds=100 inside=yield");
    check("lock", "units=1 rounds=100 inside=yield");
}

#[test]
fn thread() {
    for what in ["create-join", "create-all", "yield", "lock", "condvar"] {
        check("thread", &format!("n=1000 what={what}"));
    }
    for what in ["lock-contended", "barrier"] {
        check("thread", &format!("n=20 what={what} threads=30"));
    }
}

#[test]
fn trees() {
    for what in ["", " what=count", " what=attribute"] {
        check("tree-read", &format!("nodes=156 tasks=5{what}"));
    }
    check("tree-read", "nodes=1 tasks=2");
    for mode in ["bulk", "edit", "versions", "commits"] {
        check("tree-write", &format!("trees=3 nodes=100 mode={mode}"));
    }
    for retention in ["kept", "none"] {
        check(
            "hot-tree",
            &format!("writers=3 commits=99 nodes=156 kind=threads retention={retention}"),
        );
    }
}

#[test]
fn fib() {
    check("fib", "n=16 forking=yes");
    check("fib", "n=1 forking=yes");
}

#[test]
fn what_has_no_limit_program_is_a_usage_error() {
    for words in [
        "trim n=1 workers=1",
        "thread n=1 what=parked workers=1",
        "fib n=3 forking=never workers=1",
        "fib n=91 forking=yes workers=1",
        "ring n=1 m=1 tokens=2 workers=1",
        "lock units=1 rounds=1 inside=out workers=1",
        "spawn n=1",
        "call rounds=1 callee=server timeout=yes workers=1",
        "select branches=2 messages=1 kind=rendezvous workers=1",
    ] {
        let refused = run(words);
        assert!(
            matches!(refused, Err(Error::Usage(_))),
            "{words}: {refused:?}"
        );
    }
    let none = bench_one::run(limit::NAME, &[]);
    assert!(matches!(none, Err(Error::Usage(_))), "{none:?}");
}

#[test]
fn all_rows_of_a_limited_workload_have_their_program_but_five_kinds() {
    let groups = plan(Level::Full, &[]);
    for row in groups.iter().flat_map(|group| &group.rows) {
        let Some(limit) = limit::find(row.workload.name) else {
            continue;
        };
        let is_left_out = row.params.get("work").is_some()
            || row.params.get("what") == Some("parked")
            || row.params.get("forking") == Some("never")
            || row.params.get("timeout") == Some("yes")
            || row.params.get("pause_us").is_some();
        assert_eq!(limit.takes(&row.params), !is_left_out, "{row}");
    }
}
