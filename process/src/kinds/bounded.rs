//! Processes with a bounded mailbox.
//!
//! A bounded mailbox is a mailbox whose messages say whether they took room. So names, groups, timers and monitors work
//! with it as with any other, and a process with a plain mailbox pays nothing.
//!
//! Invariants: as many permits of the [`Admission`] are out as there are counted messages in the mailbox, and senders
//! between their permit and their post. The inbox closes admission before its mailbox drops the messages.

use std::{
    fmt,
    num::NonZeroU32,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use weald_kernel::{AsUnit, JobName, Mailbox, SpawnError, Unit};
use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{Kind, Reason},
    semaphore::TryAcquireError,
};

use crate::{
    admission::{Admission, Overflow, Overflowed, Room},
    exit::ExitReason,
    inbox::{Inbox, TimedOut},
    kinds::bounded_message::Bounded,
    pid::{Pid, SendError},
    signal::{
        monitor::{Down, MonitorRef},
        signals::{ProcessId, Signals},
        trap::Exit,
    },
    spawn::{Builder, Process},
};

/// The address of a process with a bounded mailbox. A clone is cheap.
///
/// The bound holds for messages that are sent by this type. Notices take no room, because they must not be lost:
/// messages of [monitors](BoundedInbox::monitor), [trapped exits](BoundedInbox::trap_exits), and everything that is
/// made with [`Bounded::notice`].
pub struct BoundedPid<M> {
    pub(super) pid: Pid<Bounded<M>>,
    pub(super) admission: Arc<Admission>,
}

/// The receiving end of a bounded mailbox. A message that is received makes room for another one.
pub struct BoundedInbox<M> {
    pub(super) inbox: Inbox<Bounded<M>>,
    pub(super) admission: Arc<Admission>,
}

impl Builder {
    /// Spawns a process whose mailbox holds at most `capacity` messages; `overflow` says what happens to a further one.
    /// For servers and state machines there are [`BoundedServerRef`](crate::BoundedServerRef) and
    /// [`BoundedMachineRef`](crate::BoundedMachineRef).
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::num::NonZeroU32;
    /// use weald::process::{BoundedInbox, Builder, Overflow, SendError};
    ///
    /// let capacity = NonZeroU32::new(2).unwrap();
    /// let (process, pid) = Builder::new().spawn_bounded(
    ///     capacity,
    ///     Overflow::Reject,
    ///     async |mut inbox: BoundedInbox<u32>| inbox.receive().await + inbox.receive().await,
    /// )?;
    /// assert_eq!(pid.try_send(40), Ok(()));
    /// assert_eq!(pid.try_send(2), Ok(()));
    /// assert_eq!(pid.try_send(3), Err(SendError::Full(3)));
    /// assert_eq!(process.await, Ok(42));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](crate::spawn()).
    #[allow(clippy::type_complexity, reason = "a process and its address")]
    #[track_caller]
    pub fn spawn_bounded<M, F, Fut>(
        self,
        capacity: NonZeroU32,
        overflow: Overflow,
        body: F,
    ) -> Result<(Process<Bounded<M>, Fut::Output>, BoundedPid<M>), SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(BoundedInbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let admission = Admission::new(capacity, overflow);
        self.spawn_admitting(admission, |inbox, admission| {
            body(BoundedInbox { inbox, admission })
        })
    }

    /// Spawns a process with this admission to its mailbox.
    #[allow(clippy::type_complexity, reason = "as above")]
    #[track_caller]
    pub(crate) fn spawn_admitting<M, F, Fut>(
        self,
        admission: Admission,
        body: F,
    ) -> Result<(Process<Bounded<M>, Fut::Output>, BoundedPid<M>), SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Inbox<Bounded<M>>, Arc<Admission>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let admission = Arc::new(admission);
        let process = self.spawn(|inbox: Inbox<Bounded<M>>| {
            bind(&inbox, &admission);
            body(inbox, admission.clone())
        })?;
        let pid = process.pid().clone();
        Ok((process, BoundedPid { pid, admission }))
    }
}

/// The process has not run yet. From now on, those that have only its pid find the admission to its mailbox.
pub(super) fn bind<M>(inbox: &Inbox<Bounded<M>>, admission: &Arc<Admission>) {
    let signals = Signals::of(&inbox.0.address().unit()).expect("it has not run yet");
    signals.lock().set_admission(admission.clone());
}

/// The inbox is dropped. Callers that wait for room learn how the process ends; if it continues, they learn at its next
/// wait that it takes no more.
pub(super) fn close<M>(inbox: &Inbox<Bounded<M>>, admission: &Admission) {
    let address = inbox.0.address();
    if address.is_of_running_job()
        && let Some(signals) = Signals::of(&address.unit())
    {
        admission.note_left(signals.lock().panics_survived());
        Unit::tell_if_it_goes_on();
    }
    admission.close();
}

