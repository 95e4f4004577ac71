//! Calls of foreign wakers: user code that the runtime calls because a timer, a descriptor or the end of a job fires
//! it. Other user code is called in the same way, if nobody must wait for it: the drops of what a job has left, if the
//! last reference to the job went on a thread that must not run user code, such as the monitor's ([`leave`]); and what
//! a crate above asks for ([`Unit::call_apart`](crate::Unit::call_apart)).
//!
//! Invariants:
//! - The kernel's own wakers come first. They only make a job runnable, or unpark a thread.
//! - Each foreign waker then runs in a job of its own, so it is watched and retaken as any job is, holds up no other
//!   one, and is named after the job that registered it ([`kept_waker`]). Wakers that jobs of one spawn site registered
//!   are one kind of job, and so are the wakers of one type that were registered outside of jobs: while that kind is
//!   suspect, they run in quarantine. None runs on the monitor's thread, or on a worker outside of a job.
//! - Wakers of many waits that were cancelled together are not as many jobs at once, which would take many times the
//!   memory of the wakers. They form [chains](CHAIN): a job makes the next one of its chain before it drops its own
//!   waker.
//! - A job that a shutdown cancels before it has begun makes its call all the same, as one that was cancelled just
//!   after that: a waiter may depend on a waker, and a process on what it is told. Calls that are due after the stop
//!   are [leftovers](crate::scheduler::threads::leftovers).
//! - A panic of a foreign waker, of a destructor or of other code is reported and ends there.
//! - A shutdown cancels the jobs that make calls, as all others. That ends a wait in a waker or in other code, but none
//!   in a destructor.
//!
//! The code that took the wakers out of a wheel, a reactor's slot or a job sorts them
//! ([`call`](crate::scheduler::workers::waker::call)), and starts the calls outside every lock
//! ([`ready_calls`](crate::scheduler::workers::ready::ready_calls)).

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    JOB_UPCALLS,
    job::{
        self, Header, JobRef, Room, Spec, foreign_waker, kept_waker, runnable::Runnable,
        transition::Inbox, work_kind::WorkKind,
    },
    report::{self, Describe, JobName, LateName, OUTSIDE_OF_UNITS, panic_message, payload},
};

/// What fired a waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FiredBy {
    Timer,
    Descriptor,
    /// A job that has ended.
    End,
    /// A closure that blocks, or an operation on a file, is over.
    Blocking,
    /// Nothing: the wait was cancelled, and the waker is dropped.
    Cancel,
}

impl FiredBy {
    /// The name of the job that calls a waker which `registrar` has registered.
    fn job_name(self, registrar: Option<&JobName>) -> String {
        let of = match registrar.map(|registrar| registrar.name.as_deref()) {
            Some(Some(name)) => format!(" of {name},"),
            Some(None) => " of an unnamed job,".to_owned(),
            None => String::new(),
        };
        match self {
            FiredBy::Timer => format!("a waker{of} fired by a timer"),
            FiredBy::Descriptor => format!("a waker{of} fired by a descriptor"),
            FiredBy::End => format!("a waker{of} fired by the end of a job"),
            FiredBy::Blocking => format!("a waker{of} fired by the end of a blocking call"),
            FiredBy::Cancel => format!("the destructor of a waker{}", of.trim_end_matches(',')),
        }
    }

    /// How reports name the call of a waker which `registrar`, or nobody known, has registered.
    pub(crate) fn named(self, registrar: Option<&JobName>) -> JobName {
        JobName {
            name: Some(self.job_name(registrar)),
            type_name: std::any::type_name::<Waker>(),
            site: registrar.map_or(OUTSIDE_OF_UNITS, |registrar| registrar.site),
            waits_for: None,
        }
    }
}

/// The name of a job that calls a waker of a job that has a description.
#[derive(Debug)]
struct CallOf {
    by: FiredBy,
    registrar: LateName,
}

impl Describe for CallOf {
    fn name(&self) -> String {
        self.by.job_name(Some(&self.registrar.clone().now()))
    }
}

/// Calls that are still to be made. If the list is dropped, the thread that drops it makes the calls.
#[derive(Default)]
#[must_use = "calls that are dropped are made on the calling thread"]
pub(crate) struct ForeignCalls {
    calls: Vec<ForeignCall>,
    /// Drops of wakers whose waits were cancelled, fewer than form a chain. Chains are made as they come, because a
    /// list of very many calls would take more memory than the wakers.
    cancelled: Vec<ForeignCall>,
}

impl ForeignCalls {
    pub(crate) fn push(&mut self, call: ForeignCall) {
        if !matches!(call.0, Some(Called::Waker(FiredBy::Cancel, _))) {
            return self.calls.push(call);
        }
        self.cancelled.push(call);
        if self.cancelled.len() == CHAIN {
            self.begin_chain();
        }
    }

