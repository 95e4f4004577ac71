//! The settings of a forest.

use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::combiner::Combiner;
use crate::forest::Forest;
use crate::inside::Running;
use crate::journal::Journal;

/// Versions that are kept of each tree unless said otherwise.
pub const KEPT: usize = 1000;

/// A forest to be. See [`Forest::builder`].
///
/// ```
/// use weald_forest::{Forest, Wait};
///
/// let forest = Forest::builder().keep(10).build();
/// let tree = forest.create("notes").wait()?;
/// assert_eq!(tree.name(), "notes");
/// # Ok::<(), weald_forest::CommitError>(())
/// ```
pub struct Builder {
    keep: usize,
    clock: Arc<dyn Clock>,
    journal: Option<Box<dyn Journal>>,
    running: Running,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            keep: KEPT,
            clock: Arc::new(SystemClock::default()),
            journal: None,
            running: Box::new(|| None),
        }
    }

    /// How many of the newest versions of each tree are kept in memory, at least one; [`KEPT`] unless
    /// said otherwise. Tagged versions are kept besides.
    #[must_use]
    pub fn keep(mut self, versions: usize) -> Self {
        self.keep = versions;
        self
    }

    /// Where the time comes from; the operating system unless said otherwise.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What takes each commit before it is visible; nothing unless said otherwise.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(Box::new(journal));
        self
    }

    /// Says which unit of a runtime, a fiber for one, runs now; nothing, if none does: then, and unless
    /// said otherwise, it is the thread. A closure of [`update`](crate::Trunk::update) that commits is
    /// refused, and where several units share a thread this tells it from the others that run while it
    /// waits. It is asked on the thread of the caller.
    #[must_use]
    pub fn running(mut self, running: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        self.running = Box::new(running);
        self
    }

    /// The forest, without trees.
    pub fn build(self) -> Forest {
        let combiner = Combiner::new(self.keep, self.journal);
        Forest::new_with(combiner, self.clock, self.running)
    }
}
