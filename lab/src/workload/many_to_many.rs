//! `many-to-many`: every process sends small integers to pseudo-random others, then receives its
//! own share.
//!
//! The number that each receives is computed beforehand by running every process's generator. The clock
//! runs from the first start message until the last process has its share.

use std::sync::Arc;
use std::time::Instant;

use weald::process::{self, Inbox, Pid};

use super::host::{Size, alone_with_polls, not_spawned};
use super::tally::Tally;
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::xorshift::{Xorshift, shares};

/// A message to a process.
enum Mail {
    /// Start sending, to these processes.
    Start(Arc<Vec<Pid<Mail>>>),
    /// One of the counted messages.
    Value(u32),
}

/// What one process is given before it starts.
#[derive(Clone, Copy)]
struct Share {
    index: usize,
    messages: usize,
    expected: usize,
    work: Work,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (processes, messages) = (params.count("processes")?, params.count("messages")?);
    let size = Size {
        processes,
        messages: processes * messages,
    };
    let work = Work::read(params)?;
    alone_with_polls(params, size, move |inbox| {
        measure(inbox, processes, (messages, work))
    })
}

async fn measure(
    mut inbox: Inbox<()>,
    processes: usize,
    (messages, work): (usize, Work),
) -> Result<Vec<Metric>, Error> {
    let ready = Tally::leaked(processes, inbox.pid());
    let done = Tally::leaked(processes, inbox.pid());
    let mut pids = Vec::with_capacity(processes);
    for (index, expected) in shares(processes, messages).into_iter().enumerate() {
        pids.push(spawn_one(
            Share {
                index,
                messages,
                expected,
                work,
            },
            ready,
            done,
        )?);
    }
    inbox.receive().await;

    let pids = Arc::new(pids);
    let clock = Instant::now();
    for pid in pids.iter() {
        pid.send(Mail::Start(Arc::clone(&pids)));
    }
    inbox.receive().await;
    let total = (processes * messages) as f64;
    Ok(vec![Metric::new(
        "ns_per_message",
        clock.elapsed().as_nanos() as f64 / total,
    )])
}

fn spawn_one(
    share: Share,
    ready: &'static Tally,
    done: &'static Tally,
) -> Result<Pid<Mail>, Error> {
    let process = process::spawn(move |mut inbox: Inbox<Mail>| async move {
        ready.count();
        let mut missing = share.expected;
        let mut started = false;
        // Others may have started earlier, so values can come before the start message.
        while missing > 0 || !started {
            match inbox.receive().await {
                Mail::Start(pids) => {
                    send_all(share, &pids);
                    started = true;
                }
                Mail::Value(value) => {
                    std::hint::black_box(value);
                    missing -= 1;
                }
            }
        }
        done.count();
    });
    Ok(process.map_err(|error| not_spawned(&error))?.into_pid())
}

fn send_all(share: Share, pids: &[Pid<Mail>]) {
    let mut generator = Xorshift::of(share.index);
    for value in (0..u32::MAX).cycle().take(share.messages) {
        share.work.run();
        pids[generator.below(pids.len())].send(Mail::Value(value));
    }
}
