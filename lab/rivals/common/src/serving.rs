//! The arguments of servers: those of the program that measures one, and those of the server itself.
//!
//! Only `rival-load` and `rival-servers` call it.

use std::time::Duration;

use crate::args::Keys;
use crate::programs::board::Ask;
use crate::programs::dialogue::Dialogue;
use crate::programs::load::Asked;
use crate::report::bad_usage;

/// What is measured of a server.
#[derive(Clone, Copy, Debug)]
pub enum Serving {
    /// Requests, one after the other on each connection.
    Busy {
        /// What is said.
        dialogue: Dialogue,
        /// On how many connections.
        connections: usize,
        /// How many requests, all together.
        requests: usize,
    },
    /// Connections that are quiet.
    Idle {
        /// What is said once on each connection.
        dialogue: Dialogue,
        /// How many.
        connections: usize,
        /// How long they are idle before they are measured.
        rest: Duration,
        /// When they are asked.
        asked: Asked,
    },
    /// Requests to boards.
    Board {
        /// What is asked; `None`: reads beside a board that takes many writes.
        ask: Option<Ask>,
        /// How much.
        load: BoardRequests,
    },
    /// Requests beside others that hold a thread.
    Stall(StallRequests),
}

/// How much is asked of a board.
#[derive(Clone, Copy, Debug)]
pub struct BoardRequests {
    /// On how many connections.
    pub connections: usize,
    /// How many requests, all together.
    pub requests: usize,
}

fn parse_board(keys: &mut Keys) -> Serving {
    let op = keys.take_optional("op").unwrap_or_default();
    let ask = match op.as_str() {
        "hot" => None,
        op => match Ask::parse(op).filter(|ask| *ask != Ask::Search) {
            Some(ask) => Some(ask),
            None => bad_usage(
                "Give op=read, page, write or hot: a rival has no versions, no search and no live events.",
            ),
        },
    };
    // All rivals are in memory, whatever is compared with them.
    let _durability = keys.take_optional("durability");
    Serving::Board {
        ask,
        load: BoardRequests {
            connections: keys.count("connections"),
            requests: keys.count("requests"),
        },
    }
}

/// The parameters of `stall-requests`.
#[derive(Clone, Copy, Debug)]
pub struct StallRequests {
    /// What the handlers of the offenders' requests do.
    pub offence: Offence,
    /// How many offenders there are.
    pub offenders: usize,
    /// For how many seconds to measure.
    pub seconds: u64,
}

/// What the handler of an offender's request does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offence {
    /// There are no offenders.
    None,
    /// It blocks its OS thread for 300 ms.
    Blocks,
    /// It computes for 300 ms.
    Computes,
    /// It panics at once.
    Panics,
}

fn parse_stall(keys: &mut Keys) -> StallRequests {
    let offence = match keys.take_optional("offender").as_deref() {
        Some("none") => Offence::None,
        Some("blocks") => Offence::Blocks,
        Some("computes") => Offence::Computes,
        Some("panics") => Offence::Panics,
        _ => bad_usage("Give offender=none, blocks, computes or panics."),
    };
    let offenders = keys.number("offenders", 0);
    StallRequests {
        offence,
        offenders: usize::try_from(offenders).unwrap_or(usize::MAX),
        seconds: keys.number("seconds", 1),
    }
}

/// Whether `word` is a workload of servers.
pub fn is_workload(word: &str) -> bool {
    [
        "echo",
        "hello",
        "idle-connections",
        "stall-requests",
        "board",
    ]
    .contains(&word)
}

/// Reads a workload with its keys, and the number of workers.
pub fn parse(arguments: &[String]) -> (Serving, usize) {
    let mut keys = Keys::read(&arguments[1..]);
    let serving = match arguments[0].as_str() {
        "idle-connections" => Serving::Idle {
            dialogue: Dialogue::Hello,
            connections: keys.count("connections"),
            rest: Duration::from_millis(keys.number("rest_ms", 0)),
            asked: Asked::parse(keys.take_optional("asked").as_deref())
                .unwrap_or_else(|sentence| bad_usage(&sentence)),
        },
        "board" => parse_board(&mut keys),
        "stall-requests" => Serving::Stall(parse_stall(&mut keys)),
        name => Serving::Busy {
            dialogue: if name == "echo" {
                Dialogue::Echo
            } else {
                Dialogue::Hello
            },
            connections: keys.count("connections"),
            requests: keys.count("requests"),
        },
    };
    let workers = keys.count("workers");
    keys.finish();
    (serving, workers)
}

/// What a server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// One side of a dialogue.
    Of(Dialogue),
    /// Boards.
    Board,
}

/// Reads the arguments of a server: what it serves and the number of workers; `version` is what
/// `--version` prints.
pub fn parse_server(arguments: &[String], version: &str) -> (Server, usize) {
    let name = arguments.first().map_or("", String::as_str);
    if name == "--version" {
        println!("{version}");
        std::process::exit(0);
    }
    let dialogues = [Dialogue::Echo, Dialogue::Hello];
    let dialogue = dialogues.into_iter().find(|one| one.server() == name);
    let server = match dialogue {
        Some(dialogue) => Server::Of(dialogue),
        None if name == "serve-board" => Server::Board,
        None => bad_usage(
            "Call it as serve-echo, serve-hello or serve-board with workers=N, or with --version.",
        ),
    };
    let mut keys = Keys::read(&arguments[1..]);
    let workers = keys.count("workers");
    keys.finish();
    (server, workers)
}
