//! Two threads replay many records: one reads and decodes them, and another one applies them.
//!
//! - The order of the records is that of the journal, and so is the first error.
//! - If there are only a few records, or long ones, or if no thread can be started, the reading thread applies them
//!   itself.
//! - If the reader gives up, the thread ends with what it was given, and nobody waits for it.

use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use super::decoded::Decoded;
use super::error::RecoverError;
use super::recovery::Recovery;
use crate::journal::Entry;

/// How many lists of records wait to be applied, at most.
const WAITING: usize = 4;

/// The reading thread applies lists with more bytes itself, because a list that waits takes memory
/// twice.
const LONG: usize = 8 << 20;

/// Applies records, in the order in which they are given.
pub(super) enum Pipeline {
    Here(Box<Recovery>),
    Thread {
        records: SyncSender<Vec<Decoded>>,
        applied: JoinHandle<Result<Box<Recovery>, RecoverError>>,
    },
}

/// How much is likely to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Short,
    /// Many more records.
    Long,
}

impl Pipeline {
    /// Continues from this state.
    pub(super) fn new(recovery: Recovery) -> Self {
        Self::Here(Box::new(recovery))
    }

    /// Applies records.
    ///
    /// # Errors
    /// [`RecoverError`], of these records or of some before them.
    pub(super) fn apply(self, entries: &[Entry], rest: Rest) -> Result<Self, RecoverError> {
        let bytes: usize = entries.iter().map(|entry| entry.record.len()).sum();
        let (pipeline, rest) = match bytes {
            ..=LONG => (self, rest),
            _ => (self.end().map(Self::new)?, Rest::Short),
        };
        pipeline.apply_list(entries, rest)
    }

    fn apply_list(self, entries: &[Entry], rest: Rest) -> Result<Self, RecoverError> {
        let decode = || entries.iter().map(Decoded::new);
        match self {
            Self::Here(mut recovery) => {
                decode().try_for_each(|record| recovery.replay(record))?;
                Ok(match rest {
                    Rest::Long => Self::begin_thread(recovery),
                    Rest::Short => Self::Here(recovery),
                })
            }
            Self::Thread { records, applied } => {
                if records.send(decode().collect()).is_ok() {
                    return Ok(Self::Thread { records, applied });
                }
                Self::Thread { records, applied }.end().map(Self::new)
            }
        }
    }

    /// A thread that continues from this state.
    fn begin_thread(recovery: Box<Recovery>) -> Self {
        let (records, lists) = sync_channel::<Vec<Decoded>>(WAITING);
        let (give, take) = sync_channel::<Box<Recovery>>(1);
        let body = move || {
            let mut recovery = take.recv().expect("it is given at once");
            for list in lists {
                list.into_iter()
                    .try_for_each(|record| recovery.replay(record))?;
            }
            Ok(recovery)
        };
        let thread = thread::Builder::new().name("forest-replay".into());
        match thread.spawn(body) {
            Ok(applied) => {
                give.send(recovery).expect("the thread takes it");
                Self::Thread { records, applied }
            }
            Err(_) => Self::Here(recovery),
        }
    }

    /// The state after everything was applied.
    ///
    /// # Errors
    /// [`RecoverError`] of the first record that cannot be applied.
    pub(super) fn end(self) -> Result<Recovery, RecoverError> {
        match self {
            Self::Here(recovery) => Ok(*recovery),
            Self::Thread { records, applied } => {
                drop(records);
                let recovery = applied
                    .join()
                    .unwrap_or_else(|payload| resume_unwind(payload));
                Ok(*recovery?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pollster::block_on;

    use super::*;
    use crate::forest::Forest;
    use crate::journal::{Journal, MemoryJournal, Position};
    use crate::recover::recovery::Needed;

    /// The records of a few commits.
    fn entries() -> Vec<Entry> {
        let journal = MemoryJournal::new();
        let forest = Forest::builder().journal(journal.clone()).build();
        let tree = block_on(forest.create("tree")).unwrap();
        for step in 0..12 {
            let mut edit = tree.edit();
            let root = edit.root();
            edit.put_attribute(root, "k", [step]).unwrap();
            block_on(edit.commit()).unwrap();
        }
        block_on(journal.read(Position::default(), 100)).unwrap()
    }

    fn replay(entries: &[Entry], rest: Rest) -> Result<Recovery, RecoverError> {
        let mut pipeline = Pipeline::new(Recovery::new(3, Needed::new()));
        for list in entries.chunks(2) {
            pipeline = pipeline.apply(list, rest)?;
            assert_eq!(
                matches!(pipeline, Pipeline::Thread { .. }),
                rest == Rest::Long
            );
        }
        pipeline.end()
    }

    #[test]
    fn the_first_record_that_is_wrong_is_told_by_both_ways() {
        let whole = entries();
        assert!(whole.len() > 10);
        for rest in [Rest::Short, Rest::Long] {
            assert_eq!(
                replay(&whole, rest).unwrap().last.number,
                whole.len() as u64
            );
        }
        for damaged in 0..whole.len() {
            for len in [3, whole[damaged].record.len() - 1] {
                let mut entries = whole.clone();
                entries[damaged].record.truncate(len);
                entries.last_mut().unwrap().record.clear();
                let errors =
                    [Rest::Short, Rest::Long].map(|rest| replay(&entries, rest).err().unwrap());
                assert_eq!(errors[0], errors[1]);
                let RecoverError::Record { position, .. } = errors[0] else {
                    panic!("{}", errors[0]);
                };
                assert_eq!(position, whole[damaged].position);
            }
        }
        // A record that does not fit those before it.
        let mut entries = whole.clone();
        entries.swap(5, 6);
        let errors = [Rest::Short, Rest::Long].map(|rest| replay(&entries, rest).err().unwrap());
        assert_eq!(errors[0], errors[1]);
        assert!(matches!(errors[0], RecoverError::Impossible { .. }));
    }

    #[test]
    fn long_records_are_applied_where_they_are_read() {
        let journal = MemoryJournal::new();
        let forest = Forest::builder().journal(journal.clone()).build();
        let tree = block_on(forest.create("tree")).unwrap();
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_attribute(root, "k", vec![7; LONG]).unwrap();
        block_on(edit.commit()).unwrap();
        let entries = block_on(journal.read(Position::default(), 100)).unwrap();
        let (short, long) = entries.split_at(entries.len() - 1);
        let pipeline = Pipeline::new(Recovery::new(3, Needed::new()));
        let pipeline = pipeline.apply(short, Rest::Long).unwrap();
        assert!(matches!(pipeline, Pipeline::Thread { .. }));
        let pipeline = pipeline.apply(long, Rest::Long).unwrap();
        assert!(matches!(pipeline, Pipeline::Here(_)));
        let recovery = pipeline.end().unwrap();
        assert_eq!(recovery.position, Some(long[0].position));
    }

    #[test]
    fn a_reader_that_gives_up_waits_for_nobody() {
        let entries = entries();
        let pipeline = Pipeline::new(Recovery::new(3, Needed::new()));
        let pipeline = pipeline.apply(&entries[..4], Rest::Long).unwrap();
        let Pipeline::Thread { records, applied } = pipeline else {
            panic!("there is a thread");
        };
        drop(records);
        assert_eq!(applied.join().unwrap().unwrap().last.number, 4);
    }
}