    #[cold]
    fn begin_chain(&mut self) {
        let cancelled = self.cancelled.drain(..);
        let wakers = cancelled.filter_map(|mut call| call.0.take()?.into_waker());
        let chain = Called::Chain(NO_RUNTIME, wakers.collect());
        self.calls.push(ForeignCall(Some(chain)));
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.calls.is_empty() && self.cancelled.is_empty()
    }

    /// Each call by itself.
    pub(crate) fn into_calls(self) -> impl Iterator<Item = ForeignCall> {
        let calls = self.calls.into_iter().flat_map(ForeignCall::unchained);
        calls.chain(self.cancelled)
    }

    /// The jobs of this `runtime` that make the calls, in no queue.
    pub(crate) fn into_jobs(self, runtime: u16) -> impl Iterator<Item = Runnable> {
        let calls = self.calls.into_iter().chain(self.cancelled);
        calls.map(move |call| call.into_job(runtime))
    }
}

/// How many wakers of cancelled waits form a chain.
const CHAIN: usize = 256;
/// Stands for the runtime of a chain that no job drops yet.
const NO_RUNTIME: u16 = u16::MAX;

/// A waker that is woken or dropped, or other user code that is called: once, when this value is polled or dropped.
pub(crate) struct ForeignCall(Option<Called>);

enum Called {
    Waker(FiredBy, Waker),
    /// Wakers whose waits were cancelled, the last of which is dropped next; of the runtime with this number.
    Chain(u16, Vec<Waker>),
    /// Reports name it so.
    Code(JobName, CodeKind, Box<dyn FnOnce() + Send>),
}

/// What kind of code is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CodeKind {
    /// A drop: no cancel ends a wait in it.
    Destructor,
    Function,
}

impl Called {
    /// Whether it is a drop of a user value, in which no cancel ends a wait.
    fn is_destructor(&self) -> bool {
        matches!(
            self,
            Called::Waker(FiredBy::Cancel, _)
                | Called::Chain(..)
                | Called::Code(_, CodeKind::Destructor, _)
        )
    }

    fn into_waker(self) -> Option<Waker> {
        match self {
            Called::Waker(_, waker) => Some(waker),
            Called::Chain(..) | Called::Code(..) => None,
        }
    }

    /// What fires the waker, and the waker.
    fn waker(&self) -> Option<(FiredBy, &Waker)> {
        match self {
            Called::Waker(by, waker) => Some((*by, waker)),
            Called::Chain(_, wakers) => Some((FiredBy::Cancel, wakers.last()?)),
            Called::Code(..) => None,
        }
    }

    /// The job that registered the waker.
    fn registrar(&self) -> Option<LateName> {
        kept_waker::registrar(self.waker()?.1)
    }

    /// How reports name the call.
    fn name(&self, registrar: Option<&JobName>) -> JobName {
        match self {
            Called::Waker(by, _) => by.named(registrar),
            Called::Chain(..) => FiredBy::Cancel.named(registrar),
            Called::Code(name, ..) => name.clone(),
        }
    }

    /// The kind of the job that makes the call. None: the job's spawn site is its kind. The wakers of one executor that
    /// were registered outside of jobs are one kind.
    fn kind(&self, registrar: Option<&LateName>) -> Option<WorkKind> {
        if registrar.is_some() {
            return None;
        }
        let (_, waker) = self.waker()?;
        let kind = WorkKind::new();
        kind.set(std::ptr::from_ref(waker.vtable()).addr() as u64);
        Some(kind)
    }
}

impl ForeignCall {
    pub(crate) fn new(by: FiredBy, waker: Waker) -> ForeignCall {
        ForeignCall(Some(Called::Waker(by, waker)))
    }

    /// A call of `code`, which belongs to the job `of`. `name` makes the call's name of that job's name.
    pub(crate) fn of_code(
        of: JobName,
        name: impl FnOnce(&str) -> String,
        kind: CodeKind,
        code: Box<dyn FnOnce() + Send>,
    ) -> ForeignCall {
        let named = JobName {
            name: Some(name(of.name.as_deref().unwrap_or("an unnamed job"))),
            waits_for: None,
            ..of
        };
        ForeignCall(Some(Called::Code(named, kind, code)))
    }

    /// The calls of a chain, or this one.
    fn unchained(mut self) -> Vec<ForeignCall> {
        match self.0.take() {
            Some(Called::Chain(_, wakers)) => {
                let by = FiredBy::Cancel;
                let wakers = wakers.into_iter();
                wakers.map(|waker| ForeignCall::new(by, waker)).collect()
            }
            other => vec![ForeignCall(other)],
        }
    }

