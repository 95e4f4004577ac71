//! Orders to a connection: to close, and how.

use std::sync::atomic::Ordering;

use super::Activity;

/// An order: close after the request that is in flight.
const DRAIN: u8 = 1;
/// An order: close now.
const STOP: u8 = 2;
/// An order: end with a reset, because the client would take the end for that of a body.
const RESET: u8 = 4;

impl Activity {
    /// Orders the connection to close after the request that is in flight. Follow with
    /// [`wake`](Activity::wake).
    pub(crate) fn order_drain(&self) {
        self.orders.fetch_or(DRAIN, Ordering::Relaxed);
    }

    /// Orders the connection to close now. Follow with [`wake`](Activity::wake).
    pub(crate) fn order_stop(&self) {
        self.orders.fetch_or(STOP, Ordering::Relaxed);
    }

    fn is_ordered(&self, order: u8) -> bool {
        self.orders.load(Ordering::Relaxed) & order != 0
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.is_ordered(DRAIN)
    }

    /// Whether an order will close the connection at its next poll, if it is idle or lingers.
    pub(crate) fn is_about_to_close(&self) -> bool {
        match self.is_lingering() {
            true => self.must_stop(),
            false => self.is_draining(),
        }
    }

    /// Only the end of the connection will tell the client where a body ends. So an end before that must be a reset.
    pub(crate) fn order_reset(&self) {
        self.orders.fetch_or(RESET, Ordering::Relaxed);
    }

    /// All of the body was sent.
    pub(crate) fn take_back_reset(&self) {
        if self.must_reset() {
            self.orders.fetch_and(!RESET, Ordering::Relaxed);
        }
    }

    pub(crate) fn must_reset(&self) -> bool {
        self.is_ordered(RESET)
    }

    pub(crate) fn must_stop(&self) -> bool {
        self.is_ordered(STOP)
    }
}
