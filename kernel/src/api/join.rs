//! The join handle: the only way to a job's output, and the error if there is none.

#![allow(unsafe_code)]

use std::{
    any::Any,
    fmt,
    marker::PhantomData,
    mem::{self, MaybeUninit},
    panic::Location,
    pin::Pin,
    sync::Mutex,
    task::{Context, Poll, Waker},
};

use weald_sync::{
    Event, Polled, Source, of_source,
    reason::{self, Kind, Reason},
};

use crate::{
    api::park::Unparker,
    api::sync_hooks::note_wait_of,
    job::{
        Header, JobRef,
        body::{Failure, Outcome},
        exit_hooks,
    },
    report::panic_site::PanicSite,
    report::payload::{self, Payload},
    report::{JobName, panic_message},
    scheduler::{
        stackful::nested::{self, Joined},
        workers::{cancel, context, run, shared, waker::kept},
    },
};

/// Why a job has no output.
#[non_exhaustive]
pub enum JoinError {
    /// The job panicked, with this payload.
    Panicked(Panic),
    /// The job was cancelled or refused, or its runtime shut down. Also returned if the output was taken before.
    Cancelled,
}

/// A panic's payload. Dropping this is safe even if the payload's destructor panics: that panic ends here.
pub struct Panic {
    job: Box<JobName>,
    message: String,
    site: Option<PanicSite>,
    // A payload is `Send` but not `Sync`; the mutex makes the error both, as error types must be. None: it was taken.
    payload: Mutex<Option<Payload>>,
}

impl Panic {
    /// The job that panicked.
    pub fn job(&self) -> &JobName {
        &self.job
    }

    /// The message of the panic.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where it panicked. None if the panic hook was not called, as by
    /// [`resume_unwind`](std::panic::resume_unwind), or if the program has replaced it.
    pub fn site(&self) -> Option<&PanicSite> {
        self.site.as_ref()
    }

    /// The payload, for [`resume_unwind`](std::panic::resume_unwind).
    pub fn into_payload(mut self) -> Box<dyn Any + Send> {
        self.take().expect("only this takes the payload")
    }

    fn take(&mut self) -> Option<Payload> {
        self.payload
            .get_mut()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .take()
    }
}

impl Drop for Panic {
    fn drop(&mut self) {
        self.take().into_iter().for_each(payload::discard);
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message).finish()
    }
}

impl JoinError {
    fn of(failure: Failure, job: &Header) -> JoinError {
        match failure {
            Failure::Cancelled => JoinError::Cancelled,
            Failure::Panicked(payload) => JoinError::Panicked(Panic {
                job: Box::new(JobName::of(job)),
                message: panic_message(payload.as_ref()),
                site: job
                    .extensions
                    .lock_existing()
                    .and_then(|extensions| extensions.panic_site.clone()),
                payload: Mutex::new(Some(payload)),
            }),
        }
    }

    /// Whether the job was cancelled.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, JoinError::Cancelled)
    }

    /// Whether the job panicked.
    pub fn is_panic(&self) -> bool {
        matches!(self, JoinError::Panicked(_))
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(panic) => f.debug_tuple("Panicked").field(&panic.message).finish(),
            JoinError::Cancelled => f.write_str("Cancelled"),
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Panicked(panic) => write!(f, "{} panicked: {}", panic.job, panic.message),
            JoinError::Cancelled => f.write_str("the job was cancelled before it ended"),
        }
    }
}

impl std::error::Error for JoinError {}

/// A future of a job's output. Dropping the handle detaches the job, which continues to run.
///
/// Cancel-safe: dropping a future that awaits `&mut handle` loses nothing. `&mut handle` is also an event, which loses
/// nothing if another one is chosen:
///
/// ```
/// use std::time::Duration;
/// use weald::sync::{after, select};
///
/// # weald::Runtime::test(1).block_on(async {
/// let mut job = weald::spawn(async {
///     weald::sleep(Duration::from_secs(3)).await;
///     42
/// });
/// let mut seconds = 0;
/// let answer = loop {
///     select! {
///         answer = &mut job => break answer.unwrap(),
///         () = after(Duration::from_secs(1)) => seconds += 1,
///     }
/// };
/// assert_eq!(answer, 42);
/// assert!(seconds >= 2);
/// # });
/// ```
///
/// Once the handle was ready, polling it again returns [`Cancelled`](JoinError::Cancelled): the output is gone.
#[must_use = "dropping a handle detaches its job; call detach() if that is intended"]
pub struct JoinHandle<T> {
    // None if the job was refused, or the output was taken.
    job: Option<JobRef>,
    output: PhantomData<fn() -> T>,
}

