//! Closing a journal: the threads finish, and the lock is released.

use std::sync::PoisonError;

use weald_forest::journal::{AppendError, catch_foreign};

use crate::core::{Core, discard};
use crate::names;

impl Core {
    /// From here on nothing is appended any more. Lets the threads end once everything is written, synced and marked.
    pub(crate) fn begin_close(&self) {
        self.state().is_closing = true;
        self.threads.notify_all();
        self.preparer.notify_all();
    }

    /// Gives the lock back, after the threads have ended. If all is durable, notes the end, so that the next opening
    /// notices if a copy has lost records; and removes the segments that were prepared in vain. If the medium panics,
    /// the rest is done nevertheless: everyone who waits is answered.
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
        if is_whole && matches!(catch_foreign(|| self.must_be_newest()), Some(Ok(()))) {
            // If this fails or panics, nothing is lost: the note only helps a later opening.
            catch_foreign(|| {
                let lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
                let lock = lock.as_ref();
                drop(lock.map(|lock| names::note_end(&**lock, end.position())));
            });
            self.remove_prepared(unused);
        }
        let lock = {
            let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
            lock.take()
        };
        // From here on no checkpoint and no trim begins, although wakers that run now may ask for one.
        drop(ended);
        self.end(AppendError::Poisoned);
        // Handles of the journal may be left, and an open file keeps its room, even one that was removed.
        let files = std::mem::take(&mut *self.files());
        discard(files);
        catch_foreign(|| drop(lock));
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;
    use std::sync::Arc;
    use std::task::{Context, Poll, Waker};
    use std::thread;
    use std::time::SystemTime;

    use pollster::block_on;
    use weald_forest::journal::{Appended, Journal, Later, Position, Record};
    use weald_forest::{CommitId, Version};

    use super::*;
    use crate::disk_journal::DiskJournal;
    use crate::medium::Medium;
    use crate::open::open;
    use crate::place::Place;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    fn append(journal: &DiskJournal, number: u64) -> Result<Appended, AppendError> {
        let version = Version {
            incarnation: 1,
            number,
        };
        journal.append(&Record {
            version,
            id: CommitId(number.into()),
            time: SystemTime::UNIX_EPOCH,
            digest: None,
            bytes: &[],
            changes: &[],
            blobs: &[],
            erases: None,
        })
    }

    type Sent = Later<'static, Result<Position, AppendError>>;

    /// Whether a record was accepted. If the journal is about to end sooner, that may be what answers, so the answer is
    /// given back.
    fn before_closing(journal: &DiskJournal, mut answer: Sent) -> Result<bool, Sent> {
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            let is_closing = journal.core().state().is_closing;
            match answer.as_mut().poll(&mut cx) {
                Poll::Ready(answer) => return Ok(answer.is_ok()),
                Poll::Pending if is_closing => return Err(answer),
                Poll::Pending => thread::yield_now(),
            }
        }
    }

    /// Threads that end wait for a preparation, which may give places to records.
    #[test]
    fn threads_that_end_are_told_when_a_preparation_was_refused() {
        let disk = SimulatedDisk::new();
        let settings = Settings::new().segment(2048).by_hand();
        let core = open(Arc::new(disk.clone()), settings).unwrap();
        disk.set_room(Some(disk.used()));
        core.state().is_preparing = true;
        core.begin_close();
        thread::scope(|scope| {
            let threads = [(); 2].map(|()| scope.spawn(|| core.serve()));
            while core.state().idle as usize != threads.len() {
                thread::yield_now();
            }
            core.prepare();
            assert!(core.state().is_full);
        });
    }

    #[test]
    fn what_is_accepted_before_the_end_is_kept_and_nothing_is_accepted_once_it_has_begun() {
        let disk = SimulatedDisk::new();
        // Short ones, so that now and then a record waits for the next one when the journal is closed.
        let settings = || Settings::new().segment(2048);
        let journal = DiskJournal::open_on(disk.clone(), settings()).unwrap();
        let core = journal.core();
        // As a checkpoint does that takes long.
        let checkpoint = core.checkpoints.lock().unwrap();
        thread::scope(|scope| {
            let (author, closing) = (journal.clone(), journal.clone());
            let author = scope.spawn(move || {
                for number in 1.. {
                    let has_begun = author.core().state().is_closing;
                    let answer = match append(&author, number) {
                        Ok(Appended::Sent(answer)) => answer,
                        Ok(Appended::Accepted(_)) => Box::pin(ready(Ok(Position::default()))),
                        Err(_) => return (number - 1, None),
                    };
                    assert!(!has_begun, "record {number} comes too late");
                    match before_closing(&author, answer) {
                        Ok(true) => {}
                        Ok(false) => return (number - 1, None),
                        Err(answer) => return (number - 1, Some(answer)),
                    }
                }
                unreachable!("the journal is closed sooner")
            });
            let closing = scope.spawn(move || closing.close());
            while !core.state().is_closing {
                thread::yield_now();
            }
            let (mut accepted, left) = author.join().unwrap();
            drop(checkpoint);
            if let Some(answer) = left {
                accepted += u64::from(block_on(answer).is_ok());
            }
            closing.join().unwrap();
            assert_eq!(
                append(&journal, accepted + 1).err(),
                Some(AppendError::Poisoned)
            );
            let end = core.state().log.synced;
            let lock = disk.open(names::LOCK).unwrap();
            assert_eq!(names::noted_end(&*lock).map(Place::of), Some(end));
            let opened = DiskJournal::open_on(disk.clone(), settings()).unwrap();
            let found = block_on(opened.read(Position::default(), usize::MAX)).unwrap();
            assert_eq!(found.len() as u64, accepted);
        });
    }
}
