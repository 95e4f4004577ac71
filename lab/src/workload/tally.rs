//! A shared counter that notifies the measuring process when it has reached its goal.
//!
//! The last process to count sends the message, so nothing is polled and nothing is counted twice.

use std::sync::atomic::{AtomicUsize, Ordering};

use weald::process::Pid;

/// A counter with a goal.
pub(super) struct Tally {
    count: AtomicUsize,
    goal: usize,
    main: Pid<()>,
}

impl Tally {
    /// A counter at zero; `main` gets one message when it has reached `goal`.
    ///
    /// It lives for ever: the programs that use it end soon after, and a plain reference costs a process
    /// eight bytes and no reference counting.
    pub(super) fn leaked(goal: usize, main: Pid<()>) -> &'static Self {
        assert!(goal > 0, "a goal of zero would never be reported");
        Box::leak(Box::new(Self {
            count: AtomicUsize::new(0),
            goal,
            main,
        }))
    }

    /// Counts one.
    pub(super) fn count(&self) {
        // The notified process must see what the others did before they counted: each release here pairs with
        // the acquire of the last count.
        if self.count.fetch_add(1, Ordering::AcqRel) + 1 == self.goal {
            self.main.send(());
        }
    }
}

/// Counts when it is dropped, which is the last thing that a process does.
pub(super) struct CountsAtDrop(pub(super) &'static Tally);

impl Drop for CountsAtDrop {
    fn drop(&mut self) {
        self.0.count();
    }
}
