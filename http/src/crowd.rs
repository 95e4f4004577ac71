//! How many connections the program has. In a crowd a connection gives up its buffers right after each answer.
//!
//! Some ten kilobytes belong to a connection that hyper serves. A few hundred such connections are best left alone
//! between two requests. When thousands get requests at once, each would take buffers of its own, the allocator would
//! keep them later, and the next request would find them cold. If buffers are given up at once, a few warm ones serve
//! all connections. A request that must wait in quarantine, because its route is suspect, then waits without buffers,
//! as the bytes that have arrived.
//!
//! The count is for the whole program, as its memory is. It changes only when a connection begins or
//! ends.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How many connections are not yet a crowd.
pub(crate) const FEW: usize = 1024;

static CONNECTIONS: AtomicUsize = AtomicUsize::new(0);

/// A guard: its connection counts until the guard is dropped.
pub(crate) struct Member(());

impl Member {
    pub(crate) fn new() -> Member {
        // Relaxed, as everywhere in this file: nothing but the number depends on it.
        CONNECTIONS.fetch_add(1, Ordering::Relaxed);
        Member(())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        CONNECTIONS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether there are so many connections that none keeps buffers for its next request.
pub(crate) fn is_crowded() -> bool {
    CONNECTIONS.load(Ordering::Relaxed) > FEW
}
