//! `spawn`: how long a process takes to start and to end, and how much memory it holds while it
//! waits.

use std::time::Instant;

use common::{per, print_metrics, rss_bytes};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::gate::Gate;

/// The message that ends a process.
#[derive(Debug)]
struct Die;

pub(crate) async fn run(n: usize) {
    let (started, ended) = (Gate::leak(n), Gate::leak(n));
    let mut handles: Vec<Option<UnboundedSender<Die>>> = vec![None; n];
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for handle in &mut handles {
        let (sender, mailbox) = unbounded_channel();
        tokio::spawn(live(mailbox, started, ended));
        *handle = Some(sender);
    }
    started.wait().await;
    let spawning = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for handle in handles.iter().flatten() {
        handle
            .send(Die)
            .expect("the process waits for this message");
    }
    ended.wait().await;
    let metrics = Handle::current().metrics();
    while metrics.num_alive_tasks() > 1 {
        tokio::task::yield_now().await;
    }
    let teardown = clock.elapsed();
    print_metrics(&[
        ("ns_per_spawn", per(spawning, n as f64)),
        ("ns_per_teardown", per(teardown, n as f64)),
        ("bytes_per_process", grown as f64 / n as f64),
    ]);
}

async fn live(mut mailbox: UnboundedReceiver<Die>, started: &'static Gate, ended: &'static Gate) {
    started.count();
    mailbox.recv().await;
    ended.count();
}
