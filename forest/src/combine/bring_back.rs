//! Erasable bytes to which a commit refers and that memory has let go: before the request, its author reads them back
//! from the journal. So a reference that was taken from the history is in the newest version what it was there. If the
//! journal does not have the bytes any more, or cannot read them, the commit is refused: acknowledged, it would show
//! something else.

use std::sync::Arc;
use std::time::SystemTime;

use super::request::{Action, CommitRequest, TreeEdit};
use crate::content::erasable::{Blobs, Referred};
use crate::content::references::references_in;
use crate::error::{CommitError, LostBytes};
use crate::journal::{BlobId, Journal, Later, ReadError};
use crate::state::forest::ForestState;

/// Reads back what a commit refers to and memory does not have; `None`, if it has all of that.
pub(crate) fn bring_back(
    forest: &ForestState,
    action: &Action,
) -> Option<Later<'static, Result<(), CommitError>>> {
    let journal = forest.journal.as_ref()?;
    if !forest.blobs.were_used() || forest.reentrancy.is_in_journal() {
        return None;
    }
    let mut missing = action.referred();
    let ids = forest.blobs.missing(missing.iter().map(|(.., id)| *id));
    missing.retain(|(.., id)| ids.contains(id));
    if missing.is_empty() {
        return None;
    }
    let (journal, blobs) = (Arc::clone(&journal.inner), Arc::clone(&forest.blobs));
    let now = forest.clock.now();
    Some(Box::pin(async move {
        for (node, name, id) in missing {
            let read = read(&*journal, (&blobs, id), now).await;
            read.map_err(|why| CommitError::Bytes {
                node,
                name: name.into(),
                why,
            })?;
        }
        Ok(())
    }))
}

/// First there is a shelf, so that an erasure that comes meanwhile finds it. It stays if the bytes cannot be read: then
/// the next commit that refers to them tries again.
async fn read(
    journal: &dyn Journal,
    (blobs, id): (&Blobs, BlobId),
    now: SystemTime,
) -> Result<(), LostBytes> {
    let failed = |error: ReadError| LostBytes::Unreadable(error.to_string());
    let kept = journal.keep_blob(id).await.map_err(failed)?;
    let (tree, place) = kept.ok_or(LostBytes::Gone)?;
    blobs.add_absent(tree, place);
    match journal.blob(id).await.map_err(failed)? {
        Some(bytes) => blobs.fill(id, bytes),
        // It was to stay, so it was erased since.
        None => blobs.set_erased(id, now),
    }
    Ok(())
}

impl CommitRequest {
    /// Makes it one that is refused when its turn comes. If it was made before, under its id, it is answered with that.
    pub(crate) fn refuse_unless(&mut self, read: Result<(), CommitError>) {
        let Err(error) = read else {
            return;
        };
        let action = std::mem::replace(&mut self.action, Action::Delete(Arc::from("")));
        self.action = Action::Refused(Box::new((error, action)));
    }
}

impl Action {
    /// The erasable bytes to which it brings references, but not those that it brings itself.
    fn referred(&self) -> Vec<Referred> {
        match self {
            Self::Edits(first, rest) => {
                let edits = std::iter::once(&**first).chain(rest);
                edits.flat_map(TreeEdit::referred).collect()
            }
            Self::Create(_, content, _) => content.1.clone(),
            _ => Vec::new(),
        }
    }
}

impl TreeEdit {
    fn referred(&self) -> Vec<Referred> {
        let mut references = match &self.finished {
            Some(finished) => finished.references.clone(),
            None => references_in(self.work.operations()),
        };
        references.retain(|(.., id)| self.blobs.iter().all(|blob| blob.id != *id));
        references
    }
}
