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
//! once kinds of very many codes are suspect, all *fresh* jobs are: those that are not proven and have never waited,
//! and work that is not known.
//!
//! A kind becomes suspect when the monitor sees one of its jobs exceed the bound, or four runs of its jobs reach half
//! the bound within a second. It is cleared a second after its last offence or long run. If no thread is free for the
//! quarantine, it stays suspect while one of its jobs holds a thread: its next offender would take a thread that is
//! left for others. Once none of its jobs holds a thread, the kind is cleared although no thread is free: its other
//! jobs would wait for as long as jobs of other kinds block.
//!
//! Only jobs that [may be quarantined](Header::may_be_quarantined) are kept from the workers. A local job or a job with
//! a suspended stack stays where it is; but it makes its kind suspect too, so that the monitor takes blocked threads
//! for stuck sooner.
//!
//! The kind of a callback is the place where it was started and the type of its closure. A runner of callbacks looks
//! whether the next one is of a suspect kind, and puts such a one into quarantine as a job of its own. A callback has
//! no record of short runs. While all fresh jobs are suspect, so are callbacks that run once.
//!
//! The parts of a fork are a kind of their own: the line of the fork. Those of a suspect line that a thief takes go to
//! quarantine, too. While it is full, no thief takes any, so that the owner runs them itself
//! ([`Forks::set_room_for_parts`](crate::scheduler::services::Forks::set_room_for_parts)).
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
        job_kind::{Code, CurrentWork},
        suspect_records::{LongRun, Offence, Records, Suspect},
    },
    sys::{AtomicUsize, Mutex, Ordering, lock},
};

/// The suspects of a runtime.
#[derive(Default)]
pub(crate) struct Suspects {
    records: Mutex<Records>,
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

    /// Whether `job`, which is running, must not continue on a worker. Any thread.
    pub(crate) fn includes(&self, job: &Header) -> bool {
        job.may_be_quarantined() && Suspect::is_among(lock(&self.records).suspects(), job)
    }

    /// Whether parts of the fork that was called at `site` must not run on a worker. Any thread.
    pub(crate) fn include_parts_of(&self, site: &'static Location<'static>) -> bool {
        let parts = Code::of_parts(site);
        let keeps = |suspect: Suspect| suspect.kind.code.is_none_or(|code| code == parts);
        lock(&self.records).suspects().any(keeps)
    }

