//! Whether a worker that found nothing should spin for some microseconds although no other worker runs.
//!
//! Work can then come only from foreign threads and from the system. A foreign thread that sends and waits for the
//! answer is served without a sleep in between. But a server with one client would pay for a fruitless search after
//! every request. The outcome of the last searches decides.

use std::cell::Cell;

/// After this many fruitless searches in a row, the worker spins only now and then.
const MAX_FRUITLESS: u32 = 4;
/// It then spins in one search of this many, because the load may have changed.
const TRY_EVERY: u32 = 32;

/// The outcome of a worker's last searches.
#[derive(Default)]
pub(crate) struct SpinPolicy {
    fruitless: Cell<u32>,
}

impl SpinPolicy {
    pub(crate) fn is_worth_a_try(&self) -> bool {
        let fruitless = self.fruitless.get();
        fruitless < MAX_FRUITLESS || fruitless.is_multiple_of(TRY_EVERY)
    }

    /// Work came while the worker searched.
    pub(crate) fn found_work(&self) {
        self.fruitless.set(0);
    }

    pub(crate) fn found_nothing(&self) {
        self.fruitless.set(self.fruitless.get().wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_spins_while_searches_succeed_and_tries_again_now_and_then() {
        let spin_policy = SpinPolicy::default();
        for _ in 0..100 {
            assert!(spin_policy.is_worth_a_try());
            spin_policy.found_work();
        }
        let tries = (0..1_000).filter(|_| {
            let tried = spin_policy.is_worth_a_try();
            spin_policy.found_nothing();
            tried
        });
        assert_eq!(tries.count(), 4 + 31);
        spin_policy.found_work();
        assert!(spin_policy.is_worth_a_try());
    }
}
