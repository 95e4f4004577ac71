//! The unconditional wait: each signal ends one wait, whichever of the two comes first.
//!
//! It is a semaphore that begins without permits, and whose permits are used up. What it adds is the name, which
//! programs for MassiveThreads know, and that a wait has nothing to give back.

use std::fmt;

use crate::{
    combinators::Wrap,
    event::{Event, Waiting},
    tools::semaphore::{Acquire, Closed, Permit, Semaphore},
};

/// Where a unit waits until another one signals, once for each signal.
///
/// Signals are counted: one that comes before its wait is not lost, and two end two waits. Waits end in the order in
/// which they began.
///
/// In MassiveThreads a signal waits until somebody waits. Here it never does, so that code which may not wait can
/// signal, such as a future between two polls or a destructor. So a unit that signals and then waits for the other's
/// signal on the same object may take its own: two that answer each other need two objects.
///
/// ```
/// use weald::sync::{Uncond, Wait};
///
/// let ready = Uncond::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| ready.wait().wait());
///     ready.signal();
/// });
/// ```
///
/// Cancel-safe: the signal of a wait that is dropped ends the next one. An idle one has 24 bytes.
pub struct Uncond {
    signals: Semaphore,
}

/// The event of [`Uncond::wait`].
pub type Signalled<'a> = Wrap<Waiting<Acquire<'a>>, fn(Result<Permit<'a>, Closed>)>;

impl Uncond {
    /// Without a signal.
    pub fn new() -> Uncond {
        Uncond {
            signals: Semaphore::new(0),
        }
    }

    /// The same, with a name for reports of what units wait for.
    pub fn named(name: &str) -> Uncond {
        Uncond {
            signals: Semaphore::named(name, 0),
        }
    }

    /// Waits for a signal: `.wait().await`, or `.wait().wait()` with the stack. An event.
    #[track_caller]
    pub fn wait(&self) -> Signalled<'_> {
        self.signals.acquire().wrap(use_up)
    }

    /// Ends one wait: the first, or else the next one.
    ///
    /// # Panics
    /// If there were more than 2^32 - 1 signals without a wait.
    pub fn signal(&self) {
        self.signals.release(1);
    }
}

/// A signal ends one wait only. Nobody closes the semaphore.
fn use_up(signal: Result<Permit<'_>, Closed>) {
    signal.into_iter().for_each(Permit::forget);
}

impl Default for Uncond {
    fn default() -> Uncond {
        Uncond::new()
    }
}

impl fmt::Debug for Uncond {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uncond")
            .field("signals", &self.signals.available())
            .finish()
    }
}
