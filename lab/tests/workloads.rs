//! Every workload does its work on Weald at a small size and yields the promised metrics.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use weald_lab::bench_one;
use weald_lab::error::Error;
use weald_lab::metric::Metric;
use weald_lab::workload;

fn run(name: &str, words: &str) -> Vec<Metric> {
    let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
    bench_one::run(name, &words).unwrap()
}

/// Runs a workload with one and with two workers and checks names and signs.
fn check(name: &str, words: &str) {
    for workers in [1, 2] {
        let metrics = run(name, &format!("{words} workers={workers}"));
        let mut printed: Vec<&str> = metrics.iter().map(|m| m.name.as_str()).collect();
        let mut promised = workload::find(name).unwrap().printable();
        printed.sort_unstable();
        promised.sort_unstable();
        assert_eq!(printed, promised, "{name} {words}");
        for metric in &metrics {
            let name = &metric.name;
            let is_time = name == "ns" || name.starts_with("ns_") || name.starts_with("ms_");
            assert!(metric.value.is_finite(), "{metric:?}");
            assert!(!is_time || metric.value > 0.0, "{metric:?}");
        }
    }
}

#[test]
fn spawn() {
    check("spawn", "n=2000");
    check("spawn", "n=1");
}

#[test]
fn ring() {
    check("ring", "n=100 m=20 tokens=1");
    check("ring", "n=100 m=3 tokens=7");
    check("ring", "n=1 m=5 tokens=1");
}

#[test]
fn work_between_messages() {
    check("ring", "n=100 m=2 tokens=100 work=2us");
    check("many-to-many", "processes=20 messages=10 work=2us");
    check("fan-in", "senders=10 messages=20 work=2us");
    check("channel", "senders=10 messages=20 kind=rendezvous work=2us");
    check("select", "branches=2 messages=50 kind=unbounded work=2us");
    check("lock", "units=20 rounds=5 inside=nothing work=2us");
    check("lock", "units=20 rounds=5 inside=yield work=2us");
    check("barrier", "units=10 rounds=10 work=2us");
}

#[test]
fn work_takes_its_time() {
    let metrics = run("fan-in", "senders=10 messages=500 work=2us workers=1");
    // The steps are fitted to the fastest try. A processor whose neighbour then rests may be twice as fast.
    assert!(metrics[0].value > 500.0, "{metrics:?}");
}

#[test]
fn mailbox() {
    check("mailbox", "k=10000 bytes=20 payload=shared");
    check("mailbox", "k=10000 bytes=50 payload=fresh");
}

#[test]
fn many_to_many() {
    check("many-to-many", "processes=50 messages=100");
    check("many-to-many", "processes=1 messages=3");
}

#[test]
fn fan_in() {
    check("fan-in", "senders=10 messages=500");
}

#[test]
fn ping_pong() {
    check("ping-pong", "rounds=2000");
}

#[test]
fn reply() {
    check("reply", "waiting=2000 rounds=100");
    check("reply", "waiting=0 rounds=100");
}

#[test]
fn lifecycle() {
    check("lifecycle", "n=2000");
    check("lifecycle", "n=1");
}

#[test]
fn call() {
    check("call", "rounds=1000 callee=process timeout=no");
    check("call", "rounds=1000 callee=process timeout=yes");
    check("call", "rounds=1000 callee=oneshot timeout=no");
    check("call", "rounds=1000 callee=server timeout=no");
    check("call", "rounds=1 callee=server timeout=yes");
}

#[test]
fn a_call_of_an_unknown_kind_is_refused() {
    for words in [
        "rounds=1 callee=thread timeout=no workers=1",
        "rounds=1 callee=oneshot timeout=yes workers=1",
        "rounds=1 callee=server timeout=5 workers=1",
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let refused = bench_one::run("call", &words);
        assert!(matches!(refused, Err(Error::Usage(_))), "{refused:?}");
    }
}

#[test]
fn call_behind_queue() {
    check("call-behind-queue", "waiting=2000 rounds=100");
}

#[test]
fn broadcast() {
    check("broadcast", "members=100 rounds=20");
    check("broadcast", "members=1 rounds=1");
}

#[test]
fn burst_send() {
    check("burst-send", "receivers=60 cores=2 messages=6000");
    check("burst-send", "receivers=1 cores=1 messages=6000");
}

#[test]
fn stall() {
    for offender in ["none", "blocks", "computes", "holds", "just-below", "waker"] {
        stalled(offender, "offenders=1 pingers=10");
    }
    stalled("file", "offenders=600 pingers=10");
    for offender in ["destructor", "subscriber"] {
        stalled(offender, "offenders=2 burst=no");
    }
    for offender in ["blocks", "computes"] {
        stalled(offender, "offenders=5 burst=yes pingers=10");
    }
}

#[test]
fn watch() {
    for what in ["memory", "durable", "missed"] {
        run(
            "watch",
            &format!("what={what} watchers=3 commits=50 workers=2"),
        );
    }
}

