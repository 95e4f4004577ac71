//! The address of a state machine whose mailbox is bounded, or takes urgent messages first.
//!
//! Its messages are those of a plain machine, in the envelopes of the mailbox's kind; see `server/bounded.rs`. An event
//! that is postponed has given its room back.

use std::fmt::{self, Debug};

use weald_kernel::{AsUnit, SpawnError, Unit};

use super::{
    Machine, MachineScope,
    message::{Incoming, MachineMessage},
    run,
};
use crate::{
    admission::Room,
    call::{Call, Reply},
    kinds::{
        bounded::BoundedPid, bounded_call::BoundedCall, bounded_message::Bounded,
        mailbox_kind::MailboxKind, prioritized::Prioritized,
    },
    names::{Name, NameError, RegisterError},
    pid::{Pid, SendError},
    spawn::Builder,
};

/// The message of a state machine whose mailbox is not plain: the type of its [`Name`].
pub type BoundedMachineMessage<M> = Bounded<Prioritized<MachineMessage<M>>>;

/// The address of a state [`Machine`] whose mailbox is not plain. An event that meets a full mailbox waits, or fails
/// with [`CallError::Full`](crate::CallError::Full) or [`SendError::Full`], as the [`MailboxKind`] says. An event that
/// the machine postpones has given its room back, so there may be any number of those. A clone is cheap. See
/// [`BoundedServerRef`](crate::BoundedServerRef) for an example.
pub struct BoundedMachineRef<M: Machine>(BoundedPid<Prioritized<MachineMessage<M>>>);

impl<M: Machine> BoundedMachineRef<M> {
    /// Starts a machine with a mailbox of this kind.
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start(
        builder: Builder,
        kind: MailboxKind,
        machine: M,
    ) -> Result<BoundedMachineRef<M>, SpawnError> {
        let parent = builder.parent();
        let spawned = kind.spawn(builder, |inbox| run(machine, inbox, None, parent));
        spawned.map(BoundedMachineRef)
    }

    /// As [`start`](BoundedMachineRef::start); the machine has the name before it runs. If the name is taken, nothing
    /// is started.
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start_as(
        name: &Name<BoundedMachineMessage<M>>,
        builder: Builder,
        kind: MailboxKind,
        machine: M,
    ) -> Result<BoundedMachineRef<M>, RegisterError> {
        let parent = builder.parent();
        let spawned = kind.spawn_as(name, builder, |inbox| run(machine, inbox, None, parent));
        spawned.map(BoundedMachineRef)
    }

    /// The machine that has this pid, such as one that [`Name::registered`] returns. None if it has ended.
    pub fn of(pid: Pid<BoundedMachineMessage<M>>) -> Option<BoundedMachineRef<M>> {
        BoundedPid::of(pid).map(BoundedMachineRef)
    }

    /// The machine that has this name now.
    ///
    /// # Errors
    /// As [`Name::whereis`].
    pub fn named(name: &Name<BoundedMachineMessage<M>>) -> Result<BoundedMachineRef<M>, NameError> {
        BoundedPid::named(name).map(BoundedMachineRef)
    }

    /// The pid of its process, which tells how much [room](BoundedPid::room) there is.
    pub fn pid(&self) -> &BoundedPid<Prioritized<MachineMessage<M>>> {
        &self.0
    }

    /// Sends an event; under [`Overflow::Wait`](crate::Overflow::Wait) it waits for room. A machine that sends to
    /// itself in this way waits for ever if its mailbox is full. Cancel-safe: a future that is dropped has sent
    /// nothing.
    ///
    /// # Errors
    /// [`SendError::Full`] if there is no room, and senders do not wait. [`SendError::Dead`] if the machine has ended,
    /// or ends while this waits. Both return the event.
    pub async fn send(&self, event: M::Event) -> Result<(), SendError<M::Event>> {
        let event = MachineMessage::event(event);
        self.0.send_as(Room::Usual, event, returned).await
    }

    /// As [`send`](BoundedMachineRef::send), with an urgent event: where urgent messages come first, it has their room,
    /// and is handled before all that are not urgent. Cancel-safe, too.
    ///
    /// # Errors
    /// As [`send`](BoundedMachineRef::send).
    pub async fn send_urgent(&self, event: M::Event) -> Result<(), SendError<M::Event>> {
        let event = MachineMessage::event(event);
        self.0.send_as(Room::Urgent, event, returned).await
    }

