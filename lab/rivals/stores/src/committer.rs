//! One thread that writes for all: it takes the records that wait, commits them together, and answers each author.

use crossbeam_channel::{Receiver, Sender, bounded};

use crate::{Record, Store};

/// How many records one transaction takes at most.
const MOST: usize = 4_096;

/// A record and the way back to its author.
pub(crate) type Request = (Record, Sender<()>);

/// Writes until every author is gone.
pub(crate) fn serve<S: Store>(store: &S, requests: &Receiver<Request>) {
    let mut writer = store.writer();
    let (mut records, mut authors) = (Vec::new(), Vec::new());
    while let Ok(first) = requests.recv() {
        let more = requests.try_iter().take(MOST - 1);
        for (record, author) in std::iter::once(first).chain(more) {
            records.push(record);
            authors.push(author);
        }
        S::commit(&mut writer, &records);
        records.clear();
        for author in authors.drain(..) {
            // An author waits for its answer, so the channel exists.
            let _author_waits = author.send(());
        }
    }
}

/// An author's way to the committer and back.
pub(crate) struct Author {
    requests: Sender<Request>,
    answers: (Sender<()>, Receiver<()>),
}

impl Author {
    pub(crate) fn new(requests: Sender<Request>) -> Self {
        let answers = bounded(1);
        Self { requests, answers }
    }

    /// Returns when the record is committed.
    pub(crate) fn commit(&self, record: Record) -> bool {
        let request = (record, self.answers.0.clone());
        self.requests.send(request).is_ok() && self.answers.1.recv().is_ok()
    }
}
