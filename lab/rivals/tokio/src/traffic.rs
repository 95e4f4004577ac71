//! `many-to-many`, `fan-in` and `ping-pong`: processes that are parked before the clock starts
//! exchange small integers.

use std::time::{Duration, Instant};

use common::{Xorshift, expected_counts, per, print_metrics, total_messages};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::gate::Gate;

/// Long enough for a process that has counted itself started to reach its receive.
const SETTLE: Duration = Duration::from_millis(50);

/// The addresses of all processes; they live until the program ends.
type Everyone = &'static [UnboundedSender<u64>];

pub(crate) async fn many_to_many(processes: usize, messages: usize) {
    let (started, done) = (Gate::leak(processes), Gate::leak(processes));
    let (senders, mailboxes): (Vec<_>, Vec<_>) =
        (0..processes).map(|_| unbounded_channel()).unzip();
    let everyone: Everyone = senders.leak();
    let mut starts = Vec::with_capacity(processes);
    let expected = expected_counts(processes, messages);
    for (index, (mailbox, expected)) in mailboxes.into_iter().zip(expected).enumerate() {
        let (start, go) = oneshot::channel();
        starts.push(start);
        tokio::spawn(async move {
            started.count();
            go.await.expect("the main process sends the start");
            send_to_others(index, messages, everyone);
            receive(mailbox, expected).await;
            done.count();
        });
    }
    started.wait().await;
    let clock = start_all(starts).await;
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(processes, messages)),
    )]);
}

fn send_to_others(index: usize, messages: usize, everyone: Everyone) {
    let mut random = Xorshift::of_process(index);
    for number in 0..messages as u64 {
        let target = random.next_below(everyone.len());
        everyone[target]
            .send(number)
            .expect("every mailbox outlives the sending");
    }
}

async fn receive(mut mailbox: UnboundedReceiver<u64>, expected: usize) {
    for _ in 0..expected {
        mailbox
            .recv()
            .await
            .expect("every sender lives until the program ends");
    }
}

pub(crate) async fn fan_in(senders: usize, messages: usize) {
    let (started, done) = (Gate::leak(senders + 1), Gate::leak(1));
    let (sender, mut mailbox) = unbounded_channel::<u64>();
    tokio::spawn(async move {
        started.count();
        for _ in 0..senders * messages {
            mailbox
                .recv()
                .await
                .expect("the main process keeps a sender");
        }
        done.count();
    });
    let mut starts = Vec::with_capacity(senders);
    for _ in 0..senders {
        let (start, go) = oneshot::channel();
        starts.push(start);
        let receiver = sender.clone();
        tokio::spawn(async move {
            started.count();
            go.await.expect("the main process sends the start");
            for number in 0..messages as u64 {
                receiver.send(number).expect("the receiver waits for all");
            }
        });
    }
    started.wait().await;
    let clock = start_all(starts).await;
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(senders, messages)),
    )]);
}

pub(crate) async fn burst_send(receivers: usize, each: usize) {
    let (started, done) = (Gate::leak(receivers + 1), Gate::leak(receivers));
    let (senders, mailboxes): (Vec<_>, Vec<_>) =
        (0..receivers).map(|_| unbounded_channel::<u64>()).unzip();
    for mut mailbox in mailboxes {
        tokio::spawn(async move {
            started.count();
            for _ in 0..each {
                mailbox.recv().await.expect("the sender outlives this");
            }
            done.count();
        });
    }
    let (start, go) = oneshot::channel();
    tokio::spawn(async move {
        started.count();
        go.await.expect("the main process sends the start");
        for number in 0..each as u64 {
            for receiver in &senders {
                receiver.send(number).expect("the receiver waits for all");
            }
        }
    });
    started.wait().await;
    let clock = start_all(vec![start]).await;
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), (receivers * each) as f64),
    )]);
}

/// Starts the clock and then every process, after all have parked.
pub(crate) async fn start_all(starts: Vec<oneshot::Sender<()>>) -> Instant {
    tokio::time::sleep(SETTLE).await;
    let clock = Instant::now();
    for start in starts {
        start.send(()).expect("the process waits for its start");
    }
    clock
}

pub(crate) async fn ping_pong(rounds: u64) {
    let (started, done) = (Gate::leak(2), Gate::leak(1));
    let (ping, mut ping_mailbox) = unbounded_channel();
    let (pong, mut pong_mailbox) = unbounded_channel();
    let back = ping.clone();
    tokio::spawn(async move {
        started.count();
        while let Some(left) = pong_mailbox.recv().await {
            if back.send(left).is_err() {
                break;
            }
        }
    });
    tokio::spawn(async move {
        started.count();
        while let Some(left) = ping_mailbox.recv().await {
            if left == 0 {
                break;
            }
            pong.send(left - 1).expect("pong lives as long as ping");
        }
        done.count();
    });
    started.wait().await;
    tokio::time::sleep(SETTLE).await;
    let clock = Instant::now();
    ping.send(rounds).expect("ping waits for the start");
    done.wait().await;
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}
