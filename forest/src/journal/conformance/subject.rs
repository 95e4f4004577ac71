//! A journal that is checked, and what the rules do with it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use super::super::contract::{Appended, Entry, Journal};
use super::super::record::Record;
use crate::error::AppendError;
use crate::level::{Level, Position};
use crate::version::{CommitId, Version};

/// A journal that is checked, and the medium below it.
pub trait Subject {
    /// The journal.
    fn journal(&self) -> &dyn Journal;

    /// Lets the medium go on until all records that were sent are accepted.
    fn settle(&self);

    /// Lets everything that was accepted reach a level that the journal can reach.
    fn sync(&self, level: Level);

    /// Makes the medium fail for good; returns whether that can be done.
    fn fail(&self) -> bool;

    /// Runs a future to its end: the `block_on` of any executor.
    fn block_on(&self, future: Pin<Box<dyn Future<Output = ()> + '_>>);
}

pub(super) fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Waits as the subject does.
pub(super) fn wait<T>(subject: &dyn Subject, future: impl Future<Output = T>) -> T {
    let mut output = None;
    subject.block_on(Box::pin(async { output = Some(future.await) }));
    output.expect("`block_on` returns when the future has ended")
}

/// The changes of the record of this number, in two pieces.
pub(super) fn changes(number: u64) -> [Arc<Vec<u8>>; 2] {
    let text = format!("change {number} ");
    let long = usize::try_from(number % 7).unwrap_or(0) * 1000;
    [
        Arc::new(text.into_bytes()),
        Arc::new(vec![number.to_le_bytes()[0]; long]),
    ]
}

pub(super) fn with_record<T>(
    number: u64,
    changes: &[Arc<Vec<u8>>],
    use_it: impl FnOnce(&Record<'_>) -> T,
) -> T {
    use_it(&Record {
        version: Version {
            incarnation: 1,
            number,
        },
        id: CommitId(number.into()),
        time: SystemTime::UNIX_EPOCH,
        digest: None,
        bytes: b"by the suite",
        changes,
        blobs: &[],
        erases: None,
    })
}

pub(super) fn bytes_of(number: u64) -> Vec<u8> {
    with_record(number, &changes(number), |record| {
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        bytes
    })
}

pub(super) fn send(subject: &dyn Subject, number: u64) -> Result<Appended, AppendError> {
    with_record(number, &changes(number), |record| {
        subject.journal().append(record)
    })
}

pub(super) fn append(subject: &dyn Subject, number: u64) -> Result<Position, AppendError> {
    answer_of(subject, send(subject, number))
}

/// Waits until a record that was sent is accepted.
pub(super) fn answer_of(
    subject: &dyn Subject,
    sent: Result<Appended, AppendError>,
) -> Result<Position, AppendError> {
    match sent? {
        Appended::Accepted(position) => Ok(position),
        Appended::Sent(answer) => {
            subject.settle();
            wait(subject, answer)
        }
    }
}

/// Appends the records of these numbers.
pub(super) fn fill(
    subject: &dyn Subject,
    numbers: std::ops::Range<u64>,
) -> Result<Vec<Position>, String> {
    let appended = numbers.map(|number| append(subject, number));
    let appended: Result<_, AppendError> = appended.collect();
    appended.map_err(|error| format!("it refused a record: {error}"))
}

pub(super) fn read(
    subject: &dyn Subject,
    after: Position,
    limit: usize,
) -> Result<Vec<Entry>, String> {
    let found = wait(subject, subject.journal().read(after, limit));
    found.map_err(|error| format!("reading failed: {error}"))
}
