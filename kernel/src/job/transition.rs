//! What the transitions of a job's state are asked, and what they answer: what the caller now owes.

/// What the caller of [`State::wake`] or [`State::cancel`] now owes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owes {
    /// Nothing: the job is done, or whoever runs it will see the wake.
    Nothing,
    /// The caller made the job's runnable and must pass it to `ready`.
    Schedule,
    /// The job's thread is blocked in `wait()`: the caller must unpark it.
    Unblock,
}

/// What the caller of [`State::post`] now owes.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Posted {
    /// Nothing more: the post lies in the mailbox.
    Queued,
    /// The post lies in the mailbox; the caller made the job's runnable.
    Schedule,
    /// The post lies in the mailbox; the caller must wake the receiver whose waker is in the extras.
    WakeReceiver,
    /// The post was not taken and still belongs to the caller.
    Closed,
}

/// What the thread that wanted to park a job finds.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ParkOutcome {
    /// Parked: the caller no longer owns the runnable and may not touch the job.
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
    /// No handle will take the output: drop it.
    pub(crate) drop_output: bool,
    /// A waker for the join lies in the extras: wake it.
    pub(crate) wake_joiner: bool,
    /// A waker for the inbox lies in the extras: wake it, so that it learns of the end.
    pub(crate) wake_receiver: bool,
}

/// Whether a job is made with an inbox, and so takes posts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inbox {
    /// It takes posts until its inbox is dropped.
    Open,
    /// It never takes posts.
    None,
}

/// Whether a job that wants to park waits for a post among other things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listening {
    /// A post wakes it, and one that is already there keeps it from parking.
    Yes,
    /// Posts pile up and do not wake it.
    No,
}
