//! Suspects: each is a kind of jobs, and a job of that kind held its thread for too long a moment ago.
//!
//! A *kind* is a spawn site and a type of future, and the [`WorkKind`](crate::WorkKind) that the job has set, if it has
//! one. Units of one kind tend to behave alike: when one of 600 requests blocks, the other 599 are about to. So while a
//! kind is suspect, its jobs run in [`quarantine`](crate::scheduler::threads::quarantine), on threads that own no
//! worker, and the workers serve all others. The first offender delays the others by one `stuck_after`. The 599 hold no
//! worker; if they compute, they still take a share of the cores.
//!
//! A *proven* job of a suspect kind still runs on a worker: its runs were short. Whether a job is proven is a bit in
//! its header. A worker sets it when the job is the first to run after a look and has run before; a short run in
//! quarantine sets it too; a long run clears it. If many proven jobs of a kind offend, the kind is *strict* for as long
//! as it is suspect: then proven jobs are no exception. A cancelled job runs on a worker, where it ends, unless a job
//! of its kind has offended while a cancel ended it.
//!
//! Kinds of work may come from outside, as paths of requests do; then each job of a burst may be of a kind of its own.
//! So work may have a *family*. When some kinds of a family have offended, the family is a suspect kind too; when some
//! families have offended, so is all work of that code that has a family ([`job_kind`](super::job_kind)). Work without
//! a family is one too, once many more of its kinds have offended. *Known* work, which was seen to end soon, is exempt
//! from these wide kinds, as proven jobs are from other kinds, until too much known work has offended. If other work
//! offends while a wide kind already keeps it from the workers, only the record of the wide kind notes the offence. So
//! a burst leaves few records.
//!
//! A burst may consist of jobs of many codes, each of which would cost the others the bound, and a spare thread. So
//! once kinds of very many codes are suspect, all jobs are, except proven jobs and known work. If many of these kinds
//! offended by proven jobs, these are no exception either. One job of each code is tried first in quarantine; unless
//! it offends there, other jobs of its code run on workers ([`trials`](super::suspect_records::trials)).
//!
//! A kind becomes suspect when the monitor sees one of its jobs exceed the bound, or four runs of its jobs reach half
//! the bound within a second. It is cleared a second after its last offence or long run. If no thread is free for the
//! quarantine, it stays suspect while one of its jobs holds a thread: its next offender would take a thread that is
//! left for others. Once none of its jobs holds a thread, the kind is cleared at once although no thread is free: its
//! other jobs would wait for as long as jobs of other kinds block. A kind that goes on offending is not cleared early
//! again and again (`suspect_records/clearing.rs`).
//!
//! Only jobs that [may be quarantined](Header::may_be_quarantined) are kept from the workers. A local job or a job with
//! a suspended stack stays where it is; but it makes its kind suspect too, so that the monitor takes blocked threads
//! for stuck sooner.
//!
//! The kind of a callback is the place where it was started and the type of its closure. A runner of callbacks looks
//! whether the next one is of a suspect kind, and puts such a one into quarantine as a job of its own. A callback has
//! no record of short runs. While all jobs are suspect, so are callbacks that run once.
//!
//! The parts of a fork are a kind of their own: the line of the fork. Those of a suspect line that a thief takes go to
//! quarantine, too. While it is full, no thief takes any, so that the owner runs them itself
//! ([`Forks::set_room_for_parts`](crate::scheduler::services::Forks::set_room_for_parts)), unless the owner itself
//! waits: such parts are begun one after the other. While all jobs are suspect,
//! so are all lines, but thieves take parts of a trusted one, and a part of a line that did not offend itself is tried.
//!
//! A burst of jobs that announce that they block offends without a report: see
//! [`note_announced`](super::detached_round::note_announced).
//!
//! The monitor writes, and a thread whose job announces that it blocks. A worker's loop copies the suspects at a look
//! ([`KnownSuspects`]), and while there are none it tests one byte per job.

use std::{
    cell::{Cell, RefCell},
    panic::Location,
    time::Instant,
};

use crate::{
    job::{Header, JobRef, name::UnitName},
    scheduler::threads::{
        job_kind::{Code, CurrentWork, Width},
        suspect_records::{
            Records,
            record::{LongRun, Offence},
            suspect::Suspect,
            trials::Rank,
        },
    },
    sys::{AtomicBool, AtomicUsize, Mutex, Ordering, lock},
};