impl<M> BoundedPid<M> {
    /// The bounded process that has this pid, such as one that a [`Name`](crate::Name) leads to. None if it has ended.
    pub fn of(pid: Pid<Bounded<M>>) -> Option<BoundedPid<M>> {
        let signals = pid.0.unit().attachment::<Signals>()?;
        let admission = signals.lock().admission()?;
        Some(BoundedPid { pid, admission })
    }

    /// The pid of the process.
    pub fn pid(&self) -> &Pid<Bounded<M>> {
        &self.pid
    }

    /// Sends a message if there is room, and nobody waits for it. Never waits.
    ///
    /// # Errors
    /// [`SendError::Full`] if there is no room; under [`Overflow::Crash`] the process then ends. [`SendError::Dead`] if
    /// it has ended.
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.try_send_into(Room::Usual, message)
    }

    pub(crate) fn try_send_into(&self, room: Room, message: M) -> Result<(), SendError<M>> {
        match self.admission.room(room).try_acquire() {
            Ok(permit) => {
                self.post(room, message)?;
                permit.forget();
                Ok(())
            }
            Err(TryAcquireError::NoPermits) => {
                self.note_overflow();
                Err(SendError::Full(message))
            }
            Err(TryAcquireError::Closed) => Err(SendError::Dead(message)),
        }
    }

    /// Sends a message; under [`Overflow::Wait`] it waits for room, otherwise it is [`BoundedPid::try_send`]. A process
    /// that sends to itself in this way waits for ever if its mailbox is full.
    ///
    /// Cancel-safe: a future that is dropped has sent nothing, and drops the message. Its place among those that wait
    /// is lost.
    ///
    /// # Errors
    /// [`SendError::Dead`] if the process has ended, or ends while this waits. [`SendError::Full`] as `try_send`.
    pub async fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.send_into(Room::Usual, message).await
    }

    pub(crate) async fn send_into(&self, room: Room, message: M) -> Result<(), SendError<M>> {
        if self.admission.overflow != Overflow::Wait {
            return self.try_send_into(room, message);
        }
        let Ok(permit) = self.admission.room(room).acquire().await else {
            return Err(SendError::Dead(message));
        };
        self.post(room, message)?;
        permit.forget();
        Ok(())
    }

    /// Posts a message for which there is room.
    pub(super) fn post(&self, room: Room, message: M) -> Result<(), SendError<M>> {
        let posted = self.pid.0.post(Bounded::counted(room, message));
        posted.map_err(|bounded| SendError::Dead(bounded.message))
    }

    /// A message had no room.
    pub(super) fn note_overflow(&self) {
        let (admission, unit) = (&self.admission, self.pid.0.unit());
        if admission.overflow == Overflow::Crash
            && let Some(signals) = Signals::of(&unit)
        {
            let capacity = admission.capacity;
            signals.note_asked(&ExitReason::custom(Overflowed { capacity }));
            unit.kill();
        }
    }

    /// How many messages the mailbox may hold.
    pub fn capacity(&self) -> u32 {
        self.admission.capacity
    }

    /// For how many more messages there is room now.
    pub fn room(&self) -> u32 {
        self.admission.room(Room::Usual).available()
    }

    /// Sends an exit signal; see [`Pid::exit`].
    pub fn exit(&self, reason: &ExitReason) {
        self.pid.exit(reason);
    }

    /// Asks the process to end; see [`Pid::kill`]. Those that wait for room learn of its end when it does.
    pub fn kill(&self) {
        self.pid.kill();
    }

    /// Whether the process was still running at the time of the call; see [`Pid::is_alive`].
    pub fn is_alive(&self) -> bool {
        self.pid.is_alive()
    }

    /// The number of the process, which no other one has.
    pub fn id(&self) -> ProcessId {
        self.pid.id()
    }

    /// The process's name and spawn site, for reports.
    pub fn name(&self) -> JobName {
        self.pid.name()
    }
}

impl<M> BoundedInbox<M> {
    /// The address of this process.
    pub fn pid(&self) -> BoundedPid<M> {
        BoundedPid {
            pid: self.inbox.pid(),
            admission: self.admission.clone(),
        }
    }

