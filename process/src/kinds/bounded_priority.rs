//! Processes with a bounded mailbox that take urgent messages before the others.
//!
//! The mailbox holds [`Bounded`] messages, whose content is [`Prioritized`]: an [`Admission`] bounds them, and
//! the receiver sorts them as `sorted.rs` says. Urgent messages have room of their own. So a mailbox that is full of
//! others neither refuses them nor lets them wait.

use std::{
    fmt,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{AsUnit, SpawnError};
use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{Kind, Reason},
};

use crate::{
    admission::{Admission, Overflow, Room},
    call::Reply,
    inbox::TimedOut,
    kinds::{
        bounded::{BoundedPid, close},
        bounded_call::BoundedCall,
        bounded_message::Bounded,
        prioritized::Prioritized,
        sorted::{PriorityMark, Sorted, Urgency},
    },
    pid::SendError,
    signal::{
        monitor::{Down, MonitorRef},
        trap::Exit,
    },
    spawn::{Builder, Process},
};

/// The receiving end of a bounded mailbox with urgent messages, which are received before all others. A message that is
/// received makes room for another one.
pub struct BoundedPriorityInbox<M> {
    pub(super) sorted: Sorted<Bounded<Prioritized<M>>>,
    pub(super) admission: Arc<Admission>,
}

impl<M> Urgency for Bounded<Prioritized<M>> {
    fn is_urgent(&self) -> bool {
        self.message.is_urgent
    }
}

impl Builder {
    /// Spawns a process that takes urgent messages before the others, and whose mailbox holds at most `capacity` of
    /// either; `overflow` says what happens to a further one.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::num::NonZeroU32;
    /// use weald::process::{BoundedPriorityInbox, Builder, Overflow, Prioritized, SendError};
    ///
    /// let (process, pid) = Builder::new().spawn_bounded_priority(
    ///     NonZeroU32::MIN,
    ///     Overflow::Reject,
    ///     async |mut inbox: BoundedPriorityInbox<&str>| {
    ///         (inbox.receive().await, inbox.receive().await)
    ///     },
    /// )?;
    /// assert!(pid.try_send(Prioritized::usual("work")).is_ok());
    /// assert!(pid.try_send(Prioritized::usual("more work")).is_err());
    /// assert_eq!(pid.try_send_urgent("stop"), Ok(()));
    /// assert_eq!(process.await, Ok(("stop", "work")));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[allow(clippy::type_complexity, reason = "a process and its address")]
    #[track_caller]
    pub fn spawn_bounded_priority<M, F, Fut>(
        self,
        capacity: NonZeroU32,
        overflow: Overflow,
        body: F,
    ) -> Result<
        (
            Process<Bounded<Prioritized<M>>, Fut::Output>,
            BoundedPid<Prioritized<M>>,
        ),
        SpawnError,
    >
    where
        M: Send + 'static,
        F: FnOnce(BoundedPriorityInbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let admission = Admission::with_urgent(capacity, overflow);
        self.spawn_admitting(admission, |inbox, admission| {
            let sorted = Sorted::new(inbox);
            body(BoundedPriorityInbox { sorted, admission })
        })
    }
}

/// Further methods for a process that takes urgent messages first. The methods of every bounded process treat an urgent
/// message like any other: it takes usual room, and waits for room behind all others. It passes them only in the
/// mailbox.
impl<M> BoundedPid<Prioritized<M>> {
    /// Sends an urgent message, for which only other urgent ones take room; see [`BoundedPid::send`]. Cancel-safe, too.
    ///
    /// # Errors
    /// As [`BoundedPid::send`].
    pub async fn send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        let sent = self.send_into(Room::Urgent, Prioritized::urgent(message));
        sent.await
            .map_err(|error| error.map(Prioritized::into_message))
    }

    /// Sends an urgent message if there is room among the urgent ones; see [`BoundedPid::try_send`]. Never waits.
    ///
    /// # Errors
    /// As [`BoundedPid::try_send`].
    pub fn try_send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        let sent = self.try_send_into(Room::Urgent, Prioritized::urgent(message));
        sent.map_err(|error| error.map(Prioritized::into_message))
    }

    /// For how many more urgent messages there is room now.
    pub fn room_for_urgent(&self) -> u32 {
        self.admission.room(Room::Urgent).available()
    }
}

impl<M: Send + 'static> BoundedPid<Prioritized<M>> {
    /// As [`BoundedPid::call`], with an urgent request: it is served before all that are not, and only other urgent
    /// ones take room for it.
    ///
    /// # Errors
    /// As [`BoundedPid::call`].
    #[allow(
        clippy::type_complexity,
        reason = "the closure that makes the request has no name"
    )]
    #[track_caller]
    pub fn call_urgent<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        request: F,
    ) -> BoundedCall<'_, Prioritized<M>, T, impl FnOnce(Reply<T>) -> Prioritized<M> + use<M, T, F>>
    {
        self.call_into(Room::Urgent, |reply| Prioritized::urgent(request(reply)))
    }
}

impl<M> BoundedPriorityInbox<M> {
    /// The address of this process.
    pub fn pid(&self) -> BoundedPid<Prioritized<M>> {
        BoundedPid {
            pid: self.sorted.inbox.pid(),
            admission: self.admission.clone(),
        }
    }

