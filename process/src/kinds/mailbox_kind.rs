//! The kinds of mailboxes that a server or a state machine can have beside the plain one.

use std::{num::NonZeroU32, sync::Arc};

use weald_kernel::SpawnError;

use crate::{
    admission::{Admission, Overflow},
    inbox::Inbox,
    kinds::{
        any_inbox::{AnyInbox, OtherInbox},
        bounded::{BoundedInbox, BoundedPid},
        bounded_message::Bounded,
        bounded_priority::BoundedPriorityInbox,
        prioritized::Prioritized,
        sorted::Sorted,
    },
    names::{Name, RegisterError},
    spawn::Builder,
};

/// The mailbox of a [server](crate::BoundedServerRef) or a [state machine](crate::BoundedMachineRef) that is not plain:
/// the kinds are those of [`Builder::spawn_bounded`], [`Builder::spawn_priority`] and
/// [`Builder::spawn_bounded_priority`].
///
/// Requests, casts, infos and events that others send take room. Exit signals, notices of monitors, messages of timers
/// and the order to stop take none, because they must not be lost. Looks at the state take none either, so there may be
/// any number of them; a look whose caller gives up stays until its turn. Where urgent messages come first, exit
/// signals, notices and looks are urgent, and may pass a cast that was sent earlier. Messages of timers and the order
/// to stop come in their turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MailboxKind {
    capacity: NonZeroU32,
    overflow: Overflow,
    has_priority: bool,
}

impl MailboxKind {
    /// At most `capacity` messages; `overflow` says what happens to a further one. All messages come in their turn,
    /// even those that were sent as urgent.
    pub const fn bounded(capacity: NonZeroU32, overflow: Overflow) -> MailboxKind {
        MailboxKind {
            capacity,
            overflow,
            has_priority: false,
        }
    }

    /// Urgent messages are received before the others. There is no bound but the limit of 2^32 - 1 messages of each
    /// sort.
    pub const fn priority() -> MailboxKind {
        MailboxKind {
            has_priority: true,
            ..MailboxKind::bounded(NonZeroU32::MAX, Overflow::Reject)
        }
    }

    /// Urgent messages are received before the others, and have room of their own: at most `capacity` of either.
    pub const fn bounded_priority(capacity: NonZeroU32, overflow: Overflow) -> MailboxKind {
        MailboxKind {
            has_priority: true,
            ..MailboxKind::bounded(capacity, overflow)
        }
    }

    fn admission(self) -> Admission {
        match self.has_priority {
            true => Admission::with_urgent(self.capacity, self.overflow),
            false => Admission::new(self.capacity, self.overflow),
        }
    }

    fn inbox<M>(
        self,
        inbox: Inbox<Bounded<Prioritized<M>>>,
        admission: Arc<Admission>,
    ) -> AnyInbox<M> {
        AnyInbox::Other(Box::new(match self.has_priority {
            true => OtherInbox::Sorted(BoundedPriorityInbox {
                sorted: Sorted::new(inbox),
                admission,
            }),
            false => OtherInbox::InOrder(BoundedInbox { inbox, admission }),
        }))
    }

    /// Spawns a process with such a mailbox.
    #[track_caller]
    pub(crate) fn spawn<M, Fut>(
        self,
        builder: Builder,
        body: impl FnOnce(AnyInbox<M>) -> Fut,
    ) -> Result<BoundedPid<Prioritized<M>>, SpawnError>
    where
        M: Send + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        let body = |inbox, admission| body(self.inbox(inbox, admission));
        let (process, pid) = builder.spawn_admitting(self.admission(), body)?;
        process.into_pid();
        Ok(pid)
    }

    /// Spawns a process with such a mailbox that has the name before it runs.
    #[track_caller]
    pub(crate) fn spawn_as<M, Fut>(
        self,
        name: &Name<Bounded<Prioritized<M>>>,
        builder: Builder,
        body: impl FnOnce(AnyInbox<M>) -> Fut,
    ) -> Result<BoundedPid<Prioritized<M>>, RegisterError>
    where
        M: Send + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        let body = |inbox, admission| body(self.inbox(inbox, admission));
        let (process, pid) = name.spawn_admitting(builder, self.admission(), body)?;
        process.into_pid();
        Ok(pid)
    }
}