    /// The job that makes this call begins: if it is the first of a chain, another job goes on with the others.
    fn leave_chain(&mut self) {
        if let Some(Called::Chain(runtime, wakers)) = &mut self.0
            && let Some(waker) = wakers.pop()
        {
            let (runtime, others) = (*runtime, std::mem::take(wakers));
            self.0 = Some(Called::Waker(FiredBy::Cancel, waker));
            if !others.is_empty() {
                let next = ForeignCall(Some(Called::Chain(runtime, others)));
                (JOB_UPCALLS.make_call)(runtime, next);
            }
        }
    }

    /// Makes the call.
    fn call(&mut self) {
        match self.0.take() {
            Some(Called::Waker(FiredBy::Cancel, waker)) => foreign_waker::discard(waker),
            Some(Called::Waker(_, waker)) => foreign_waker::wake(waker),
            Some(Called::Chain(_, wakers)) => wakers.into_iter().for_each(foreign_waker::discard),
            Some(Called::Code(name, _, code)) => {
                if let Err(payload) = catch_unwind(AssertUnwindSafe(code)) {
                    // A cancel: without a runtime it is another job that makes the call, and goes on.
                    if !payload::delivers_cancel_again(&payload) {
                        report::unobserved_panic(&name, &panic_message(payload.as_ref()));
                    }
                    payload::discard(payload);
                }
            }
            None => {}
        }
    }

    /// How reports name the call while no job makes it.
    pub(crate) fn name(&self) -> JobName {
        let called = self.0.as_ref();
        let called = called.expect("a call that was made is named no longer");
        called.name(called.registrar().as_ref().map(LateName::known))
    }

    fn into_job(mut self, runtime: u16) -> Runnable {
        if let Some(Called::Chain(of, _)) = &mut self.0 {
            *of = runtime;
        }
        let called = self.0.as_ref();
        let registrar = called.and_then(Called::registrar);
        let kind = called.and_then(|called| called.kind(registrar.as_ref()));
        let is_shielded = called.is_some_and(Called::is_destructor);
        let name = self.name();
        let spec = Spec {
            runtime,
            site: name.site,
            inbox: Inbox::None,
            pinned: None,
            flags: 0,
            refs: 0,
        };
        let by = called.and_then(Called::waker).map(|(by, _)| by);
        let described = by.zip(registrar.filter(LateName::is_described));
        let described = described
            .map(|(by, registrar)| Arc::new(CallOf { by, registrar }) as Arc<dyn Describe>);
        let job = job::new(Room::needed(), spec, |_| self);
        let mut extensions = job.header().extensions.lock();
        extensions.shields = u32::from(is_shielded);
        extensions.kind = kind;
        extensions.name = name.name.map(String::into_boxed_str);
        extensions.description = described;
        drop(extensions);
        job
    }
}

impl Future for ForeignCall {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        self.leave_chain();
        self.call();
        Poll::Ready(())
    }
}

impl Drop for ForeignCall {
    fn drop(&mut self) {
        match &self.0 {
            None => {}
            Some(called) if called.is_destructor() => self.call(),
            Some(_) => (JOB_UPCALLS.call_in_drop)(&mut || self.call()),
        }
    }
}

/// The last reference to `job` goes, on a thread that must not run user code. The user values that the
/// job has left are dropped in a job of its own.
pub(super) fn leave(job: &Header) {
    let runtime = job.runtime();
    if let Some(left) = left_by(job) {
        // By way of the releasing thread, since the caller may hold any lock of the kernel.
        report::call_for_user(move || (JOB_UPCALLS.make_call)(runtime, left));
    }
}

/// Drops a reference that a walk through all jobs has taken. If it is the last one, this is as [`leave`], for callers
/// that hold no lock.
pub(super) fn let_go(job: JobRef) {
    if job.is_last()
        && let Some(left) = left_by(job.header())
    {
        (JOB_UPCALLS.make_call)(job.header().runtime(), left);
    }
    // Another thread may have let go of it at this moment.
    report::without_user_code(|| drop(job));
}

/// The drop of the user values that the job has left, if there are any.
fn left_by(job: &Header) -> Option<ForeignCall> {
    let mut extensions = job.extensions.lock_existing()?;
    if !extensions.has_user_values() {
        return None;
    }
    let of = JobName::known(job, Some(&extensions));
    let values = extensions.take_user_values();
    drop(extensions);
    let name = |job: &str| format!("what {job} has left");
    Some(ForeignCall::of_code(
        of,
        name,
        CodeKind::Destructor,
        Box::new(move || drop(values)),
    ))
}
