//! A unit from the outside: anything that the kernel runs, whatever it is made of.
//!
//! A unit can be killed, asked whether it has ended, and given an [`Attachment`], by which a crate above learns how it
//! ended. Links and monitors of processes are built on this, so they work for every kind of unit.

#![allow(unsafe_code)]

use std::{fmt, sync::Arc};

use weald_sync::reason::{Kind, Reason};

use crate::{
    api::join::JoinHandle,
    job::{
        JobPtr, JobRef,
        attachment::{self, Attachment, Ending},
        foreign_call::{CodeKind, ForeignCall},
    },
    report::{JobName, LateName},
    scheduler::workers::{cancel, context, current::with_current, shared::Shared, waker},
};

/// A counted reference to a unit: a process, a thread, or any other job. It never refers to another unit, however long
/// it is kept.
#[derive(Clone)]
pub struct Unit(JobRef);

/// The place of a unit in memory. No other unit has it before that one has ended.
#[derive(Clone, Copy)]
pub struct UnitPlace(JobPtr);

impl UnitPlace {
    /// Whether the caller runs in the unit, if that has not ended.
    pub fn is_of_current(self) -> bool {
        context::again().unit_job() == Some(self.0)
    }
}

/// Whether the calling thread serves a worker at this moment. If so, the monitor gives the worker to another thread
/// when a job holds this one, and then calls [`Attachment::takes_long`]. If not, both may already have happened.
pub fn serves_worker() -> bool {
    let cx = context::again();
    let Some((worker, lease)) = cx.worker() else {
        return false;
    };
    // The monitor may have retaken the worker, which the thread does not know before it takes the lock.
    // SAFETY: *owner*: the worker of this thread's context.
    let serves = unsafe { worker.core.enter(lease) }.is_ok();
    if !serves {
        cx.clear_worker();
    }
    serves
}

/// Which worker of its runtime the calling thread serves, counted from zero. None if it serves none. A thread that may
/// resume elsewhere is on another worker after its next wait.
pub fn worker_index() -> Option<usize> {
    context::again().worker().map(|(worker, _)| worker.index)
}

/// Whether another worker of the caller's runtime has work at this moment: what the caller waits for may come while it
/// looks for it a few more times. False if the calling thread serves no worker.
pub fn others_work() -> bool {
    let cx = context::again();
    cx.worker().is_some()
        && cx
            .shared()
            .is_some_and(|shared| shared.sleepers.idle() + 1 < shared.workers.len())
}

/// The number of the current runtime: the one that runs the caller, else the default one, which starts if need be.
pub fn current_runtime() -> u16 {
    with_current(Shared::id)
}

/// Whether the current runtime is shutting down, and takes no new jobs.
pub fn is_shutting_down() -> bool {
    with_current(Shared::is_closing)
}

/// Whether a unit that seems to end really ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// Its code has ended.
    Ends,
    /// It panics, which code of its own may catch, or has closed its mailbox.
    MayGoOn,
}

/// A value that stands for a unit: a pid, a handle.
pub trait AsUnit {
    /// The unit. None if it was never started, or its handle has given up its output.
    fn as_unit(&self) -> Option<Unit>;
}

impl Unit {
    pub(crate) fn new(job: JobRef) -> Unit {
        Unit(job)
    }

    /// A wait for the unit's answer to a call.
    #[inline]
    pub fn answers(&self) -> Reason {
        Reason::new(Kind::Call, self.0.header())
    }

    /// The unit that runs the caller; none outside of jobs. A part of a fork is one of the unit that forked, whichever
    /// thread runs it. A callback has no unit of its own: it gets that of the job that runs it.
    pub fn current() -> Option<Unit> {
        context::again().unit_ref().map(Unit)
    }

    /// The place of the unit, by which the unit itself is known without a count.
    pub fn place(&self) -> UnitPlace {
        UnitPlace(self.0.ptr())
    }

    /// The running unit, if it is ending: it panics, was cancelled, or has closed its mailbox. For destructors that run
    /// because of that.
    /// None in a callback, whose panic ends no unit.
    pub fn current_if_ending() -> Option<(Unit, Certainty)> {
        let cx = context::again();
        let job = cx.unit_ref()?;
        let header = job.header();
        let closed = || header.is_counted() && header.state.is_closed();
        let certainty = match cx.is_dropping() {
            true => Certainty::Ends,
            false if std::thread::panicking() || closed() => Certainty::MayGoOn,
            false => return None,
        };
        let unit = Unit(job);
        (!unit.runs_callbacks()).then_some((unit, certainty))
    }

