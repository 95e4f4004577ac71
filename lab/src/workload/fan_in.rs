//! `fan-in`: many processes send small integers to one receiver.
//!
//! The clock runs from the first start message until the receiver has them all.

use std::time::Instant;

use weald::process::{self, Inbox, Pid};

use super::host::{Size, alone_with_polls, not_spawned};
use super::tally::Tally;
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// The message that starts a sender.
struct Start;

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (senders, messages) = (params.count("senders")?, params.count("messages")?);
    let size = Size {
        processes: senders + 1,
        messages: senders * messages,
    };
    let work = Work::read(params)?;
    alone_with_polls(params, size, move |inbox| {
        measure(inbox, senders, (messages, work))
    })
}

async fn measure(
    mut inbox: Inbox<()>,
    senders: usize,
    (messages, work): (usize, Work),
) -> Result<Vec<Metric>, Error> {
    let total = senders * messages;
    let ready = Tally::leaked(senders + 1, inbox.pid());
    let done = Tally::leaked(1, inbox.pid());
    let receiver = spawn_receiver(total, ready, done)?;
    let pids: Vec<Pid<Start>> = (0..senders)
        .map(|_| spawn_sender(receiver.clone(), (messages, work), ready))
        .collect::<Result<_, _>>()?;
    inbox.receive().await;

    let clock = Instant::now();
    for pid in &pids {
        pid.send(Start);
    }
    inbox.receive().await;
    Ok(vec![Metric::new(
        "ns_per_message",
        clock.elapsed().as_nanos() as f64 / total as f64,
    )])
}

fn spawn_receiver(
    total: usize,
    ready: &'static Tally,
    done: &'static Tally,
) -> Result<Pid<u32>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<u32>| async move {
        ready.count();
        for _ in 0..total {
            std::hint::black_box(inbox.receive().await);
        }
        done.count();
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}

fn spawn_sender(
    receiver: Pid<u32>,
    (messages, work): (usize, Work),
    ready: &'static Tally,
) -> Result<Pid<Start>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<Start>| async move {
        ready.count();
        let Start = inbox.receive().await;
        for value in (0..u32::MAX).cycle().take(messages) {
            work.run();
            receiver.send(value);
        }
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}
