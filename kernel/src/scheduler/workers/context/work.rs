//! What the running job works at: for whose sake, and whether it is to be told if it survives a panic.

use std::time::Instant;

use crate::scheduler::workers::context::{Context, PollNotes};

impl Context {
    /// Until when the caller waits for whose sake the running job works.
    pub(crate) fn wanted_until(&self) -> Option<Instant> {
        self.wanted_until.get()
    }

    /// Sets that; returns what was set before.
    pub(crate) fn set_wanted_until(&self, deadline: Option<Instant>) -> Option<Instant> {
        self.wanted_until.replace(deadline)
    }

    /// The running job unwinds, and its attachment wants to know if it survives that.
    pub(crate) fn note_panic(&self) {
        self.note(PollNotes::PANICKED);
    }

    /// The running job has survived the panic that it noted.
    pub(crate) fn forget_panic(&self) {
        self.noted.set(self.noted.get().without_panic());
    }
}
