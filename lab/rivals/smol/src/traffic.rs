//! `many-to-many`, `fan-in` and `ping-pong`: processes that are parked before the clock starts
//! exchange small integers.

use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, bounded, unbounded};
use common::{Xorshift, expected_counts, per, print_metrics, total_messages};
use smol::Timer;

use crate::EXECUTOR;
use crate::gate::Gate;

/// Long enough for a process that has counted itself started to reach its receive.
const SETTLE: Duration = Duration::from_millis(50);

/// The addresses of all processes; they live until the program ends.
type Everyone = &'static [Sender<u64>];

pub(crate) async fn many_to_many(processes: usize, messages: usize) {
    let (started, done) = (Gate::leak(processes), Gate::leak(processes));
    let (senders, mailboxes): (Vec<_>, Vec<_>) = (0..processes).map(|_| unbounded()).unzip();
    let everyone: Everyone = senders.leak();
    let mut starts = Vec::with_capacity(processes);
    let expected = expected_counts(processes, messages);
    for (index, (mailbox, expected)) in mailboxes.into_iter().zip(expected).enumerate() {
        let (start, go) = bounded(1);
        starts.push(start);
        EXECUTOR
            .spawn(async move {
                started.count();
                go.recv().await.expect("the main process sends the start");
                send_to_others(index, messages, everyone);
                receive(mailbox, expected).await;
                done.count();
            })
            .detach();
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
            .try_send(number)
            .expect("every mailbox outlives the sending");
    }
}

async fn receive(mailbox: Receiver<u64>, expected: usize) {
    for _ in 0..expected {
        mailbox
            .recv()
            .await
            .expect("every sender lives until the program ends");
    }
}

pub(crate) async fn fan_in(senders: usize, messages: usize) {
    let (started, done) = (Gate::leak(senders + 1), Gate::leak(1));
    let (sender, mailbox) = unbounded::<u64>();
    EXECUTOR
        .spawn(async move {
            started.count();
            for _ in 0..senders * messages {
                mailbox
                    .recv()
                    .await
                    .expect("the main process keeps a sender");
            }
            done.count();
        })
        .detach();
    let mut starts = Vec::with_capacity(senders);
    for _ in 0..senders {
        let (start, go) = bounded(1);
        starts.push(start);
        let receiver = sender.clone();
        EXECUTOR
            .spawn(async move {
                started.count();
                go.recv().await.expect("the main process sends the start");
                for number in 0..messages as u64 {
                    receiver
                        .try_send(number)
                        .expect("the receiver waits for all");
                }
            })
            .detach();
    }
    started.wait().await;
    let clock = start_all(starts).await;
    done.wait().await;
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(senders, messages)),
    )]);
}

/// Starts the clock and then every process, after all have parked.
pub(crate) async fn start_all(starts: Vec<Sender<()>>) -> Instant {
    Timer::after(SETTLE).await;
    let clock = Instant::now();
    for start in starts {
        start.try_send(()).expect("the process waits for its start");
    }
    clock
}

pub(crate) async fn ping_pong(rounds: u64) {
    let (started, done) = (Gate::leak(2), Gate::leak(1));
    let (ping, ping_mailbox) = unbounded();
    let (pong, pong_mailbox) = unbounded();
    let back = ping.clone();
    EXECUTOR
        .spawn(async move {
            started.count();
            while let Ok(left) = pong_mailbox.recv().await {
                if back.try_send(left).is_err() {
                    break;
                }
            }
        })
        .detach();
    EXECUTOR
        .spawn(async move {
            started.count();
            while let Ok(left) = ping_mailbox.recv().await {
                if left == 0 {
                    break;
                }
                pong.try_send(left - 1).expect("pong lives as long as ping");
            }
            done.count();
        })
        .detach();
    started.wait().await;
    Timer::after(SETTLE).await;
    let clock = Instant::now();
    ping.try_send(rounds).expect("ping waits for the start");
    done.wait().await;
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}
