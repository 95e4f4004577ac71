//! The address of a process that takes urgent messages before the others, and what it sends.

use std::fmt;

use weald_kernel::{AsUnit, JobName, Unit};

use crate::{
    call::{Call, Reply},
    exit::ExitReason,
    kinds::sorted::Urgency,
    pid::{Pid, SendError},
    signal::signals::ProcessId,
};

/// What the mailbox of a process with priority messages holds: a message, and whether it is urgent. A
/// [`Name`](crate::Name) or a [`Group`](crate::Group) of such processes has it as its message.
pub struct Prioritized<M> {
    pub(super) message: M,
    pub(super) is_urgent: bool,
}

/// The address of a process that takes urgent messages before the others. It has 8 bytes.
pub struct PriorityPid<M>(pub(super) Pid<Prioritized<M>>);

impl<M> Prioritized<M> {
    /// A message that is received before those that are not urgent.
    pub fn urgent(message: M) -> Prioritized<M> {
        Prioritized {
            message,
            is_urgent: true,
        }
    }

    /// A message that is not urgent.
    pub fn usual(message: M) -> Prioritized<M> {
        Prioritized {
            message,
            is_urgent: false,
        }
    }

    pub(crate) fn into_message(self) -> M {
        self.message
    }
}

impl<M> Urgency for Prioritized<M> {
    fn is_urgent(&self) -> bool {
        self.is_urgent
    }
}

impl<M> PriorityPid<M> {
    /// The process that has this pid, such as one that a [`Name`](crate::Name) leads to.
    pub fn of(pid: Pid<Prioritized<M>>) -> PriorityPid<M> {
        PriorityPid(pid)
    }

    /// The pid of the process. Messages for it are made with [`Prioritized::urgent`] and [`Prioritized::usual`].
    pub fn pid(&self) -> &Pid<Prioritized<M>> {
        &self.0
    }

    /// Sends a message; see [`Pid::send`].
    pub fn send(&self, message: M) {
        self.0.send(Prioritized::usual(message));
    }

    /// Sends a message that is received before all that are not urgent, even before those that were sent earlier.
    pub fn send_urgent(&self, message: M) {
        self.0.send(Prioritized::urgent(message));
    }

    /// Sends a message if the process is alive; see [`Pid::try_send`].
    ///
    /// # Errors
    /// The reason, with the message.
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.post(Prioritized::usual(message))
    }

    /// Sends an urgent message if the process is alive.
    ///
    /// # Errors
    /// The reason, with the message.
    pub fn try_send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        self.post(Prioritized::urgent(message))
    }

    fn post(&self, message: Prioritized<M>) -> Result<(), SendError<M>> {
        let posted = self.0.0.post(message);
        posted.map_err(|prioritized| SendError::Dead(prioritized.message))
    }

    /// Sends a request and waits for its answer; see [`Pid::call`].
    ///
    /// # Errors
    /// The future returns a [`CallError`](crate::CallError).
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn call<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        request: F,
    ) -> Call<Prioritized<M>, T, impl FnOnce(Reply<T>) -> Prioritized<M> + use<M, T, F>> {
        self.0.call(|reply| Prioritized::usual(request(reply)))
    }

    /// As [`PriorityPid::call`], with an urgent request: it is served before all that are not.
    ///
    /// # Errors
    /// As [`PriorityPid::call`].
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub fn call_urgent<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        request: F,
    ) -> Call<Prioritized<M>, T, impl FnOnce(Reply<T>) -> Prioritized<M> + use<M, T, F>> {
        self.0.call(|reply| Prioritized::urgent(request(reply)))
    }

    /// Sends an exit signal; see [`Pid::exit`].
    pub fn exit(&self, reason: &ExitReason) {
        self.0.exit(reason);
    }

    /// Asks the process to end; see [`Pid::kill`].
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Whether the process was still running at the time of the call; see [`Pid::is_alive`].
    pub fn is_alive(&self) -> bool {
        self.0.is_alive()
    }

    /// The number of the process, which no other one has.
    pub fn id(&self) -> ProcessId {
        self.0.id()
    }

    /// The process's name and spawn site, for reports.
    pub fn name(&self) -> JobName {
        self.0.name()
    }
}

impl<M> Clone for PriorityPid<M> {
    fn clone(&self) -> PriorityPid<M> {
        PriorityPid(self.0.clone())
    }
}

impl<M> PartialEq for PriorityPid<M> {
    fn eq(&self, other: &PriorityPid<M>) -> bool {
        self.0 == other.0
    }
}

impl<M> Eq for PriorityPid<M> {}

impl<M> AsUnit for PriorityPid<M> {
    fn as_unit(&self) -> Option<Unit> {
        self.0.as_unit()
    }
}

impl<M> fmt::Debug for PriorityPid<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PriorityPid").field(&self.0).finish()
    }
}

impl<M: fmt::Debug> fmt::Debug for Prioritized<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prioritized")
            .field("message", &self.message)
            .field("is_urgent", &self.is_urgent)
            .finish()
    }
}
