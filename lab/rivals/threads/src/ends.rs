//! The two ends of a channel of any of the libraries: what `channel` is written against.

use std::sync::mpsc;

use common::Kind;

/// The sending end.
pub(crate) trait Put: Clone + Send + 'static {
    fn put(&self, value: u64);
}

/// The receiving end.
pub(crate) trait Take: Send + 'static {
    fn take(&self) -> u64;
}

/// Both ends of std's: its bounded channel has another type than its unbounded one.
#[derive(Clone)]
pub(crate) enum StdSender {
    Unbounded(mpsc::Sender<u64>),
    Bounded(mpsc::SyncSender<u64>),
}

impl Put for StdSender {
    fn put(&self, value: u64) {
        let sent = match self {
            Self::Unbounded(sender) => sender.send(value),
            Self::Bounded(sender) => sender.send(value),
        };
        sent.expect("the receiver waits for all messages");
    }
}

impl Take for mpsc::Receiver<u64> {
    fn take(&self) -> u64 {
        self.recv().expect("a sender is kept until the end")
    }
}

impl Put for crossbeam_channel::Sender<u64> {
    fn put(&self, value: u64) {
        self.send(value)
            .expect("the receiver waits for all messages");
    }
}

impl Take for crossbeam_channel::Receiver<u64> {
    fn take(&self) -> u64 {
        self.recv().expect("a sender is kept until the end")
    }
}

impl Put for flume::Sender<u64> {
    fn put(&self, value: u64) {
        self.send(value)
            .expect("the receiver waits for all messages");
    }
}

impl Take for flume::Receiver<u64> {
    fn take(&self) -> u64 {
        self.recv().expect("a sender is kept until the end")
    }
}

/// How many messages there is room for; `None` means unbounded.
pub(crate) fn room(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Bounded(capacity) => Some(capacity),
        Kind::Rendezvous => Some(0),
        Kind::Unbounded => None,
    }
}

pub(crate) fn of_std(kind: Kind) -> (StdSender, mpsc::Receiver<u64>) {
    match room(kind) {
        Some(room) => {
            let (sender, receiver) = mpsc::sync_channel(room);
            (StdSender::Bounded(sender), receiver)
        }
        None => {
            let (sender, receiver) = mpsc::channel();
            (StdSender::Unbounded(sender), receiver)
        }
    }
}

pub(crate) fn of_crossbeam(
    kind: Kind,
) -> (
    crossbeam_channel::Sender<u64>,
    crossbeam_channel::Receiver<u64>,
) {
    room(kind).map_or_else(crossbeam_channel::unbounded, crossbeam_channel::bounded)
}

pub(crate) fn of_flume(kind: Kind) -> (flume::Sender<u64>, flume::Receiver<u64>) {
    room(kind).map_or_else(flume::unbounded, flume::bounded)
}
