//! `barrier`: processes meet again and again, and exactly one leads each round.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weald::process::Inbox;
use weald::sync::Barrier;

use super::host::alone;
use super::team::{Team, ns_per};
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// Where the processes meet, and how often one of them has led.
struct Meeting {
    barrier: Barrier,
    led: AtomicUsize,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (units, rounds) = (params.count("units")?, params.count("rounds")?);
    let work = Work::read(params)?;
    alone(params, units, move |inbox| {
        measure(inbox, (units, rounds), work)
    })
}

async fn measure(
    inbox: Inbox<()>,
    (units, rounds): (usize, usize),
    work: Work,
) -> Result<Vec<Metric>, Error> {
    let meeting = Arc::new(Meeting {
        barrier: Barrier::new(units),
        led: AtomicUsize::new(0),
    });
    let mut team = Team::of(units, inbox);
    for _ in 0..units {
        team.add(meet(Arc::clone(&meeting), rounds, work))?;
    }
    let elapsed = team.run().await;
    // Every process has told the team of its end before this, which orders what they counted.
    let led = meeting.led.load(Ordering::Relaxed);
    if led != rounds {
        return Err(Error::workload(format!(
            "{rounds} rounds had {led} leaders."
        )));
    }
    Ok(vec![Metric::new("ns", ns_per(elapsed, rounds))])
}

async fn meet(meeting: Arc<Meeting>, rounds: usize, work: Work) {
    let mut led = 0;
    for _ in 0..rounds {
        work.run();
        led += usize::from(meeting.barrier.wait().await.is_leader());
    }
    meeting.led.fetch_add(led, Ordering::Relaxed);
}
