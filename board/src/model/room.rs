//! Checks whether the disk has room.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weald::forest::{AppendError, CommitError, NameError, UpdateError};

use super::boards::Boards;
use super::draft::MAX_TEXT;

const TREE: &str = "room";
/// How often it is tried at most.
const BETWEEN: Duration = Duration::from_secs(1);

impl Boards {
    /// Whether messages can be written, as far as is known: the journal has not failed, and the disk had room for the
    /// last one.
    pub fn takes_commits(&self) -> bool {
        let refusals = &self.0.refusals;
        !refusals.is_full.load(Ordering::Relaxed) && !self.has_failed()
    }

    /// Whether the journal has failed or lost its directory. Then only a new start helps.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.refusals.has_failed()
    }

    /// Whether messages can be written; if the disk was full, a try tells whether it still is.
    pub async fn would_take_commits(&self) -> bool {
        if !self.has_failed() && !self.takes_commits() {
            let mut tried = self.0.refusals.tried.lock().await;
            if tried.is_none_or(|tried| tried.elapsed() >= BETWEEN) {
                let _ = self.noted_text(self.try_room().await);
                *tried = Some(Instant::now());
            }
        }
        self.takes_commits()
    }

    /// Notes if the disk refuses a commit. That it takes one says nothing about the next message: a full disk takes
    /// erasures, and plain attributes for a while. Those that bring a text are for [`noted_text`](Self::noted_text).
    pub(crate) fn noted<T>(&self, outcome: Result<T, CommitError>) -> Result<T, CommitError> {
        if let Err(error) = &outcome {
            self.is_refused(error);
        }
        outcome
    }

    /// The same for an update.
    pub(crate) fn noted_of<T, E>(
        &self,
        outcome: Result<T, UpdateError<E>>,
    ) -> Result<T, UpdateError<E>> {
        if let Err(UpdateError::Commit(error)) = &outcome {
            self.is_refused(error);
        }
        outcome
    }

    /// Notes what the disk has done with a commit that brings a text.
    pub(crate) fn noted_text<T>(&self, outcome: Result<T, CommitError>) -> Result<T, CommitError> {
        if outcome.is_ok() {
            self.note_room();
        }
        self.noted(outcome)
    }

    /// Notes that the disk has taken a text. If it was full before, what had to wait for room follows, whoever made the
    /// commit. Must run in the runtime.
    pub(crate) fn note_room(&self) {
        let is_full = &self.0.refusals.is_full;
        // Nearly always it was not full, and then all commits only read the flag.
        if is_full.load(Ordering::Relaxed) && is_full.swap(false, Ordering::Relaxed) {
            let boards = self.clone();
            weald::spawn(async move {
                // A disk that is full again is noted; after another error, the next start does it.
                let _ = boards.forget_interim().await;
            })
            .detach();
        }
    }

    /// Whether a commit failed because the disk is full, or the system refuses a file, which is then noted.
    pub(crate) fn is_refused(&self, error: &CommitError) -> bool {
        let is_full = matches!(
            error,
            CommitError::Journal(AppendError::Full | AppendError::Unprepared)
        );
        if is_full {
            self.0.refusals.is_full.store(true, Ordering::Relaxed);
        }
        is_full
    }

    async fn try_room(&self) -> Result<(), CommitError> {
        let trees = self.0.store.trees();
        let tree = match trees.get(TREE) {
            Ok(tree) => tree,
            Err(NameError::Missing(_)) => trees.create(TREE).await?,
            Err(error) => return Err(error.into()),
        };
        let mut edit = tree.edit().blind();
        // The root is always there. A message needs room in the file of keys, too, which may be used up first. So a
        // plain attribute may still be taken when no message is.
        let _ = edit.put_erasable(edit.root(), "room", [b' '; MAX_TEXT]);
        edit.commit().await.map(|_| ())
    }
}
