//! `ping-pong`: two processes, wherever the runtime puts them, send one small integer to and fro.

use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Pid};

use super::host::{alone, crashed, not_spawned};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// A message to the answering process.
enum Ping {
    /// The process to answer.
    Partner(Pid<u64>),
    /// A value to send back.
    Value(u64),
    /// The end: no more values follow.
    Stop,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let rounds = params.count("rounds")? as u64;
    alone(params, 2, move |inbox: Inbox<()>| async move {
        drop(inbox);
        let elapsed = play(rounds).await?;
        let ns = elapsed.as_nanos() as f64 / rounds as f64;
        Ok(vec![Metric::new("ns_per_round_trip", ns)])
    })
}

/// How long this many round trips of two new processes take.
pub(super) async fn play(rounds: u64) -> Result<Duration, Error> {
    let answering = process::spawn(answer).map_err(|error| not_spawned(&error))?;
    let partner = answering.into_pid();
    let asking = process::spawn(move |inbox| ask(inbox, partner, rounds))
        .map_err(|error| not_spawned(&error))?;
    asking.await.map_err(|reason| crashed(&reason))?
}

/// Sends every value back until told to stop.
async fn answer(mut inbox: Inbox<Ping>) {
    let Ping::Partner(partner) = inbox.receive().await else {
        unreachable!("the partner is named first")
    };
    while let Ping::Value(value) = inbox.receive().await {
        partner.send(value);
    }
}

async fn ask(mut inbox: Inbox<u64>, partner: Pid<Ping>, rounds: u64) -> Result<Duration, Error> {
    partner.send(Ping::Partner(inbox.pid()));
    // One round that is not counted: after it both have run, and the answering process is parked.
    partner.send(Ping::Value(0));
    inbox.receive().await;
    let clock = Instant::now();
    for value in 0..rounds {
        partner.send(Ping::Value(value));
        if inbox.receive().await != value {
            return Err(Error::workload(format!(
                "The answer to {value} was a different value."
            )));
        }
    }
    let elapsed = clock.elapsed();
    partner.send(Ping::Stop);
    Ok(elapsed)
}
