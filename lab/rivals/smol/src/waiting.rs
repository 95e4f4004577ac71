//! The workloads of channels, locks and the like: which function runs which, and with which
//! library's channels.

use common::{Thing, Waiting, bad_usage, print_footprint};
use smol::lock::Mutex;

use crate::ends::{of_async_channel, of_flume};
use crate::{barrier, channel, lock, select};

/// With the channels of async-channel and the locks of async-lock.
pub(crate) async fn run(waiting: Waiting) {
    match waiting {
        Waiting::Channel {
            senders,
            messages,
            kind,
        } => channel::run(of_async_channel(kind), senders, messages).await,
        Waiting::Select {
            branches,
            messages,
            kind,
        } => select::run(branches, messages, || of_async_channel(kind)).await,
        Waiting::Lock {
            units,
            rounds,
            inside,
        } => lock::run(units, rounds, inside).await,
        Waiting::Condvar { rounds } => lock::condvar(rounds).await,
        Waiting::Barrier { units, rounds } => barrier::run(units, rounds).await,
        Waiting::Footprint { n, what } => match what {
            Thing::Mutex => print_footprint(n, || Mutex::new(())),
            Thing::Channel(kind) => print_footprint(n, || of_async_channel(kind)),
        },
    }
}

/// With the channels of flume, which offers nothing else.
pub(crate) async fn run_flume(waiting: Waiting) {
    match waiting {
        Waiting::Channel {
            senders,
            messages,
            kind,
        } => channel::run(of_flume(kind), senders, messages).await,
        Waiting::Select {
            branches,
            messages,
            kind,
        } => select::run(branches, messages, || of_flume(kind)).await,
        Waiting::Footprint {
            n,
            what: Thing::Channel(kind),
        } => print_footprint(n, || of_flume(kind)),
        _ => bad_usage("flume has channels and nothing else: leave `--flume` out."),
    }
}
