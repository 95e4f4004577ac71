//! `lock`: processes lock one mutex, count, and unlock it, again and again.
//!
//! inside=nothing: no process waits while holding the lock, so others find it held only where another
//! worker runs its owner. inside=yield: every owner yields once, so that others find it held.

use std::sync::Arc;

use weald::process::Inbox;
use weald::sync::Mutex;

use super::host::alone;
use super::team::{Team, ns_per};
use super::work::Work;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// What a process does while it holds the lock, besides counting.
#[derive(Clone, Copy)]
pub(crate) enum Inside {
    Nothing,
    Yield,
}

impl Inside {
    /// What the key `inside` says.
    pub(crate) fn read(params: &Params) -> Result<Self, Error> {
        match params.text("inside")? {
            "nothing" => Ok(Self::Nothing),
            "yield" => Ok(Self::Yield),
            other => {
                let sentence = format!("inside={other} is neither nothing nor yield.");
                Err(Error::Usage(sentence))
            }
        }
    }
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (units, rounds) = (params.count("units")?, params.count("rounds")?);
    let (inside, work) = (Inside::read(params)?, Work::read(params)?);
    alone(params, units, move |inbox| {
        measure(inbox, (units, rounds), (inside, work))
    })
}

async fn measure(
    inbox: Inbox<()>,
    (units, rounds): (usize, usize),
    (inside, work): (Inside, Work),
) -> Result<Vec<Metric>, Error> {
    let count = Arc::new(Mutex::new(0_usize));
    let mut team = Team::of(units, inbox);
    for _ in 0..units {
        let count = Arc::clone(&count);
        match inside {
            Inside::Nothing => team.add(async move {
                for _ in 0..rounds {
                    work.run();
                    *count.lock().await += 1;
                }
            })?,
            Inside::Yield => team.add(async move {
                for _ in 0..rounds {
                    work.run();
                    let mut count = count.lock().await;
                    weald::yield_now().await;
                    *count += 1;
                }
            })?,
        }
    }
    let elapsed = team.run().await;
    let counted = *count.lock().await;
    if counted != units * rounds {
        return Err(Error::workload(format!(
            "The lock let two in at once: {counted} counts instead of {}.",
            units * rounds
        )));
    }
    Ok(vec![Metric::new("ns", ns_per(elapsed, units * rounds))])
}
