//! Messages in two queues, urgent ones and others: the common part of the mailboxes that take urgent messages first.
//!
//! All messages come through the one mailbox of the process. The receiver sorts what has come before it takes one, and
//! so moves each message once.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use weald_kernel::poll_budget;
use weald_sync::Source;

use crate::inbox::Inbox;

/// The message of a mailbox that takes urgent messages first.
pub(super) trait Urgency {
    fn is_urgent(&self) -> bool;
}

/// An inbox and what it has sorted.
pub(super) struct Sorted<E> {
    pub(super) inbox: Inbox<E>,
    urgent: Queue<E>,
    others: Queue<E>,
    /// The number of the next message that comes into one of the queues.
    next: u64,
}

/// Messages with their numbers, which ascend.
type Queue<E> = VecDeque<(u64, E)>;

/// A place among the messages of a [`PriorityInbox`](crate::PriorityInbox) or a
/// [`BoundedPriorityInbox`](crate::BoundedPriorityInbox), for their `receive_since`.
#[derive(Clone, Debug, Default)]
pub struct PriorityMark {
    /// The number of the first urgent message that is behind the mark, or will be.
    urgent: u64,
    /// The same for the others.
    others: u64,
}

impl PriorityMark {
    /// A mark before all messages.
    pub fn oldest() -> PriorityMark {
        PriorityMark::default()
    }
}

/// A queue that becomes empty keeps the memory for this many messages.
const KEPT: usize = 1024;

impl<E: Urgency> Sorted<E> {
    pub(super) fn new(inbox: Inbox<E>) -> Sorted<E> {
        Sorted {
            inbox,
            urgent: Queue::new(),
            others: Queue::new(),
            next: 0,
        }
    }

    /// A mark behind all messages that have come.
    pub(super) fn mark(&mut self) -> PriorityMark {
        self.sort();
        PriorityMark {
            urgent: self.next,
            others: self.next,
        }
    }

    /// Waits for a message behind `mark` that is wanted, and moves the mark behind those that are not.
    pub(super) async fn receive_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&E) -> bool,
    ) -> E {
        std::future::poll_fn(|cx| {
            if poll_budget(cx).is_pending() {
                return Poll::Pending;
            }
            loop {
                if let Some(message) = self.take_since(mark, &mut wanted) {
                    return Poll::Ready(message);
                }
                match self.inbox.0.poll_receive(cx) {
                    Poll::Ready(message) => self.put(message),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// As `receive_since`, if there is such a message now.
    pub(super) fn take_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&E) -> bool,
    ) -> Option<E> {
        self.sort();
        let found = take(&mut self.urgent, &mut mark.urgent, &mut wanted);
        found.or_else(|| take(&mut self.others, &mut mark.others, &mut wanted))
    }

    pub(super) fn try_receive(&mut self) -> Option<E> {
        self.sort();
        self.pop()
    }

    pub(super) fn len(&mut self) -> usize {
        self.sort();
        self.urgent.len() + self.others.len()
    }

    /// Moves what has come until now into the two queues.
    fn sort(&mut self) {
        for _ in 0..self.inbox.len() {
            match self.inbox.try_receive() {
                Some(message) => self.put(message),
                None => return,
            }
        }
    }

    fn put(&mut self, message: E) {
        let queue = match message.is_urgent() {
            true => &mut self.urgent,
            false => &mut self.others,
        };
        queue.push_back((self.next, message));
        self.next += 1;
    }

    fn pop(&mut self) -> Option<E> {
        let (urgent, others) = (&mut self.urgent, &mut self.others);
        pop(urgent).or_else(|| pop(others))
    }

    pub(super) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<E> {
        self.sort();
        if self.urgent.is_empty() && self.others.is_empty() {
            return self.inbox.0.poll_receive(cx);
        }
        if poll_budget(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(self.pop().expect("one of the queues has a message"))
    }

    /// Whether there is a message, for the wait as an event.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self.len() {
            0 => Pin::new(&mut self.inbox.0).poll_ready(cx),
            _ => Poll::Ready(()),
        }
    }
}

// Messages are moved, never pinned.
impl<E> Unpin for Sorted<E> {}

/// Takes the first message behind a mark that is wanted; moves the mark behind those that are not.
fn take<E>(queue: &mut Queue<E>, mark: &mut u64, wanted: &mut impl FnMut(&E) -> bool) -> Option<E> {
    let first = queue.partition_point(|(number, _)| number < mark);
    for place in first..queue.len() {
        let (number, message) = &queue[place];
        if wanted(message) {
            let (_, message) = queue.remove(place)?;
            give_back(queue);
            return Some(message);
        }
        *mark = number + 1;
    }
    None
}

/// Takes the oldest message.
fn pop<E>(queue: &mut Queue<E>) -> Option<E> {
    let (_, message) = queue.pop_front()?;
    give_back(queue);
    Some(message)
}

/// A queue that has become empty gives a large buffer back.
fn give_back<E>(queue: &mut Queue<E>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        drop(mem::take(queue));
    }
}
