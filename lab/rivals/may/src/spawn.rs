//! `spawn`: how long a process takes to start and to end, and how much memory it holds while it
//! waits.

use std::time::Instant;

use common::{per, print_metrics, rss_bytes};
use may::coroutine::JoinHandle;
use may::go;
use may::sync::mpsc::{Receiver, Sender, channel};

use crate::gate::Gate;

/// The address of a process, and the right to its end.
type Handle = (Sender<Die>, JoinHandle<()>);

/// The message that ends a process.
#[derive(Debug)]
struct Die;

pub(crate) fn run(n: usize) {
    let (started, ended) = (Gate::leak(n), Gate::leak(n));
    let mut handles: Vec<Option<Handle>> = Vec::new();
    handles.resize_with(n, || None);
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for handle in &mut handles {
        let (sender, mailbox) = channel();
        *handle = Some((sender, go!(move || live(&mailbox, started, ended))));
    }
    started.wait();
    let spawning = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for (sender, _) in handles.iter().flatten() {
        sender
            .send(Die)
            .expect("the process waits for this message");
    }
    ended.wait();
    for (_, process) in handles.into_iter().flatten() {
        process.join().expect("no process panics");
    }
    let teardown = clock.elapsed();
    print_metrics(&[
        ("ns_per_spawn", per(spawning, n as f64)),
        ("ns_per_teardown", per(teardown, n as f64)),
        ("bytes_per_process", grown as f64 / n as f64),
    ]);
}

fn live(mailbox: &Receiver<Die>, started: &'static Gate, ended: &'static Gate) {
    started.count();
    mailbox.recv().expect("the main process keeps a sender");
    ended.count();
}