    /// Waits for the oldest message; see [`Inbox::receive`]. Cancel-safe.
    ///
    /// # Panics
    /// As [`Inbox::receive`].
    pub fn receive(&mut self) -> BoundedReceive<'_, M> {
        BoundedReceive(self)
    }

    /// Waits for the oldest message for which `wanted` is true; see [`Inbox::receive_if`]. Cancel-safe.
    pub async fn receive_if(&mut self, mut wanted: impl FnMut(&M) -> bool) -> M {
        let bounded = self
            .inbox
            .receive_if(|bounded| wanted(&bounded.message))
            .await;
        bounded.taken(&self.admission)
    }

    /// Takes the oldest message, if there is one now.
    pub fn try_receive(&mut self) -> Option<M> {
        let bounded = self.inbox.try_receive()?;
        Some(bounded.taken(&self.admission))
    }

    /// Takes the oldest message for which `wanted` is true, if there is one now. O(n).
    pub fn take_if(&mut self, mut wanted: impl FnMut(&M) -> bool) -> Option<M> {
        let bounded = self.inbox.take_if(|bounded| wanted(&bounded.message))?;
        Some(bounded.taken(&self.admission))
    }

    /// How many messages there are now, with notices. O(n).
    pub fn len(&mut self) -> usize {
        self.inbox.len()
    }

    /// Whether there is no message now.
    pub fn is_empty(&mut self) -> bool {
        self.inbox.is_empty()
    }
}

impl<M: Send + 'static> BoundedInbox<M> {
    /// Watches `unit`; see [`Inbox::monitor`]. The notice takes no room.
    ///
    /// # Panics
    /// As [`Inbox::monitor`].
    pub fn monitor(
        &mut self,
        unit: &impl AsUnit,
        convert: impl FnOnce(Down) -> M + Send + 'static,
    ) -> MonitorRef {
        self.inbox
            .monitor(unit, |down| Bounded::notice(convert(down)))
    }

    /// Ends a monitor; see [`Inbox::demonitor`].
    pub fn demonitor(&mut self, monitor: MonitorRef) -> bool {
        self.inbox.demonitor(monitor)
    }

    /// Exit signals become messages; see [`Inbox::trap_exits`]. They take no room.
    ///
    /// # Panics
    /// As [`Inbox::trap_exits`].
    pub fn trap_exits(&mut self, convert: impl Fn(Exit) -> M + Send + Sync + 'static) {
        self.inbox
            .trap_exits(move |exit| Bounded::notice(convert(exit)));
    }

    /// Exit signals end this process again; see [`Inbox::untrap_exits`].
    pub fn untrap_exits(&mut self) {
        self.inbox.untrap_exits();
    }
}

impl<M> Drop for BoundedInbox<M> {
    fn drop(&mut self) {
        close(&self.inbox, &self.admission);
    }
}

/// The future of [`BoundedInbox::receive`], which can be one of several events, too. Cancel-safe.
#[must_use = "a receive does nothing unless it is awaited"]
pub struct BoundedReceive<'a, M>(&'a mut BoundedInbox<M>);

impl<M> BoundedReceive<'_, M> {
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

impl<M> Future for BoundedReceive<'_, M> {
    type Output = M;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<M> {
        let received = self.0.inbox.0.poll_receive(cx);
        received.map(|bounded| bounded.taken(&self.0.admission))
    }
}

impl<'a, M> Event for BoundedReceive<'a, M> {
    type Output = M;
    type Branch = <Polled<&'a mut BoundedInbox<M>> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self.0).open()
    }

    fn conclude(message: M) -> M {
        message
    }
}

/// The next message as one of several events. An inbox that is not chosen keeps it.
impl<M> Source for BoundedInbox<M> {
    type Output = M;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mailbox: &mut Mailbox<_> = &mut self.inbox.0;
        Pin::new(mailbox).poll_ready(cx)
    }

    fn take(mut self: Pin<&mut Self>) -> M {
        let bounded = Pin::new(&mut self.inbox.0).take();
        bounded.taken(&self.admission)
    }

    fn reason(&self) -> Reason {
        Reason::unspecified(Kind::Message)
    }
}

impl<M> Clone for BoundedPid<M> {
    fn clone(&self) -> BoundedPid<M> {
        BoundedPid {
            pid: self.pid.clone(),
            admission: self.admission.clone(),
        }
    }
}

impl<M> PartialEq for BoundedPid<M> {
    fn eq(&self, other: &BoundedPid<M>) -> bool {
        self.pid == other.pid
    }
}

impl<M> Eq for BoundedPid<M> {}

impl<M> AsUnit for BoundedPid<M> {
    fn as_unit(&self) -> Option<Unit> {
        self.pid.as_unit()
    }
}

impl<M> fmt::Debug for BoundedPid<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundedPid").field(&self.pid).finish()
    }
}

impl<M> fmt::Debug for BoundedInbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BoundedInbox")
            .field(&self.inbox.pid())
            .finish()
    }
}

impl<M> fmt::Debug for BoundedReceive<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedReceive").finish_non_exhaustive()
    }
}
