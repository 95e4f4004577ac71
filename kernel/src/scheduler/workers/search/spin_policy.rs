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
    in_vain: Cell<u32>,
}

impl SpinPolicy {
    pub(crate) fn is_worth_a_try(&self) -> bool {
        let in_vain = self.in_vain.get();
        in_vain < PATIENCE || in_vain.is_multiple_of(TRY_EVERY)
    }

    /// Work came while the worker searched.
    pub(crate) fn came_true(&self) {
        self.in_vain.set(0);
    }

    pub(crate) fn was_in_vain(&self) {
        self.in_vain.set(self.in_vain.get().wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_hope_while_it_comes_true_and_a_try_now_and_then() {
        let hope = SpinPolicy::default();
        for _ in 0..100 {
            assert!(hope.is_worth_a_try());
            hope.came_true();
        }
        let tries = (0..1_000).filter(|_| {
            let tried = hope.is_worth_a_try();
            hope.was_in_vain();
            tried
        });
        assert_eq!(tries.count(), 4 + 31);
        hope.came_true();
        assert!(hope.is_worth_a_try());
    }
}
