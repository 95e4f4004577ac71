//! The inbox of a server or a state machine, whose mailbox is of any kind.
//!
//! Their functions get one type of scope, whatever the mailbox is. A plain inbox is stored directly, at the price of a
//! comparison for each receive (22 of the 1,830 instructions of a request and its answer, by callgrind). Inboxes of
//! other kinds are boxed.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use weald_kernel::{AsUnit, now, timeout};

use crate::{
    inbox::Inbox,
    kinds::{
        bounded::{BoundedInbox, BoundedPid},
        bounded_message::Bounded,
        bounded_priority::BoundedPriorityInbox,
        prioritized::Prioritized,
    },
    pid::Pid,
    signal::{
        monitor::{Down, MonitorRef},
        trap::Exit,
    },
};

pub(crate) enum AnyInbox<M> {
    Plain(Inbox<M>),
    /// In a box, so that a scope with a plain inbox has the size of the inbox.
    Other(Box<OtherInbox<M>>),
}

pub(crate) enum OtherInbox<M> {
    InOrder(BoundedInbox<Prioritized<M>>),
    Sorted(BoundedPriorityInbox<M>),
}

impl<M> AnyInbox<M> {
    /// The pid of a process with a plain mailbox.
    ///
    /// # Panics
    /// If the mailbox is of another kind.
    #[track_caller]
    pub(crate) fn plain_pid(&self) -> Pid<M> {
        match self {
            AnyInbox::Plain(inbox) => inbox.pid(),
            AnyInbox::Other(_) => panic!(
                "the mailbox of this process is not plain: ask its scope for the bounded address"
            ),
        }
    }

    /// The pid of a process whose mailbox is not plain.
    pub(crate) fn bounded_pid(&self) -> Option<BoundedPid<Prioritized<M>>> {
        match self {
            AnyInbox::Plain(_) => None,
            AnyInbox::Other(inbox) => Some(inbox.pid()),
        }
    }

    /// The next message; none if none comes before the deadline. A message that is there wins.
    pub(crate) async fn receive_until(&mut self, deadline: Instant) -> Option<M> {
        let left = deadline.saturating_duration_since(now());
        timeout(left, self.receive()).await.ok()
    }

    pub(crate) fn receive(&mut self) -> ReceiveAny<'_, M> {
        ReceiveAny(self)
    }
}

/// The future of [`AnyInbox::receive`].
pub(crate) struct ReceiveAny<'a, M>(&'a mut AnyInbox<M>);

impl<M> Future for ReceiveAny<'_, M> {
    type Output = M;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        match &mut *self.0 {
            AnyInbox::Plain(inbox) => inbox.0.poll_receive(cx),
            AnyInbox::Other(inbox) => inbox.poll_receive(cx),
        }
    }
}

impl<M: Send + 'static> AnyInbox<M> {
    /// See [`Inbox::trap_exits`]. Exit signals take no room, and are urgent.
    pub(crate) fn trap_exits(&mut self, convert: impl Fn(Exit) -> M + Send + Sync + 'static) {
        match self {
            AnyInbox::Plain(inbox) => inbox.trap_exits(convert),
            AnyInbox::Other(inbox) => {
                let inbox = inbox.bare();
                inbox.trap_exits(move |exit| notice(convert(exit)));
            }
        }
    }

    /// See [`Inbox::monitor`]. The notice takes no room, and is urgent.
    pub(crate) fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        match self {
            AnyInbox::Plain(inbox) => inbox.monitor(unit, convert),
            AnyInbox::Other(inbox) => {
                let inbox = inbox.bare();
                inbox.monitor(unit, |down| notice(convert(down)))
            }
        }
    }

    pub(crate) fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        match self {
            AnyInbox::Plain(inbox) => inbox.demonitor(monitor),
            AnyInbox::Other(inbox) => inbox.bare().demonitor(monitor),
        }
    }
}

/// A message that takes no room, and is urgent where there are urgent messages.
fn notice<M>(message: M) -> Bounded<Prioritized<M>> {
    Bounded::notice(Prioritized::urgent(message))
}

impl<M> OtherInbox<M> {
    pub(crate) fn pid(&self) -> BoundedPid<Prioritized<M>> {
        match self {
            OtherInbox::InOrder(inbox) => inbox.pid(),
            OtherInbox::Sorted(inbox) => inbox.pid(),
        }
    }

    /// The inbox through which all messages come.
    fn bare(&mut self) -> &mut Inbox<Bounded<Prioritized<M>>> {
        match self {
            OtherInbox::InOrder(inbox) => &mut inbox.inbox,
            OtherInbox::Sorted(inbox) => &mut inbox.sorted.inbox,
        }
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<M> {
        match self {
            OtherInbox::InOrder(inbox) => {
                let received = Pin::new(&mut inbox.receive()).poll(cx);
                received.map(|prioritized| prioritized.message)
            }
            OtherInbox::Sorted(inbox) => Pin::new(&mut inbox.receive()).poll(cx),
        }
    }
}

impl<M> From<Inbox<M>> for AnyInbox<M> {
    fn from(inbox: Inbox<M>) -> AnyInbox<M> {
        AnyInbox::Plain(inbox)
    }
}

impl<M> fmt::Debug for AnyInbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnyInbox::Plain(inbox) => f.debug_tuple("Plain").field(&inbox.pid()).finish(),
            AnyInbox::Other(inbox) => f.debug_tuple("Bounded").field(&inbox.pid()).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_inbox_takes_no_more_memory_for_the_other_kinds() {
        assert_eq!(size_of::<AnyInbox<u64>>(), size_of::<Inbox<u64>>());
    }
}