    /// Whether it is a job of the kernel's that runs callbacks, one after the other.
    pub fn runs_callbacks(&self) -> bool {
        let extensions = self.0.header().extensions.lock_existing();
        extensions.is_some_and(|extensions| extensions.running_unit.is_some())
    }

    /// Whether the caller runs because the running unit panics. The unwinding of a unit that was told to end is not a
    /// panic.
    pub fn is_panicking() -> bool {
        let cx = context::again();
        let unwinds_for_cancel = || {
            let job = cx.job_ref();
            job.is_some_and(|job| {
                let extensions = job.header().extensions.lock_existing();
                extensions.is_some_and(|extensions| extensions.unwound)
            })
        };
        cx.is_panicking() && !unwinds_for_cancel()
    }

    /// If the running unit continues, [`Attachment::survived`] is called at its next wait at the latest, whatever
    /// catches the panic that unwinds it now. For destructors of a unit that [may go on](Certainty::MayGoOn).
    pub fn tell_if_it_goes_on() {
        context::again().note_panic();
    }

    /// Calls `code`, which is the unit's but is due elsewhere, such as at the end of another unit, in a job of its own
    /// in the unit's runtime. So it is watched, holds up nobody, and reports name it `what` and the unit's name. A
    /// panic is reported. A shutdown ends a wait in it, as in any job. If `code` has not begun by then, it is called
    /// all the same, and its first wait ends at once. If the runtime has stopped, threads for what is left call it; if
    /// it is gone, the calling one does.
    pub fn call_apart(&self, what: &str, code: impl FnOnce() + Send + 'static) {
        let header = self.0.header();
        let known = LateName::of(header).known().clone();
        let name = |unit: &str| format!("{what} {unit}");
        let call = ForeignCall::of_code(known, name, CodeKind::Function, Box::new(code));
        waker::make_call(header.runtime(), call);
    }

    /// Asks the unit to end at its next wait, as [`JoinHandle::cancel`], and closes its mailbox at once: it receives no
    /// message that was sent after this. Does nothing if it has ended.
    pub fn kill(&self) {
        cancel::kill(&self.0);
    }

    /// Whether the unit was asked to end.
    pub fn is_cancelled(&self) -> bool {
        self.0.header().state.is_cancelled()
    }

    /// Whether the code of the unit has ended. Its exit hooks may still run.
    pub fn is_done(&self) -> bool {
        self.0.header().state.is_done()
    }

    /// Whether the unit has ended, and its exit hooks have run.
    pub fn has_ended(&self) -> bool {
        self.0.header().state.has_ended()
    }

    /// How the code of the unit ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        attachment::ending(self.0.header())
    }

    /// The unit's name in reports.
    pub fn name(&self) -> JobName {
        JobName::of(self.0.header())
    }

    /// A number that no other unit of the program ever has. Assigned at the first call.
    pub fn number(&self) -> u64 {
        self.0.header().extensions.lock().number()
    }

    /// The number of the unit's runtime. The number of a runtime that has ended may be used again.
    pub fn runtime(&self) -> u16 {
        self.0.header().runtime()
    }

    /// The attachment of the unit, if it has one of this type.
    pub fn attachment<A: Attachment>(&self) -> Option<Arc<A>> {
        attachment::get(self.0.header())
    }

    /// The attachment of the unit. If it had none, it gets what `make` returns for the unit's
    /// [number](Unit::number). None if the unit has ended and had none, or has one of another type. `make` must not use
    /// the unit.
    pub fn attach<A: Attachment>(&self, make: impl FnOnce(u64) -> A) -> Option<Arc<A>> {
        attachment::get_or_attach(self.0.header(), make)
    }
}

impl AsUnit for Unit {
    fn as_unit(&self) -> Option<Unit> {
        Some(self.clone())
    }
}

impl<T> AsUnit for JoinHandle<T> {
    fn as_unit(&self) -> Option<Unit> {
        self.job().cloned().map(Unit)
    }
}

impl<U: AsUnit + ?Sized> AsUnit for &U {
    fn as_unit(&self) -> Option<Unit> {
        (**self).as_unit()
    }
}

impl PartialEq for Unit {
    fn eq(&self, other: &Unit) -> bool {
        self.0.ptr() == other.0.ptr()
    }
}

impl Eq for Unit {}

impl fmt::Debug for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unit({}: {})", self.number(), self.name())
    }
}