#[test]
fn small_commits_are_timed_beside_a_journal_that_is_busy() {
    for words in [
        "offender=sync offenders=0",
        "offender=sync offenders=1",
        "offender=append offenders=1 bytes=3000000",
    ] {
        let metrics = run("stall", &format!("{words} seconds=1 pingers=0 workers=2"));
        let timed = metrics.iter().find(|it| it.name == "commit_p999_ms");
        assert!(timed.is_some(), "{words}: {metrics:?}");
    }
}

/// Runs `stall` and checks that ticks and lateness are there, and the share of named offenders if there are any.
fn stalled(offender: &str, words: &str) {
    let metrics = run(
        "stall",
        &format!("offender={offender} seconds=1 workers=2 {words}"),
    );
    let value = |name: &str| {
        let metric = metrics.iter().find(|metric| metric.name == name);
        metric.map(|metric| metric.value)
    };
    let shares = [value("ticks_percent"), value("named_percent")];
    assert!(
        shares
            .iter()
            .flatten()
            .all(|share| (0.0..=100.0).contains(share))
    );
    assert!(
        shares[0].is_some() && value("ns_per_hop").is_some(),
        "{metrics:?}"
    );
    assert_eq!(shares[1].is_some(), offender != "none", "{metrics:?}");
    assert!(value("lateness_worst_ms") >= value("lateness_p999_ms"));
    if matches!(offender, "blocks" | "computes" | "holds" | "file") {
        assert!(shares[1] > Some(0.0), "a report came: {metrics:?}");
    }
}

#[test]
fn a_stall_of_an_unknown_kind_is_refused() {
    for words in [
        "offender=sleeps offenders=1 seconds=1 workers=1",
        "offender=holds offenders=1 burst=yes seconds=1 workers=1",
        "offender=blocks offenders=1 burst=perhaps seconds=1 workers=1",
    ] {
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let refused = bench_one::run("stall", &words);
        assert!(matches!(refused, Err(Error::Usage(_))), "{refused:?}");
    }
}

#[test]
fn handoff() {
    let metrics = run("handoff", "rounds=3 workers=2");
    assert_eq!(metrics.len(), 2);
    assert!(
        metrics.iter().all(|metric| metric.value >= 0.0),
        "{metrics:?}"
    );
}

#[test]
fn trim() {
    check("trim", "n=20000");
}

#[test]
fn channel() {
    for kind in ["bounded capacity=3", "unbounded", "rendezvous"] {
        check("channel", &format!("senders=1 messages=1000 kind={kind}"));
        check("channel", &format!("senders=10 messages=50 kind={kind}"));
    }
}

#[test]
fn select() {
    for kind in ["bounded capacity=1", "unbounded", "rendezvous"] {
        check("select", &format!("branches=2 messages=500 kind={kind}"));
        check("select", &format!("branches=8 messages=100 kind={kind}"));
    }
}

#[test]
fn lock() {
    check("lock", "units=1 rounds=10000 inside=nothing");
    check("lock", "units=100 rounds=100 inside=nothing");
    check("lock", "units=100 rounds=10 inside=yield");
}

#[test]
fn condvar() {
    check("condvar", "rounds=1000");
}

#[test]
fn barrier() {
    check("barrier", "units=20 rounds=50");
    check("barrier", "units=1 rounds=50");
}

#[test]
fn callbacks() {
    check("callbacks", "n=2000 kind=once");
    check("callbacks", "n=2000 kind=loop");
    check("callbacks", "n=1 kind=once");
}

#[test]
fn timers() {
    check("timers", "pending=2000");
}

#[test]
fn footprint() {
    for what in ["mutex", "bounded", "unbounded", "rendezvous"] {
        check("footprint", &format!("n=10000 what={what}"));
    }
}

/// Runs a program that forks, with and without forks; returns what was printed with forks on two
/// workers.
fn check_forking(name: &str, words: &str, bounded: bool) {
    let names = |metrics: Vec<Metric>| -> Vec<String> {
        assert!(metrics.iter().all(|m| m.value.is_finite()), "{metrics:?}");
        let times = metrics.iter().filter(|m| m.name.starts_with("ms"));
        assert!(times.clone().all(|m| m.value > 0.0), "{metrics:?}");
        metrics.into_iter().map(|metric| metric.name).collect()
    };
    let never = run(name, &format!("{words} forking=never workers=1"));
    assert_eq!(names(never), ["ms", "ms_outlined"], "{name} {words}");
    for workers in [1, 2] {
        let printed = names(run(name, &format!("{words} forking=yes workers={workers}")));
        let promised = workload::find(name).unwrap().printable();
        let all = printed.iter().all(|name| promised.contains(&name.as_str()));
        assert!(all, "{name} {words}: {printed:?}");
        let last = if bounded {
            "speedup_bound"
        } else {
            "ns_per_fork"
        };
        assert!(
            printed.iter().any(|name| name == last),
            "{name} {words}: {printed:?}"
        );
    }
}

#[test]
fn quicksort() {
    for data in ["seed", "random"] {
        check_forking("quicksort", &format!("n=5000 data={data}"), true);
    }
}

