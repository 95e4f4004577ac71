//! `lock` and `condvar`: units that exclude each other, and two that take turns.

use std::sync::Arc;

use common::{Inside, fail, per, print_metrics, total_messages};
use event_listener::Event;
use smol::lock::Mutex;

use crate::team::Team;

pub(crate) async fn run(units: usize, rounds: usize, inside: Inside) {
    let count = Arc::new(Mutex::new(0_u64));
    let mut team = Team::of(units);
    for _ in 0..units {
        let count = Arc::clone(&count);
        match inside {
            Inside::Nothing => team.add(async move {
                for _ in 0..rounds {
                    *count.lock().await += 1;
                }
            }),
            Inside::Yield => team.add(async move {
                for _ in 0..rounds {
                    let mut count = count.lock().await;
                    smol::future::yield_now().await;
                    *count += 1;
                }
            }),
        }
    }
    let elapsed = team.run().await;
    if *count.lock().await != (units * rounds) as u64 {
        fail("The lock let two in at once: the count is wrong.");
    }
    print_metrics(&[("ns", per(elapsed, total_messages(units, rounds)))]);
}

/// Whose turn it is, and the event that signals a change.
struct Turn {
    of: Mutex<usize>,
    changed: Event,
}

/// async-lock has no condition variable; its counterpart here is an `Event`, listened to before the lock
/// is released.
pub(crate) async fn condvar(rounds: usize) {
    let turn = Arc::new(Turn {
        of: Mutex::new(0),
        changed: Event::new(),
    });
    let mut team = Team::of(2);
    for me in 0..2 {
        team.add(take_turns(Arc::clone(&turn), me, rounds));
    }
    let elapsed = team.run().await;
    print_metrics(&[("ns", per(elapsed, rounds as f64))]);
}

async fn take_turns(turn: Arc<Turn>, me: usize, rounds: usize) {
    let mut of = turn.of.lock().await;
    for _ in 0..rounds {
        while *of != me {
            let changed = turn.changed.listen();
            drop(of);
            changed.await;
            of = turn.of.lock().await;
        }
        *of = 1 - me;
        turn.changed.notify(1);
    }
}
