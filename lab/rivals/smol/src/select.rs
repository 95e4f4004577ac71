//! `select`: one unit receives from whichever of two or eight channels has a message.
//!
//! It uses `or` of futures-lite, nested where there are more than two channels; `or` prefers the first one.

use std::hint::black_box;

use common::{per, print_metrics, total_messages};
use smol::future::or;

use crate::ends::{Put, Take};
use crate::team::Team;

pub(crate) async fn run<P: Put, T: Take>(
    branches: usize,
    messages: usize,
    make: impl Fn() -> (P, T),
) {
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
    let Ok([a, b]) = <[T; 2]>::try_from(receivers) else {
        unreachable!("there are two channels")
    };
    for _ in 0..total {
        black_box(or(a.take(), b.take()).await);
    }
}

async fn from_eight<T: Take>(receivers: Vec<T>, total: usize) {
    let Ok([a, b, c, d, e, f, g, h]) = <[T; 8]>::try_from(receivers) else {
        unreachable!("there are eight channels")
    };
    for _ in 0..total {
        let left = or(or(a.take(), b.take()), or(c.take(), d.take()));
        let right = or(or(e.take(), f.take()), or(g.take(), h.take()));
        black_box(or(left, right).await);
    }
}
