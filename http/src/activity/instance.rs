//! What a connection does with its instance of the service: it waits for one to clone, gets its clone, and drops it in
//! the end. The kernel and reports tell these from requests.

use std::sync::atomic::Ordering;

use super::Activity;
use crate::flags::{AT_WORK, IN_FLIGHT};

/// The kind of work of a connection that gets its clone of the service.
const OPENING: u64 = 1;
/// The kind of work of a connection that ends: it drops its clone of the service.
const ENDING: u64 = 2;
/// The kind of work of a connection that waits for an instance of the service: none, so that it is never suspect.
const WAITING: u64 = 3;

impl Activity {
    /// The connection waits for an instance of the service, and can make room for another one.
    pub(crate) fn begin_waiting(&self) {
        self.kind.set(WAITING);
    }

    /// The connection gets its clone of the service, and cannot make room for another one.
    pub(crate) fn begin_opening(&self) {
        self.kind.set(OPENING);
        self.change(0, IN_FLIGHT);
    }

    /// The connection has its clone, and is idle; or it gets none.
    pub(crate) fn end_opening(&self) {
        // That of the clone is none of the first request's route.
        let _of_clone = self.kind.take_offence();
        self.change(IN_FLIGHT, 0);
        self.kind.set(0);
    }

    /// The connection ends, and drops its clone of the service, after what it had of a request. If the destructor
    /// blocks, this connection cannot make room for another one, and it is no request that blocks, even if an answer is
    /// not yet sent.
    pub(crate) fn begin_ending(&self) {
        if !self.has(AT_WORK) {
            self.request.clear();
        }
        self.kind.set_family(0);
        self.kind.set_known(false);
        self.kind.set(ENDING);
        self.change(0, IN_FLIGHT);
    }

    /// The connection has dropped its clone of the service. What is left to do is to send the last answer.
    pub(crate) fn end_ending(&self) {
        self.change(IN_FLIGHT, 0);
        self.kind.set(0);
    }

    /// The connection has given up its permit, and has at most its clone of the service left.
    pub(crate) fn leave(&self) {
        self.has_left.store(true, Ordering::Relaxed);
    }

    /// Whether the connection has given up its permit, so that it keeps no new one waiting.
    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Ordering::Relaxed)
    }

    /// Whether the connection waits for an instance of the service.
    pub(crate) fn is_waiting(&self) -> bool {
        self.kind.get() == WAITING
    }

    /// Whether the connection gets its clone of the service.
    pub(crate) fn is_opening(&self) -> bool {
        self.kind.get() == OPENING
    }

    /// Whether the connection drops its clone of the service.
    pub(crate) fn is_ending(&self) -> bool {
        self.kind.get() == ENDING
    }
}