    /// Waits for the oldest urgent message, or the oldest of the others if none is urgent; see
    /// [`PriorityInbox::receive`](crate::PriorityInbox::receive). Cancel-safe.
    ///
    /// # Panics
    /// As [`Inbox::receive`](crate::Inbox::receive).
    pub fn receive(&mut self) -> BoundedPriorityReceive<'_, M> {
        BoundedPriorityReceive(self)
    }

    /// Waits for a message for which `wanted` is true; of several it takes the oldest urgent one, or else the oldest.
    /// The others stay, and keep their room. Cancel-safe.
    pub async fn receive_if(&mut self, wanted: impl FnMut(&M) -> bool) -> M {
        let mut mark = PriorityMark::oldest();
        self.receive_since(&mut mark, wanted).await
    }

    /// A mark behind all messages that have come; see [`PriorityInbox::mark`](crate::PriorityInbox::mark).
    pub fn mark(&mut self) -> PriorityMark {
        self.sorted.mark()
    }

    /// As [`receive_if`](BoundedPriorityInbox::receive_if), but looks only at the messages behind `mark`; see
    /// [`PriorityInbox::receive_since`](crate::PriorityInbox::receive_since). Cancel-safe.
    pub async fn receive_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> M {
        let wanted = |bounded: &Bounded<Prioritized<M>>| wanted(&bounded.message.message);
        let found = self.sorted.receive_since(mark, wanted).await;
        found.taken(&self.admission).message
    }

    /// Takes a message behind `mark` for which `wanted` is true, if there is one now; see
    /// [`PriorityInbox::take_since`](crate::PriorityInbox::take_since).
    pub fn take_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> Option<M> {
        let wanted = |bounded: &Bounded<Prioritized<M>>| wanted(&bounded.message.message);
        let found = self.sorted.take_since(mark, wanted)?;
        Some(found.taken(&self.admission).message)
    }

    /// Takes the next message, if there is one now.
    pub fn try_receive(&mut self) -> Option<M> {
        let found = self.sorted.try_receive()?;
        Some(found.taken(&self.admission).message)
    }

    /// Takes a message for which `wanted` is true, if there is one now. O(n).
    pub fn take_if(&mut self, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.take_since(&mut PriorityMark::oldest(), wanted)
    }

    /// How many messages there are now, with notices.
    pub fn len(&mut self) -> usize {
        self.sorted.len()
    }

    /// Whether there is no message now.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }
}

impl<M: Send + 'static> BoundedPriorityInbox<M> {
    /// Watches `unit`; see [`Inbox::monitor`](crate::Inbox::monitor). The notice is urgent, and takes no room.
    ///
    /// # Panics
    /// As [`Inbox::monitor`](crate::Inbox::monitor).
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        let convert = |down| Bounded::notice(Prioritized::urgent(convert(down)));
        self.sorted.inbox.monitor(unit, convert)
    }

    /// Ends a monitor; see [`Inbox::demonitor`](crate::Inbox::demonitor).
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        self.sorted.inbox.demonitor(monitor)
    }

    /// Exit signals become urgent messages, which take no room; see [`Inbox::trap_exits`](crate::Inbox::trap_exits).
    ///
    /// # Panics
    /// As [`Inbox::trap_exits`](crate::Inbox::trap_exits).
    pub fn trap_exits(&mut self, convert: impl Fn(Exit) -> M + Send + Sync + 'static) {
        let convert = move |exit| Bounded::notice(Prioritized::urgent(convert(exit)));
        self.sorted.inbox.trap_exits(convert);
    }

    /// Exit signals end this process again; see [`Inbox::untrap_exits`](crate::Inbox::untrap_exits).
    pub fn untrap_exits(&mut self) {
        self.sorted.inbox.untrap_exits();
    }
}

impl<M> Drop for BoundedPriorityInbox<M> {
    fn drop(&mut self) {
        close(&self.sorted.inbox, &self.admission);
    }
}

/// The future of [`BoundedPriorityInbox::receive`], which can be one of several events, too. Cancel-safe.
#[must_use = "a receive does nothing unless it is awaited"]
pub struct BoundedPriorityReceive<'a, M>(&'a mut BoundedPriorityInbox<M>);

impl<M> BoundedPriorityReceive<'_, M> {
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

impl<M> Future for BoundedPriorityReceive<'_, M> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        let BoundedPriorityInbox { sorted, admission } = &mut *self.0;
        let received = sorted.poll_receive(cx);
        received.map(|bounded| bounded.taken(admission).message)
    }
}

impl<'a, M> Event for BoundedPriorityReceive<'a, M> {
    type Output = M;
    type Branch = <Polled<&'a mut BoundedPriorityInbox<M>> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self.0).open()
    }

    fn conclude(message: M) -> M {
        message
    }
}

/// The next message as one of several events. An inbox that is not chosen keeps it.
impl<M> Source for BoundedPriorityInbox<M> {
    type Output = M;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.sorted.poll_ready(cx)
    }

    fn take(mut self: Pin<&mut Self>) -> M {
        let message = self.try_receive();
        message.expect("`take` follows a `poll_ready` that found a message")
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::Message)
    }
}

impl<M> fmt::Debug for BoundedPriorityInbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundedPriorityInbox")
            .field(&self.sorted.inbox.pid())
            .finish()
    }
}

impl<M> fmt::Debug for BoundedPriorityReceive<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedPriorityReceive")
            .finish_non_exhaustive()
    }
}
