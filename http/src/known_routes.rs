//! Which routes a server was seen to serve without delay. When paths of letters hold up a server, others of their
//! family run in quarantine, and these do not.
//!
//! A table in which a later route takes the place of an earlier one: a route that is not found only waits for its turn.
//! It is read and written rarely: see [`Activity`](crate::activity::Activity). Relaxed everywhere: a number stands for
//! itself.

use std::sync::atomic::{AtomicU64, Ordering};

/// One for each value of a byte.
const PLACES: usize = 256;

/// The routes of one server.
#[derive(Debug)]
pub(crate) struct KnownRoutes([AtomicU64; PLACES]);

impl Default for KnownRoutes {
    fn default() -> KnownRoutes {
        KnownRoutes([const { AtomicU64::new(0) }; PLACES])
    }
}

impl KnownRoutes {
    fn place(&self, kind: u64) -> &AtomicU64 {
        // The first byte of the product depends on all of the hash.
        let [place, ..] = kind.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        &self.0[usize::from(place)]
    }

    pub(crate) fn contains(&self, kind: u64) -> bool {
        let found = self.place(kind).load(Ordering::Relaxed);
        found == kind || found == on_probation(kind)
    }

    pub(crate) fn add(&self, kind: u64) {
        let place = self.place(kind);
        // Most are there, and then the processors share the memory.
        if place.load(Ordering::Relaxed) != kind {
            place.store(kind, Ordering::Relaxed);
        }
    }

    /// The route held up its thread. Once may be the fault of a busy machine, and a route that is not
    /// known is not served while the quarantine is full. So it is removed the second time, unless it
    /// was added again in between.
    pub(crate) fn remove(&self, kind: u64) {
        let place = self.place(kind);
        match place.load(Ordering::Relaxed) {
            found if found == kind => place.store(on_probation(kind), Ordering::Relaxed),
            found if found == on_probation(kind) => place.store(0, Ordering::Relaxed),
            _ => {}
        }
    }
}

/// The number that stands in the table for a known route that has held up its thread once. No other
/// route has it, except by chance.
fn on_probation(kind: u64) -> u64 {
    kind ^ 1
}

#[cfg(test)]
mod tests {
    use super::KnownRoutes;

    #[test]
    fn a_route_is_forgotten_at_its_second_offence_in_a_row() {
        let known = KnownRoutes::default();
        known.remove(7);
        assert!(!known.contains(7), "it never was known");
        known.add(7);
        known.remove(7);
        assert!(known.contains(7));
        known.add(7);
        known.remove(7);
        assert!(known.contains(7), "it was served well in between");
        known.remove(7);
        assert!(!known.contains(7));
    }
}
