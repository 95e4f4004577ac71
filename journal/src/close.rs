//! The end of a journal: the threads finish, and the lock is given back.

use std::sync::PoisonError;

use weald_forest::journal::AppendError;

use crate::core::Core;
use crate::names;
use crate::place::SegmentId;

impl Core {
    /// Lets the threads end once everything is written, synced and marked.
    pub(crate) fn begin_close(&self) {
        self.state().is_closing = true;
        self.hands.notify_all();
        self.preparer.notify_all();
    }

    /// Gives the lock back, after the threads have ended. If all is durable, notes the end, so that the next opening
    /// notices if a copy has lost records; and removes the segment that was prepared in vain.
    pub(crate) fn end_close(&self) {
        // A checkpoint or a trim that somebody has begun may be writing another key file. It ends soon, see `keep.rs`.
        let ended = self.checkpoints.lock();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        let (is_whole, end, prepared) = {
            let state = self.state();
            let log = &state.log;
            let is_whole = log.synced == log.written && log.batch.items.is_empty();
            let next = log.cursor.segment.index.saturating_add(1);
            let is_whole = is_whole && state.failed.is_none();
            (is_whole, log.synced, next..=log.prepared)
        };
        if is_whole && self.must_be_newest().is_ok() {
            // If this fails nothing is lost: it is noted for a later opening's sake only.
            let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            let _noted = lock
                .as_ref()
                .map(|lock| names::note_end(&**lock, end.position()));
            drop(lock);
            for index in prepared.rev() {
                let segment = SegmentId {
                    index,
                    ..end.segment
                };
                // One that is missing before another would be damage.
                if self.medium.remove(&names::segment(segment)).is_err() {
                    break;
                }
            }
        }
        let lock = {
            let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            lock.take()
        };
        // From here on nobody begins a checkpoint or a trim. The wakers that run now may ask for one.
        drop(ended);
        self.end(AppendError::Poisoned);
        drop(lock);
    }
}
