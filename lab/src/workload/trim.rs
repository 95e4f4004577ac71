//! `trim`: how much memory is kept after n processes have ended and the runtime has released the rest?
//!
//! The answer is a percentage of the growth while all were alive. The processes are those of `spawn`.
//! A runtime that releases more than the processes took has kept nothing, which is zero.

use weald::process::Inbox;

use super::host::{build, inside};
use super::memory::resident;
use super::spawn::{Die, spawn_one, touched};
use super::tally::Tally;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// The resident bytes before the first spawn and with all processes alive.
struct Held {
    before: u64,
    alive: u64,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    let runtime = build(params, n)?;
    let pids = touched(n);
    let held = inside(&runtime, move |inbox| live_and_die(inbox, pids))?;
    runtime.trim();
    let kept = resident()?;
    let growth = held.alive as f64 - held.before as f64;
    if growth <= 0.0 {
        return Err(Error::workload(format!(
            "n={n} is too small to make the memory grow."
        )));
    }
    let kept = kept as f64 - held.before as f64;
    Ok(vec![Metric::new(
        "growth_kept_percent",
        100.0 * (kept / growth).max(0.0),
    )])
}

async fn live_and_die(
    mut inbox: Inbox<()>,
    mut pids: Vec<Option<weald::process::Pid<Die>>>,
) -> Result<Held, Error> {
    let started = Tally::leaked(pids.len(), inbox.pid());
    let ended = Tally::leaked(pids.len(), inbox.pid());
    let before = resident()?;
    for slot in &mut pids {
        *slot = Some(spawn_one(started, ended)?);
    }
    inbox.receive().await;
    let alive = resident()?;
    for pid in pids.iter().flatten() {
        pid.send(Die);
    }
    inbox.receive().await;
    // The array must count in all three readings or in none, so it stays until the program ends.
    for slot in &mut pids {
        *slot = None;
    }
    std::mem::forget(pids);
    Ok(Held { before, alive })
}
