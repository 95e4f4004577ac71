//! Erasable bytes to which a commit refers and that memory has let go: before the request, its author reads them back from
//! the journal. So a reference that was taken from the history is in the newest version what it was there.

use std::sync::Arc;
use std::time::SystemTime;

use super::request::{Action, TreeEdit};
use crate::content::erasable::Blobs;
use crate::content::references::references_in;
use crate::journal::{BlobId, Journal, Later};
use crate::state::forest::ForestState;

/// Reads back what a commit refers to and memory does not have; `None`, if it has all of that.
pub(crate) fn bring_back(forest: &ForestState, action: &Action) -> Option<Later<'static, ()>> {
    let journal = forest.journal.as_ref()?;
    if !forest.blobs.were_used() || forest.reentrancy.is_in_journal() {
        return None;
    }
    let missing = forest.blobs.missing(action.referred().into_iter());
    if missing.is_empty() {
        return None;
    }
    let (journal, blobs) = (Arc::clone(&journal.inner), Arc::clone(&forest.blobs));
    let now = forest.clock.now();
    Some(Box::pin(async move {
        for id in missing {
            read(&*journal, (&blobs, id), now).await;
        }
    }))
}

/// First there is a shelf, so that an erasure that comes meanwhile finds it. If the journal fails here, the commit is refused
/// anyway.
async fn read(journal: &dyn Journal, (blobs, id): (&Blobs, BlobId), now: SystemTime) {
    let Ok(Some((tree, place))) = journal.keep_blob(id).await else {
        return;
    };
    blobs.add_absent(tree, place);
    match journal.blob(id).await {
        Ok(Some(bytes)) => blobs.fill(id, bytes),
        Ok(None) => blobs.set_erased(id, now),
        Err(_) => blobs.set_unreadable(id, now),
    }
}

impl Action {
    /// The erasable bytes to which it brings references, but not those that it brings itself.
    fn referred(&self) -> Vec<BlobId> {
        match self {
            Self::Edits(first, rest) => {
                let edits = std::iter::once(&**first).chain(rest);
                edits.flat_map(TreeEdit::referred).collect()
            }
            Self::Create(_, content, _) => content.1.iter().map(|(.., id)| *id).collect(),
            _ => Vec::new(),
        }
    }
}

impl TreeEdit {
    fn referred(&self) -> Vec<BlobId> {
        let found;
        let references = match &self.finished {
            Some(finished) => &finished.references,
            None => {
                found = references_in(self.work.operations());
                &found
            }
        };
        let is_own = |id: &BlobId| self.blobs.iter().any(|blob| blob.id == *id);
        let ids = references.iter().map(|(.., id)| *id);
        ids.filter(|id| !is_own(id)).collect()
    }
}
