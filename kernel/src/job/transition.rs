//! The arguments and results of the transitions of a job's state. A result says what the caller now owes.

/// What the caller of [`State::wake`](crate::job::state::State::wake) or
/// [`State::cancel`](crate::job::state::State::cancel) now owes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owes {
    /// Nothing: the job is done, or its runner will see the wake.
    Nothing,
    /// The caller now creates the job's runnable and must pass it to `ready`.
    Schedule,
    /// The job's thread is blocked in `wait()`: the caller must unpark it.
    Unblock,
}

/// What the caller of [`State::post`](crate::job::state::State::post) now owes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// Nothing: the message is in the mailbox.
    Queued,
    /// The message is in the mailbox; the caller now creates the job's runnable and must pass it to `ready`.
    Schedule,
    /// The message is in the mailbox; the caller must wake the receiver, whose waker is in the extensions.
    WakeReceiver,
    /// The message was refused and still belongs to the caller.
    Closed,
}

/// The result of an attempt to park a job.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkOutcome {
    /// The job is parked: the caller no longer owns the runnable and may not touch the job.
    Parked,
    /// A wake came first: the caller still owns the runnable and must queue it.
    Again,
}

/// What a thread that is about to poll a job must do.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StartAction {
    /// Poll its future.
    Poll,
    /// Drop its future: the job was cancelled.
    Cancel,
}

/// What the thread that completed a job must do with its result.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completed {
    /// Nothing of what follows: the output waits for the join handle, and nobody is to be told.
    pub(crate) is_quiet: bool,
    /// No handle will take the output: drop it.
    pub(crate) drop_output: bool,
    /// The joiner's waker is in the extensions: wake it.
    pub(crate) wake_joiner: bool,
    /// The receiver's waker is in the extensions: wake it, so that the receiver learns of the end.
    pub(crate) wake_receiver: bool,
    /// There are exit hooks or an attachment: run them, and then call `end_exit_hooks`.
    pub(crate) run_exit_hooks: bool,
}

/// What a sample finds in a job's inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// There are no untaken messages.
    Nothing,
    /// There are untaken messages, and none of them was there at the last sample.
    New,
    /// There are untaken messages, and some were there at the last sample.
    Seen,
}

/// Whether a job has an inbox, and so accepts messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inbox {
    /// It accepts messages until its inbox is dropped.
    Open,
    /// It never accepts messages.
    None,
}

/// Whether a message wakes the job that is about to park.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// A message wakes it, and one that is already there keeps it from parking.
    Yes,
    /// Messages queue up and do not wake it.
    No,
}
