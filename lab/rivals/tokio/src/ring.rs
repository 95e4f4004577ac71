//! `ring`: tokens go round a ring of processes, each of which knows only its neighbour.

use std::time::Instant;

use common::{per, print_metrics};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::gate::Gate;

/// What every process of the ring has.
struct Node {
    mailbox: UnboundedReceiver<u64>,
    started: &'static Gate,
    arrived: &'static Gate,
}

pub(crate) async fn run(n: usize, m: u64, tokens: usize) {
    let (started, arrived) = (Gate::leak(n), Gate::leak(tokens));
    let mut handles: Vec<UnboundedSender<u64>> = Vec::with_capacity(n);
    let setup = Instant::now();
    // The ring is built backwards: the last process is spawned first and gets the first one's
    // address at the end.
    let (tell, told) = oneshot::channel();
    let (sender, mailbox) = unbounded_channel();
    tokio::spawn(last(
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
        let (sender, mailbox) = unbounded_channel();
        tokio::spawn(pass(
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
    started.wait().await;

    let hops = n as u64 * m;
    let clock = Instant::now();
    for token in 0..tokens {
        handles[token * n / tokens]
            .send(hops)
            .expect("the process waits for tokens");
    }
    arrived.wait().await;
    let running = clock.elapsed();
    print_metrics(&[
        ("ns_per_hop", per(running, hops as f64 * tokens as f64)),
        ("ms_with_setup", setup.elapsed().as_secs_f64() * 1e3),
    ]);
}

async fn last(node: Node, told: oneshot::Receiver<UnboundedSender<u64>>) {
    if let Ok(neighbour) = told.await {
        pass(node, neighbour).await;
    }
}

/// Passes tokens on; the number in a token is how many hops it has left.
async fn pass(mut node: Node, neighbour: UnboundedSender<u64>) {
    node.started.count();
    while let Some(hops) = node.mailbox.recv().await {
        if hops == 0 {
            node.arrived.count();
        } else {
            neighbour
                .send(hops - 1)
                .expect("the neighbour lives as long as the ring");
        }
    }
}
