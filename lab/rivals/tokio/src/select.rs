//! `select`: one unit receives from whichever of two or eight channels has a message.
//!
//! It uses `tokio::select!` over the futures of the receivers, which are created anew for each message.

use std::hint::black_box;

use common::{Kind, per, print_metrics, total_messages};
use tokio::sync::mpsc;

use crate::channel::{Put, Take, no_rendezvous};
use crate::team::Team;

pub(crate) async fn run(branches: usize, messages: usize, kind: Kind) {
    match kind {
        Kind::Bounded(capacity) => measure(branches, messages, || mpsc::channel(capacity)).await,
        Kind::Unbounded => measure(branches, messages, mpsc::unbounded_channel).await,
        Kind::Rendezvous => no_rendezvous(),
    }
}

async fn measure<P: Put, T: Take>(branches: usize, messages: usize, make: impl Fn() -> (P, T)) {
    let (senders, receivers): (Vec<P>, Vec<T>) = (0..branches).map(|_| make()).unzip();
    let mut team = Team::of(branches + 1);
    let total = branches * messages;
    if branches == 2 {
        team.add(from_two(receivers, total));
    } else {
        team.add(from_eight(receivers, total));
    }
    for sender in &senders {
        let sender = sender.clone();
        team.add(async move {
            for value in 0..messages as u64 {
                sender.put(value).await;
            }
        });
    }
    let elapsed = team.run().await;
    drop(senders);
    print_metrics(&[(
        "ns_per_message",
        per(elapsed, total_messages(branches, messages)),
    )]);
}

async fn from_two<T: Take>(receivers: Vec<T>, total: usize) {
    let Ok([mut a, mut b]) = <[T; 2]>::try_from(receivers) else {
        unreachable!("there are two channels")
    };
    for _ in 0..total {
        let value = tokio::select! {
            value = a.take() => value,
            value = b.take() => value,
        };
        black_box(value);
    }
}

async fn from_eight<T: Take>(receivers: Vec<T>, total: usize) {
    let Ok([mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h]) =
        <[T; 8]>::try_from(receivers)
    else {
        unreachable!("there are eight channels")
    };
    for _ in 0..total {
        let value = tokio::select! {
            value = a.take() => value,
            value = b.take() => value,
            value = c.take() => value,
            value = d.take() => value,
            value = e.take() => value,
            value = f.take() => value,
            value = g.take() => value,
            value = h.take() => value,
        };
        black_box(value);
    }
}
