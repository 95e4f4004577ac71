//! `ring`: tokens go round a ring of processes, each of which knows only its neighbour.

use std::time::Instant;

use async_channel::{Receiver, Sender, bounded, unbounded};
use common::{per, print_metrics};

use crate::EXECUTOR;
use crate::gate::Gate;

/// What every process of the ring has.
struct Node {
    mailbox: Receiver<u64>,
    started: &'static Gate,
    arrived: &'static Gate,
}

pub(crate) async fn run(n: usize, m: u64, tokens: usize) {
    let (started, arrived) = (Gate::leak(n), Gate::leak(tokens));
    let mut handles: Vec<Sender<u64>> = Vec::with_capacity(n);
    let setup = Instant::now();
    // The ring is built backwards: the last process is spawned first and gets the first one's
    // address at the end.
    let (tell, told) = bounded(1);
    let (sender, mailbox) = unbounded();
    EXECUTOR
        .spawn(last(
            Node {
                mailbox,
                started,
                arrived,
            },
            told,
        ))
        .detach();
    handles.push(sender);
    for index in 1..n {
        let neighbour = handles[index - 1].clone();
        let (sender, mailbox) = unbounded();
        EXECUTOR
            .spawn(pass(
                Node {
                    mailbox,
                    started,
                    arrived,
                },
                neighbour,
            ))
            .detach();
        handles.push(sender);
    }
    let first = handles[n - 1].clone();
    tell.try_send(first)
        .expect("the last process waits for its neighbour");
    started.wait().await;

    let hops = n as u64 * m;
    let clock = Instant::now();
    for token in 0..tokens {
        handles[token * n / tokens]
            .try_send(hops)
            .expect("the process waits for tokens");
    }
    arrived.wait().await;
    let running = clock.elapsed();
    print_metrics(&[
        ("ns_per_hop", per(running, hops as f64 * tokens as f64)),
        ("ms_with_setup", setup.elapsed().as_secs_f64() * 1e3),
    ]);
}

async fn last(node: Node, told: Receiver<Sender<u64>>) {
    if let Ok(neighbour) = told.recv().await {
        pass(node, neighbour).await;
    }
}

/// Passes tokens on; the number in a token is how many hops it has left.
async fn pass(node: Node, neighbour: Sender<u64>) {
    node.started.count();
    while let Ok(hops) = node.mailbox.recv().await {
        if hops == 0 {
            node.arrived.count();
        } else {
            neighbour
                .try_send(hops - 1)
                .expect("the neighbour lives as long as the ring");
        }
    }
}
