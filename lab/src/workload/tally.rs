//! A shared counter that tells the measuring process when it has reached its goal.
//!
//! The one that counts last sends the message, so nobody polls and nobody is counted twice.

use std::sync::atomic::{AtomicUsize, Ordering};

use weald::process::Pid;

/// A counter with a goal.
pub(super) struct Tally {
    count: AtomicUsize,
    goal: usize,
    main: Pid<()>,
}

impl Tally {
    /// A counter at zero; `main` is sent one message when `goal` have counted.
    ///
    /// It lives for ever, because the programs that use it end soon after and a plain reference
    /// costs a process eight bytes and no counting of references.
    pub(super) fn leaked(goal: usize, main: Pid<()>) -> &'static Self {
        assert!(goal > 0, "a goal of zero would never be told");
        Box::leak(Box::new(Self {
            count: AtomicUsize::new(0),
            goal,
            main,
        }))
    }

    /// Counts one.
    pub(super) fn count(&self) {
        // Whoever is told the end must see what the others did before they counted: each release
        // here pairs with the acquire of the last one.
        if self.count.fetch_add(1, Ordering::AcqRel) + 1 == self.goal {
            self.main.send(());
        }
    }
}

/// Counts when it is dropped, which a process does last of all.
pub(super) struct CountsAtDrop(pub(super) &'static Tally);

impl Drop for CountsAtDrop {
    fn drop(&mut self) {
        self.0.count();
    }
}
