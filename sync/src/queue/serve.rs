//! Serving: after each change of a tool's state, its rule is applied until it can serve no other waiter.
//!
//! A tool's rule ends the wait of the first waiter that can be served, and returns its waker. It runs under
//! the tool's lock. The wakers are woken after the lock was released, in batches, so any number of waits
//! ends without an allocation, unless they are those of other executors.

use std::task::Waker;

use crate::queue::{
    spin_lock::SpinGuard,
    wake::{wake, wake_own},
};

/// What a rule did: it ended a wait, whose waker it returns; or there was no waiter to serve.
pub(crate) type Served = Option<Option<Waker>>;

/// How many are woken after one hold of the lock.
const BATCH: usize = 32;

/// Applies `rule` until it serves no waiter, then releases the lock and wakes. Between two batches the lock
/// is free, so a rule must not depend on which waiters come meanwhile.
#[inline]
pub(crate) fn serve<S>(mut state: SpinGuard<'_, S>, mut rule: impl FnMut(&mut S) -> Served) {
    let Some(first) = rule(&mut state) else {
        return;
    };
    // One waiter is the common case, and needs no batch.
    match rule(&mut state) {
        None => {
            drop(state);
            first.into_iter().for_each(wake);
        }
        Some(second) => serve_all([first, second], state, rule),
    }
}

#[cold]
fn serve_all<S>(
    served: [Option<Waker>; 2],
    mut state: SpinGuard<'_, S>,
    mut rule: impl FnMut(&mut S) -> Served,
) {
    let tool = state.lock();
    let mut batch = [const { None }; BATCH];
    let mut foreign = Vec::new();
    let mut count = served.len();
    for (place, waker) in batch.iter_mut().zip(served) {
        *place = waker;
    }
    loop {
        while count < BATCH
            && let Some(waker) = rule(&mut state)
        {
            batch[count] = waker;
            count += 1;
        }
        drop(state);
        wake_own(batch.iter_mut().filter_map(Option::take), &mut foreign);
        if count < BATCH {
            return foreign.into_iter().for_each(wake);
        }
        count = 0;
        state = tool.lock();
    }
}
