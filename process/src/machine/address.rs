//! The address of a state machine: its start, and the requests of others.

use std::fmt::{self, Debug};

use weald_kernel::{AsUnit, SpawnError, Unit};

use super::{
    Machine, MachineScope,
    message::{Incoming, MachineMessage},
    run,
};
use crate::{
    call::{Call, Reply},
    inbox::Inbox,
    names::{Name, RegisterError},
    pid::Pid,
    signal::monitor::monitor,
    spawn::Builder,
};

/// The address of a state machine.
pub struct MachineRef<M: Machine>(Pid<MachineMessage<M>>);

impl<M: Machine> MachineRef<M> {
    /// Starts a machine.
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start(builder: Builder, machine: M) -> Result<MachineRef<M>, SpawnError> {
        let parent = builder.parent();
        let process =
            builder.spawn(move |inbox: Inbox<_>| run(machine, inbox.into(), None, parent))?;
        Ok(MachineRef(process.into_pid()))
    }

    /// As [`start`](MachineRef::start); the machine has the name before it runs. If the name is taken, nothing is
    /// started.
    ///
    /// # Errors
    /// If the name is taken, or as [`spawn`](crate::spawn()).
    #[track_caller]
    pub fn start_as(
        name: &Name<MachineMessage<M>>,
        builder: Builder,
        machine: M,
    ) -> Result<MachineRef<M>, RegisterError> {
        let parent = builder.parent();
        let process = name.spawn(builder, move |inbox: Inbox<_>| {
            run(machine, inbox.into(), None, parent)
        })?;
        Ok(MachineRef(process.into_pid()))
    }

    /// The machine that has this pid, such as one that a [`Name`] leads to.
    pub fn of(pid: Pid<MachineMessage<M>>) -> MachineRef<M> {
        MachineRef(pid)
    }

    /// The pid of its process.
    pub fn pid(&self) -> &Pid<MachineMessage<M>> {
        &self.0
    }

    /// Sends an event. Never waits.
    pub fn send(&self, event: M::Event) {
        self.0.send(MachineMessage::event(event));
    }

    /// Sends an event that wants an answer, and waits for it; as [`Pid::call`].
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[track_caller]
    pub fn call<T, F: FnOnce(Reply<T>) -> M::Event>(
        &self,
        event: F,
    ) -> Call<MachineMessage<M>, T, impl FnOnce(Reply<T>) -> MachineMessage<M> + use<M, T, F>> {
        self.0.call(|reply| MachineMessage::asked(event, reply))
    }

    /// The state, in its turn.
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn state(
        &self,
    ) -> Call<MachineMessage<M>, M::State, impl FnOnce(Reply<M::State>) -> MachineMessage<M> + use<M>>
    {
        self.0.call(|reply| MachineMessage(Incoming::State(reply)))
    }

    /// Stops the machine in its turn, with the reason [`Normal`](crate::ExitReason::Normal), and waits for its end. If
    /// the future is dropped after its first poll, the machine stops all the same.
    ///
    /// # Panics
    /// In the machine itself, which returns [`Transition::Stop`](crate::Transition::Stop) instead.
    pub async fn stop(&self) {
        let down = monitor(&self.0);
        self.0.send(MachineMessage(Incoming::Stop));
        down.await;
    }
}

impl<M: Machine> MachineScope<M> {
    /// The address of this machine.
    ///
    /// # Panics
    /// If the mailbox is not plain: [`bounded_machine`](MachineScope::bounded_machine) has the address then.
    #[track_caller]
    pub fn machine(&self) -> MachineRef<M> {
        MachineRef(self.inbox.plain_pid())
    }
}

impl<M: Machine> Clone for MachineRef<M> {
    fn clone(&self) -> MachineRef<M> {
        MachineRef(self.0.clone())
    }
}

impl<M: Machine> AsUnit for MachineRef<M> {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}

impl<M: Machine> Debug for MachineRef<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MachineRef").field(&self.0).finish()
    }
}