    /// Changes the records, and tells the loops if other kinds are suspect now.
    fn change<R>(&self, change: impl FnOnce(&mut Records) -> R) -> R {
        let mut records = lock(&self.records);
        let answer = change(&mut records);
        if records.take_news() {
            self.suspects
                .store(records.suspects().count(), Ordering::Relaxed);
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
        let copies = lock(&suspects.records).suspects().collect();
        self.suspects.replace(copies);
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

    /// Whether a callback of this name must not run on a worker at present.
    #[cold]
    pub(crate) fn include_callback(&self, callback: UnitName, runs_once: bool) -> bool {
        let code = Code::of_callback(callback);
        let keeps = |suspect: &Suspect| suspect.kind.code.map_or(runs_once, |it| it == code);
        self.suspects.borrow().iter().any(keeps)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{
        pin::Pin,
        task::{Context, Poll},
    };

    use super::*;
    use crate::{
        job::{JobRef, body_bit, name::UnitCode, testing, work_kind::WorkKind},
        scheduler::threads::suspect_records::{
            EXEMPT_OFFENDERS, MEMORY, WIDENING, WIDENING_TO_ALL, WIDENING_WITHOUT_FAMILY,
        },
    };

    /// A job that says that it does this work, all of one code.
    fn at_work(number: u64, family: u64) -> (JobRef, WorkKind) {
        let (job, kind) = (testing::job(), WorkKind::new());
        kind.set(number);
        kind.set_family(family);
        job.header().extensions.lock().kind = Some(kind.clone());
        (job, kind)
    }

    /// As [`at_work`], and the job has offended.
    fn offended(suspects: &Suspects, number: u64, family: u64) -> (JobRef, WorkKind) {
        let (job, kind) = at_work(number, family);
        suspects.note_offence(job.header(), Instant::now());
        (job, kind)
    }

    fn is_kept(suspects: &Suspects, number: u64, family: u64) -> bool {
        suspects.includes(at_work(number, family).0.header())
    }

    #[test]
    fn a_family_is_suspect_when_some_of_its_kinds_are() {
        let suspects = Suspects::default();
        for number in 1..=WIDENING as u64 {
            assert!(!is_kept(&suspects, 99, 7), "{number}");
            offended(&suspects, number, 7);
        }
        assert!(is_kept(&suspects, 99, 7));
        assert!(!is_kept(&suspects, 99, 8), "another family");
        assert!(!is_kept(&suspects, 99, 0), "no family");
        assert!(!is_kept(&suspects, 0, 7), "no work");
        let (known, kind) = at_work(98, 7);
        kind.set_known(true);
        assert!(!suspects.includes(known.header()));
        suspects.note_offence(known.header(), Instant::now());
        assert!(suspects.includes(known.header()), "by its own number");
        suspects.expire(Instant::now() + MEMORY);
        assert!(!suspects.is_any());
    }

    #[test]
    fn all_families_are_suspect_when_some_have_suspects() {
        let suspects = Suspects::default();
        for family in 1..=WIDENING as u64 {
            assert!(!is_kept(&suspects, 99, 77), "{family}");
            offended(&suspects, family, family);
        }
        assert!(is_kept(&suspects, 99, 77));
        assert!(!is_kept(&suspects, 99, 0), "no family");
    }

    #[test]
    fn one_family_that_goes_on_does_not_keep_all_others_suspect() {
        let (suspects, begin) = (Suspects::default(), Instant::now());
        let offend = |family: u64, now: Instant| {
            let (job, _kind) = at_work(family, family);
            suspects.note_offence(job.header(), now);
            suspects.expire(now);
        };
        (1..=WIDENING as u64).for_each(|family| offend(family, begin));
        assert!(is_kept(&suspects, 99, 77));
        for halves in 1..=4 {
            offend(WIDENING as u64, begin + halves * MEMORY / 2);
            assert!(
                is_kept(&suspects, WIDENING as u64, WIDENING as u64),
                "{halves}"
            );
        }
        assert!(!is_kept(&suspects, 99, 77));
        assert!(is_kept(&suspects, WIDENING as u64, WIDENING as u64));
    }

    #[test]
    fn kinds_without_a_family_stand_for_themselves_until_very_many_are_suspect() {
        let suspects = Suspects::default();
        for number in 1..=WIDENING_WITHOUT_FAMILY as u64 {
            assert!(!is_kept(&suspects, 99, 0), "{number}");
            offended(&suspects, number, 0);
            assert!(is_kept(&suspects, number, 0));
        }
        assert!(is_kept(&suspects, 99, 0));
        assert!(!is_kept(&suspects, 99, 1), "another family");
        assert!(!is_kept(&suspects, 0, 0), "no work");
        let (known, kind) = at_work(98, 0);
        kind.set_known(true);
        assert!(!suspects.includes(known.header()));
        suspects.expire(Instant::now() + MEMORY);
        assert!(!suspects.is_any());
    }

    /// A job whose code has this number.
    fn of_code<const CODE: usize>() -> JobRef {
        struct OfCode<const CODE: usize>;
        impl<const CODE: usize> Future for OfCode<CODE> {
            type Output = ();
            fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
                Poll::Ready(())
            }
        }
        let (runnable, job) = testing::job_of(OfCode::<CODE>);
        runnable.into_ptr();
        job
    }

    #[test]
    fn fresh_jobs_of_all_codes_are_suspect_while_kinds_of_very_many_are() {
        macro_rules! jobs_of { ($($code:literal)*) => { [$(of_code::<$code>()),*] } }
        let offenders = jobs_of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
        assert_eq!(offenders.len(), WIDENING_TO_ALL);
        let (suspects, fresh, begin) = (Suspects::default(), of_code::<0>(), Instant::now());
        for offender in &offenders {
            assert!(!suspects.includes(fresh.header()));
            suspects.note_offence(offender.header(), begin);
        }
        assert!(suspects.includes(fresh.header()));
        let (waited, known) = (of_code::<0>(), at_work(98, 7));
        waited.header().set_waits_for(1);
        assert!(!suspects.includes(waited.header()));
        waited.header().set_waits_for(0);
        assert!(!suspects.includes(waited.header()), "while it runs");
        known.1.set_known(true);
        assert!(!suspects.includes(known.0.header()));
        let (known, callback) = (KnownSuspects::default(), callback());
        known.refresh(&suspects);
        assert!(known.include_callback(callback, true));
        assert!(!known.include_callback(callback, false), "it has rounds");
        // Those that go on do not keep all others suspect, even if they are as many.
        for quarters in 1..=4 {
            let now = begin + quarters * MEMORY / 4;
            for offender in &offenders {
                suspects.note_offence(offender.header(), now);
                (0..4).for_each(|_| _ = suspects.note_long_run(offender.header(), now));
            }
            suspects.expire(now);
        }
        assert!(!suspects.includes(fresh.header()));
        assert!(suspects.includes(offenders[0].header()));
    }

    #[track_caller]
    fn callback() -> UnitName {
        UnitName {
            code: &UnitCode {
                what: "callback",
                type_name: || "a closure",
            },
            site: std::panic::Location::caller(),
        }
    }

    #[test]
    fn a_callback_that_offends_makes_those_of_its_place_and_type_suspect() {
        let (suspects, offender, other) = (Suspects::default(), callback(), callback());
        let runner = of_code::<0>();
        runner.header().set_body_bit(body_bit::SHARED_BY_UNITS);
        runner.header().extensions.lock().running_unit = Some(offender);
        suspects.note_offence(runner.header(), Instant::now());
        let known = KnownSuspects::default();
        known.refresh(&suspects);
        assert!([true, false].map(|once| known.include_callback(offender, once)) == [true; 2]);
        assert!(!known.include_callback(other, true));
        assert!(!suspects.includes(runner.header()), "it runs others, too");
        runner.header().set_body_bit(body_bit::OF_ONE_UNIT);
        assert!(suspects.includes(runner.header()));
        runner.header().extensions.lock().running_unit = Some(other);
        assert!(!suspects.includes(runner.header()));
    }

    /// What keeps the searches of the records short.
    #[test]
    fn a_burst_of_many_kinds_leaves_few_suspects() {
        for (first, families, most) in [
            (1, 1, WIDENING),
            (1, 1_000, WIDENING),
            (0, 1, WIDENING_WITHOUT_FAMILY),
        ] {
            let suspects = Suspects::default();
            for number in 1..=1_000 {
                offended(&suspects, number, first + number % families);
            }
            let count = suspects.suspects.load(Ordering::Relaxed);
            assert!(count <= most + 1, "{count}");
        }
    }

    #[test]
    fn a_family_whose_known_work_offends_is_strict() {
        let suspects = Suspects::default();
        (1..=WIDENING as u64).for_each(|number| _ = offended(&suspects, number, 7));
        let (other, kind) = at_work(50, 7);
        kind.set_known(true);
        for number in 0..u64::from(EXEMPT_OFFENDERS) {
            assert!(!suspects.includes(other.header()), "{number}");
            let (known, kind) = at_work(100 + number, 7);
            kind.set_known(true);
            // Twice, but only the first time on a worker.
            suspects.note_offence(known.header(), Instant::now());
            suspects.note_offence(known.header(), Instant::now());
        }
        assert!(suspects.includes(other.header()));
    }

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
        for _ in 0..EXEMPT_OFFENDERS {
            job.header().prove();
            suspects.note_offence(job.header(), now);
        }
        assert_eq!(version(), first + 1, "the kind is strict");
        suspects.expire(now + MEMORY);
        assert!(!suspects.is_any());
        assert_eq!(version(), first + 2);
    }
}
