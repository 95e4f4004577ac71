//! A journal that is checked, and what the rules do with it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
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
}

pub(super) fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Waits with the thread.
pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
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
            wait(answer)
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
    wait(subject.journal().read(after, limit)).map_err(|error| format!("reading failed: {error}"))
}
