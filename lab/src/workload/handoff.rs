//! `handoff`: how long does a woken process wait while the one that woke it continues to compute?
//!
//! Each round wakes a parked process and then computes for 50 ms without waiting, while another worker is
//! idle. The woken process reports how long after the wake it started.

use std::time::{Duration, Instant};

use weald::process::{self, Inbox, Pid};

use super::host::{alone, not_spawned};
use super::offender::compute;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::quantile::milliseconds;

/// How long the waking process computes.
const COMPUTING: Duration = Duration::from_millis(50);

/// A message to the woken process.
enum Wake {
    /// The process to report the lateness to.
    Owner(Pid<Duration>),
    /// The instant of the wake.
    At(Instant),
    /// No more will come.
    Stop,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let rounds = params.count("rounds")?;
    if super::definition::workers(params)? < 2 {
        return Err(Error::Usage(
            "handoff needs a second worker; give workers=2.".into(),
        ));
    }
    alone(params, 1, move |inbox| measure(inbox, rounds))
}

async fn measure(mut inbox: Inbox<Duration>, rounds: usize) -> Result<Vec<Metric>, Error> {
    let woken = process::spawn(tell_lateness)
        .map_err(|error| not_spawned(&error))?
        .into_pid();
    woken.send(Wake::Owner(inbox.pid()));
    // It answers once before the first round, so that it is parked when the round begins.
    inbox.receive().await;
    let mut lateness = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        woken.send(Wake::At(Instant::now()));
        compute(COMPUTING);
        lateness.push(inbox.receive().await);
    }
    woken.send(Wake::Stop);

    lateness.sort_unstable();
    Ok(vec![
        Metric::new("lateness_worst_ms", milliseconds(&lateness, 1.0)),
        Metric::new("lateness_p50_ms", milliseconds(&lateness, 0.5)),
    ])
}

async fn tell_lateness(mut inbox: Inbox<Wake>) {
    let Wake::Owner(owner) = inbox.receive().await else {
        unreachable!("the owner is named first")
    };
    owner.send(Duration::ZERO);
    while let Wake::At(woken) = inbox.receive().await {
        owner.send(woken.elapsed());
    }
}
