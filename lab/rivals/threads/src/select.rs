//! `select`: one thread receives from whichever of two or eight channels has a message.
//!
//! It uses crossbeam's `select!` and flume's `Selector`, which is built anew for each message.

use std::hint::black_box;

use common::{Kind, per, print_metrics, total_messages};
use flume::{RecvError, Selector};

use crate::ends::{Put, of_crossbeam, of_flume};
use crate::team::Team;

const KEPT: &str = "a sender is kept until the end";

pub(crate) fn crossbeam(branches: usize, messages: usize, kind: Kind) -> ! {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..branches).map(|_| of_crossbeam(kind)).unzip();
    let total = branches * messages;
    measure(senders, messages, move || {
        if let [a, b] = &receivers[..] {
            from_two(a, b, total);
        } else {
            from_eight(&receivers, total);
        }
    })
}

/// Starts a sender for each channel, and one thread that selects from all.
fn measure<P: Put>(
    senders: Vec<P>,
    messages: usize,
    selecting: impl FnOnce() + Send + 'static,
) -> ! {
    let mut team = Team::of(senders.len() + 1);
    team.add(selecting);
    for sender in &senders {
        let sender = sender.clone();
        team.add(move || {
            for value in 0..messages as u64 {
                sender.put(value);
            }
        });
    }
    let elapsed = team.run();
    let total = total_messages(senders.len(), messages);
    print_metrics(&[("ns_per_message", per(elapsed, total))])
}

type Receiver = crossbeam_channel::Receiver<u64>;

fn from_two(a: &Receiver, b: &Receiver, total: usize) {
    for _ in 0..total {
        let value = crossbeam_channel::select! {
            recv(a) -> value => value,
            recv(b) -> value => value,
        };
        black_box(value.expect(KEPT));
    }
}

fn from_eight(receivers: &[Receiver], total: usize) {
    let [a, b, c, d, e, f, g, h] = receivers else {
        unreachable!("there are eight channels")
    };
    for _ in 0..total {
        let value = crossbeam_channel::select! {
            recv(a) -> value => value,
            recv(b) -> value => value,
            recv(c) -> value => value,
            recv(d) -> value => value,
            recv(e) -> value => value,
            recv(f) -> value => value,
            recv(g) -> value => value,
            recv(h) -> value => value,
        };
        black_box(value.expect(KEPT));
    }
}

pub(crate) fn flume(branches: usize, messages: usize, kind: Kind) -> ! {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..branches).map(|_| of_flume(kind)).unzip();
    let total = branches * messages;
    measure(senders, messages, move || {
        for _ in 0..total {
            let all = Selector::new();
            let value: Result<u64, RecvError> = receivers
                .iter()
                .fold(all, |all, receiver| all.recv(receiver, |value| value))
                .wait();
            black_box(value.expect(KEPT));
        }
    })
}