impl<T> JoinHandle<T> {
    /// # Safety
    /// This is the job's only handle, and `T` is its output.
    pub(crate) unsafe fn new(job: JobRef) -> JoinHandle<T> {
        JoinHandle {
            job: Some(job),
            output: PhantomData,
        }
    }

    /// A handle without a job: the job was refused, because the runtime shuts down.
    pub(crate) fn refused() -> JoinHandle<T> {
        JoinHandle {
            job: None,
            output: PhantomData,
        }
    }

    /// Asks the job to end: at its next wait its future is dropped, and joining it returns
    /// [`Cancelled`](JoinError::Cancelled). Does nothing if the job has ended.
    ///
    /// A thread, and a job in [`wait()`](crate::Wait::wait), ends by unwinding its stack, as if it panicked. So a
    /// destructor on that stack that panics is a second panic, and ends the program.
    pub fn cancel(&self) {
        if let Some(job) = &self.job {
            cancel::cancel(job);
        }
    }

    /// Whether the job has ended.
    pub fn is_finished(&self) -> bool {
        self.job
            .as_ref()
            .is_none_or(|job| job.header().state.has_ended())
    }

    /// Detaches the job, which continues to run. A panic of the job is then reported through `tracing`.
    pub fn detach(self) {}

    /// Runs the job now, on the calling worker, if it is a fiber that is next to run there. For callers that are about
    /// to wait for the job. Returns the job's output, if it has ended and left one.
    #[inline]
    pub fn run_if_next(&mut self) -> Option<T> {
        self.run_nested::<false>()
    }

    /// As [`run_if_next`](JoinHandle::run_if_next), also if others are to run before it on the calling worker, but none
    /// was queued later than the fiber; and its timers may be late by half a millisecond, or by 32 such runs. For
    /// programs whose threads fork and join in depth, and expect no turns meanwhile.
    #[inline]
    pub fn run_if_newest(&mut self) -> Option<T> {
        self.run_nested::<true>()
    }

    #[inline(always)]
    fn run_nested<const EAGER: bool>(&mut self) -> Option<T> {
        let job = self.job.as_ref()?;
        if job.header().state.is_done() || !job.header().is_fiber() {
            return None;
        }
        let mut output = MaybeUninit::<T>::uninit();
        // SAFETY: this is the job's only handle, and `T` is its output. If that is there, none is taken from the job.
        match unsafe { nested::run_if_next::<EAGER>(job, output.as_mut_ptr().cast()) } {
            Joined::Known => return None,
            Joined::Gone => mem::forget(self.job.take()),
            Joined::Taken => drop(self.job.take()),
        }
        // SAFETY: the run has written it.
        Some(unsafe { output.assume_init() })
    }

    /// Attaches an exit hook: calls `hook` on the thread that ends the job, after the job has ended in any way and
    /// everything that it held is dropped, except an output that can still be joined. If the job has ended already,
    /// calls `hook` at once.
    pub fn when_ended(&self, hook: impl FnOnce() + Send + 'static) {
        match &self.job {
            Some(job) => {
                let _kept = exit_hooks::attach(job.clone(), Box::new(hook));
            }
            None => hook(),
        }
    }

    /// An unparker of the job. None if the job was refused, or its output was taken.
    pub fn unparker(&self) -> Option<Unparker> {
        self.job.clone().map(Unparker::new)
    }

    /// The job's name in reports. None if the job was refused, or its output was taken.
    pub fn name(&self) -> Option<JobName> {
        self.job.as_ref().map(|job| JobName::of(job.header()))
    }

    pub(crate) fn job(&self) -> Option<&JobRef> {
        self.job.as_ref()
    }

    /// The result, if the job has ended by now; [`Cancelled`](JoinError::Cancelled) if it was taken before.
    #[inline]
    pub fn try_take(&mut self) -> Option<Result<T, JoinError>> {
        match &self.job {
            Some(job) => job.header().state.has_ended().then(|| self.take_output()),
            None => Some(Err(JoinError::Cancelled)),
        }
    }

