//! Calls to processes with bounded mailboxes: a request that may have to wait for room before it is sent.

use std::{
    fmt,
    marker::PhantomData,
    panic::Location,
    pin::Pin,
    time::{Duration, Instant},
};

use weald_kernel::{Unit, now, timeout, wanted_until};
use weald_sync::semaphore::{Permit, TryAcquireError};

use crate::{
    admission::{Overflow, Room},
    call::{CallError, Reply, Site, answer_of, caller_ends, end_of_closed},
    exit::ExitReason,
    kinds::bounded::BoundedPid,
    signal::{
        monitor::{Monitor, monitor_panicking},
        signals::Signals,
    },
};

/// A call to a bounded process. It begins when it is awaited; its deadline counts from when it was set, and covers the
/// wait for room, too.
#[must_use = "a call does nothing unless it is awaited"]
pub struct BoundedCall<'a, M, T, F> {
    pid: &'a BoundedPid<M>,
    room: Room,
    request: F,
    deadline: Option<Instant>,
    site: Site,
    answer: PhantomData<fn() -> T>,
}

impl<M: Send + 'static> BoundedPid<M> {
    /// Sends a request and waits for its answer, as [`Pid::call`](crate::Pid::call). Under [`Overflow::Wait`] it waits
    /// for room first; if it is dropped meanwhile, it has sent nothing.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::{num::NonZeroU32, time::Duration};
    /// use weald::process::{BoundedInbox, Builder, CallError, Overflow, Reply};
    ///
    /// struct Ask(Reply<u32>);
    ///
    /// let (_process, pid) = Builder::new().spawn_bounded(
    ///     NonZeroU32::MIN,
    ///     Overflow::Wait,
    ///     async |mut inbox: BoundedInbox<Ask>| loop {
    ///         let _unheard = inbox.receive().await.0.send(42);
    ///     },
    /// )?;
    /// let _process: weald::process::Process<_, ()> = _process;
    /// assert_eq!(pid.call(Ask).within(Duration::from_secs(5)).await, Ok(42));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// A [`CallError`]; [`CallError::Full`] if the mailbox was full and senders do not wait.
    #[track_caller]
    pub fn call<T, F: FnOnce(Reply<T>) -> M>(&self, request: F) -> BoundedCall<'_, M, T, F> {
        self.call_into(Room::Usual, request)
    }

    #[track_caller]
    pub(super) fn call_into<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        room: Room,
        request: F,
    ) -> BoundedCall<'_, M, T, F> {
        BoundedCall {
            pid: self,
            room,
            request,
            deadline: None,
            site: Location::caller(),
            answer: PhantomData,
        }
    }

    /// Room for a request.
    async fn admit(&self, room: Room) -> Result<Permit<'_>, CallError> {
        let room = self.admission.room(room);
        if self.admission.overflow != Overflow::Wait {
            return match room.try_acquire() {
                Ok(permit) => Ok(permit),
                Err(TryAcquireError::NoPermits) => {
                    self.note_overflow();
                    Err(CallError::Full)
                }
                Err(TryAcquireError::Closed) => Err(self.closed().await),
            };
        }
        if room.is_closed() || caller_ends() && self.pid().0.unit().is_cancelled() {
            return Err(self.closed().await);
        }
        if let Ok(permit) = room.acquire().await {
            return Ok(permit);
        }
        Err(self.closed_meanwhile().await)
    }
}

impl<M> BoundedPid<M> {
    /// The outcome of a call that found the mailbox closed.
    async fn closed(&self) -> CallError {
        let unit = self.pid().0.unit();
        CallError::Died(match end_of_closed(&unit) {
            Some(end) => reason_of(end, &unit).await,
            None => ExitReason::NoProcess,
        })
    }

    /// The outcome of a call that found the mailbox open at first, and then closed.
    async fn closed_meanwhile(&self) -> CallError {
        let unit = self.pid().0.unit();
        let Some(survived) = self.admission.left() else {
            return CallError::Died(match end_of_closed(&unit) {
                Some(end) => reason_of(end, &unit).await,
                None if Signals::is_alive(&unit) => ExitReason::NoProcess,
                None => Signals::end_of(&unit),
            });
        };
        // The callee ended, or is about to, or has dropped its inbox and continues.
        let reason = reason_of(monitor_panicking(&unit, survived), &unit).await;
        CallError::Died(match Signals::has_survived(&unit, survived) {
            true => ExitReason::NoProcess,
            false => reason,
        })
    }
}

/// The reason with which a unit ended, even if it ended before it was watched.
async fn reason_of(end: Monitor, unit: &Unit) -> ExitReason {
    match end.await.reason {
        ExitReason::NoProcess => Signals::end_of(unit),
        reason => reason,
    }
}

impl<M, T, F> BoundedCall<'_, M, T, F> {
    /// Waits for at most `duration`, for room and for the answer together. The earliest of several deadlines counts.
    pub fn within(self, duration: Duration) -> Self {
        match now().checked_add(duration) {
            Some(deadline) => self.until(deadline),
            None => self,
        }
    }

    /// Waits until `deadline` at most.
    pub fn until(mut self, deadline: Instant) -> Self {
        self.deadline = Some(self.deadline.map_or(deadline, |d| d.min(deadline)));
        self
    }

    /// Makes the call on behalf of another one, whose deadline counts here, too.
    pub fn on_behalf_of<R>(self, other: &Reply<R>) -> Self {
        match other.deadline() {
            Some(deadline) => self.until(deadline),
            None => self,
        }
    }
}

impl<'a, M, T, F> IntoFuture for BoundedCall<'a, M, T, F>
where
    M: Send + 'static,
    T: Send + 'static,
    F: FnOnce(Reply<T>) -> M + Send + 'a,
{
    type Output = Result<T, CallError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send + 'a>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            if self.pid.pid.0.is_of_running_job() {
                return Err(CallError::Itself);
            }
            let deadline = [self.deadline, wanted_until()];
            let deadline = deadline.into_iter().flatten().min();
            let admit = self.pid.admit(self.room);
            let permit = match deadline {
                Some(deadline) => {
                    let admitted = timeout(deadline.saturating_duration_since(now()), admit);
                    admitted.await.map_err(|_elapsed| CallError::TimedOut)??
                }
                None => admit.await?,
            };
            let callee = self.pid.pid.0.unit();
            let (reply, answered) = answer_of(callee, self.site, deadline);
            match self.pid.post(self.room, (self.request)(reply)) {
                Ok(()) => permit.forget(),
                Err(message) => {
                    drop((message, permit));
                    let closed = self.pid.closed_meanwhile();
                    return Err(match deadline {
                        Some(deadline) => {
                            let left = deadline.saturating_duration_since(now());
                            timeout(left, closed).await.unwrap_or(CallError::TimedOut)
                        }
                        None => closed.await,
                    });
                }
            }
            answered.await
        })
    }
}

impl<M, T, F> fmt::Debug for BoundedCall<'_, M, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundedCall")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
