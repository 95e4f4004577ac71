//! What a forest and its journal report without being asked, as events of `tracing`.
//!
//! A subscriber is foreign code. It may block, and it may panic, for example because it writes to a full disk or a
//! closed pipe. So code with an event first answers the units that wait, and then gives the event to a thread of its
//! own. If subscribers hold [`MOST`] threads already, or no thread can be started, the event is lost.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::wake::catch_foreign;

/// How many threads subscribers may hold, over all forests.
const MOST: usize = 4;

/// How many they hold. Only the count itself matters, so relaxed ordering is enough.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// One of those threads, until it ends, even by a panic.
struct HeldThread(&'static AtomicUsize);

impl HeldThread {
    fn new(held: &'static AtomicUsize) -> Option<Self> {
        let more = |held: usize| (held < MOST).then(|| held + 1);
        let taken = held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        // Only now, because dropping this gives the count back.
        taken.ok().map(|_| Self(held))
    }
}

impl Drop for HeldThread {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Has `event` logged, on a thread of its own: it never waits for a subscriber, which may block or panic. If
/// subscribers hold several such threads already, the event is lost.
pub fn notice(event: impl FnOnce() + Send + 'static) {
    let Some(held) = HeldThread::new(&HELD) else {
        return;
    };
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    let log = move || {
        let _held = held;
        catch_foreign(|| tracing::dispatcher::with_default(&dispatch, event));
    };
    let thread = thread::Builder::new().name("forest-notice".into());
    // Without a thread, the event is left out.
    let _ = thread.spawn(log);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_are_held_than_may_be_and_each_is_given_back() {
        static HELD: AtomicUsize = AtomicUsize::new(0);
        for _ in 0..3 {
            let held: Vec<_> = (0..MOST).filter_map(|_| HeldThread::new(&HELD)).collect();
            assert_eq!(held.len(), MOST);
            assert!(HeldThread::new(&HELD).is_none());
            drop(held);
            assert_eq!(HELD.load(Ordering::Relaxed), 0);
        }
    }
}
