//! Whether a worker that found nothing should try something that is often in vain: to look at the reactor once more
//! before it sleeps there, or to spin for some microseconds although no other worker runs.
//!
//! While nothing else runs, work can come only from foreign threads and from the system. A foreign thread that sends
//! and waits for the answer is served without a sleep in between; a loaded server has its next events already. But a
//! server with one client would pay for both after every request. The outcome of the last tries decides.

use std::cell::Cell;

/// After this many fruitless tries in a row, the worker tries only now and then.
const MAX_FRUITLESS: u32 = 4;
/// It then tries once in this many times, because the load may have changed; if that is in vain too, ever more rarely,
const TRY_EVERY: u32 = 32;
/// down to once in this many times.
const TRY_EVERY_MAX: u32 = 1024;

/// The outcome of a worker's last tries of one kind.
#[derive(Default)]
pub(crate) struct TryPolicy {
    fruitless: Cell<u32>,
}

impl TryPolicy {
    pub(crate) fn is_worth_a_try(&self) -> bool {
        let fruitless = self.fruitless.get();
        let every = (fruitless / 2 + 1).next_power_of_two();
        fruitless < MAX_FRUITLESS || fruitless.is_multiple_of(every.clamp(TRY_EVERY, TRY_EVERY_MAX))
    }

    /// There was work at once.
    pub(crate) fn found_work(&self) {
        self.fruitless.set(0);
    }

    /// A try was in vain, or was left out.
    pub(crate) fn found_nothing(&self) {
        self.fruitless.set(self.fruitless.get().wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_tries_while_that_succeeds_and_ever_more_rarely_while_it_fails() {
        let policy = TryPolicy::default();
        for _ in 0..100 {
            assert!(policy.is_worth_a_try());
            policy.found_work();
        }
        let tries = (0..5_000).filter(|_| {
            let tried = policy.is_worth_a_try();
            policy.found_nothing();
            tried
        });
        let expected = [0, 1, 2, 3, 32, 64, 128, 256, 512, 1024, 2048, 3072, 4096];
        assert_eq!(tries.collect::<Vec<_>>(), expected);
        policy.found_work();
        assert!(policy.is_worth_a_try());
    }
}
