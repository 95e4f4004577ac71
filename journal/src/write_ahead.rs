//! Writes large records ahead of their numbers, and removes what was written in vain. `ahead.rs` says how.

use std::sync::Arc;

use crate::ahead::WrittenAhead;
use crate::core::{Core, Failure};
use crate::medium::write_whole;
use crate::waiting::Due;

impl Core {
    /// Writes the next frame of a large record ahead. With the last one, its author is let in: the caller tells it,
    /// once the preparation has ended.
    pub(crate) fn write_ahead(&self) -> Result<Option<Due>, Failure> {
        self.must_be_newest()?;
        let (mut due, frame) = {
            let mut state = self.state();
            let due = state.begin_ahead();
            let ahead = state.log.ahead.as_mut();
            (due, ahead.and_then(WrittenAhead::next_frame))
        };
        if let Some(frame) = frame {
            let written = self.write_item_with(&frame, write_whole);
            written.map_err(|error| Failure::Medium("writing", error))?;
            due = self.state().end_ahead();
        }
        Ok(due)
    }

    /// Removes what was written ahead in vain. An author that still waits for it appends its record as if it had not
    /// asked: the caller tells it, once the preparation has ended.
    pub(crate) fn remove_ahead(&self) -> Result<Option<Due>, Failure> {
        self.must_be_newest()?;
        let given_up = {
            let mut state = self.state();
            let ahead = state.log.give_up_ahead();
            ahead.map(|ahead| {
                let due = state.waiting.end_ahead(ahead.asked.number);
                (ahead, due)
            })
        };
        let Some((ahead, due)) = given_up else {
            return Ok(None);
        };
        self.remove_prepared(ahead.first());
        // It may be the last to have the bytes, and to free them takes long.
        drop(ahead);
        Ok(due)
    }
}

/// What an author holds for whom a record is written ahead.
pub(crate) struct HeldAhead {
    core: Arc<Core>,
    number: u64,
}

impl HeldAhead {
    pub(crate) fn new(core: &Arc<Core>, number: u64) -> Self {
        Self {
            core: Arc::clone(core),
            number,
        }
    }
}

impl Drop for HeldAhead {
    fn drop(&mut self) {
        // A thread of the parent may have held the state.
        if self.core.is_forked() {
            return;
        }
        let mut state = self.core.state();
        let ahead = state.log.ahead.as_mut();
        if let Some(ahead) = ahead.filter(|ahead| ahead.is_of(self.number)) {
            ahead.give_up();
            self.core.wake_threads(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::task::{Context, Wake, Waker};
    use std::time::SystemTime;

    use weald_forest::journal::{Appended, Journal, Record};
    use weald_forest::{CommitId, Version};

    use super::*;
    use crate::core::Work;
    use crate::disk_journal::DiskJournal;
    use crate::settings::Settings;
    use crate::simulated::SimulatedDisk;

    /// Looks, when it is woken, whether the preparation goes on.
    struct Looks(Arc<Core>, Mutex<Vec<bool>>);

    impl Wake for Looks {
        fn wake(self: Arc<Self>) {
            let is_preparing = self.0.state().is_preparing;
            self.1.lock().unwrap().push(is_preparing);
        }
    }

    fn is_sent(journal: &DiskJournal, number: u64) -> bool {
        let version = Version {
            incarnation: 1,
            number,
        };
        let appended = journal.append(&Record {
            version,
            id: CommitId(number.into()),
            time: SystemTime::UNIX_EPOCH,
            digest: None,
            bytes: &[7; 300],
            changes: &[],
            blobs: &[],
            erases: None,
        });
        matches!(appended, Ok(Appended::Sent(_)))
    }

    /// Its waker may close the journal, which waits for the preparation.
    #[test]
    fn the_author_is_told_after_the_preparation_has_ended() {
        for is_in_the_way in [false, true] {
            let settings = Settings::new().segment(2048).by_hand();
            let journal = DiskJournal::open_on(SimulatedDisk::new(), settings).unwrap();
            let core = journal.core();
            let looks = Arc::new(Looks(Arc::clone(&core), Mutex::default()));
            let waker = Waker::from(Arc::clone(&looks));
            let changes = [Arc::new(vec![7; 5_000])];
            let mut wait = journal.when_room(5_000, &changes, &[]).unwrap();
            let mut cx = Context::from_waker(&waker);
            assert!(wait.as_mut().poll(&mut cx).is_pending());
            while core.state().log.ahead.is_none() {
                assert!(journal.work(Work::Prepare));
            }
            if is_in_the_way {
                // One that lacks a segment has what was written removed.
                assert!((1..).any(|number| is_sent(&journal, number)));
                assert!(journal.work(Work::Prepare));
                assert!(core.state().log.ahead.is_none());
            } else {
                while journal.work(Work::Prepare) {}
            }
            assert_eq!(*looks.1.lock().unwrap(), [false]);
        }
    }
}
