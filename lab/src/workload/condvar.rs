//! `condvar`: two processes take turns, with one mutex and one condition variable.

use std::sync::Arc;

use weald::process::Inbox;
use weald::sync::{Condvar, Mutex};

use super::host::alone;
use super::team::{Team, ns_per};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

/// Whose turn it is, and the condition that signals a change.
struct Turns {
    of: Mutex<usize>,
    changed: Condvar,
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let rounds = params.count("rounds")?;
    alone(params, 2, move |inbox| measure(inbox, rounds))
}

async fn measure(inbox: Inbox<()>, rounds: usize) -> Result<Vec<Metric>, Error> {
    let turn = Arc::new(Turns {
        of: Mutex::new(0),
        changed: Condvar::new(),
    });
    let mut team = Team::of(2, inbox);
    for me in 0..2 {
        team.add(take_turns(Arc::clone(&turn), me, rounds))?;
    }
    let elapsed = team.run().await;
    Ok(vec![Metric::new("ns", ns_per(elapsed, rounds))])
}

async fn take_turns(turn: Arc<Turns>, me: usize, rounds: usize) {
    let mut of = turn.of.lock().await;
    for _ in 0..rounds {
        while *of != me {
            of = turn.changed.wait(of).await;
        }
        *of = 1 - me;
        turn.changed.notify_one();
    }
}