    /// Sends an event if there is room, and nobody waits for it. Never waits.
    ///
    /// # Errors
    /// [`SendError::Full`] if there is no room, [`SendError::Dead`] if the machine has ended. Both return the event.
    pub fn try_send(&self, event: M::Event) -> Result<(), SendError<M::Event>> {
        let event = MachineMessage::event(event);
        self.0.try_send_as(Room::Usual, event, returned)
    }

    /// As [`try_send`](BoundedMachineRef::try_send), with an urgent event.
    ///
    /// # Errors
    /// As [`try_send`](BoundedMachineRef::try_send).
    pub fn try_send_urgent(&self, event: M::Event) -> Result<(), SendError<M::Event>> {
        let event = MachineMessage::event(event);
        self.0.try_send_as(Room::Urgent, event, returned)
    }

    /// Sends an event that wants an answer, and waits for it, and before that for room under
    /// [`Overflow::Wait`](crate::Overflow::Wait): as [`BoundedPid::call`].
    ///
    /// # Errors
    /// A [`CallError`](crate::CallError); [`Full`](crate::CallError::Full) if there was no room, and callers do not
    /// wait.
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn call<T, F: FnOnce(Reply<T>) -> M::Event>(
        &self,
        event: F,
    ) -> BoundedCall<
        '_,
        Prioritized<MachineMessage<M>>,
        T,
        impl FnOnce(Reply<T>) -> Prioritized<MachineMessage<M>> + use<M, T, F>,
    > {
        let event = |reply| Prioritized::usual(MachineMessage::asked(event, reply));
        self.0.call(event)
    }

    /// As [`call`](BoundedMachineRef::call), with an urgent event; see [`send_urgent`](BoundedMachineRef::send_urgent).
    ///
    /// # Errors
    /// As [`call`](BoundedMachineRef::call).
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub fn call_urgent<T, F: FnOnce(Reply<T>) -> M::Event>(
        &self,
        event: F,
    ) -> BoundedCall<
        '_,
        Prioritized<MachineMessage<M>>,
        T,
        impl FnOnce(Reply<T>) -> Prioritized<MachineMessage<M>> + use<M, T, F>,
    > {
        self.0
            .call_urgent(|reply| MachineMessage::asked(event, reply))
    }

    /// The state. The request for it takes no room, and is urgent; without urgent messages it comes in its
    /// turn.
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub fn state(
        &self,
    ) -> Call<
        BoundedMachineMessage<M>,
        M::State,
        impl FnOnce(Reply<M::State>) -> BoundedMachineMessage<M> + use<M>,
    > {
        self.0.look(|reply| MachineMessage(Incoming::State(reply)))
    }

    /// Stops the machine in its turn, and waits for its end; see [`MachineRef::stop`](crate::MachineRef::stop). The
    /// order takes no room. If the future is dropped after its first poll, the machine stops all the same.
    ///
    /// # Panics
    /// In the machine itself, which returns [`Transition::Stop`](crate::Transition::Stop) instead.
    pub async fn stop(&self) {
        self.0.stop_by(MachineMessage(Incoming::Stop)).await;
    }
}

impl<M: Machine> MachineScope<M> {
    /// The address of this machine, if its mailbox is not plain.
    pub fn bounded_machine(&self) -> Option<BoundedMachineRef<M>> {
        self.inbox.bounded_pid().map(BoundedMachineRef)
    }
}

/// The event of a message that came back.
fn returned<M: Machine>(message: MachineMessage<M>) -> M::Event {
    match message.0 {
        Incoming::Event(pending) => pending.event,
        _ => unreachable!("an event was sent"),
    }
}

impl<M: Machine> Clone for BoundedMachineRef<M> {
    fn clone(&self) -> BoundedMachineRef<M> {
        BoundedMachineRef(self.0.clone())
    }
}

impl<M: Machine> AsUnit for BoundedMachineRef<M> {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}

impl<M: Machine> Debug for BoundedMachineRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundedMachineRef").field(&self.0).finish()
    }
}
