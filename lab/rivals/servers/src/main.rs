//! Servers of the libraries that rival Weald's sockets and HTTP, one per call.
//!
//! Invariants: the first argument names the library. The server prints the port of 127.0.0.1 that it
//! listens on, and ends with its input, whatever started it. All servers of a greeting answer the same bytes except for the order of
//! the header's lines, and only the bare one does not write the time into them.

mod board_of_axum;
mod with_axum;
mod with_hyper;
mod with_nginx;
mod with_smol;
mod with_tokio;

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};

use common::programs::dialogue::Dialogue;
use common::serving::Server;
use common::{bad_usage, fail, locked_versions, serving};

type Serve = fn(Dialogue, TcpListener, usize) -> !;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some(with_nginx::NAME) => with_nginx::serve(&arguments[1..]),
        Some(with_nginx::WORKER) => with_nginx::become_worker(arguments.get(1)),
        _ => {}
    }
    let (version, serve): (String, Serve) = match arguments.first().map(String::as_str) {
        Some("--tokio") => (locked_versions(&["tokio"]), with_tokio::serve),
        Some("--hyper") => (locked_versions(&["hyper", "tokio"]), with_hyper::serve),
        Some("--axum") => (locked_versions(&["axum", "tokio"]), with_axum::serve),
        Some("--smol") => (locked_versions(&["smol"]), with_smol::serve),
        Some("--epoll") => ("bare epoll loops".to_owned(), epoll),
        _ => bad_usage("Begin with --tokio, --hyper, --axum, --smol, --nginx or --epoll."),
    };
    let (server, workers) = serving::parse_server(&arguments[1..], &version);
    let is_axum = arguments[0] == "--axum";
    if server == Server::Board && !is_axum {
        bad_usage("Only axum has a board.");
    }
    let (listener, port) = listen();
    tell(port);
    match server {
        Server::Of(dialogue) => serve(dialogue, listener, workers),
        Server::Board => with_axum::serve_boards(listener, workers),
    }
}

/// Any free port.
fn listen() -> (TcpListener, u16) {
    let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)) else {
        fail("Cannot listen on 127.0.0.1: allow the program to do so.");
    };
    let port = listener.local_addr().map_or(0, |address| address.port());
    (listener, port)
}

/// Prints the port. From now on the program ends with its input.
fn tell(port: u16) {
    println!("port {port}");
    std::thread::spawn(|| {
        let _end = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
}

/// The program without a library that is also the limit program of the row.
fn epoll(dialogue: Dialogue, listener: TcpListener, workers: usize) -> ! {
    if let Err(error) = common::programs::epoll::serve(dialogue, listener, workers) {
        fail(&format!("The server cannot continue: {error}."));
    }
    fail("The server has ended.")
}

/// Turns the listener into one of tokio's, and runs `serve` on a runtime.
fn on_tokio<F: Future<Output = ()>>(
    listener: TcpListener,
    workers: usize,
    serve: impl FnOnce(tokio::net::TcpListener) -> F,
) -> ! {
    let mut builder = match workers {
        // It is the cheaper runtime for one worker.
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(workers).enable_all().build();
    let runtime = runtime.unwrap_or_else(|_| fail("The runtime cannot start: give fewer workers."));
    runtime.block_on(async {
        let listener = listener
            .set_nonblocking(true)
            .and_then(|()| tokio::net::TcpListener::from_std(listener));
        match listener {
            Ok(listener) => serve(listener).await,
            Err(_) => fail("The listener cannot be watched."),
        }
    });
    fail("The server has ended.")
}
