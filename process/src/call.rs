//! Calls: a request whose answer does not go through the caller's mailbox.
//!
//! The request carries a [`Reply`], which gives an answer that the caller waits for ([`weald_kernel::answer`]). So an
//! answer is found at once behind any number of messages, and an answer that comes too late reaches nobody. The
//! callee's death needs no monitor: a unit that ends drops the requests that it has not answered, and a reply that is
//! dropped in this way tells which unit ends. Only then does the caller monitor that unit, to learn the reason. If the
//! unit survives a panic, or continues without its inbox, the callers of the requests that it dropped are told at the
//! unit's next wait that they get no reply. If [`catch_panic`](weald_kernel::catch_panic) has caught the panic, they
//! are told at once.

mod error;

use std::{
    fmt, mem,
    panic::Location,
    pin::Pin,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

pub use error::CallError;
use weald_kernel::{
    Address, AnswerReceiver, AnswerSender, Certainty, Sleep, Unit, note_wait, note_wait_of, now,
    poll_budget, wanted_by, wanted_until,
};
use weald_sync::reason::{Kind, Reason};

use crate::{
    exit::ExitReason,
    pid::Pid,
    signal::{
        monitor::{Monitor, monitor_panicking, monitor_unit},
        signals::Signals,
    },
    survived::Survived,
};

/// How a call is answered.
enum Outcome<T> {
    Value(T),
    /// The reply was dropped.
    Dropped,
    /// The reply was dropped by a unit that ends or panics. If it panics, the number of panics that it had survived
    /// before is here, too.
    DroppedBy(Unit, Option<Survived>),
}

/// The deadline is noted for the callee.
type Replying<T> = AnswerSender<Outcome<T>, Option<Instant>>;
type Awaiting<T> = AnswerReceiver<Outcome<T>, Option<Instant>>;

/// The right to answer one call. It may be passed on, and its holder answers. If it is dropped, the call fails at once.
#[must_use = "a reply that is dropped fails its call"]
pub struct Reply<T>(Option<Replying<T>>);

impl<T> Reply<T> {
    /// Answers the call. Never waits; callable from any thread.
    ///
    /// # Errors
    /// Returns the value if the caller waits no longer.
    pub fn send(mut self, value: T) -> Result<(), T> {
        let call = self.0.take().expect("a reply is used once");
        call.send(Outcome::Value(value))
            .map_err(|answer| match answer {
                Outcome::Value(value) => value,
                Outcome::Dropped | Outcome::DroppedBy(..) => unreachable!("a value was given"),
            })
    }

    /// Until when the caller waits, if it has a deadline.
    pub fn deadline(&self) -> Option<Instant> {
        self.0.as_ref().and_then(|call| *call.note())
    }

    /// Runs `work` on behalf of this call: calls that it makes have the deadline of this one. Do not spawn, fork or
    /// join the work in the middle, because what another unit does is not covered.
    ///
    /// The functions of a [`Server`](crate::Server) need not call this. Cancel-safe if `work` is.
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::time::Duration;
    /// use weald::process::{self as process, CallError, Inbox, Reply};
    ///
    /// struct Ask(Reply<()>);
    ///
    /// let silent = process::spawn(async |mut inbox: Inbox<Ask>| {
    ///     let _kept = inbox.receive().await;
    ///     inbox.receive().await;
    /// })?;
    /// let behind = silent.pid().clone();
    /// let front = process::spawn(async move |mut inbox: Inbox<Ask>| {
    ///     let Ask(reply) = inbox.receive().await;
    ///     let answer = reply.cover(behind.call(Ask)).await;
    ///     (answer, reply.is_wanted())
    /// })?;
    /// let call = front.pid().call(Ask).within(Duration::from_secs(1));
    /// assert!(call.await.is_err());
    /// assert_eq!(front.await.unwrap().0, Err(CallError::TimedOut));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub fn cover<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<T, F> {
        wanted_by(self.deadline(), work)
    }

    /// Whether the caller still waits.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(AnswerSender::is_wanted)
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            dropped(call);
        }
    }
}

#[cold]
fn dropped<T>(call: Replying<T>) {
    let answer = match Unit::current_if_ending() {
        Some((unit, certainty)) => {
            // Now, because the caller may be late, and the reason of the end must be kept until
            // then.
            let signals = Signals::of(&unit);
            // If the unit goes on, the call has no reply.
            let survived = match certainty {
                Certainty::Ends => None,
                Certainty::MayGoOn => signals.map(|signals| signals.lock().panics_survived()),
            };
            if survived.is_some() {
                Unit::tell_if_it_goes_on();
            }
            Outcome::DroppedBy(unit, survived)
        }
        None => Outcome::Dropped,
    };
    let _unheard = call.send(answer);
}

/// The future of [`Pid::call`]. The request is sent at its first poll. Dropping it gives the call up: the answer then
/// reaches nobody.
#[must_use = "a call does nothing unless it is awaited"]
pub struct Call<M, T, F> {
    deadline: Option<Instant>,
    sleep: Option<Sleep>,
    /// Where the user's code called, for reports; none if code of this crate did.
    site: Option<Site>,
    stage: Stage<M, T, F>,
}

