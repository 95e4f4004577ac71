//! What a state machine receives.

use std::{
    fmt::{self, Debug},
    time::Instant,
};

use super::Machine;
use crate::{call::Reply, signal::trap::Exit};

/// What a machine receives. It is made by [`MachineRef`](crate::MachineRef); a [`Name`](crate::Name) of a machine has
/// it as its message.
pub struct MachineMessage<M: Machine>(pub(super) Incoming<M>);

pub(super) enum Incoming<M: Machine> {
    Event(Pending<M>),
    Exit(Exit),
    State(Reply<M::State>),
    Stop,
}

/// An event that is not handled yet, or was postponed.
pub(super) struct Pending<M: Machine> {
    pub(super) event: M::Event,
    /// Until when its caller waits, if it came by a call that has a deadline.
    pub(super) deadline: Option<Instant>,
}

impl<M: Machine> MachineMessage<M> {
    pub(super) fn event(event: M::Event) -> MachineMessage<M> {
        let deadline = None;
        MachineMessage(Incoming::Event(Pending { event, deadline }))
    }

    /// The event that `event` makes for a call.
    pub(super) fn asked<T>(
        event: impl FnOnce(Reply<T>) -> M::Event,
        reply: Reply<T>,
    ) -> MachineMessage<M> {
        let (deadline, event) = (reply.deadline(), event(reply));
        MachineMessage(Incoming::Event(Pending { event, deadline }))
    }
}

impl<M: Machine> Debug for MachineMessage<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MachineMessage").finish_non_exhaustive()
    }
}
