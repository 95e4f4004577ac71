//! The inbox: how a process receives.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{Mailbox, SelectiveReceive};
use weald_sync::{Event, Polled, of_source};

use crate::pid::Pid;

/// The receiving end of a process's mailbox. Dropping it closes the mailbox: unread messages are
/// dropped, and to its senders the process is dead.
#[derive(Debug)]
pub struct Inbox<M>(pub(crate) Mailbox<M>);

/// No message came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no message came before the deadline")]
pub struct TimedOut;

impl<M> Inbox<M> {
    /// The pid of this process.
    pub fn pid(&self) -> Pid<M> {
        Pid(self.0.address())
    }

    /// Waits for the oldest message. Cancel-safe: dropping the future loses no message.
    ///
    /// # Panics
    /// If the inbox was moved out of its process and the process has ended: nothing can arrive any longer.
    #[inline]
    pub fn receive(&mut self) -> Receive<'_, M> {
        Receive { inbox: self }
    }

    /// Waits for the oldest message for which `wanted` is true; the others stay, in their order.
    /// Cancel-safe. One receive looks at each message once, however long it waits.
    ///
    /// ```
    /// # weald_kernel::Runtime::builder().workers(1).build().unwrap().block_on(async {
    /// use weald_process as process;
    ///
    /// let process = process::spawn(async |mut inbox: process::Inbox<i32>| {
    ///     let even = inbox.receive_if(|number| number % 2 == 0).await;
    ///     (even, inbox.receive().await)
    /// })?;
    /// for number in [1, 3, 4] {
    ///     process.pid().send(number);
    /// }
    /// assert_eq!(process.await, Ok((4, 1)));
    /// # Ok::<(), weald_kernel::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub fn receive_if<F: FnMut(&M) -> bool>(&mut self, wanted: F) -> ReceiveIf<'_, M, F> {
        ReceiveIf(self.0.receive_if(wanted))
    }

    /// Takes the oldest message, if there is one now.
    pub fn try_receive(&mut self) -> Option<M> {
        self.0.try_receive()
    }

    /// Takes the oldest message for which `wanted` is true, if there is one now. O(n).
    ///
    /// It removes what a monitor or a link has left, once that was [ended](Inbox::demonitor).
    pub fn take_if(&mut self, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.0.take_if(wanted)
    }

    /// How many messages there are now. O(n).
    pub fn len(&mut self) -> usize {
        self.0.len()
    }

    /// Whether there is no message now.
    pub fn is_empty(&mut self) -> bool {
        self.0.is_empty()
    }
}

/// The future of [`Inbox::receive`].
#[must_use = "a receive does nothing unless it is awaited"]
pub struct Receive<'a, M> {
    inbox: &'a mut Inbox<M>,
}

impl<M> Receive<'_, M> {
    /// Waits for at most `duration`; with zero it only looks.
    ///
    /// # Errors
    /// [`TimedOut`] if no message came. A message that is already there wins over the deadline.
    pub async fn after(self, duration: Duration) -> Result<M, TimedOut> {
        weald_kernel::timeout(duration, self)
            .await
            .map_err(|_elapsed| TimedOut)
    }
}

impl<M> Future for Receive<'_, M> {
    type Output = M;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        self.inbox.0.poll_receive(cx)
    }
}

/// The next message as one of several events. If another event is chosen, the inbox keeps the message.
///
/// ```
/// # weald_kernel::Runtime::builder().workers(1).build().unwrap().block_on(async {
/// use std::time::Duration;
/// use weald_process as process;
/// use weald_sync::{after, select};
///
/// let process = process::spawn(async |mut inbox: process::Inbox<i32>| {
///     select! {
///         number = inbox.receive() => Some(number),
///         () = after(Duration::from_secs(60)) => None,
///     }
/// })?;
/// process.pid().send(7);
/// assert_eq!(process.await, Ok(Some(7)));
/// # Ok::<(), weald_kernel::SpawnError>(())
/// # }).unwrap();
/// ```
impl<'a, M> Event for Receive<'a, M> {
    type Output = M;
    type Branch = <Polled<&'a mut Mailbox<M>> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(&mut self.inbox.0).open()
    }

    fn conclude(message: M) -> M {
        message
    }
}

/// The future of [`Inbox::receive_if`].
#[must_use = "a receive does nothing unless it is awaited"]
pub struct ReceiveIf<'a, M, F>(SelectiveReceive<'a, M, F>);

impl<M, F: FnMut(&M) -> bool> ReceiveIf<'_, M, F> {
    /// Waits for at most `duration`; with zero it only looks.
    ///
    /// # Errors
    /// [`TimedOut`] if no such message came. A message that is already there wins over the deadline.
    pub async fn after(self, duration: Duration) -> Result<M, TimedOut> {
        weald_kernel::timeout(duration, self)
            .await
            .map_err(|_elapsed| TimedOut)
    }
}

impl<M, F: FnMut(&M) -> bool> Future for ReceiveIf<'_, M, F> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<M, F> fmt::Debug for ReceiveIf<'_, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveIf").finish_non_exhaustive()
    }
}

impl<M> fmt::Debug for Receive<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receive").finish_non_exhaustive()
    }
}
