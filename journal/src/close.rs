//! Closing a journal: the threads finish, and the lock is released.

use std::sync::PoisonError;

use weald_forest::journal::AppendError;

use crate::core::Core;
use crate::names;

impl Core {
    /// Lets the threads end once everything is written, synced and marked.
    pub(crate) fn begin_close(&self) {
        self.state().is_closing = true;
        self.threads.notify_all();
        self.preparer.notify_all();
    }

    /// Gives the lock back, after the threads have ended. If all is durable, notes the end, so that the next opening
    /// notices if a copy has lost records; and removes the segments that were prepared in vain.
    pub(crate) fn end_close(&self) {
        // A checkpoint or a trim that was begun may be writing another key file. It ends soon; see `maintenance.rs`.
        let ended = self.checkpoints.lock();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        let (is_whole, end, unused) = {
            let state = self.state();
            let log = &state.log;
            let is_whole = log.synced == log.written && log.batch.items.is_empty();
            let is_whole = is_whole && state.failed.is_none();
            (is_whole, log.synced, log.cursor.segment.next())
        };
        if is_whole && self.must_be_newest().is_ok() {
            // If this fails, nothing is lost: the note only helps a later opening.
            let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let _noted = lock
                .as_ref()
                .map(|lock| names::note_end(&**lock, end.position()));
            drop(lock);
            self.remove_prepared(unused);
        }
        let lock = {
            let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            lock.take()
        };
        // From here on no checkpoint and no trim begins, although wakers that run now may ask for one.
        drop(ended);
        self.end(AppendError::Poisoned);
        // Handles of the journal may be left, and an open file keeps its room, also one that was removed.
        let files = std::mem::take(&mut *self.files());
        drop(files);
        drop(lock);
    }
}
