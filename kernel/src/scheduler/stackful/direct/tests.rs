//! What a direct switch keeps from the fiber to which it switches.

use std::sync::Arc;

use weald_sync::Barrier;

use crate::{
    Runtime, Spawn, Wait, fork,
    scheduler::{stackful::fiber::DEFAULT_STACK, workers::context},
};

/// Enough that both fibers are pinned, and that each has waited while the other was runnable.
const ROUNDS: usize = 20;

#[test]
fn the_fork_in_which_a_fiber_waits_is_none_of_the_next_fibers() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let meeting = Arc::new(Barrier::new(2));
    let meets = meeting.clone();
    let forks = move || {
        for _ in 0..ROUNDS {
            fork::join(|| meets.wait().wait(), || ());
        }
    };
    let looks = move || {
        let found = |_: &usize| {
            meeting.wait().wait();
            context::again().thread_fork().is_some()
        };
        (0..ROUNDS).filter(found).count()
    };
    let (forks, looks) = runtime.block_on(async {
        (
            Spawn::new().spawn_fiber(DEFAULT_STACK, forks).unwrap(),
            Spawn::new().spawn_fiber(DEFAULT_STACK, looks).unwrap(),
        )
    });
    assert_eq!(runtime.block_on(looks).unwrap(), 0);
    runtime.block_on(forks).unwrap();
}
