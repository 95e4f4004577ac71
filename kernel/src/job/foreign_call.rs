//! Calls of foreign wakers: user code that the runtime calls because a timer, a descriptor or the end of a job fires
//! it.
//!
//! Invariants:
//! - The kernel's own wakers come first. They only make a job runnable, or unpark a thread.
//! - Each foreign waker then runs in a job of its own, so it is watched and retaken as any job is, holds up no other
//!   one, and is named after the job that registered it ([`kept_waker`]). Wakers that jobs of one spawn site registered
//!   are one kind of job, and so are the wakers of one type that were registered outside of jobs: while that kind is suspect,
//!   they run in quarantine. None runs on the monitor's thread, or on
//!   a worker outside of a job.
//! - A job that will never run, because the runtime has stopped, makes its call when it is dropped. In a stopped
//!   runtime they are [leftovers](crate::scheduler::threads::leftovers).
//! - A panic of a foreign waker is reported and ends there, and so does one of its destructor.
//!
//! The code that took the wakers out of a wheel, a reactor's slot or a job sorts them
//! ([`call`](crate::scheduler::workers::waker::call)), and starts the calls outside every lock
//! ([`ready_calls`](crate::scheduler::workers::ready::ready_calls)).

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    job::{
        self, Room, Spec, foreign_waker, kept_waker, runnable::Runnable, transition::Inbox,
        work_kind::WorkKind,
    },
    report::{Describe, JobName, LateName, OUTSIDE_OF_UNITS},
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
pub(crate) struct ForeignCalls(Vec<ForeignCall>);

impl ForeignCalls {
    pub(crate) fn push(&mut self, call: ForeignCall) {
        self.0.push(call);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_calls(self) -> impl Iterator<Item = ForeignCall> {
        self.0.into_iter()
    }

    /// The jobs of this `runtime` that make the calls, in no queue.
    pub(crate) fn into_jobs(self, runtime: u16) -> impl Iterator<Item = Runnable> {
        self.0.into_iter().map(move |call| call.into_job(runtime))
    }
}

/// A waker that is woken or dropped, once: when this value is called, polled or dropped.
pub(crate) struct ForeignCall {
    by: FiredBy,
    waker: Option<Waker>,
}

impl ForeignCall {
    pub(crate) fn new(by: FiredBy, waker: Waker) -> ForeignCall {
        let waker = Some(waker);
        ForeignCall { by, waker }
    }

    /// Makes the call.
    fn call(&mut self) {
        let Some(waker) = self.waker.take() else {
            return;
        };
        match self.by {
            FiredBy::Cancel => foreign_waker::discard(waker),
            _ => foreign_waker::wake(waker),
        }
    }

    /// How reports name the call while no job makes it.
    pub(crate) fn name(&self) -> JobName {
        let registrar = self.waker.as_ref().and_then(kept_waker::registrar);
        let registrar = registrar.as_ref().map(LateName::known);
        JobName {
            name: Some(self.by.job_name(registrar)),
            type_name: std::any::type_name::<Waker>(),
            site: registrar.map_or(OUTSIDE_OF_UNITS, |registrar| registrar.site),
            waits_for: None,
        }
    }

    fn into_job(self, runtime: u16) -> Runnable {
        let registrar = self.waker.as_ref().and_then(kept_waker::registrar);
        let spec = Spec {
            runtime,
            site: match &registrar {
                Some(registrar) => registrar.site(),
                None => OUTSIDE_OF_UNITS,
            },
            inbox: Inbox::None,
            pinned: None,
            flags: 0,
            refs: 0,
        };
        let vtable = self
            .waker
            .as_ref()
            .map_or(0, |waker| std::ptr::from_ref(waker.vtable()).addr());
        let by = self.by;
        let name = by.job_name(registrar.as_ref().map(LateName::known));
        let job = job::new(Room::needed(), spec, |_| self);
        if registrar.is_none() {
            // Those of one executor are a kind.
            let kind = WorkKind::new();
            kind.set(vtable as u64);
            job.header().extensions.lock().kind = Some(kind);
        }
        let described = registrar.filter(LateName::is_described);
        let mut extensions = job.header().extensions.lock();
        extensions.name = Some(name.into());
        extensions.description =
            described.map(|registrar| -> Arc<dyn Describe> { Arc::new(CallOf { by, registrar }) });
        drop(extensions);
        job
    }
}

impl Future for ForeignCall {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<()> {
        self.call();
        Poll::Ready(())
    }
}

impl Drop for ForeignCall {
    fn drop(&mut self) {
        self.call();
    }
}
