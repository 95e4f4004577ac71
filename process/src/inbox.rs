//! The inbox: how a process receives.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{Mailbox, Mark, SelectiveReceive};
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
    /// Cancel-safe. One receive looks at each message once, however long it waits. The next one begins at the oldest
    /// message again; with a [mark](Inbox::receive_since) it does not.
    ///
    /// ```
    /// # weald::Runtime::builder().workers(1).build().unwrap().block_on(async {
    /// use weald::process as process;
    ///
    /// let process = process::spawn(async |mut inbox: process::Inbox<i32>| {
    ///     let even = inbox.receive_if(|number| number % 2 == 0).await;
    ///     (even, inbox.receive().await)
    /// })?;
    /// for number in [1, 3, 4] {
    ///     process.pid().send(number);
    /// }
    /// assert_eq!(process.await, Ok((4, 1)));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub fn receive_if<F: FnMut(&M) -> bool>(&mut self, wanted: F) -> ReceiveIf<'_, M, F> {
        ReceiveIf(self.0.receive_if(wanted))
    }

    /// A mark behind all messages that have come: a [receive with it](Inbox::receive_since) looks only at later ones.
    ///
    /// It costs what a receive does, and an allocation of 16 bytes. The first mark since the inbox was last empty costs
    /// O(n): the inbox then counts its messages.
    pub fn mark(&mut self) -> Mark {
        self.0.mark()
    }

    /// As [`receive_if`](Inbox::receive_if), but looks only at the messages behind `mark`, and moves the mark behind
    /// those that it refuses. So receives with one mark look at each message once, however many receives there are, and
    /// however many messages wait before the mark. Use a mark for one kind of message only, because a receive never
    /// looks again at what the mark has passed.
    ///
    /// With [`Mark::oldest`], the first receive begins at the oldest message. With [`Inbox::mark`], made before a
    /// request is sent, the answer is found at once behind any number of older messages. (A [call](crate::Pid::call)
    /// needs no mark: its answer does not go through the inbox.) While a mark stands among the messages, each one that
    /// is taken out costs a look at the marks; a mark that was dropped is forgotten.
    ///
    /// Cancel-safe: dropping the future loses no message, and the mark stays behind what was refused. If `wanted`
    /// panics, the mark stays where it was.
    ///
    /// ```
    /// # weald::Runtime::builder().workers(1).build().unwrap().block_on(async {
    /// use weald::process as process;
    ///
    /// enum Message { Work(u32), Answer(u32) }
    ///
    /// let process = process::spawn(async |mut inbox: process::Inbox<Message>| {
    ///     let myself = inbox.pid();
    ///     for n in 0..10_000 {
    ///         myself.send(Message::Work(n));
    ///     }
    ///     let mut mark = inbox.mark();
    ///     myself.send(Message::Answer(7));
    ///     let is_answer = |message: &Message| matches!(message, Message::Answer(_));
    ///     // It looks at one message.
    ///     let answer = inbox.receive_since(&mut mark, is_answer).await;
    ///     matches!(answer, Message::Answer(7)) && inbox.len() == 10_000
    /// })?;
    /// assert_eq!(process.await, Ok(true));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Panics
    /// As [`receive`](Inbox::receive).
    pub fn receive_since<'a, F: FnMut(&M) -> bool>(
        &'a mut self,
        mark: &'a mut Mark,
        wanted: F,
    ) -> ReceiveSince<'a, M, F> {
        ReceiveSince(self.0.receive_since(mark, wanted))
    }

    /// Takes the oldest message behind `mark` for which `wanted` is true, if there is one now, and moves the mark
    /// behind those that it refuses; see [`receive_since`](Inbox::receive_since).
    pub fn take_since(&mut self, mark: &mut Mark, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.0.take_since(mark, wanted)
    }

    /// Takes the oldest message, if there is one now.
    pub fn try_receive(&mut self) -> Option<M> {
        self.0.try_receive()
    }

    /// Takes the oldest message for which `wanted` is true, if there is one now. O(n).
    ///
    /// It also removes a message that a monitor or a link has left, once the monitor or link was
    /// [ended](Inbox::demonitor).
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
    /// Waits for at most `duration`; with zero it only looks. Cancel-safe: a future that is dropped has taken no
    /// message.
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
/// # weald::Runtime::builder().workers(1).build().unwrap().block_on(async {
/// use std::time::Duration;
/// use weald::process as process;
/// use weald::sync::{after, select};
///
/// let process = process::spawn(async |mut inbox: process::Inbox<i32>| {
///     select! {
///         number = inbox.receive() => Some(number),
///         () = after(Duration::from_secs(60)) => None,
///     }
/// })?;
/// process.pid().send(7);
/// assert_eq!(process.await, Ok(Some(7)));
/// # Ok::<(), weald::SpawnError>(())
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
    /// Waits for at most `duration`; with zero it only looks. Cancel-safe: a future that is dropped has taken no
    /// message.
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

/// The future of [`Inbox::receive_since`].
#[must_use = "a receive does nothing unless it is awaited"]
pub struct ReceiveSince<'a, M, F>(weald_kernel::ReceiveSince<'a, M, F>);

impl<M, F: FnMut(&M) -> bool> ReceiveSince<'_, M, F> {
    /// Waits for at most `duration`; with zero it only looks. Cancel-safe: a future that is dropped has taken no
    /// message.
    ///
    /// # Errors
    /// [`TimedOut`] if no such message came. A message that is already there wins over the deadline.
    pub async fn after(self, duration: Duration) -> Result<M, TimedOut> {
        weald_kernel::timeout(duration, self)
            .await
            .map_err(|_elapsed| TimedOut)
    }
}

impl<M, F: FnMut(&M) -> bool> Future for ReceiveSince<'_, M, F> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<M, F> fmt::Debug for ReceiveSince<'_, M, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveSince").finish_non_exhaustive()
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
