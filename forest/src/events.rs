//! Watching a forest: names, tags and erasures of all trees, each once and in order. Versions are watched at each tree
//! (`read/watch.rs`).

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use crate::error::VersionError;
use crate::forest::Forest;
use crate::journal::{Durability, Later, Level};
use crate::read::watch::{Since, WatchEnd, WatchError};
use crate::state::happenings::Happening;
use crate::tree_handle::TreeHandle;
use crate::version::{Committed, Version};

/// What happens in a forest, from a moment on. See [`Forest::events`].
pub struct Events {
    forest: Forest,
    /// The version up to which everything was yielded.
    last: Version,
    number: u64,
    /// The level that a commit must have reached before it is yielded.
    level: Level,
    /// The next one, which has not reached the level.
    reaching: Option<((Committed, Happening), Later<'static, Durability>)>,
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Forest {
    /// Yields what happens to names, tags and erasable values from now on, each with the receipt of its commit. The
    /// newest 1000 are kept for slow readers, and for those that ask for what has happened
    /// [since a version](Self::events_since).
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
        self.events_after(self.state().version_of(self.state().stats.newest()))
    }

    /// [`events`](Self::events) since a version: first what has happened after it, and then what happens. So a reader
    /// that keeps [`Events::last`], or the version of the last receipt, goes on where it was, even after the forest was
    /// opened again.
    ///
    /// The newest 1000 are kept, and after an opening those that are in records after the checkpoint.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, Happening, Since};
    ///
    /// let forest = Forest::new();
    /// let notes = block_on(forest.create("notes"))?;
    /// let last = notes.view().version();
    /// block_on(forest.rename("notes", "old notes"))?;
    ///
    /// let mut events = forest.events_since(Since::Version(last))?;
    /// let (renamed, happening) = block_on(events.next())?;
    /// assert!(matches!(happening, Happening::Renamed { to, .. } if to == "old notes"));
    /// assert_eq!(events.last(), renamed.version);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`WatchError::Forgotten`], if something after that version is no longer kept; [`WatchError::Version`], if the
    /// version does not exist.
    pub fn events_since(&self, since: Since) -> Result<Events, WatchError> {
        let Since::Version(version) = since else {
            return Ok(self.events());
        };
        let state = self.state();
        state.must_exist(version).map_err(WatchError::Version)?;
        match state.happenings.log().after(version.number) {
            Ok(_) => Ok(self.events_after(version)),
            Err(oldest) => Err(WatchError::Forgotten { oldest }),
        }
    }

    fn events_after(&self, last: Version) -> Events {
        Events {
            forest: self.clone(),
            last,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            level: self.state().level,
            reaching: None,
        }
    }

    /// The trees that have a version after this one, and the version up to which that is so: ask with that one next
    /// time, and no change is missed. [`TreeHandle::watch`] with [`Since::Version`] tells what has changed in each of
    /// them, and [`events_since`](Self::events_since) which trees are gone. It is a look at each tree.
    ///
    /// ```
    /// use weald::block_on;
    /// use weald::forest::{Forest, Path, Since};
    ///
    /// let forest = Forest::new();
    /// let [notes, other] = ["notes", "other"].map(|name| block_on(forest.create(name)).unwrap());
    /// let seen = other.view().version();
    /// let mut edit = notes.edit();
    /// edit.put_attribute(edit.root(), "text", "tea")?;
    /// block_on(edit.commit())?;
    ///
    /// let (upto, changed) = forest.changed_since(seen)?;
    /// assert_eq!(changed.len(), 1);
    /// let mut commits = changed[0].watch(&Path::default(), Since::Version(seen))?;
    /// assert_eq!(block_on(commits.next())?.changes().count(), 1);
    /// assert!(forest.changed_since(upto)?.1.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`VersionError`], if the version does not exist.
    pub fn changed_since(
        &self,
        version: Version,
    ) -> Result<(Version, Vec<TreeHandle>), VersionError> {
        let state = self.state();
        state.must_exist(version)?;
        let (upto, trees) = {
            let names = state.names();
            let trees: Vec<_> = names.trees().cloned().collect();
            (state.version_of(state.stats.newest()), trees)
        };
        // From the histories: they are locked while a commit to several trees becomes visible.
        let trees = trees.into_iter();
        let changed = trees.filter(|tree| tree.history().newest().number() > version.number);
        let handles = changed.map(|tree| TreeHandle::new(Arc::clone(&self.0), tree));
        Ok((upto, handles.collect()))
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
                None => {
                    self.last = next.0.version;
                    return Poll::Ready(Ok(next));
                }
                Some(reached) => self.reaching = Some((next, reached)),
            }
        }
        let Some((next, reached)) = &mut self.reaching else {
            unreachable!("it was set above")
        };
        let outcome = match ready!(reached.as_mut().poll(cx)) {
            Durability::Reached => {
                self.last = next.0.version;
                Ok(next.clone())
            }
            Durability::Unknown => Err(WatchEnd::Unknown),
        };
        self.reaching = None;
        Poll::Ready(outcome)
    }

    /// The version up to which everything was yielded: that of the last one, or that with which it began or resumes.
    /// [`Forest::events_since`] goes on from there.
    pub fn last(&self) -> Version {
        self.last
    }

    fn poll_happened(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(Committed, Happening), WatchEnd>> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let state = self.forest.state();
        let mut log = state.happenings.log();
        match log.after(self.last.number) {
            Err(resume_at) => {
                self.last = resume_at;
                return Poll::Ready(Err(WatchEnd::Lagged { resume_at }));
            }
            // The combiner takes the wakers under this lock after it has published the number.
            Ok(Some(next)) if next.0.version.number <= state.stats.newest() => {
                return Poll::Ready(Ok(next.clone()));
            }
            Ok(_) => {}
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
        let waker = self
            .forest
            .state()
            .happenings
            .log()
            .wakers
            .remove(&self.number);
        drop(waker); // After the lock, because a foreign waker's drop may do anything.
    }
}
