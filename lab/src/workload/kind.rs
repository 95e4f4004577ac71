//! The kinds of channels: what happens to a message that no receiver waits for.

use weald::sync::channel::{self, Receiver, Sender};

use super::work::Work;
use crate::error::Error;
use crate::params::Params;

/// The kind of a channel.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// It has room for this many messages; then senders wait.
    Bounded(usize),
    /// It always has room.
    Unbounded,
    /// It has no room: sender and receiver wait for each other.
    Rendezvous,
}

impl Kind {
    /// The kind that the keys `kind` and `capacity` describe.
    pub(crate) fn read(params: &Params) -> Result<Self, Error> {
        let kind = match params.text("kind")? {
            "bounded" => return Ok(Self::Bounded(params.count("capacity")?)),
            "unbounded" => Self::Unbounded,
            "rendezvous" => Self::Rendezvous,
            other => {
                let sentence =
                    format!("kind={other} is neither bounded, unbounded nor rendezvous.");
                return Err(Error::Usage(sentence));
            }
        };
        match params.get("capacity") {
            None => Ok(kind),
            Some(_) => Err(Error::Usage("Only kind=bounded has a capacity.".into())),
        }
    }

    /// A channel of this kind.
    pub(super) fn make(self) -> (Sender<u64>, Receiver<u64>) {
        match self {
            Self::Bounded(capacity) => channel::bounded(capacity),
            Self::Unbounded => channel::unbounded(),
            Self::Rendezvous => channel::rendezvous(),
        }
    }
}

/// Sends `messages` integers, with some work before each; the receiver keeps the other end until all have arrived.
pub(super) async fn send_all(sender: Sender<u64>, messages: usize, work: Work) {
    for value in 0..messages as u64 {
        work.run();
        let sent = sender.send(value).await;
        sent.expect("the receiver waits for all messages");
    }
}
