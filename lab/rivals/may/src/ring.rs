//! `ring`: tokens go round a ring of processes, each of which knows only its neighbour.

use std::time::Instant;

use common::{per, print_metrics};
use may::go;
use may::sync::mpsc::{Receiver, Sender, channel};

use crate::gate::Gate;

/// What every process of the ring has.
struct Node {
    mailbox: Receiver<u64>,
    started: &'static Gate,
    arrived: &'static Gate,
}

pub(crate) fn run(n: usize, m: u64, tokens: usize) {
    let (started, arrived) = (Gate::leak(n), Gate::leak(tokens));
    let mut handles: Vec<Sender<u64>> = Vec::with_capacity(n);
    let setup = Instant::now();
    // The ring is built backwards: the last process is spawned first and gets the first one's
    // address at the end.
    let (tell, told) = channel();
    let (sender, mailbox) = channel();
    go!(move || last(
        Node {
            mailbox,
            started,
            arrived,
        },
        told,
    ));
    handles.push(sender);
    for index in 1..n {
        let neighbour = handles[index - 1].clone();
        let (sender, mailbox) = channel();
        go!(move || pass(
            Node {
                mailbox,
                started,
                arrived,
            },
            neighbour,
        ));
        handles.push(sender);
    }
    let first = handles[n - 1].clone();
    tell.send(first)
        .expect("the last process waits for its neighbour");
    started.wait();

    let hops = n as u64 * m;
    let clock = Instant::now();
    for token in 0..tokens {
        handles[token * n / tokens]
            .send(hops)
            .expect("the process waits for tokens");
    }
    arrived.wait();
    let running = clock.elapsed();
    print_metrics(&[
        ("ns_per_hop", per(running, hops as f64 * tokens as f64)),
        ("ms_with_setup", setup.elapsed().as_secs_f64() * 1e3),
    ]);
}

fn last(node: Node, told: Receiver<Sender<u64>>) {
    if let Ok(neighbour) = told.recv() {
        pass(node, neighbour);
    }
}

/// Passes tokens on; the number in a token is how many hops it has left.
fn pass(node: Node, neighbour: Sender<u64>) {
    node.started.count();
    while let Ok(hops) = node.mailbox.recv() {
        if hops == 0 {
            node.arrived.count();
        } else {
            neighbour
                .send(hops - 1)
                .expect("the neighbour lives as long as the ring");
        }
    }
}
