//! One closure on its way through a blocking pool, as its caller sees it.
//!
//! A call is queued, then runs, then is over. It ends only after its closure is gone, so the closure may borrow from
//! the caller. Called by [`blocking_pool`](super::blocking_pool) and by the callers of closures.

use std::{
    cell::RefCell,
    panic::Location,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Poll, Waker},
    time::Instant,
};

use weald_sync::reason::{Kind, Reason};

use crate::{
    job::JobRef,
    report::{JobName, LateName, OperationName},
    sys::lock,
};

/// One closure on its way through the pool, as its caller sees it.
pub(crate) struct BlockingCall {
    pub(super) caller: Caller,
    runtime: u16,
    /// Fires the caller's waker, which may be foreign, for this runtime.
    fire: fn(u16, Waker),
    /// Its number in the order of its pool; 0 before it is queued. Written under the pool's lock, which also orders it
    /// for others.
    number: AtomicU64,
    /// When it was queued.
    pub(super) since: Instant,
    progress: Mutex<Progress>,
}

struct Progress {
    phase: CallPhase,
    waker: Option<Waker>,
    /// Whether a report has said that it lasts.
    is_reported: bool,
}

/// Where a closure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallPhase {
    Queued,
    Running,
    Over(CallEnd),
}

/// How a call ended. The closure is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    Ran,
    NeverRan,
    /// All threads are held by operations that do not return.
    NoFreeThread,
}

/// What closures that block are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Users' closures: of [`blocking`](crate::blocking) and [`offload`](crate::offload()).
    Closures,
    /// Operations on files.
    Files,
    /// Lookups of host names.
    Names,
}

/// The caller that waits for a closure, for reports.
#[derive(Clone)]
pub(crate) enum Caller {
    /// A job, whose stack stays suspended until the closure is gone.
    Job(JobRef),
    /// A future. It may be dropped; the closure then continues on its own.
    Future {
        site: &'static Location<'static>,
        type_name: &'static str,
    },
    /// A future, for an operation on a file or a host name.
    Operation(Arc<OperationName>),
}

thread_local! {
    /// The closure that runs on this blocking thread.
    static RUNNING: RefCell<Option<Arc<BlockingCall>>> = const { RefCell::new(None) };
}

/// The name of the job or future whose closure runs on the calling thread. None outside of such closures, and in
/// operations on files and host names, which run no code of the user. Runs no user code and does not wait.
pub(crate) fn name_of_running() -> Option<JobName> {
    RUNNING
        .try_with(|running| {
            let running = running.try_borrow().ok()?;
            match &running.as_ref()?.caller {
                Caller::Job(job) => Some(JobName::try_known(job.header())),
                future @ Caller::Future { .. } => Some(future.name().known().clone()),
                Caller::Operation(_) => None,
            }
        })
        .ok()?
}

/// The unit that called the closure that runs here, if this is a blocking thread. Waits for nothing.
pub(crate) fn unit_of_running() -> Option<LateName> {
    match &running_here()?.caller {
        Caller::Job(job) => Some(LateName::try_of(job.header())),
        future @ Caller::Future { .. } => Some(future.name()),
        Caller::Operation(_) => None,
    }
}

/// The closure that the calling thread runs, if it is a blocking thread.
pub(crate) fn running_here() -> Option<Arc<BlockingCall>> {
    let running = RUNNING.try_with(|running| running.try_borrow().ok()?.clone());
    running.ok().flatten()
}

/// While it lives, the calling thread runs the closure of a call.
pub(super) struct RunsClosure(());

impl RunsClosure {
    pub(super) fn begin(call: &Arc<BlockingCall>) -> RunsClosure {
        RUNNING.set(Some(call.clone()));
        RunsClosure(())
    }
}

impl Drop for RunsClosure {
    fn drop(&mut self) {
        // The reference to a job is dropped outside the borrow: it may be the last one.
        drop(RUNNING.take());
    }
}

impl BlockingCall {
    /// The job that waits for it, if one does.
    pub(crate) fn job(&self) -> Option<&JobRef> {
        match &self.caller {
            Caller::Job(job) => Some(job),
            Caller::Future { .. } | Caller::Operation(_) => None,
        }
    }
}