/// A place in the user's code.
pub(crate) type Site = &'static Location<'static>;

enum Stage<M, T, F> {
    Begins(Address<M>, F),
    /// Waits for the answer to a request, which this unit was sent.
    Waits(Awaiting<T>, Option<Unit>),
    /// The unit that had the request ends, or panics.
    Ends(Unit, Option<Survived>, Monitor),
    Over,
}

impl<M> Pid<M> {
    /// Sends a request and waits for its answer. `request` makes the message, which carries the [`Reply`]. It costs one
    /// allocation beside the message's. If the unit that has the request ends, the call fails at once with its reason.
    /// If the unit drops the request without an answer, the call fails with [`NoReply`](CallError::NoReply). It fails
    /// at once, or at the unit's next wait if the unit survives a panic or has dropped its inbox with the requests in
    /// it.
    ///
    /// A process that calls itself gets [`Itself`](CallError::Itself) at once, even if it would receive beside the
    /// call.
    ///
    /// Without a deadline it waits as long as the callee takes; see [`Call::within`].
    ///
    /// ```
    /// # weald::Runtime::test(1).block_on(async {
    /// use std::time::Duration;
    /// use weald::process::{self as process, Inbox, Reply};
    ///
    /// enum Request { Double(u32, Reply<u32>) }
    ///
    /// let doubler = process::spawn(async |mut inbox: Inbox<Request>| loop {
    ///     let Request::Double(n, reply) = inbox.receive().await;
    ///     let _unheard = reply.send(2 * n);
    /// })?;
    /// let pid: &process::Pid<Request> = doubler.pid();
    /// let call = pid.call(|reply| Request::Double(21, reply));
    /// assert_eq!(call.within(Duration::from_secs(5)).await, Ok(42));
    /// # Ok::<(), weald::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Errors
    /// The future returns a [`CallError`].
    #[track_caller]
    pub fn call<T, F: FnOnce(Reply<T>) -> M>(&self, request: F) -> Call<M, T, F> {
        self.call_at(Some(Location::caller()), request)
    }

    pub(crate) fn call_at<T, F: FnOnce(Reply<T>) -> M>(
        &self,
        site: Option<Site>,
        request: F,
    ) -> Call<M, T, F> {
        Call {
            deadline: None,
            sleep: None,
            site,
            stage: Stage::Begins(self.0.clone(), request),
        }
    }
}

/// Whether a request was sent.
enum IsSent {
    Yes,
    /// The callee takes no more, and is about to end.
    CalleeEnds,
}

/// The end of a unit whose mailbox is closed, to be awaited, so that its caller finds the names of the unit free when
/// it learns of the end. None if the unit continues without its inbox, or has ended. A caller that is itself ending
/// does not wait for such a unit, which might wait for it.
#[cold]
pub(crate) fn end_of_closed(unit: &Unit) -> Option<Monitor> {
    let ends = (unit.is_cancelled() || unit.is_done()) && Signals::is_alive(unit);
    (ends && !caller_ends()).then(|| monitor_unit(Some(unit)))
}

/// Whether the caller is about to end. Then it does not wait for others that are, because they could wait
/// for it.
pub(crate) fn caller_ends() -> bool {
    match Unit::current_if_ending() {
        Some((_, Certainty::Ends)) => true,
        // A unit that has only dropped its inbox continues.
        Some((caller, Certainty::MayGoOn)) => std::thread::panicking() || caller.is_cancelled(),
        None => false,
    }
}

/// Waits for an answer to a request that is no message.
pub(crate) type Answered<T> = Call<(), T, fn(Reply<T>)>;

/// The two ends of a call whose request is on its way already, or needs no message.
pub(crate) fn answer<T>(deadline: Option<Instant>) -> (Reply<T>, Answered<T>) {
    let (reply, awaiting) = weald_kernel::answer(deadline, None);
    let waits = Call {
        deadline,
        sleep: None,
        site: None,
        stage: Stage::Waits(awaiting, None),
    };
    (Reply(Some(reply)), waits)
}

/// As [`answer`], of a call at `site` whose request goes to `callee`.
pub(crate) fn answer_of<T>(
    callee: Unit,
    site: Site,
    deadline: Option<Instant>,
) -> (Reply<T>, Answered<T>) {
    let (reply, mut waits) = answer(deadline);
    if let Stage::Waits(_, unit) = &mut waits.stage {
        *unit = Some(callee);
    }
    waits.site = Some(site);
    (reply, waits)
}

impl<M, T, F> Call<M, T, F> {
    /// Waits for at most `duration`. The earliest of several deadlines counts. The result stays a `Result<T,
    /// CallError>`, in which a deadline that passed is [`TimedOut`](CallError::TimedOut). An event's `within`, as that
    /// of a lock or a stream, wraps its result in another one.
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

