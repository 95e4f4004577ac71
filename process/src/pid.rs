//! The pid: the address of one process.

use std::fmt;

use weald_kernel::{Address, JobName};

/// The address of a process that takes messages `M`.
///
/// A pid has 8 bytes and counts as a reference: it never refers to another process, however long
/// it is kept. Messages from one sender to one process arrive in the order in which they were sent.
///
/// ```
/// # weald::Runtime::builder().workers(1).build().unwrap().block_on(async {
/// use weald::process as process;
///
/// let adder = process::spawn(async |mut inbox: process::Inbox<u32>| {
///     inbox.receive().await + inbox.receive().await
/// })?;
/// adder.pid().send(40);
/// adder.pid().send(2);
/// assert_eq!(adder.await, Ok(42));
/// # Ok::<(), weald::SpawnError>(())
/// # }).unwrap();
/// ```
pub struct Pid<M>(pub(crate) Address<M>);

/// Why a message was not sent. The error returns the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<M> {
    /// The process has ended, or has dropped its inbox.
    Dead(M),
    /// The mailbox of the process is [bounded](crate::Builder::spawn_bounded), and full.
    Full(M),
}

impl<M> SendError<M> {
    /// The message that was not sent.
    pub fn into_message(self) -> M {
        match self {
            SendError::Dead(message) | SendError::Full(message) => message,
        }
    }

    /// The error, with its message changed by `convert`.
    pub(crate) fn map<N>(self, convert: impl FnOnce(M) -> N) -> SendError<N> {
        match self {
            SendError::Dead(message) => SendError::Dead(convert(message)),
            SendError::Full(message) => SendError::Full(convert(message)),
        }
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SendError::Dead(_) => f.write_str("the process has ended and takes no more messages"),
            SendError::Full(_) => f.write_str(
                "the mailbox of the process is full; wait for room, unless its `Overflow` is `Crash`: then the process ends",
            ),
        }
    }
}

impl<M: fmt::Debug> std::error::Error for SendError<M> {}

impl<M> Pid<M> {
    /// Sends a message. Never waits; lock-free; callable from any thread. A message to a dead process is dropped, as
    /// in Erlang. A sender that must know uses [`Pid::try_send`], which reports the state at the time of the call.
    #[inline(always)]
    pub fn send(&self, message: M) {
        drop(self.0.post(message));
    }

    /// Sends a message if the process is alive.
    ///
    /// # Errors
    /// The reason, with the message.
    #[inline(always)]
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.0.post(message).map_err(SendError::Dead)
    }

    /// Asks the process to end at its next wait, with the reason [`Killed`](crate::ExitReason::Killed), even if it
    /// [traps exits](crate::Inbox::trap_exits). Its destructors run. A process that does not wait keeps running until
    /// it does; the kernel's monitor reports it. Messages that are sent after this are not received.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// The process's name and spawn site, for reports.
    pub fn name(&self) -> JobName {
        self.0.name()
    }
}

impl<M> Clone for Pid<M> {
    fn clone(&self) -> Pid<M> {
        Pid(self.0.clone())
    }
}

impl<M> PartialEq for Pid<M> {
    fn eq(&self, other: &Pid<M>) -> bool {
        self.0 == other.0
    }
}

impl<M> Eq for Pid<M> {}

impl<M> std::hash::Hash for Pid<M> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl<M> fmt::Debug for Pid<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pid({}: {})", self.id(), self.name())
    }
}