    fn take_output(&mut self) -> Result<T, JoinError> {
        let job = self
            .job
            .take()
            .expect("the caller has checked that there is a job");
        // SAFETY: the job is done. This is its only handle, which takes the output only here.
        let outcome: Outcome<T> = unsafe { job.take_output() };
        outcome.map_err(|failure| JoinError::of(failure, job.header()))
    }
}

/// The job is done: leaves `waker` to the thread that runs its exit hooks. False if the job has ended by now.
fn wait_for_hooks(job: &Header, waker: Waker) -> bool {
    let Some(mut extensions) = job.extensions.lock_existing() else {
        return false;
    };
    // Under the lock, under which the thread that ends the job takes the waker after its last step.
    let waits = !job.state.has_ended();
    // Values that are not needed leave the lock before they are dropped.
    let unused = match waits {
        true => extensions.joiner.replace(waker),
        false => Some(waker),
    };
    drop(extensions);
    drop(unused);
    waits
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    // The caller's line is that of the `.await`.
    #[track_caller]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let site = Location::caller();
        if self.job.is_none() {
            return Poll::Ready(Err(JoinError::Cancelled));
        }
        if self.poll_end(cx, Some(site)).is_pending()
            || !context::with(|here| here.spend(cx.waker()))
        {
            return Poll::Pending;
        }
        Poll::Ready(self.take_output())
    }
}

/// The end of the job, as an event. A handle that is not chosen keeps the output.
impl<'a, T> Event for &'a mut JoinHandle<T> {
    type Output = Result<T, JoinError>;
    type Branch = <Polled<&'a mut JoinHandle<T>> as Event>::Branch;

    fn open(self) -> Self::Branch {
        of_source(self).open()
    }

    fn conclude(outcome: Self::Output) -> Self::Output {
        outcome
    }
}

impl<T> Source for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_end(cx, None)
    }

    fn take(mut self: Pin<&mut Self>) -> Self::Output {
        match self.job {
            Some(_) => self.take_output(),
            None => Err(JoinError::Cancelled),
        }
    }

    fn reason(&self) -> Reason {
        match &self.job {
            Some(job) => Reason::new(Kind::End, job.header()),
            None => Reason::unspecified(Kind::End),
        }
    }
}

impl<T> JoinHandle<T> {
    /// Whether the job has ended. `site`: the line that asks, if it is known.
    fn poll_end(&self, cx: &mut Context<'_>, site: Option<&'static Location<'static>>) -> Poll<()> {
        let Some(job) = &self.job else {
            return Poll::Ready(());
        };
        let state = &job.header().state;
        // The waker may be written only while no joiner is registered: a completion takes it otherwise.
        if !state.is_done() && state.unregister_joiner() {
            // Cloned before the lock, and the former one dropped after it: a waker is user code.
            let waker = kept(cx.waker());
            let former = job.header().extensions.lock().joiner.replace(waker);
            drop(former);
            if state.register_joiner() {
                let site = site.and_then(reason::user_site);
                note_wait_of(self.reason().at(site), cx.waker());
                return Poll::Pending;
            }
            let unused = job.header().extensions.lock().joiner.take();
            drop(unused);
        }
        // Done, but a job has ended only after its exit hooks. The thread that runs them takes the waker then.
        match state.has_ended() || !wait_for_hooks(job.header(), kept(cx.waker())) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(job) = &self.job {
            give_up_output::<T>(job);
        }
    }
}

/// The only handle is dropped without having taken the output. Not inlined: a handle that was joined, which has no job,
/// is then dropped by one comparison.
#[inline(never)]
fn give_up_output<T>(job: &JobRef) {
    if !job.header().state.drop_handle() {
        return;
    }
    // SAFETY: the job is done, and the only handle has not taken the output.
    let outcome: Outcome<T> = unsafe { job.take_output() };
    if let Err(Failure::Panicked(payload)) = outcome {
        // The caller's thread may be none of the runtime's.
        let shared = shared::find(job.header().runtime());
        let _reports = shared.as_ref().map(|shared| shared.subscriber.enter());
        run::report_untaken_panic(job.header(), &panic_message(payload.as_ref()));
        payload::discard(payload);
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle")
            .field("job", &self.name())
            .finish()
    }
}
