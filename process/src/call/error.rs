//! Why a call has no answer.

use crate::exit::ExitReason;

/// Why a call has no answer.
///
/// ```
/// use std::time::Duration;
/// use weald::process::{self, CallError, Inbox, Reply};
///
/// weald::block_on(async {
///     let silent = process::spawn(async |mut inbox: Inbox<Reply<u32>>| {
///         let _kept = inbox.receive().await;
///         std::future::pending::<()>().await;
///     })?;
///     let asked = silent.pid().call(|reply| reply).within(Duration::from_millis(10)).await;
///     assert_eq!(asked, Err(CallError::TimedOut));
///     Ok::<(), weald::SpawnError>(())
/// })?;
/// # Ok::<(), weald::SpawnError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The unit that had the request ended, for this reason; [`NoProcess`](ExitReason::NoProcess) if the callee had
    /// ended before the call, or takes no messages any longer, because it has dropped its inbox. If the callee was
    /// killed before the call, the call ends when the callee has ended, with the callee's reason.
    #[error("the call has no answer: {0}")]
    Died(ExitReason),
    /// The deadline passed. An answer that comes later reaches nobody.
    #[error("the call had no answer before its deadline")]
    TimedOut,
    /// The callee dropped the request without an answer. The callee continues, or was about to return: a process that
    /// keeps the request to its last line drops it before it ends.
    #[error("the callee dropped the request without an answer")]
    NoReply,
    /// A process called itself: nobody would answer while it waits. Nothing was sent. Instead, call a function, send
    /// the process a message, or spawn a job that calls.
    #[error(
        "a process cannot answer its own call while it waits; call a function, or send a message"
    )]
    Itself,
    /// The mailbox of the callee is [bounded](crate::Builder::spawn_bounded) and full, and callers do not wait for
    /// room.
    #[error("the mailbox of the callee is full; call again later")]
    Full,
}