#[test]
fn quicksort_of_few_elements_never_forks() {
    for n in [1, 2, 50, 51, 400] {
        let metrics = run(
            "quicksort",
            &format!("n={n} data=random forking=yes workers=2"),
        );
        assert!(
            metrics.iter().all(|m| m.name != "speedup_bound"),
            "{metrics:?}"
        );
    }
}

#[test]
fn fib() {
    check_forking("fib", "n=12", false);
    check_forking("fib", "n=12 pause_us=100", false);
}

#[test]
fn nqueens() {
    check_forking("nqueens", "n=6", false);
}

#[test]
fn tree_search() {
    check_forking("tree-search", "n=4723 depth=5 shape=random", false);
    check_forking("tree-search", "n=4096 depth=32 shape=left", false);
}

#[test]
fn a_tree_with_another_number_of_nodes_voids_the_figures() {
    let words = [
        "n=4724",
        "depth=5",
        "shape=random",
        "forking=yes",
        "workers=1",
    ];
    let error = bench_one::run("tree-search", &words.map(str::to_owned)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "The tree has 4723 nodes and should have 4724."
    );
}

#[test]
fn thread() {
    for what in ["create-join", "create-all", "yield", "lock", "condvar"] {
        let metrics = run("thread", &format!("n=1000 what={what} workers=2"));
        assert_eq!(metrics.len(), 1, "{what}");
        assert!(
            metrics[0].name == "ns" && metrics[0].value > 0.0,
            "{metrics:?}"
        );
    }
    for what in ["lock-contended", "barrier"] {
        for threads in [1, 20] {
            let metrics = run(
                "thread",
                &format!("n=50 what={what} threads={threads} workers=2"),
            );
            assert!(
                metrics[0].name == "ns" && metrics[0].value > 0.0,
                "{metrics:?}"
            );
        }
    }
    check("thread", "n=2000 what=parked");
    check("thread", "n=1 what=parked");
}

#[test]
fn tree_read() {
    check("tree-read", "nodes=156 tasks=20");
    check("tree-read", "nodes=10005 tasks=3");
    check("tree-read", "nodes=156 tasks=20 what=count");
    check("tree-read", "nodes=156 tasks=20 what=attribute");
    check("tree-read", "nodes=1 tasks=3");
}

#[test]
fn tree_write() {
    for mode in ["bulk", "edit", "versions", "commits"] {
        let words = format!("trees=7 nodes=156 mode={mode}");
        check("tree-write", &words);
        let metrics = run("tree-write", &format!("{words} workers=2"));
        let correct = metrics.iter().find(|metric| metric.name == "correct");
        assert_eq!(correct.map(|metric| metric.value), Some(7.0), "{mode}");
    }
    for nodes in [1, 100] {
        check("tree-write", &format!("trees=50 nodes={nodes} mode=bulk"));
    }
}

#[test]
fn hot_tree() {
    for kind in ["processes", "threads"] {
        check(
            "hot-tree",
            &format!("writers=1 commits=100 nodes=156 kind={kind} retention=none"),
        );
        check(
            "hot-tree",
            &format!("writers=20 commits=2000 nodes=156 kind={kind}"),
        );
    }
}

#[test]
fn durable() {
    for size in ["writers=1 commits=20", "writers=20 commits=200"] {
        check("durable", &format!("{size} level=durable"));
        for level in ["none", "buffered"] {
            let metrics = run("durable", &format!("{size} level={level} workers=2"));
            assert!(metrics[0].value > 0.0, "{metrics:?}");
        }
    }
}

#[test]
fn recover() {
    for (what, explains) in [
        ("records", &["decoding_percent"][..]),
        ("checkpoint", &[]),
        ("at", &["commits_behind"]),
        (
            "size",
            &["bytes_per_commit", "bytes_on_disk", "grown_bytes"],
        ),
    ] {
        for workers in [1, 2] {
            let words = format!("commits=200 nodes=156 what={what} workers={workers}");
            let metrics = run("recover", &words);
            let names: Vec<_> = metrics.iter().map(|metric| &metric.name[..]).collect();
            let promised = ["ms", "commits_per_s"].iter().chain(explains);
            assert!(promised.copied().eq(names), "{metrics:?}");
            let is_told = |metric: &Metric| metric.value > 0.0 || metric.name == "grown_bytes";
            assert!(metrics.iter().all(is_told), "{metrics:?}");
            // All records up to the one in the middle, and those of the opening and of the tree: there is no
            // checkpoint.
            let behind = metrics
                .iter()
                .find(|metric| metric.name == "commits_behind");
            assert!(
                behind.is_none_or(|behind| behind.value == 103.0),
                "{behind:?}"
            );
        }
    }
}

#[test]
fn append() {
    check("append", "children=1000 commits=20");
}

#[test]
fn snapshot() {
    check("snapshot", "reads=100000 nodes=156 what=borrowed");
    check("snapshot", "reads=100000 nodes=156 what=owned");
}

#[test]
fn index() {
    for what in ["find", "walk", "commit"] {
        check("index", &format!("nodes=156 rounds=50 what={what}"));
    }
}
