//! Which request the connection works on, and which kind of work that is, for reports and for the kernel.

use std::sync::atomic::Ordering;

use http::{Method, Uri};
use weald_kernel::WorkKind;

use super::Activity;
use crate::{flags::IN_FLIGHT, request_note::Noted, route::route};

impl Activity {
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

    /// A request has ended. Not every one touches shared memory: a connection counts its first request and every
    /// sixteenth after it, if it was answered, and each that held its thread for too long.
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
