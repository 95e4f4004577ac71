//! CML's mailbox: any number of senders, which never wait, and any number of receivers.

use crate::{
    combinators::Wrap,
    event::{Event, Waiting},
    tools::channel::{self, Closed, Receive, Receiver, Sender},
};

/// A queue of any length, which is never closed: each handle both sends and receives.
///
/// It has no limit: a sender that is faster than the receivers fills the memory. (In CML the sender of a second
/// value yields; here a job's budget makes it yield.) This is not the mailbox of a process: it belongs to no
/// unit.
///
/// ```
/// use weald::sync::{Wait, cml::Mailbox};
///
/// let mailbox = Mailbox::new();
/// mailbox.send("first");
/// mailbox.clone().send("second");
/// assert_eq!(mailbox.receive().wait(), "first");
/// assert_eq!(mailbox.try_receive(), Some("second"));
/// assert_eq!(mailbox.try_receive(), None);
/// ```
#[derive(Debug)]
pub struct Mailbox<T> {
    sender: Sender<T>,
    receiver: Receiver<T>,
}

/// The event of [`Mailbox::receive`].
pub type MailboxReceive<'a, T> = Wrap<Waiting<Receive<'a, T>>, fn(Result<T, Closed>) -> T>;

const OPEN: &str = "a mailbox holds both ends of its channel";

impl<T> Mailbox<T> {
    /// An empty mailbox.
    #[track_caller]
    pub fn new() -> Mailbox<T> {
        let (sender, receiver) = channel::unbounded();
        Mailbox { sender, receiver }
    }

    /// Puts `value` into the mailbox. Never waits.
    pub fn send(&self, value: T) {
        let sent = self.sender.try_send(value);
        debug_assert!(sent.is_ok(), "{OPEN}");
    }

    /// The event of taking the oldest value.
    pub fn receive(&self) -> MailboxReceive<'_, T> {
        let receive = self.receiver.receive();
        receive.wrap(|received| received.expect(OPEN))
    }

    /// Takes the oldest value, if there is one now.
    pub fn try_receive(&self) -> Option<T> {
        self.receiver.try_receive().ok()
    }

    /// How many values it holds.
    pub fn len(&self) -> usize {
        self.receiver.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.receiver.is_empty()
    }

    /// Whether both are handles of the same mailbox.
    pub fn same_mailbox(&self, other: &Mailbox<T>) -> bool {
        self.sender.same_channel(&other.sender)
    }
}

impl<T> Default for Mailbox<T> {
    fn default() -> Mailbox<T> {
        Mailbox::new()
    }
}

impl<T> Clone for Mailbox<T> {
    fn clone(&self) -> Mailbox<T> {
        Mailbox {
            sender: self.sender.clone(),
            receiver: self.receiver.clone(),
        }
    }
}
