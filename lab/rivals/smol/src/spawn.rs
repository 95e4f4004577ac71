//! `spawn`: how long a process takes to start and to end, and how much memory it holds while it
//! waits.

use std::time::Instant;

use async_channel::{Receiver, Sender, unbounded};
use common::{per, print_metrics, rss_bytes};
use smol::Task;

use crate::EXECUTOR;
use crate::gate::Gate;

/// The address of a process, and the right to its end.
type Handle = (Sender<Die>, Task<()>);

/// The message that ends a process.
#[derive(Debug)]
struct Die;

pub(crate) async fn run(n: usize) {
    let (started, ended) = (Gate::leak(n), Gate::leak(n));
    let mut handles: Vec<Option<Handle>> = Vec::new();
    handles.resize_with(n, || None);
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for handle in &mut handles {
        let (sender, mailbox) = unbounded();
        *handle = Some((sender, EXECUTOR.spawn(live(mailbox, started, ended))));
    }
    started.wait().await;
    let spawning = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for (sender, _) in handles.iter().flatten() {
        sender
            .try_send(Die)
            .expect("the process waits for this message");
    }
    ended.wait().await;
    for (_, task) in handles.into_iter().flatten() {
        task.await;
    }
    let teardown = clock.elapsed();
    print_metrics(&[
        ("ns_per_spawn", per(spawning, n as f64)),
        ("ns_per_teardown", per(teardown, n as f64)),
        ("bytes_per_process", grown as f64 / n as f64),
    ]);
}

async fn live(mailbox: Receiver<Die>, started: &'static Gate, ended: &'static Gate) {
    started.count();
    mailbox
        .recv()
        .await
        .expect("the main process keeps a sender");
    ended.count();
}
