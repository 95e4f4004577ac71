//! The workloads of channels, locks and the like: which function runs which.

use common::{Kind, Thing, Waiting, print_footprint};
use tokio::sync::{Mutex, mpsc};

use crate::channel::no_rendezvous;
use crate::{barrier, channel, lock, select};

pub(crate) async fn run(waiting: Waiting) {
    match waiting {
        Waiting::Channel {
            senders,
            messages,
            kind,
        } => channel::run(senders, messages, kind).await,
        Waiting::Select {
            branches,
            messages,
            kind,
        } => select::run(branches, messages, kind).await,
        Waiting::Lock {
            units,
            rounds,
            inside,
        } => lock::run(units, rounds, inside).await,
        Waiting::Condvar { rounds } => lock::condvar(rounds).await,
        Waiting::Barrier { units, rounds } => barrier::run(units, rounds).await,
        Waiting::Footprint { n, what } => footprint(n, what),
    }
}

fn footprint(n: usize, what: Thing) -> ! {
    match what {
        Thing::Mutex => print_footprint(n, || Mutex::new(())),
        Thing::Channel(Kind::Bounded(capacity)) => {
            print_footprint(n, || mpsc::channel::<u64>(capacity))
        }
        Thing::Channel(Kind::Unbounded) => print_footprint(n, mpsc::unbounded_channel::<u64>),
        Thing::Channel(Kind::Rendezvous) => no_rendezvous(),
    }
}
