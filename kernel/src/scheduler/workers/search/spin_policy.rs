//! Whether a worker that found nothing should go on searching for some microseconds, though no other worker runs.
//!
//! Then work can only come from threads outside and from the system. One that sends and waits for the answer is
//! served without a sleep between; a server with one client would pay for a search after each of its requests in
//! vain. Which it is the last searches tell.

use std::cell::Cell;

/// After so many searches in vain there is no hope,
const PATIENCE: u32 = 4;
/// but for one search in so many, because times change.
const TRY_EVERY: u32 = 32;

/// What the last searches of a worker told.
#[derive(Default)]
pub(crate) struct SpinPolicy {
    fruitless: Cell<u32>,
}

impl SpinPolicy {
    pub(crate) fn is_worth_a_try(&self) -> bool {
        let fruitless = self.fruitless.get();
        fruitless < PATIENCE || fruitless.is_multiple_of(TRY_EVERY)
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
    fn there_is_hope_while_it_comes_true_and_a_try_now_and_then() {
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
