//! Processes that take urgent messages before the others.
//!
//! Messages of both kinds come through the one mailbox of the process, so that names, groups, timers and monitors work
//! with them, and their order with other signals holds. The receiver sorts what has come into two queues before it takes
//! one: each message is moved once. A process with a plain mailbox pays nothing.
//!
//! The idea is that of Erlang's priority messages (EEP 76).

use std::{
    collections::VecDeque,
    fmt, mem,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{AsUnit, Mailbox, SpawnError, poll_budget};
use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{Kind, Reason},
};

use crate::{
    inbox::{Inbox, TimedOut},
    kinds::prioritized::{Prioritized, PriorityPid},
    signal::{
        monitor::{Down, MonitorRef},
        trap::Exit,
    },
    spawn::{Builder, Process},
};

/// The receiving end of a mailbox with urgent messages, which are received before all others. Among the urgent ones, and
/// among the others, the order is that of arrival.
pub struct PriorityInbox<M> {
    inbox: Inbox<Prioritized<M>>,
    urgent: Queue<M>,
    others: Queue<M>,
    /// The number of the next message that comes into one of the queues.
    next: u64,
}

/// Messages with their numbers, which ascend.
type Queue<M> = VecDeque<(u64, M)>;

/// A place among the messages of a [`PriorityInbox`], for [`PriorityInbox::receive_since`].
#[derive(Clone, Debug, Default)]
pub struct PriorityMark {
    /// The number of the first urgent message that is behind the mark, or will be.
    urgent: u64,
    /// The same for the others.
    others: u64,
}

impl PriorityMark {
    /// A mark before all messages.
    pub fn oldest() -> PriorityMark {
        PriorityMark::default()
    }
}

/// A queue that becomes empty keeps the memory for this many messages.
const KEPT: usize = 1024;

impl Builder {
    /// Spawns a process that takes urgent messages before the others.
    ///
    /// ```
    /// # weald_kernel::Runtime::test(1).block_on(async {
    /// use weald_process::{Builder, PriorityInbox};
    ///
    /// let (process, pid) = Builder::new().spawn_priority(
    ///     async |mut inbox: PriorityInbox<&str>| (inbox.receive().await, inbox.receive().await),
    /// )?;
    /// pid.send("work");
    /// pid.send_urgent("stop");
    /// assert_eq!(process.await, Ok(("stop", "work")));
    /// # Ok::<(), weald_kernel::SpawnError>(())
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
        let process = self.spawn(|inbox| {
            body(PriorityInbox {
                inbox,
                urgent: Queue::new(),
                others: Queue::new(),
                next: 0,
            })
        })?;
        let pid = PriorityPid(process.pid().clone());
        Ok((process, pid))
    }
}

impl<M> PriorityInbox<M> {
    /// The address of this process.
    pub fn pid(&self) -> PriorityPid<M> {
        PriorityPid(self.inbox.pid())
    }

