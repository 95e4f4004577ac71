//! The body of the last request, as the connection sees it.

use std::{sync::Arc, time::Duration};

use super::{Activity, lock};
use crate::{
    flags::{BLOCKED, BODY, IN_FLIGHT, UNFLUSHED},
    rate::MinRate,
    reading::{Dropped, Reading},
};

impl Activity {
    /// Whether the last request had a body.
    pub(crate) fn has_body(&self) -> bool {
        self.has(BODY)
    }

    /// The number of the wait for more of the request's body, if there is one now.
    pub(super) fn body_wait(&self) -> Option<u32> {
        match self.has(BODY) {
            true => lock(&self.reading).as_ref()?.wait(),
            false => None,
        }
    }

    /// How much longer the client may let a reader of the request's body wait.
    pub(crate) fn body_left(&self, rate: MinRate) -> Duration {
        let reading = lock(&self.reading);
        reading
            .as_ref()
            .map_or(Duration::MAX, |reading| reading.left(rate))
    }

    /// Whether the last request had a body whose end has not been seen.
    pub(crate) fn awaits_body(&self) -> bool {
        let has_ended = |reading: &Arc<Reading>| reading.has_ended();
        self.has(BODY) && !lock(&self.reading).as_ref().is_some_and(has_ended)
    }

    /// The reading of the last request's body, if it was dropped before its end. Asked before hyper is polled.
    pub(crate) fn dropped_body(&self) -> Option<Arc<Reading>> {
        self.body_dropped_since(Dropped::Done)
    }

    fn body_dropped_since(&self, least: Dropped) -> Option<Arc<Reading>> {
        let is_dropped = |reading: &&Arc<Reading>| reading.dropped_early() >= least;
        match self.has(BODY) {
            true => lock(&self.reading).as_ref().filter(is_dropped).cloned(),
            false => None,
        }
    }

    /// Hyper was polled, and the connection continues. `dropped` is the body that had been dropped before the poll: if
    /// the answer was sent, hyper has read that body to its end, because otherwise it would have ended the connection.
    /// Returns true if a body was dropped during the poll, so that hyper must be polled again.
    pub(crate) fn end_dropped_body(&self, dropped: Option<Arc<Reading>>) -> bool {
        if self.has(IN_FLIGHT | UNFLUSHED | BLOCKED) {
            return false;
        }
        if let Some(dropped) = dropped {
            dropped.end();
        }
        self.body_dropped_since(Dropped::Begun).is_some()
    }
}
