//! Suspects: each is a kind of jobs, and a job of that kind held its thread for too long a moment ago.
//!
//! A *kind* is a spawn site and a type of future, and the [`WorkKind`] that the job has set, if it has one. Units of
//! one kind tend to behave alike: when one of 600 requests blocks, the other 599 are about to. So while a kind is
//! suspect, its jobs run in [`quarantine`](crate::scheduler::threads::quarantine), on threads that own no worker, and
//! the workers serve all others. The first offender delays the others by one `stuck_after`, and the 599 delay them not
//! at all.
//!
//! A *proven* job of a suspect kind still runs on a worker: its record shows short runs. The record is a bit in the
//! header. A worker sets it when the job is the first to run after a look and has run before; a short run in quarantine
//! sets it too; a long run clears it. If many proven jobs of a kind offend, the kind is *strict* for as long as it is
//! suspect: then the record does not count. A cancelled job runs on a worker, where it ends, unless a job of its kind
//! has offended while a cancel ended it.
//!
//! A kind becomes suspect when the monitor sees one of its jobs exceed the bound, or several runs of one job reach half
//! the bound within a second ("just below it, again and again"). It is cleared a second after its last offence or long
//! run, but not while one of its jobs holds a thread and no other is free for the quarantine: its next offender would
//! take a thread that is left for others. A kind is cleared even then once no job of it holds a thread, because
//! its jobs would wait for as long as those of other kinds block.
//!
//! Only jobs that [may be quarantined](Header::may_be_quarantined) are kept from the workers. A callback, a local job
//! or a job with a suspended stack stays where it is; but it makes its kind suspect too, so that the monitor takes
//! blocked threads for stuck sooner.
//!
//! The monitor alone writes. A worker's loop copies the suspects at a look ([`KnownSuspects`]), and while there are
//! none it tests one byte per job.

use std::{
    cell::{Cell, RefCell},
    time::{Duration, Instant},
};

use crate::{
    job::{Header, JobRef, work_kind::WorkKind},
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// A kind is suspect for this long after its last offence.
const MEMORY: Duration = Duration::from_secs(1);
/// So many long runs of one job within [`MEMORY`] make its kind suspect.
const LONG_RUNS: u32 = 4;
/// So many proven jobs that offend make a kind strict.
const PROVEN_OFFENDERS: u32 = 8;
/// The most jobs of one kind whose long runs are counted, or that are reported for them.
const COUNTED_JOBS: usize = 64;

/// A spawn site and a type of future, as addresses; and the kind of what the job does at this moment, if it says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JobKind {
    site: usize,
    vtable: usize,
    work: u64,
}

impl JobKind {
    /// The kind of `job`, apart from what it does at this moment.
    fn of_code(job: &Header) -> JobKind {
        JobKind {
            site: std::ptr::from_ref(job.extensions.site()).addr(),
            vtable: std::ptr::from_ref(job.vtable).addr(),
            work: 0,
        }
    }

    fn of(job: &Header) -> JobKind {
        let extensions = job.extensions.lock_existing();
        let kind = extensions.and_then(|extensions| extensions.kind.as_ref().map(WorkKind::get));
        JobKind {
            work: kind.unwrap_or_default(),
            ..JobKind::of_code(job)
        }
    }

    fn has_code_of(self, other: JobKind) -> bool {
        (self.site, self.vtable) == (other.site, other.vtable)
    }
}

/// A suspect kind, as a worker's loop knows it.
#[derive(Clone, Copy)]
struct Suspect {
    kind: JobKind,
    is_strict: bool,
    ends_long: bool,
}

impl Suspect {
    /// What the loops know of a kind. The record of a job says nothing about work that the job has just begun, so it
    /// does not count if the kind includes a [`WorkKind`].
    fn of(record: &Record) -> Suspect {
        Suspect {
            kind: record.kind,
            is_strict: record.proven_offenders >= PROVEN_OFFENDERS || record.kind.work != 0,
            ends_long: record.ends_long,
        }
    }

