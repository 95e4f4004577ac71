//! Processes that take urgent messages before the others.
//!
//! Messages of both kinds come through the one mailbox of the process, and the receiver sorts them (`sorted.rs`). So
//! names, groups, timers and monitors work with them, and they keep their order with other signals. A process with a
//! plain mailbox pays nothing.
//!
//! The idea is that of Erlang's priority messages (EEP 76).

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{AsUnit, SpawnError};
use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{Kind, Reason},
};

use crate::{
    inbox::TimedOut,
    kinds::{
        prioritized::{Prioritized, PriorityPid},
        sorted::{PriorityMark, Sorted},
    },
    signal::{
        monitor::{Down, MonitorRef},
        trap::Exit,
    },
    spawn::{Builder, Process},
};

/// The receiving end of a mailbox with urgent messages, which are received before all others. Among the urgent ones,
/// and among the others, the order is that of arrival.
pub struct PriorityInbox<M>(pub(super) Sorted<Prioritized<M>>);

impl Builder {
    /// Spawns a process that takes urgent messages before the others.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{Builder, PriorityInbox};
    ///
    /// let (process, pid) = Builder::new().spawn_priority(
    ///     async |mut inbox: PriorityInbox<&str>| (inbox.receive().await, inbox.receive().await),
    /// )?;
    /// pid.send("work");
    /// pid.send_urgent("stop");
    /// assert_eq!(process.await, Ok(("stop", "work")));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[allow(clippy::type_complexity, reason = "a process and its address")]
    #[track_caller]
    pub fn spawn_priority<M, F, Fut>(
        self,
        body: F,
    ) -> Result<(Process<Prioritized<M>, Fut::Output>, PriorityPid<M>), SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(PriorityInbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let process = self.spawn(|inbox| body(PriorityInbox(Sorted::new(inbox))))?;
        let pid = PriorityPid(process.pid().clone());
        Ok((process, pid))
    }
}

impl<M> PriorityInbox<M> {
    /// The address of this process.
    pub fn pid(&self) -> PriorityPid<M> {
        PriorityPid(self.0.inbox.pid())
    }

    /// Waits for the oldest urgent message, or the oldest of the others if none is urgent. O(1), and O(1) for each
    /// message that has come since the last receive. Cancel-safe: dropping the future loses no message.
    ///
    /// # Panics
    /// As [`Inbox::receive`](crate::Inbox::receive).
    pub fn receive(&mut self) -> PriorityReceive<'_, M> {
        PriorityReceive(self)
    }

    /// Waits for a message for which `wanted` is true; of several it takes the oldest urgent one, or else the oldest.
    /// The others stay. Cancel-safe. One receive looks at each message once, however long it waits.
    pub async fn receive_if(&mut self, wanted: impl FnMut(&M) -> bool) -> M {
        let mut mark = PriorityMark::oldest();
        self.receive_since(&mut mark, wanted).await
    }

    /// A mark behind all messages that have come, urgent ones and others: a [receive with
    /// it](PriorityInbox::receive_since) looks only at later ones. It costs what a receive does.
    pub fn mark(&mut self) -> PriorityMark {
        self.0.mark()
    }

    /// As [`receive_if`](PriorityInbox::receive_if), but looks only at the messages behind `mark`, and moves the mark
    /// behind those that it refuses; see [`Inbox::receive_since`](crate::Inbox::receive_since). The mark must be of
    /// this inbox. O(log n), and O(1) for each message that it looks at. Cancel-safe.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use weald::process::{Builder, PriorityInbox};
    ///
    /// let (process, _pid) = Builder::new().spawn_priority(
    ///     async |mut inbox: PriorityInbox<&str>| {
    ///         let myself = inbox.pid();
    ///         myself.send("work");
    ///         myself.send_urgent("stop");
    ///         let mut mark = inbox.mark();
    ///         myself.send("answer");
    ///         // It looks at one message.
    ///         let answer = inbox.receive_since(&mut mark, |message| *message == "answer").await;
    ///         [answer, inbox.receive().await, inbox.receive().await]
    ///     },
    /// )?;
    /// assert_eq!(process.await, Ok(["answer", "stop", "work"]));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub async fn receive_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> M {
        let wanted = |prioritized: &Prioritized<M>| wanted(&prioritized.message);
        self.0.receive_since(mark, wanted).await.message
    }

    /// Takes a message behind `mark` for which `wanted` is true, if there is one now, and moves the mark behind those
    /// that it refuses; see [`receive_since`](PriorityInbox::receive_since).
    pub fn take_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> Option<M> {
        let found = self.0.take_since(mark, |found| wanted(&found.message))?;
        Some(found.message)
    }

    /// Takes the next message, if there is one now.
    pub fn try_receive(&mut self) -> Option<M> {
        Some(self.0.try_receive()?.message)
    }

    /// Takes a message for which `wanted` is true, if there is one now; see [`PriorityInbox::receive_if`]. O(n).
    pub fn take_if(&mut self, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.take_since(&mut PriorityMark::oldest(), wanted)
    }

    /// How many messages there are now.
    pub fn len(&mut self) -> usize {
        self.0.len()
    }

    /// Whether there is no message now.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }
}