    /// Makes the call on behalf of another one, whose deadline counts here, too. So nobody works for a caller that no
    /// longer waits, however deep its calls are nested.
    pub fn on_behalf_of<R>(self, other: &Reply<R>) -> Self {
        match other.deadline() {
            Some(deadline) => self.until(deadline),
            None => self,
        }
    }
}

// The request's constructor is only called, never pinned.
impl<M, T, F> Unpin for Call<M, T, F> {}

impl<M, T, F: FnOnce(Reply<T>) -> M> Future for Call<M, T, F> {
    type Output = Result<T, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        // A call that fails at once must not keep its caller's worker for itself.
        if poll_budget(cx).is_pending() {
            return Poll::Pending;
        }
        if let Stage::Begins(..) = this.stage {
            match this.begin(cx.waker()) {
                Err(error) => return Poll::Ready(Err(error)),
                Ok(IsSent::Yes) => {
                    // An answer that came meanwhile has woken this.
                    this.note(cx.waker());
                    return this.poll_deadline(cx);
                }
                Ok(IsSent::CalleeEnds) => {}
            }
        }
        if let Stage::Waits(call, _) = &mut this.stage {
            let Poll::Ready(answer) = call.poll_unnoted(cx) else {
                this.note(cx.waker());
                return this.poll_deadline(cx);
            };
            let Stage::Waits(_answered, _callee) = mem::replace(&mut this.stage, Stage::Over)
            else {
                unreachable!("it waits for an answer")
            };
            match answer.unwrap_or(Outcome::Dropped) {
                Outcome::Value(value) => return Poll::Ready(Ok(value)),
                Outcome::Dropped => return Poll::Ready(Err(CallError::NoReply)),
                Outcome::DroppedBy(unit, survived) => {
                    let monitor = match survived {
                        Some(survived) => monitor_panicking(&unit, survived),
                        None => monitor_unit(Some(&unit)),
                    };
                    this.stage = Stage::Ends(unit, survived, monitor);
                }
            }
        }
        let Stage::Ends(unit, survived, monitor) = &mut this.stage else {
            panic!("a call was polled after it had ended");
        };
        let Poll::Ready(down) = Pin::new(monitor).poll(cx) else {
            return this.poll_deadline(cx);
        };
        let error = match down.reason {
            ExitReason::NoProcess if survived.is_some_and(|n| Signals::has_survived(unit, n)) => {
                CallError::NoReply
            }
            // It ended before it was monitored, but not before the call.
            ExitReason::NoProcess => CallError::Died(Signals::reason_of(unit)),
            reason => CallError::Died(reason),
        };
        this.stage = Stage::Over;
        Poll::Ready(Err(error))
    }
}

impl<M, T, F: FnOnce(Reply<T>) -> M> Call<M, T, F> {
    /// Sends the request. From then on, `waker` is woken when there is an answer.
    fn begin(&mut self, waker: &Waker) -> Result<IsSent, CallError> {
        let Stage::Begins(address, request) = mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("the caller has checked it");
        };
        if address.is_of_running_job() {
            return Err(CallError::Itself);
        }
        self.deadline = [self.deadline, wanted_until()].into_iter().flatten().min();
        let (reply, awaiting) = weald_kernel::answer(self.deadline, Some(waker.clone()));
        if let Err(message) = address.post(request(Reply(Some(reply)))) {
            drop(message);
            let unit = address.unit();
            let monitor = end_of_closed(&unit).ok_or(CallError::Died(ExitReason::NoProcess))?;
            self.stage = Stage::Ends(unit, None, monitor);
            return Ok(IsSent::CalleeEnds);
        }
        // There is nothing to drop in the former stage, and to find that out takes a dozen instructions.
        let waits = Stage::Waits(awaiting, Some(address.into_unit()));
        mem::forget(mem::replace(&mut self.stage, waits));
        Ok(IsSent::Yes)
    }

    /// Notes that the caller waits, and for whose answer. With a deadline, that is not all that ends the wait.
    #[inline(always)]
    fn note(&self, waker: &Waker) {
        let reason = match &self.stage {
            Stage::Waits(_, Some(callee)) => callee.answers().at(self.site),
            _ => Reason::unspecified(Kind::Oneshot),
        };
        match self.deadline {
            Some(_) => note_wait(reason),
            None => note_wait_of(reason, waker),
        }
    }

    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<Result<T, CallError>> {
        let Some(deadline) = self.deadline else {
            return Poll::Pending;
        };
        let sleep = self.sleep.get_or_insert_with(|| Sleep::limit(deadline));
        if Pin::new(sleep).poll_limit(cx).is_pending() {
            return Poll::Pending;
        }
        // Gives the answer up.
        self.stage = Stage::Over;
        Poll::Ready(Err(CallError::TimedOut))
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("deadline", &self.deadline())
            .finish_non_exhaustive()
    }
}

impl<M, T, F> fmt::Debug for Call<M, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
