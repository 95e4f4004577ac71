//! Which request the connection works on, and which kind of work that is, for reports and for the kernel.

use std::sync::atomic::Ordering;

use http::{Method, Uri};
use weald_kernel::WorkKind;

use super::Activity;
use crate::{
    flags::{AT_WORK, IN_FLIGHT},
    request_note::Noted,
    route::route,
};

/// The kind of work of a connection that gets its clone of the service.
const OPENING: u64 = 1;
/// The kind of work of an idle connection that ends: it drops its clone of the service.
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

    /// This request has arrived, and hyper has not parsed it yet. Only reports and the kernel hear of it.
    pub(crate) fn foresee(&self, request: (Method, Uri)) {
        self.note(&request.0, &request.1);
        self.change(0, IN_FLIGHT);
    }

    /// Notes the request that the connection works on, for reports and for the kernel.
    pub(super) fn note(&self, method: &Method, target: &Uri) {
        if self.request.write(method, target) == Noted::Anew {
            let route = route(method.as_str(), target.path());
            self.route.store(route.kind, Ordering::Relaxed);
            self.kind.set_family(route.family);
            self.recall_route();
        }
        self.kind.set(self.route.load(Ordering::Relaxed));
    }

    /// Notes for the kernel whether the route is known to be served without delay.
    pub(crate) fn recall_route(&self) {
        let is_known = (self.known_routes).contains(self.route.load(Ordering::Relaxed));
        self.kind.set_known(is_known);
    }

    /// A request has ended. No shared memory is to be touched for each, so of those of a connection the first counts,
    /// and each sixteenth after it, if it was answered; but each that held its thread for too long.
    pub(super) fn judge_route(&self) {
        const EACH: u32 = 16;
        if self.kind.take_offence() {
            self.known_routes.remove(self.route.load(Ordering::Relaxed));
        } else if self.has_answered() && self.requests.load(Ordering::Relaxed) % EACH == 1 {
            self.known_routes.add(self.route.load(Ordering::Relaxed));
        }
    }

    /// Hyper is about to parse what was foreseen.
    pub(crate) fn forget_foreseen(&self) {
        self.change(IN_FLIGHT, 0);
    }

    /// The kind of the request that the connection works on.
    pub(crate) fn kind(&self) -> WorkKind {
        self.kind.clone()
    }
}