impl<M: Send + 'static> PriorityInbox<M> {
    /// Watches `unit`; see [`Inbox::monitor`](crate::Inbox::monitor). The notice is urgent.
    ///
    /// # Panics
    /// As [`Inbox::monitor`](crate::Inbox::monitor).
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        self.0
            .inbox
            .monitor(unit, |down| Prioritized::urgent(convert(down)))
    }

    /// Ends a monitor; see [`Inbox::demonitor`](crate::Inbox::demonitor).
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        self.0.inbox.demonitor(monitor)
    }

    /// Exit signals become urgent messages; see [`Inbox::trap_exits`](crate::Inbox::trap_exits).
    ///
    /// # Panics
    /// As [`Inbox::trap_exits`](crate::Inbox::trap_exits).
    pub fn trap_exits(&mut self, convert: impl Fn(Exit) -> M + Send + Sync + 'static) {
        self.0
            .inbox
            .trap_exits(move |exit| Prioritized::urgent(convert(exit)));
    }

    /// Exit signals end this process again; see [`Inbox::untrap_exits`](crate::Inbox::untrap_exits).
    pub fn untrap_exits(&mut self) {
        self.0.inbox.untrap_exits();
    }
}

/// The future of [`PriorityInbox::receive`], which can be one of several events, too. Cancel-safe.
#[must_use = "a receive does nothing unless it is awaited"]
pub struct PriorityReceive<'a, M>(&'a mut PriorityInbox<M>);

impl<M> PriorityReceive<'_, M> {
    /// Waits for at most `duration`; with zero it only looks. Cancel-safe: a future that is dropped has taken no
    /// message.
    ///
    /// # Errors
    /// [`TimedOut`] if no message came. A message that is already there wins over the deadline.
    pub async fn after(self, duration: Duration) -> Result<M, TimedOut> {
        let received = weald_kernel::timeout(duration, self).await;
        received.map_err(|_elapsed| TimedOut)
    }
}

impl<M> Future for PriorityReceive<'_, M> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        let received = self.0.0.poll_receive(cx);
        received.map(|prioritized| prioritized.message)
    }
}

impl<'a, M> Event for PriorityReceive<'a, M> {
    type Output = M;
    type Branch = <Polled<&'a mut PriorityInbox<M>> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self.0).open()
    }

    fn conclude(message: M) -> M {
        message
    }
}

/// The next message as one of several events. An inbox that is not chosen keeps it.
impl<M> Source for PriorityInbox<M> {
    type Output = M;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0.poll_ready(cx)
    }

    fn take(mut self: Pin<&mut Self>) -> M {
        let message = self.try_receive();
        message.expect("`take` follows a `poll_ready` that found a message")
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::Message)
    }
}

impl<M> fmt::Debug for PriorityInbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PriorityInbox")
            .field(&self.0.inbox.pid())
            .finish()
    }
}

impl<M> fmt::Debug for PriorityReceive<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PriorityReceive").finish_non_exhaustive()
    }
}