/// The suspects of a runtime.
#[derive(Default)]
pub(crate) struct Suspects {
    records: Mutex<Records>,
    /// Rises with each change of what [`KnownSuspects`] copies.
    version: AtomicUsize,
    /// How many kinds are suspect.
    suspects: AtomicUsize,
    /// Whether all jobs are suspect. Relaxed: a job that comes a moment too early or too late is not tried.
    are_all: AtomicBool,
}

impl Suspects {
    /// Whether any kind is suspect.
    pub(crate) fn is_any(&self) -> bool {
        self.suspects.load(Ordering::Relaxed) > 0
    }

    /// Whether all jobs are suspect, so that some are tried.
    pub(super) fn are_all(&self) -> bool {
        self.are_all.load(Ordering::Relaxed)
    }

    /// `job` held its thread beyond the bound: its kind is suspect from now on. Any thread.
    pub(crate) fn note_offence(&self, job: &Header, now: Instant) {
        let offence = Offence {
            was_exempt: job.clear_proven(),
            ends_long: job.is_being_ended(),
        };
        let work = CurrentWork::of_offender(job);
        self.change(|records| records.note_offence(work, offence, now));
    }

    /// A run of `job` has reached half the bound. Called by the monitor, once for each run.
    pub(crate) fn note_long_run(&self, job: &Header, now: Instant) -> LongRun {
        let run = (job, CurrentWork::of(job));
        let noted = self.change(|records| records.note_long_run(run, now));
        if self.is_any() {
            let _was_proven = job.clear_proven();
        }
        noted
    }

    /// Clears the kinds whose last offence is long ago. Called by the monitor each round.
    pub(crate) fn expire(&self, now: Instant) {
        self.change(|records| records.expire(now));
    }

    /// Renews the time of the suspect kinds that one of `holders` belongs to. Called by the monitor in each round in
    /// which no thread is free for the quarantine. Calls `holders` only if the time of some kind is half over.
    pub(crate) fn prolong(&self, holders: impl FnOnce() -> Vec<JobRef>, now: Instant) {
        if lock(&self.records).due(now).next().is_none() {
            return;
        }
        // Without the lock, which the loops of the workers take.
        let holders = holders();
        let held: Vec<CurrentWork> = holders
            .iter()
            .map(|job| CurrentWork::of(job.header()))
            .collect();
        let mut records = lock(&self.records);
        records
            .due(now)
            .for_each(|record| record.prolong(&held, now));
    }

    /// Clears the suspect kinds to which none of `holders` belongs, as long as that costs little. Called by the monitor
    /// in each round in which no thread is free for the quarantine, but some are left. Calls `holders` only if a look
    /// is due.
    pub(super) fn clear_unheld(
        &self,
        holders: impl FnOnce() -> Vec<JobRef>,
        workers: usize,
        now: Instant,
    ) {
        if !lock(&self.records).may_clear(now) {
            return;
        }
        // Without the lock, as in `prolong`.
        let holders = holders();
        let held = holders.iter().map(|job| CurrentWork::of(job.header()));
        let held: Vec<CurrentWork> = held.collect();
        self.change(|records| records.clear(&held, workers, now));
    }

    /// While all jobs are suspect: `job` is none of those that are kept from the workers, as it is proven. So its code
    /// is trusted.
    fn trust_as(&self, job: &Header) {
        if self.are_all() {
            let work = CurrentWork::of(job);
            if work.number == 0 {
                self.trust(work);
            }
        }
    }

    /// All jobs stay suspect if they are: so few threads are left that others would get none. Called by the monitor.
    pub(super) fn prolong_all(&self, now: Instant) {
        if self.are_all() {
            lock(&self.records).prolong_all(now);
        }
    }

    /// Where `job`, which goes into quarantine, has its place there. Only the holder of its runnable.
    pub(super) fn rank(&self, job: &Header) -> Rank {
        if job.relieves() {
            return Rank::First;
        }
        if !self.are_all() {
            return Rank::Last;
        }
        let work = CurrentWork::of(job);
        lock(&self.records).rank(job, work)
    }

    /// What `job` does, if the end of its run is to be noted. Asked before it runs.
    pub(super) fn tried_work(&self, job: &Header) -> Option<CurrentWork> {
        self.are_all().then(|| CurrentWork::of(job))
    }

