//! `broadcast`: what does a message to all members of a group cost, for each of them?
//!
//! The clock runs from the first broadcast until every member has received all of them. The sender yields after each.

use std::time::Instant;

use weald::process::{self, Broadcast, Group, Inbox, Slow};

use super::definition::Workload;
use super::host::{alone, not_spawned};
use super::tally::Tally;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "broadcast",
    question: "What does a message to all members of a group cost, for each of them?",
    keys: &["members", "rounds"],
    optional: &[],
    metrics: &["ns_per_message"],
    explaining: &[],
    remark: "The members are parked when the clock starts. A message holds a small integer; members share it.",
    run,
};

static GROUP: Group<u64> = Group::new("members");

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (members, rounds) = (params.count("members")?, params.count("rounds")?);
    alone(params, members, move |inbox| {
        measure(inbox, members, rounds)
    })
}

async fn measure(
    mut inbox: Inbox<()>,
    members: usize,
    rounds: usize,
) -> Result<Vec<Metric>, Error> {
    let joined = Tally::leaked(members, inbox.pid());
    let done = Tally::leaked(members, inbox.pid());
    for _ in 0..members {
        let member = process::spawn(move |inbox| receive(inbox, rounds, joined, done));
        drop(member.map_err(|error| not_spawned(&error))?.into_pid());
    }
    inbox.receive().await;
    let refused = |error| Error::workload(format!("A broadcast failed: {error}."));
    let clock = Instant::now();
    for round in 0..rounds as u64 {
        let sent = GROUP.broadcast(round).map_err(refused)?.sent;
        if sent != members {
            let sentence = format!("A broadcast reached {sent} of {members} members.");
            return Err(Error::workload(sentence));
        }
        weald::yield_now().await;
    }
    inbox.receive().await;
    let elapsed = clock.elapsed();
    let ns = elapsed.as_nanos() as f64 / (members * rounds) as f64;
    Ok(vec![Metric::new("ns_per_message", ns)])
}

/// A member, which checks that it misses nothing. It stays until all are done, so that every broadcast is to all.
async fn receive(
    mut inbox: Inbox<Broadcast<u64>>,
    rounds: usize,
    joined: &'static Tally,
    done: &'static Tally,
) {
    let join = GROUP.join(&inbox.pid(), Slow::Queue, |broadcast| broadcast);
    join.expect("it is in no group of this name");
    joined.count();
    for round in 0..rounds as u64 {
        assert_eq!(*inbox.receive().await, round, "a broadcast is missing");
    }
    done.count();
    // Until the runtime is shut down.
    inbox.receive().await;
}
