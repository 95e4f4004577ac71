//! Servers that `weald bench-one` measures from another process, which is `weald` itself; each of them ends.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

fn bench_one(words: &[&str]) -> (bool, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weald"));
    let output = command.arg("bench-one").args(words).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Each printed metric with its value.
fn metrics(words: &[&str]) -> Vec<(String, f64)> {
    let (ended_well, out, err) = bench_one(words);
    assert!(ended_well && err.is_empty(), "{words:?}: {err}");
    let metric = |line: &str| {
        let (name, value) = line.split_once(' ').unwrap();
        (name.to_owned(), value.parse().unwrap())
    };
    out.lines().map(metric).collect()
}

#[test]
fn requests_are_measured_on_few_and_many_connections() {
    for workload in ["echo", "hello"] {
        for (connections, workers) in [(1, 1), (30, 1), (30, 2)] {
            let connections = format!("connections={connections}");
            let workers = format!("workers={workers}");
            let found = metrics(&[workload, &connections, "requests=5000", &workers]);
            let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["cpu_s_per_million", "requests_per_s", "p99_us"]);
            assert!(found.iter().all(|(_, value)| *value > 0.0), "{found:?}");
        }
    }
}

#[test]
fn the_limit_program_of_hello_answers_as_a_server_does() {
    let words = [
        "limit",
        "hello",
        "connections=30",
        "requests=3000",
        "workers=2",
    ];
    assert_eq!(metrics(&words).len(), 3);
}

#[test]
fn fewer_requests_than_connections_are_enough() {
    let words = ["echo", "connections=120", "requests=1", "workers=1"];
    assert_eq!(metrics(&words).len(), 3);
}

#[test]
fn quiet_connections_are_measured() {
    for asked in [&[][..], &["asked=in-turn"], &["asked=at-once"]] {
        let words = [
            "idle-connections",
            "connections=200",
            "rest_ms=0",
            "workers=2",
        ];
        let found = metrics(&[&words[..], asked].concat());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, "bytes_per_connection");
        // The server has answered each connection, so each takes some memory.
        assert!(found[0].1 > 100.0, "{found:?}");
    }
}

#[test]
fn more_connections_than_descriptors_are_refused_with_advice() {
    let words = ["echo", "connections=4000000000", "requests=1", "workers=1"];
    let (ended_well, out, err) = bench_one(&words);
    assert!(!ended_well && out.is_empty());
    assert!(err.contains("hard limit"), "{err}");
}

#[test]
fn a_server_ends_with_its_input() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_weald"))
        .args(["bench-one", "serve-echo", "workers=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let port = line.trim().strip_prefix("port ").unwrap();
    let mut client = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    client.write_all(b"there?").unwrap();
    let mut answer = [0; 6];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"there?");
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_board_is_measured_read_and_written() {
    for more in [
        &["op=read"][..],
        &["op=read", "kept=yes"],
        &["op=page"],
        &["op=search"],
        &["op=write"],
    ] {
        let words = ["board", "connections=20", "requests=400", "workers=2"];
        let found = metrics(&[&words[..], more].concat());
        assert_eq!(found[0].0, "cpu_s_per_million");
        let errors = found.iter().find(|(name, _)| name == "errors").unwrap();
        assert_eq!(errors.1, 0.0, "{found:?}");
    }
}

#[test]
fn a_board_is_measured_for_a_time_beside_visitors_with_processors_of_their_own() {
    let words = ["board", "connections=4", "requests=400", "op=read"];
    let found = metrics(&[&words[..], &["seconds=1", "workers=1"]].concat());
    assert!(found.contains(&("errors".to_owned(), 0.0)), "{found:?}");
}

#[test]
fn a_board_on_disk_is_measured() {
    for durability in ["buffered", "durable"] {
        let durability = format!("durability={durability}");
        let words = ["board", "connections=20", "requests=200", "op=write"];
        let found = metrics(&[&words[..], &[&durability, "workers=2"]].concat());
        assert!(found.contains(&("errors".to_owned(), 0.0)), "{found:?}");
    }
}

#[test]
fn durable_writes_are_measured_beside_buffered_ones() {
    let words = ["board", "connections=20", "requests=200", "op=durable"];
    let found = metrics(&[&words[..], &["workers=2"]].concat());
    let value = |name: &str| found.iter().find(|(it, _)| it == name).unwrap().1;
    assert_eq!(value("errors"), 0.0, "{found:?}");
    assert!(value("buffered_ratio") > 0.0, "{found:?}");
}

#[test]
fn reads_beside_a_hot_board_are_measured() {
    let words = ["board", "connections=10", "requests=100", "op=hot"];
    let found = metrics(&[&words[..], &["workers=2"]].concat());
    let value = |name: &str| found.iter().find(|(it, _)| it == name).unwrap().1;
    assert_eq!(value("errors"), 0.0, "{found:?}");
    assert!(value("p99_ratio") > 0.0 && value("writes_per_s") > 0.0);
}

#[test]
fn readers_of_live_events_are_measured() {
    let words = ["board", "connections=1", "requests=3", "op=listen"];
    let found = metrics(&[&words[..], &["readers=110", "workers=2"]].concat());
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        ["delivered_ms", "delivered_worst_ms", "bytes_per_reader"]
    );
    assert!(found[0].1 > 0.0, "{found:?}");
}

#[test]
fn a_large_board_is_measured_in_all_its_versions() {
    let words = ["board", "connections=10", "requests=90", "op=large"];
    let more = ["durability=buffered", "messages=1600", "workers=2"];
    let found = metrics(&[&words[..], &more].concat());
    assert!(found.contains(&("errors".to_owned(), 0.0)), "{found:?}");
    let (ended_well, _, err) = bench_one(&[
        "board",
        "connections=1",
        "requests=1",
        "op=fly",
        "workers=1",
    ]);
    assert!(!ended_well && err.contains("op=fly"), "{err}");
}