    /// `job`, which was to be tried in quarantine, goes to a worker instead.
    pub(super) fn give_up_trial(&self, job: &Header) {
        if self.are_all() {
            lock(&self.records).give_up_trial(Code::of(job));
        }
    }

    /// A run of a job that did `work` has ended in quarantine, or has come to a wait there; or a job that does it is
    /// proven. So while all jobs are suspect, its code is trusted.
    pub(super) fn trust(&self, work: CurrentWork) {
        self.change(|records| records.trust(work));
    }

    /// Whether `job`, which is running, must not continue on a worker. Any thread.
    pub(crate) fn includes(&self, job: &Header) -> bool {
        if !job.may_be_quarantined() {
            return false;
        }
        let records = lock(&self.records);
        Suspect::is_among(records.suspects(), records.trusted(), job)
    }

    /// Whether parts of the fork that was called at `site` must not be stolen while no thread of the quarantine is free
    /// for those of suspect lines. `has_room`: whether one is for a part that is tried. Any thread.
    pub(crate) fn include_parts_of(
        &self,
        site: &'static Location<'static>,
        has_room: bool,
    ) -> bool {
        lock(&self.records).include_parts(Code::of_parts(site), has_room)
    }

    /// Changes the records, and tells the loops if other kinds are suspect now.
    fn change<R>(&self, change: impl FnOnce(&mut Records) -> R) -> R {
        let mut records = lock(&self.records);
        let answer = change(&mut records);
        if records.take_news() {
            self.suspects
                .store(records.suspects().count(), Ordering::Relaxed);
            self.are_all
                .store(records.are_all_suspect(), Ordering::Relaxed);
            // Release: pairs with the load in `refresh`. The copy itself is made under the lock.
            self.version.fetch_add(1, Ordering::Release);
        }
        answer
    }
}

/// A loop's copy of the suspects.
#[derive(Default)]
pub(crate) struct KnownSuspects {
    version: Cell<usize>,
    is_any: Cell<bool>,
    suspects: RefCell<Vec<Suspect>>,
    trusted: RefCell<Vec<Code>>,
}

impl KnownSuspects {
    /// Copies what has changed. Called at each look.
    #[inline]
    pub(crate) fn refresh(&self, suspects: &Suspects) {
        let version = suspects.version.load(Ordering::Acquire);
        if version != self.version.get() {
            self.copy(suspects, version);
        }
    }

    #[cold]
    fn copy(&self, suspects: &Suspects, version: usize) {
        let records = lock(&suspects.records);
        self.suspects.replace(records.suspects().collect());
        self.trusted.replace(records.trusted().to_vec());
        drop(records);
        self.is_any.set(!self.suspects.borrow().is_empty());
        self.version.set(version);
    }

    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.get()
    }

    /// Whether `job` must not run on a worker at present, as this copy of `origin` says. Only the holder of its
    /// runnable.
    #[cold]
    pub(crate) fn includes(&self, job: &Header, origin: &Suspects) -> bool {
        if !job.may_be_quarantined() {
            return false;
        }
        let suspects = self.suspects.borrow();
        let is_kept = Suspect::is_among(suspects.iter().copied(), &self.trusted.borrow(), job);
        // A cancelled job may count as proven without a run.
        if !is_kept && job.is_proven() && !job.state.is_cancelled() && self.may_trust(job) {
            origin.trust_as(job);
        }
        is_kept
    }

    /// Whether the code of `job`, which is proven, may be trusted, and is not yet: to trust it takes the lock of all
    /// loops.
    fn may_trust(&self, job: &Header) -> bool {
        let code = Code::of(job);
        let is_own = |suspect: &Suspect| {
            suspect.kind.code == Some(code) && suspect.kind.width == Width::Work(0)
        };
        !self.trusted.borrow().contains(&code) && !self.suspects.borrow().iter().any(is_own)
    }

    /// Whether a callback of this name must not run on a worker at present.
    #[cold]
    pub(crate) fn include_callback(&self, callback: UnitName, runs_once: bool) -> bool {
        let code = Code::of_callback(callback);
        let keeps = |suspect: &Suspect| suspect.kind.code.map_or(runs_once, |it| it == code);
        self.suspects.borrow().iter().any(keeps)
    }
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests;
