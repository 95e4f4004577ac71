//! Watching a forest: names, tags and erasures of all trees, each once and in order. Versions are watched at each tree
//! (`read/watch.rs`).

use std::future::{Future, poll_fn};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use crate::forest::Forest;
use crate::journal::{Durability, Later, Level};
use crate::read::watch::WatchEnd;
use crate::state::happenings::Happening;
use crate::version::Committed;

/// What happens in a forest, from a moment on. See [`Forest::events`].
pub struct Events {
    forest: Forest,
    /// The place of the next one.
    next: u64,
    number: u64,
    /// The level that a commit must have reached before it is yielded.
    level: Level,
    /// The next one, which has not reached the level.
    reaching: Option<((Committed, Happening), Later<'static, Durability>)>,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Forest {
    /// Yields what happens to names, tags and erasable values from now on, each with the receipt of its commit. The
    /// newest 1000 are kept for slow readers.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, Happening};
    ///
    /// let forest = Forest::new();
    /// let mut events = forest.events();
    /// let notes = block_on(forest.create("notes"))?;
    /// block_on(forest.rename("notes", "old notes"))?;
    ///
    /// let (created, _) = block_on(events.next())?;
    /// assert_eq!(created.version, notes.view().version());
    /// let (_, renamed) = block_on(events.next())?;
    /// assert!(matches!(renamed, Happening::Renamed { to, .. } if to == "old notes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn events(&self) -> Events {
        Events {
            forest: self.clone(),
            next: self.state().happenings.log().begin(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            level: self.state().level,
            reaching: None,
        }
    }
}

impl Events {
    /// The next one. Dropping the future loses nothing.
    ///
    /// # Errors
    /// [`WatchEnd::Lagged`], if more happened than is kept: read the forest afresh, and go on; [`WatchEnd::Unknown`],
    /// if the journal has failed or was closed.
    #[expect(
        clippy::should_implement_trait,
        reason = "it is the asynchronous `next` of streams"
    )]
    pub fn next(
        &mut self,
    ) -> impl Future<Output = Result<(Committed, Happening), WatchEnd>> + Send {
        poll_fn(|cx| self.poll_next(cx))
    }

    /// The level that a commit must have reached before it is yielded; by default the one that the forest was built
    /// with, and at most the strongest of its journal.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level.min(self.forest.state().most());
        self
    }

    /// Like [`next`](Self::next), for hand-written futures and streams.
    ///
    /// # Errors
    /// See [`next`](Self::next).
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Committed, Happening), WatchEnd>> {
        if self.reaching.is_none() {
            let next = ready!(self.poll_happened(cx))?;
            let number = next.0.version.number;
            let journal = self.forest.state().journal.as_ref();
            match journal.and_then(|journal| journal.when_reached(number, self.level)) {
                None => return Poll::Ready(Ok(next)),
                Some(reached) => self.reaching = Some((next, reached)),
            }
        }
        let Some((next, reached)) = &mut self.reaching else {
            unreachable!("it was set above")
        };
        let outcome = match ready!(reached.as_mut().poll(cx)) {
            Durability::Reached => Ok(next.clone()),
            Durability::Unknown => Err(WatchEnd::Unknown),
        };
        self.reaching = None;
        Poll::Ready(outcome)
    }

    fn poll_happened(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Committed, Happening), WatchEnd>> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let state = self.forest.state();
        let mut log = state.happenings.log();
        if let (true, Some(resume_at)) = (self.next < log.first, log.gone) {
            self.next = log.first;
            return Poll::Ready(Err(WatchEnd::Lagged { resume_at }));
        }
        let at = usize::try_from(self.next - log.first).unwrap_or(usize::MAX);
        // The combiner takes the wakers under this lock after it has published the number.
        let is_visible =
            |next: &&(Committed, Happening)| next.0.version.number <= state.stats.newest();
        if let Some(next) = log.newest.get(at).filter(is_visible).cloned() {
            self.next += 1;
            return Poll::Ready(Ok(next));
        }
        if state.fall().is_some() {
            return Poll::Ready(Err(WatchEnd::Unknown));
        }
        let old = log.wakers.insert(self.number, waker);
        drop(log);
        drop(old);
        Poll::Pending
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let mut log = self.forest.state().happenings.log();
        let waker = log.wakers.remove(&self.number);
        log.end();
        drop(log);
        drop(waker); // After the lock, because a foreign waker's drop may do anything.
    }
}
