//! `lifecycle`: what do a link, a monitor and the exit of a process cost together?
//!
//! One process, which traps exits, links and monitors n parked processes, tells each to end, and receives a notice of
//! each link and of each monitor. Spawning them is not part of the time.

use std::time::Instant;

use weald::process::{self, Down, Exit, Inbox, Pid};

use super::definition::Workload;
use super::host::{alone, crashed, not_spawned};
use super::memory::{growth_per, resident};
use super::spawn::{Die, GIVE_WAY_EVERY, spawn_one, touched};
use super::tally::Tally;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "lifecycle",
    question: "What does it cost to link and monitor a process and to learn of its end?",
    keys: &["n"],
    optional: &[],
    metrics: &["ns", "bytes_per_link"],
    explaining: &[],
    remark: "ns is per process: a link, a monitor, the message that ends it, and the two notices of its end. \
             One process watches all. Spawning is not included.",
    run,
};

/// What the watching process is told of the others' ends.
enum Notice {
    Exit(Exit),
    Down(Down),
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    alone(params, n + 1, move |inbox| measure(inbox, n))
}

async fn measure(mut inbox: Inbox<()>, n: usize) -> Result<Vec<Metric>, Error> {
    let mut pids = touched(n);
    let started = Tally::leaked(n, inbox.pid());
    let ended = Tally::leaked(n, inbox.pid());
    for (index, slot) in pids.iter_mut().enumerate() {
        *slot = Some(spawn_one(started, ended)?);
        give_way(index).await;
    }
    inbox.receive().await;
    let pids: Vec<_> = pids.into_iter().flatten().collect();
    let watching = process::spawn(move |inbox| watch(inbox, pids));
    let watching = watching.map_err(|error| not_spawned(&error))?;
    watching.await.map_err(|reason| crashed(&reason))?
}

async fn watch(mut inbox: Inbox<Notice>, pids: Vec<Pid<Die>>) -> Result<Vec<Metric>, Error> {
    inbox.trap_exits(Notice::Exit);
    let before = resident()?;
    let clock = Instant::now();
    for (index, pid) in pids.iter().enumerate() {
        process::link(pid);
        inbox.monitor(pid, Notice::Down);
        give_way(index).await;
    }
    let watching = clock.elapsed();
    let bytes = growth_per(before, resident()?, pids.len());

    let clock = Instant::now();
    for (index, pid) in pids.iter().enumerate() {
        pid.send(Die);
        give_way(index).await;
    }
    let (mut exits, mut downs) = (0, 0);
    while exits < pids.len() || downs < pids.len() {
        let reason = match inbox.receive().await {
            Notice::Exit(exit) => {
                exits += 1;
                exit.reason
            }
            Notice::Down(down) => {
                downs += 1;
                down.reason
            }
        };
        if reason != process::ExitReason::Normal {
            return Err(crashed(&reason));
        }
    }
    let elapsed = watching + clock.elapsed();
    Ok(vec![
        Metric::new("ns", elapsed.as_nanos() as f64 / pids.len() as f64),
        Metric::new("bytes_per_link", bytes),
    ])
}

/// A loop that runs longer than the monitor's limit must yield now and then.
async fn give_way(index: usize) {
    if index % GIVE_WAY_EVERY == GIVE_WAY_EVERY - 1 {
        weald::yield_now().await;
    }
}