    /// Whether `job` must not run on a worker while these are the suspects.
    fn is_among(suspects: impl Iterator<Item = Suspect> + Clone, job: &Header) -> bool {
        let code = JobKind::of_code(job);
        if !suspects
            .clone()
            .any(|suspect| suspect.kind.has_code_of(code))
        {
            return false;
        }
        let kind = JobKind::of(job);
        let suspect = suspects.clone().find(|suspect| suspect.kind == kind);
        // A cancelled job that left the quarantine was given a record: see `Quarantine::take_released`.
        let is_strict = |suspect: Suspect| match job.state.is_cancelled() {
            true => suspect.ends_long,
            false => suspect.is_strict,
        };
        suspect.is_some_and(|suspect| is_strict(suspect) || !job.is_proven())
    }
}

/// What the monitor knows of one kind.
struct Record {
    kind: JobKind,
    /// The last offence or long run.
    last: Instant,
    /// The jobs with long runs, as addresses, with their numbers since `counted_since`.
    long_runs: Vec<(usize, u32)>,
    counted_since: Instant,
    /// The jobs that were reported for several long runs, as addresses.
    named: Vec<usize>,
    proven_offenders: u32,
    is_suspect: bool,
    /// Whether a job that a cancel was ending has offended: the destructors of the kind take long.
    ends_long: bool,
}

impl Record {
    /// True the first time that `job` is to be reported for several long runs.
    fn name(&mut self, job: &Header) -> bool {
        let address = std::ptr::from_ref(job).addr();
        let names = self.named.len() < COUNTED_JOBS && !self.named.contains(&address);
        if names {
            self.named.push(address);
        }
        names
    }

    /// Counts a long run of `job`, and returns how many there were within [`MEMORY`].
    fn count_long_run(&mut self, job: &Header, now: Instant) -> u32 {
        if now.saturating_duration_since(self.counted_since) >= MEMORY {
            self.long_runs.clear();
            self.counted_since = now;
        }
        let address = std::ptr::from_ref(job).addr();
        let mut counts = self.long_runs.iter_mut();
        if let Some((_, count)) = counts.find(|(other, _)| *other == address) {
            *count += 1;
            return *count;
        }
        if self.long_runs.len() < COUNTED_JOBS {
            self.long_runs.push((address, 1));
        }
        1
    }
}

/// What is to be done about a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongRun {
    /// It was one of several of the same job: report the job.
    Again,
    Noted,
}

/// The suspects of a runtime.
#[derive(Default)]
pub(crate) struct Suspects {
    records: Mutex<Vec<Record>>,
    /// Rises with each change of what [`KnownSuspects`] copies.
    version: AtomicUsize,
    /// How many kinds are suspect.
    suspects: AtomicUsize,
}

impl Suspects {
    /// Whether any kind is suspect.
    pub(crate) fn is_any(&self) -> bool {
        self.suspects.load(Ordering::Relaxed) > 0
    }

    /// `job` held its thread beyond the bound: its kind is suspect from now on. Called by the monitor.
    pub(crate) fn note_offence(&self, job: &Header, now: Instant) {
        let was_proven = job.lose_record();
        self.change(job, now, |record| {
            record.proven_offenders += u32::from(was_proven);
            record.is_suspect = true;
            record.ends_long |= job.is_being_ended();
        });
    }

    /// A run of `job` has reached half the bound. Called by the monitor, once for each run.
    pub(crate) fn note_long_run(&self, job: &Header, now: Instant) -> LongRun {
        let mut answer = LongRun::Noted;
        self.change(job, now, |record| {
            if record.count_long_run(job, now) < LONG_RUNS {
                return;
            }
            record.is_suspect = true;
            if record.name(job) {
                answer = LongRun::Again;
            }
        });
        if self.is_any() {
            let _ = job.lose_record();
        }
        answer
    }

