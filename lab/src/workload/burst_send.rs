//! `burst-send`: one process sends small integers for long, without a wait, to each of its receivers in turn.
//!
//! The clock runs from the start message until every receiver has its share. `cores` binds the whole program to this
//! many of the processors that it may use; with one core sender and receivers compete for it.

use std::time::Instant;

use rustix::process::Pid as System;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use weald::process::{self, Inbox, Pid};

use super::host::{Size, alone_with_polls, not_spawned};
use super::tally::Tally;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// The number of messages if it is not given.
const MESSAGES: usize = 3_000_000;

/// The message that starts the sender.
struct StartSending;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let receivers = params.count("receivers")?;
    let messages = match params.get("messages") {
        Some(_) => params.count("messages")?,
        None => MESSAGES,
    };
    // Before the runtime starts its threads, which inherit the binding.
    bind(params.count("cores")?)?;
    let each = messages.div_ceil(receivers);
    let size = Size {
        processes: receivers + 1,
        messages: each * receivers,
    };
    alone_with_polls(params, size, move |inbox| measure(inbox, receivers, each))
}

/// Binds this thread, and all that it will start, to the first `cores` processors that it may use.
fn bind(cores: usize) -> Result<(), Error> {
    let own = None::<System>;
    let refused = |error| Error::workload(format!("Cannot choose the processors: {error}."));
    let usable = sched_getaffinity(own).map_err(refused)?;
    let mut chosen = CpuSet::new();
    let numbers = (0..CpuSet::MAX_CPU).filter(|number| usable.is_set(*number));
    numbers.take(cores).for_each(|number| chosen.set(number));
    sched_setaffinity(own, &chosen).map_err(refused)
}

async fn measure(
    mut inbox: Inbox<()>,
    receivers: usize,
    each: usize,
) -> Result<Vec<Metric>, Error> {
    let ready = Tally::leaked(receivers + 1, inbox.pid());
    let done = Tally::leaked(receivers, inbox.pid());
    let pids: Vec<Pid<u32>> = (0..receivers)
        .map(|_| spawn_receiver(each, ready, done))
        .collect::<Result<_, _>>()?;
    let sender = spawn_sender(pids, each, ready)?;
    inbox.receive().await;

    let clock = Instant::now();
    sender.send(StartSending);
    inbox.receive().await;
    Ok(vec![Metric::new(
        "ns_per_message",
        clock.elapsed().as_nanos() as f64 / (receivers * each) as f64,
    )])
}

fn spawn_receiver(
    share: usize,
    ready: &'static Tally,
    done: &'static Tally,
) -> Result<Pid<u32>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<u32>| async move {
        ready.count();
        for _ in 0..share {
            std::hint::black_box(inbox.receive().await);
        }
        done.count();
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}

fn spawn_sender(
    receivers: Vec<Pid<u32>>,
    each: usize,
    ready: &'static Tally,
) -> Result<Pid<StartSending>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<StartSending>| async move {
        ready.count();
        let StartSending = inbox.receive().await;
        for value in (0..u32::MAX).cycle().take(each) {
            for receiver in &receivers {
                receiver.send(value);
            }
        }
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}