impl Caller {
    pub(crate) fn name(&self) -> LateName {
        match self {
            Caller::Job(job) => LateName::of(job.header()),
            Caller::Future { site, type_name } => {
                let known = JobName {
                    name: None,
                    type_name,
                    site,
                    waits_for: None,
                };
                LateName::new(known, None)
            }
            Caller::Operation(operation) => operation.as_job(),
        }
    }

    /// Which pool its closure belongs to.
    pub(crate) fn purpose(&self) -> Purpose {
        match self {
            Caller::Operation(operation) if operation.is_lookup() => Purpose::Names,
            Caller::Operation(_) => Purpose::Files,
            Caller::Job(_) | Caller::Future { .. } => Purpose::Closures,
        }
    }

    /// Whether it is a future. It may be dropped before the closure has run.
    pub(super) fn is_future(&self) -> bool {
        !matches!(self, Caller::Job(_))
    }
}

impl BlockingCall {
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The number of its runtime.
    pub(crate) fn runtime(&self) -> u16 {
        self.runtime
    }

    pub(super) fn new(runtime: u16, fire: fn(u16, Waker), caller: Caller) -> Arc<BlockingCall> {
        Arc::new(BlockingCall {
            caller,
            runtime,
            fire,
            number: AtomicU64::new(0),
            since: Instant::now(),
            progress: Mutex::new(Progress {
                phase: CallPhase::Queued,
                waker: None,
                is_reported: false,
            }),
        })
    }

    /// How the call ended, once it has. Until then the waker that `keep` makes is stored, and `note` is told what the
    /// caller waits for.
    pub(crate) fn poll(&self, keep: impl FnOnce() -> Waker, note: fn(Reason)) -> Poll<CallEnd> {
        if let CallPhase::Over(end) = lock(&self.progress).phase {
            return Poll::Ready(end);
        }
        // A waker is user code: cloned and dropped outside the lock.
        let waker = keep();
        let mut progress = lock(&self.progress);
        if let CallPhase::Over(end) = progress.phase {
            drop(progress);
            drop(waker);
            return Poll::Ready(end);
        }
        note(self.reason(progress.phase));
        let former = progress.waker.replace(waker);
        drop(progress);
        drop(former);
        Poll::Pending
    }

    fn reason(&self, phase: CallPhase) -> Reason {
        match phase {
            CallPhase::Queued => Reason::new(Kind::BlockingThread, self),
            CallPhase::Running | CallPhase::Over(_) => Reason::new(Kind::Blocking, self),
        }
    }

    /// The operation, if its closure runs now and no report has named it. The caller makes that report.
    pub(crate) fn begin_report(&self) -> Option<&Arc<OperationName>> {
        let Caller::Operation(operation) = &self.caller else {
            return None;
        };
        let mut progress = lock(&self.progress);
        let is_first = progress.phase == CallPhase::Running
            && !std::mem::replace(&mut progress.is_reported, true);
        is_first.then_some(operation)
    }

    /// Whether a report about its operation may still become due.
    pub(super) fn may_last(&self) -> bool {
        let progress = lock(&self.progress);
        let is_over = matches!(progress.phase, CallPhase::Over(_));
        matches!(self.caller, Caller::Operation(_)) && !is_over && !progress.is_reported
    }

    pub(super) fn set_number(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
    }

    pub(super) fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    pub(super) fn begin(&self) {
        let mut progress = lock(&self.progress);
        progress.phase = CallPhase::Running;
        // The job is in this wait until the call is over, so the word is about this call. Before its first poll the
        // wait has noted nothing.
        if let Caller::Job(job) = &self.caller
            && progress.waker.is_some()
        {
            let reason = self.reason(CallPhase::Running);
            job.header().set_waits_for(reason.to_word());
        }
    }

    /// The closure is gone.
    pub(super) fn end(&self, end: CallEnd) {
        let mut progress = lock(&self.progress);
        progress.phase = CallPhase::Over(end);
        let waker = progress.waker.take();
        drop(progress);
        if let Some(waker) = waker {
            (self.fire)(self.runtime, waker);
        }
    }
}