    fn change(&self, job: &Header, now: Instant, change: impl FnOnce(&mut Record)) {
        let kind = JobKind::of(job);
        let mut records = lock(&self.records);
        let index = records.iter().position(|record| record.kind == kind);
        let index = index.unwrap_or_else(|| {
            records.push(Record {
                kind,
                last: now,
                long_runs: Vec::new(),
                counted_since: now,
                named: Vec::new(),
                proven_offenders: 0,
                is_suspect: false,
                ends_long: false,
            });
            records.len() - 1
        });
        let record = &mut records[index];
        record.last = now;
        let before = Suspect::of(record);
        let was_suspect = record.is_suspect;
        change(record);
        let after = Suspect::of(record);
        let is_changed = (after.is_strict, after.ends_long) != (before.is_strict, before.ends_long);
        let is_news = record.is_suspect != was_suspect || (was_suspect && is_changed);
        if is_news {
            self.publish(&records);
        }
    }

    /// Clears the kinds whose last offence is long ago. Called by the monitor each round.
    pub(crate) fn expire(&self, now: Instant) {
        let mut records = lock(&self.records);
        let before = records.len();
        records.retain(|record| now.saturating_duration_since(record.last) < MEMORY);
        if records.len() < before {
            self.publish(&records);
        }
    }

    /// Renews the time of the suspect kinds that one of `holders` belongs to. Called by the monitor in each round in
    /// which no thread is free for the quarantine. Calls `holders` only if the time of some kind is half over.
    pub(crate) fn prolong(&self, holders: impl FnOnce() -> Vec<JobRef>, now: Instant) {
        let is_due = |record: &Record| {
            record.is_suspect && now.saturating_duration_since(record.last) >= MEMORY / 2
        };
        if !lock(&self.records).iter().any(is_due) {
            return;
        }
        // Without the lock, which the loops of the workers take.
        let holders = holders();
        let held: Vec<JobKind> = holders
            .iter()
            .map(|job| JobKind::of(job.header()))
            .collect();
        let mut records = lock(&self.records);
        let due = records.iter_mut().filter(|record| is_due(record));
        for record in due.filter(|record| held.contains(&record.kind)) {
            record.last = now;
        }
    }

    /// Whether `job`, which is running, must not continue on a worker. Any thread.
    pub(crate) fn includes(&self, job: &Header) -> bool {
        let records = lock(&self.records);
        let suspects = records.iter().filter(|record| record.is_suspect);
        job.may_be_quarantined() && Suspect::is_among(suspects.map(Suspect::of), job)
    }

    fn publish(&self, records: &[Record]) {
        let suspects = records.iter().filter(|record| record.is_suspect).count();
        self.suspects.store(suspects, Ordering::Relaxed);
        // Release: pairs with the load in `refresh`. The copy itself is made under the lock.
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// A loop's copy of the suspects.
#[derive(Default)]
pub(crate) struct KnownSuspects {
    version: Cell<usize>,
    is_any: Cell<bool>,
    suspects: RefCell<Vec<Suspect>>,
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
        let copies = records.iter().filter(|record| record.is_suspect);
        let copies = copies.map(Suspect::of);
        self.suspects.replace(copies.collect());
        self.is_any.set(!self.suspects.borrow().is_empty());
        self.version.set(version);
    }

    #[inline(always)]
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.get()
    }

    /// Whether `job` must not run on a worker at present. Only the holder of its runnable.
    #[cold]
    pub(crate) fn includes(&self, job: &Header) -> bool {
        if !job.may_be_quarantined() {
            return false;
        }
        Suspect::is_among(self.suspects.borrow().iter().copied(), job)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::job::testing;

    #[test]
    fn the_loops_copy_the_suspects_only_when_something_is_new() {
        let (suspects, job, now) = (Suspects::default(), testing::job(), Instant::now());
        let version = || suspects.version.load(Ordering::Relaxed);
        suspects.note_offence(job.header(), now);
        let first = version();
        assert!(suspects.is_any());
        for _ in 0..100 {
            suspects.note_offence(job.header(), now);
            let _ = suspects.note_long_run(job.header(), now);
        }
        assert_eq!(version(), first);
        for _ in 0..PROVEN_OFFENDERS {
            job.header().prove();
            suspects.note_offence(job.header(), now);
        }
        assert_eq!(version(), first + 1, "the kind is strict");
        suspects.expire(now + MEMORY);
        assert!(!suspects.is_any());
        assert_eq!(version(), first + 2);
    }
}
