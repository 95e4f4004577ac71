//! Servers of the libraries that rival Weald's sockets and HTTP, one per call.
//!
//! Invariants: the first argument names the library. The server prints the port of 127.0.0.1 that it listens on, and
//! ends with its input, whatever started it. All servers of a greeting answer the same bytes except for the order of
//! the header's lines, and only the bare one does not write the time into them.

mod board_of_axum;
mod greetings;
mod with_hyper;
mod with_nginx;

use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};

use common::programs::dialogue::Dialogue;
use common::{Call, bad_usage, fail, locked_versions};

use greetings::{on_hyper, on_smol, on_tokio, with_axum, with_tokio};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    if name == with_nginx::WORKER {
        with_nginx::become_worker(arguments.get(1));
    }
    let version = match name {
        "tokio" => locked_versions(&["tokio"]),
        "hyper" => locked_versions(&["hyper", "tokio"]),
        "axum" => locked_versions(&["axum", "tokio"]),
        "smol" => locked_versions(&["smol"]),
        "epoll" => "bare epoll loops".to_owned(),
        "nginx" => with_nginx::version(),
        _ => bad_usage("Begin with tokio, hyper, axum, smol, nginx or epoll."),
    };
    let call = Call::parse(&arguments[1..], &version);
    let serves = call.workload.as_str();
    let speaks = match name {
        "tokio" | "smol" => serves == "serve-echo",
        "hyper" | "nginx" => serves == "serve-hello",
        "axum" => serves != "serve-echo",
        _ => serves != "serve-board",
    };
    if !speaks {
        bad_usage("This server does not speak that: the README says which one does.");
    }
    if name == "nginx" {
        with_nginx::serve(call.workers);
    }
    let (listener, port) = listen();
    tell(port);
    let workers = call.workers;
    match name {
        "tokio" => on_tokio(listener, workers, with_tokio),
        "hyper" => on_tokio(listener, workers, on_hyper),
        "axum" if serves == "serve-board" => on_tokio(listener, workers, board_of_axum::accept),
        "axum" => on_tokio(listener, workers, with_axum),
        "smol" => on_smol(listener, workers),
        _ if serves == "serve-echo" => epoll(Dialogue::Echo, listener, workers),
        _ => epoll(Dialogue::Hello, listener, workers),
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