    /// Waits for the oldest urgent message, or the oldest of the others if none is urgent. O(1), and O(1) for each
    /// message that has come since the last receive.
    ///
    /// # Panics
    /// As [`Inbox::receive`].
    pub fn receive(&mut self) -> PriorityReceive<'_, M> {
        PriorityReceive(self)
    }

    /// Waits for a message for which `wanted` is true; of several it takes the oldest urgent one, or else the oldest. The
    /// others stay. Cancel-safe. One receive looks at each message once, however long it waits.
    pub async fn receive_if(&mut self, wanted: impl FnMut(&M) -> bool) -> M {
        let mut mark = PriorityMark::oldest();
        self.receive_since(&mut mark, wanted).await
    }

    /// A mark behind all messages that have come, urgent ones and others: a [receive with
    /// it](PriorityInbox::receive_since) looks only at later ones. It costs what a receive does.
    pub fn mark(&mut self) -> PriorityMark {
        self.sort();
        PriorityMark {
            urgent: self.next,
            others: self.next,
        }
    }

    /// As [`receive_if`](PriorityInbox::receive_if), but looks only at the messages behind `mark`, and moves the mark
    /// behind those that it refuses; see [`Inbox::receive_since`]. The mark must be of this inbox. O(log n), and O(1) for
    /// each message that it looks at. Cancel-safe.
    ///
    /// ```
    /// # weald_kernel::Runtime::test(1).block_on(async {
    /// use weald_process::{Builder, PriorityInbox};
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
    /// # Ok::<(), weald_kernel::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub async fn receive_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> M {
        std::future::poll_fn(|cx| {
            if poll_budget(cx).is_pending() {
                return Poll::Pending;
            }
            loop {
                if let Some(message) = self.take_since(mark, &mut wanted) {
                    return Poll::Ready(message);
                }
                match self.inbox.0.poll_receive(cx) {
                    Poll::Ready(message) => self.put(message),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// Takes a message behind `mark` for which `wanted` is true, if there is one now, and moves the mark behind those that
    /// it refuses; see [`receive_since`](PriorityInbox::receive_since).
    pub fn take_since(
        &mut self,
        mark: &mut PriorityMark,
        mut wanted: impl FnMut(&M) -> bool,
    ) -> Option<M> {
        self.sort();
        let found = take(&mut self.urgent, &mut mark.urgent, &mut wanted);
        found.or_else(|| take(&mut self.others, &mut mark.others, &mut wanted))
    }

    /// Takes the next message, if there is one now.
    pub fn try_receive(&mut self) -> Option<M> {
        self.sort();
        self.pop()
    }

    /// Takes a message for which `wanted` is true, if there is one now; see [`PriorityInbox::receive_if`]. O(n).
    pub fn take_if(&mut self, wanted: impl FnMut(&M) -> bool) -> Option<M> {
        self.take_since(&mut PriorityMark::oldest(), wanted)
    }

    /// How many messages there are now.
    pub fn len(&mut self) -> usize {
        self.sort();
        self.urgent.len() + self.others.len()
    }

    /// Whether there is no message now.
    pub fn is_empty(&mut self) -> bool {
        self.len() == 0
    }

    /// Moves what has come until now into the two queues.
    fn sort(&mut self) {
        for _ in 0..self.inbox.len() {
            match self.inbox.try_receive() {
                Some(message) => self.put(message),
                None => return,
            }
        }
    }

    fn put(&mut self, prioritized: Prioritized<M>) {
        let queue = match prioritized.is_urgent {
            true => &mut self.urgent,
            false => &mut self.others,
        };
        queue.push_back((self.next, prioritized.message));
        self.next += 1;
    }

    fn pop(&mut self) -> Option<M> {
        let (urgent, others) = (&mut self.urgent, &mut self.others);
        pop(urgent).or_else(|| pop(others))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<M> {
        self.sort();
        if self.urgent.is_empty() && self.others.is_empty() {
            let received = self.inbox.0.poll_receive(cx);
            return received.map(|prioritized| prioritized.message);
        }
        if poll_budget(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(self.pop().expect("one of the queues has a message"))
    }
}

/// Takes the first message behind a mark that is wanted; moves the mark behind those that are not.
fn take<M>(queue: &mut Queue<M>, mark: &mut u64, wanted: &mut impl FnMut(&M) -> bool) -> Option<M> {
    let first = queue.partition_point(|(number, _)| number < mark);
    for place in first..queue.len() {
        let (number, message) = &queue[place];
        if wanted(message) {
            let (_, message) = queue.remove(place)?;
            give_back(queue);
            return Some(message);
        }
        *mark = number + 1;
    }
    None
}

/// Takes the oldest message.
fn pop<M>(queue: &mut Queue<M>) -> Option<M> {
    let (_, message) = queue.pop_front()?;
    give_back(queue);
    Some(message)
}

/// A queue that has become empty gives a large buffer back.
fn give_back<M>(queue: &mut Queue<M>) {
    if queue.is_empty() && queue.capacity() > KEPT {
        drop(mem::take(queue));
    }
}

impl<M: Send + 'static> PriorityInbox<M> {
    /// Watches `unit`; see [`Inbox::monitor`]. The notice is urgent.
    ///
    /// # Panics
    /// As [`Inbox::monitor`].
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        self.inbox
            .monitor(unit, |down| Prioritized::urgent(convert(down)))
    }

    /// Ends a monitor; see [`Inbox::demonitor`].
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        self.inbox.demonitor(monitor)
    }

    /// Exit signals become urgent messages; see [`Inbox::trap_exits`].
    ///
    /// # Panics
    /// As [`Inbox::trap_exits`].
    pub fn trap_exits(&mut self, convert: impl Fn(Exit) -> M + Send + Sync + 'static) {
        self.inbox
            .trap_exits(move |exit| Prioritized::urgent(convert(exit)));
    }

    /// Exit signals end this process again; see [`Inbox::untrap_exits`].
    pub fn untrap_exits(&mut self) {
        self.inbox.untrap_exits();
    }
}

/// The future of [`PriorityInbox::receive`], which can be one of several events, too. Cancel-safe.
#[must_use = "a receive does nothing unless it is awaited"]
pub struct PriorityReceive<'a, M>(&'a mut PriorityInbox<M>);

impl<M> PriorityReceive<'_, M> {
    /// Waits for at most `duration`; with zero it only looks.
    ///
    /// # Errors
    /// [`TimedOut`] if no message came. A message that is already there wins over the deadline.
    pub async fn after(self, duration: Duration) -> Result<M, TimedOut> {
        let received = weald_kernel::timeout(duration, self).await;
        received.map_err(|_elapsed| TimedOut)
    }
}

// Messages are moved, never pinned.
impl<M> Unpin for PriorityInbox<M> {}

impl<M> Future for PriorityReceive<'_, M> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        self.0.poll_receive(cx)
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
        let this = &mut *self;
        if this.is_empty() {
            let mailbox: &mut Mailbox<_> = &mut this.inbox.0;
            return Pin::new(mailbox).poll_ready(cx);
        }
        Poll::Ready(())
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
            .field(&self.inbox.pid())
            .finish()
    }
}

impl<M> fmt::Debug for PriorityReceive<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PriorityReceive").finish_non_exhaustive()
    }
}
