//! `many-to-many`, `fan-in` and `ping-pong`: processes that are parked before the clock starts
//! exchange small integers.

use std::time::{Duration, Instant};

use common::{Xorshift, expected_counts, per, print_metrics, total_messages};
use may::coroutine::sleep;
use may::go;
use may::sync::mpsc::{Receiver, Sender, channel};

use crate::gate::Gate;

/// Long enough for a process that has counted itself started to reach its receive.
const SETTLE: Duration = Duration::from_millis(50);

/// The addresses of all processes; they live until the program ends.
type Everyone = &'static [Sender<u64>];

pub(crate) fn many_to_many(processes: usize, messages: usize) {
    let (started, done) = (Gate::leak(processes), Gate::leak(processes));
    let (senders, mailboxes): (Vec<_>, Vec<_>) = (0..processes).map(|_| channel()).unzip();
    let everyone: Everyone = senders.leak();
    let mut starts = Vec::with_capacity(processes);
    let expected = expected_counts(processes, messages);
    for (index, (mailbox, expected)) in mailboxes.into_iter().zip(expected).enumerate() {
        let (start, go) = channel();
        starts.push(start);
        go!(move || {
            started.count();
            go.recv().expect("the main process sends the start");
            send_to_others(index, messages, everyone);
            receive(&mailbox, expected);
            done.count();
        });
    }
    started.wait();
    let clock = start_all(starts);
    done.wait();
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

fn receive(mailbox: &Receiver<u64>, expected: usize) {
    for _ in 0..expected {
        mailbox
            .recv()
            .expect("every sender lives until the program ends");
    }
}

pub(crate) fn fan_in(senders: usize, messages: usize) {
    let (started, done) = (Gate::leak(senders + 1), Gate::leak(1));
    let (sender, mailbox) = channel::<u64>();
    go!(move || {
        started.count();
        for _ in 0..senders * messages {
            mailbox.recv().expect("the main process keeps a sender");
        }
        done.count();
    });
    let mut starts = Vec::with_capacity(senders);
    for _ in 0..senders {
        let (start, go) = channel();
        starts.push(start);
        let receiver = sender.clone();
        go!(move || {
            started.count();
            go.recv().expect("the main process sends the start");
            for number in 0..messages as u64 {
                receiver.send(number).expect("the receiver waits for all");
            }
        });
    }
    started.wait();
    let clock = start_all(starts);
    done.wait();
    print_metrics(&[(
        "ns_per_message",
        per(clock.elapsed(), total_messages(senders, messages)),
    )]);
}

/// Starts the clock and then every process, after all have parked.
pub(crate) fn start_all(starts: Vec<Sender<()>>) -> Instant {
    sleep(SETTLE);
    let clock = Instant::now();
    for start in starts {
        start.send(()).expect("the process waits for its start");
    }
    clock
}

pub(crate) fn ping_pong(rounds: u64) {
    let (started, done) = (Gate::leak(2), Gate::leak(1));
    let (ping, ping_mailbox) = channel();
    let (pong, pong_mailbox) = channel();
    let back = ping.clone();
    go!(move || {
        started.count();
        while let Ok(left) = pong_mailbox.recv() {
            if back.send(left).is_err() {
                break;
            }
        }
    });
    go!(move || {
        started.count();
        while let Ok(left) = ping_mailbox.recv() {
            if left == 0 {
                break;
            }
            pong.send(left - 1).expect("pong lives as long as ping");
        }
        done.count();
    });
    started.wait();
    sleep(SETTLE);
    let clock = Instant::now();
    ping.send(rounds).expect("ping waits for the start");
    done.wait();
    print_metrics(&[("ns_per_round_trip", per(clock.elapsed(), rounds as f64))]);
}
