//! The erasure of an attribute, which is noted whether or not its asker waits for it.
//!
//! Invariant: no erasure takes effect without a note after it. What was read before, and is kept, is found only until
//! the note.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use weald::forest::{CommitError, Committed, NodeId, Requested, TreeHandle};

use super::boards::Boards;
use super::error::BoardError;

/// An erasure, and then its note.
struct Erasing {
    boards: Boards,
    /// `None` once it is noted.
    erasure: Option<Requested<Committed>>,
}

impl Boards {
    /// Erases an attribute of a node from all versions, unless that was done before. If the future is dropped while it
    /// waits, the work continues.
    ///
    /// # Errors
    /// [`BoardError::Storage`].
    pub(super) async fn erase_attribute(
        &self,
        tree: &TreeHandle,
        node: NodeId,
        name: &str,
    ) -> Result<(), BoardError> {
        let erasing = Erasing {
            boards: self.clone(),
            erasure: Some(tree.erase(node, name)),
        };
        match self.noted(erasing.await) {
            // `NothingToErase` also comes if it was erased before, and the rest was interrupted.
            Ok(_) | Err(CommitError::NothingToErase { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Future for Erasing {
    type Output = Result<Committed, CommitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let erasure = self.erasure.as_mut().expect("what is noted is not polled");
        let erased = ready!(Pin::new(erasure).poll(cx));
        self.erasure = None;
        // Also after a failure: the bytes may be gone from memory, and not from the disk.
        self.boards.note_erasure();
        Poll::Ready(erased)
    }
}

impl Drop for Erasing {
    fn drop(&mut self) {
        let Some(erasure) = self.erasure.take() else {
            return;
        };
        let boards = self.boards.clone();
        // A note right now could come too early: another thread may just be making the commit.
        weald::spawn(async move {
            // Nobody waits for the outcome. A moderator can ask again.
            let _ = erasure.await;
            boards.note_erasure();
        })
        .detach();
    }
}
