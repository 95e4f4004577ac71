//! The clients of every server among the rivals: `rival-load SERVER ... WORKLOAD key=value ...` starts the
//! server, measures it from outside, and prints the metrics.
//!
//! Invariant: this is the same source that measures Weald's own server; but `stall-requests` is one process, as Weald's
//! own, and exists for hyper only.

mod stall_requests;

use std::process::Command;

use common::programs::board::{Ask, BoardLoad};
use common::programs::load::Load;
use common::programs::measure::Figure;
use common::serving::BoardRequests;
use common::{Serving, bad_usage, fail, print_metrics, serving};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_ours = |word: &String| word == "--version" || serving::is_workload(word);
    let Some(at) = arguments.iter().position(is_ours) else {
        bad_usage("Call it as SERVER ... WORKLOAD key=value ..., or with --version.");
    };
    let (server, call) = arguments.split_at(at);
    if call[0] == "--version" {
        tell_version(server);
    }
    let (serving, workers) = serving::parse(call);
    let load = |connections| Load {
        server: server.to_vec(),
        workers,
        connections,
    };
    let figures = match serving {
        Serving::Busy {
            dialogue,
            connections,
            requests,
        } => load(connections).busy(dialogue, requests),
        Serving::Idle {
            dialogue,
            connections,
            rest,
            asked,
        } => load(connections).idle(dialogue, rest, asked),
        Serving::Board { ask, load } => board(server, workers, &load, ask),
        Serving::Stall(stall) if server.iter().any(|word| word == "--hyper") => {
            Ok(stall_requests::run(stall, workers))
        }
        Serving::Stall(_) => bad_usage("Only hyper has a program for stall-requests."),
    };
    match figures {
        Ok(figures) => print_metrics(&figures),
        Err(sentence) => fail(&sentence),
    }
}

fn board(
    server: &[String],
    workers: usize,
    load: &BoardRequests,
    ask: Option<Ask>,
) -> Result<Vec<Figure>, String> {
    let load = BoardLoad {
        server: server.to_vec(),
        words: Vec::new(),
        workers,
        connections: load.connections,
        requests: load.requests,
    };
    match ask {
        Some(ask) => load.busy(ask),
        None => load.beside_hot(),
    }
}

/// Prints the version that the server reports.
fn tell_version(server: &[String]) -> ! {
    let Some((program, arguments)) = server.split_first() else {
        bad_usage("No server is named: give its command before --version.");
    };
    let status = Command::new(program)
        .args(arguments)
        .arg("--version")
        .status();
    match status {
        Ok(status) if status.success() => std::process::exit(0),
        _ => fail("The server does not report its version: see the message above."),
    }
}
