//! The settings of a forest, and its creation.

use std::sync::Arc;
use std::task::Waker;

use crate::clock::{Clock, SystemClock};
use crate::combine::shared::Shared;
use crate::combine::start::Start;
use crate::forest::Forest;
use crate::journal::{Journal, Level};
use crate::state::forest::{ForestState, Pacing};
use crate::state::forest_journal::ForestJournal;
use crate::state::reentrancy::Running;

/// How many versions of each tree are kept by default.
pub const KEPT: usize = 1000;

/// The settings of a forest that is yet to be built. See [`Forest::builder`].
///
/// ```
/// use weald::block_on;
/// use weald::forest::Forest;
///
/// let forest = Forest::builder().keep(10).build();
/// let tree = block_on(forest.create("notes"))?;
/// assert_eq!(tree.name(), "notes");
/// # Ok::<(), weald::forest::CommitError>(())
/// ```
pub struct Builder {
    pub(crate) keep: usize,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) journal: Option<ForestJournal>,
    pub(crate) level: Option<Level>,
    pub(crate) running: Running,
    pub(crate) pacing: Pacing,
    pub(crate) beside: Option<Forest>,
}

impl Forest {
    /// A forest in memory, with the default settings.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// The settings of a forest.
    pub fn builder() -> Builder {
        Builder::new()
    }
}

impl Default for Forest {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    fn new() -> Self {
        Self {
            keep: KEPT,
            clock: Arc::new(SystemClock::default()),
            journal: None,
            level: None,
            running: Box::new(|| None),
            pacing: Box::new(|_| true),
            beside: None,
        }
    }

    /// How many of the newest versions of each tree are kept in memory, at least one; by default [`KEPT`].
    /// Tagged versions are kept as well.
    #[must_use]
    pub fn keep(mut self, versions: usize) -> Self {
        self.keep = versions;
        self
    }

    /// Where the time comes from; by default the operating system.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// What takes each commit before it is visible; by default nothing.
    #[must_use]
    pub fn journal(mut self, journal: impl Journal) -> Self {
        self.journal = Some(ForestJournal::new(Arc::new(journal)));
        self
    }

    /// The level that a commit must have reached before it is acknowledged, and a version before a watch yields it,
    /// unless the commit or the watch names another one. By default it is the strongest level of the journal, and none
    /// is above that.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    /// A function that returns which unit of a runtime runs now (a fiber, for example). By default, and where it
    /// returns `None`, the unit is the thread. A commit inside a closure of [`update`](crate::TreeHandle::update) is
    /// refused. If several units share a thread, this function tells that closure from the units that run while the
    /// closure waits. It is called on the caller's thread.
    #[must_use]
    pub fn running(mut self, running: impl Fn() -> Option<u64> + Send + Sync + 'static) -> Self {
        self.running = Box::new(running);
        self
    }

    /// A function that is asked before each change, in its author's unit, whether the unit may go on; by default it
    /// may. A runtime that gives each unit a budget of operations counts commits by this function. If the function
    /// returns `false`, it has arranged that the unit, which polls with this waker, is polled again.
    #[must_use]
    pub fn pacing(mut self, may_go_on: impl Fn(&Waker) -> bool + Send + Sync + 'static) -> Self {
        self.pacing = Box::new(may_go_on);
        self
    }

    /// A forest of the same journal that is open already. What [`recover`](Self::recover) reads back shares the
    /// erasable bytes that this one has, and does not read them from the journal. An erasure in this one does not reach
    /// the other, which keeps such bytes, and shows them, until it is dropped.
    #[must_use]
    pub fn beside(mut self, forest: &Forest) -> Self {
        self.beside = Some(forest.clone());
        self
    }

    /// The forest, without trees. The records of the journal are not read; see [`recover`](Self::recover).
    pub fn build(self) -> Forest {
        let hosts = (self.running, self.pacing);
        let state = ForestState::new(self.clock, hosts, (self.journal, self.level));
        Forest::of(Shared::new(state, self.keep, Start::default()))
    }
}
