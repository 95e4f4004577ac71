//! The clients of every server among the rivals: `rival-load SERVER ... WORKLOAD key=value ...` starts the
//! server, measures it from outside, and prints the metrics.
//!
//! Invariant: this is the same source that measures Weald's own server; but `stall-requests` is one process, as Weald's
//! own, and exists for hyper only.

mod stall_requests;
mod with_hyper;

use std::time::Duration;

use common::programs::board::{Ask, BoardLoad};
use common::programs::dialogue::Dialogue;
use common::programs::load::{Asked, Load};
use common::{Call, bad_usage, print, split};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (server, call) = split(&arguments);
    let load = || Load {
        server: server.to_vec(),
        workers: call.workers,
        connections: call.count("connections"),
    };
    print(match call.workload.as_str() {
        "echo" => load().busy(Dialogue::Echo, call.count("requests")),
        "hello" => load().busy(Dialogue::Hello, call.count("requests")),
        "idle-connections" => {
            let rest = Duration::from_millis(call.number("rest_ms", 0));
            let asked = Asked::parse(call.optional("asked"));
            let asked = asked.unwrap_or_else(|sentence| bad_usage(&sentence));
            load().idle(Dialogue::Hello, rest, asked)
        }
        "board" => board(server, call),
        "stall-requests" if server.iter().any(|word| word == "hyper") => {
            Ok(stall_requests::run(call))
        }
        "stall-requests" => bad_usage("Only hyper has a program for stall-requests."),
        _ => bad_usage("A server has no program for this workload: leave it out."),
    })
}

/// All rivals are in memory, whatever the key `durability` says.
fn board(server: &[String], call: &Call) -> Result<Vec<(&'static str, f64)>, String> {
    let limit = call.optional("seconds");
    let load = BoardLoad {
        server: server.to_vec(),
        words: Vec::new(),
        workers: call.workers,
        connections: call.count("connections"),
        requests: call.count("requests"),
        limit: limit.map(|_| Duration::from_secs(call.number("seconds", 1))),
    };
    match call.optional("op").unwrap_or_default() {
        // Reads beside a board that takes many writes.
        "hot" => load.beside_hot(),
        op => match Ask::parse(op).filter(|ask| *ask != Ask::Search) {
            Some(ask) => load.busy(ask),
            None => bad_usage(
                "Give op=read, page, write or hot: a rival has no versions, no search and no live events.",
            ),
        },
    }
}
