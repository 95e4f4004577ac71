//! Which kinds are suspect, and which jobs of theirs run on workers.

#![allow(unsafe_code)]

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use super::*;
use crate::{
    job::{JobRef, body_bit, name::UnitCode, testing, work_kind::WorkKind},
    scheduler::threads::{
        quarantine::Quarantine,
        suspect_records::{
            WIDENING, WIDENING_TO_ALL, WIDENING_WITHOUT_FAMILY,
            record::{EXEMPT_OFFENDERS, MEMORY},
            trials::Rank,
        },
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
pub(in crate::scheduler::threads) fn of_code<const CODE: usize>() -> JobRef {
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

/// As many offenders as make all jobs suspect.
pub(in crate::scheduler::threads) fn offenders() -> [JobRef; WIDENING_TO_ALL] {
    macro_rules! jobs_of { ($($code:literal)*) => { [$(of_code::<$code>()),*] } }
    jobs_of!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16)
}

fn proven() -> JobRef {
    let job = of_code::<0>();
    job.header().prove();
    job
}

#[test]
fn jobs_of_all_codes_without_a_record_of_short_runs_are_suspect_while_kinds_of_very_many_are() {
    let offenders = offenders();
    let (suspects, fresh, begin) = (Suspects::default(), of_code::<0>(), Instant::now());
    for offender in &offenders {
        assert!(!suspects.includes(fresh.header()));
        suspects.note_offence(offender.header(), begin);
    }
    assert!(suspects.includes(fresh.header()));
    let (waited, known) = (of_code::<0>(), at_work(98, 7));
    waited.header().set_waits_for(1);
    assert!(suspects.includes(waited.header()), "one wait tells little");
    assert!(!waited.header().is_proven());
    assert!(!suspects.includes(proven().header()));
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

#[test]
fn proven_jobs_of_all_codes_are_suspect_once_such_jobs_of_many_codes_have_offended() {
    let (suspects, now) = (Suspects::default(), Instant::now());
    for (n, offender) in (1..).zip(&offenders()) {
        if n <= EXEMPT_OFFENDERS {
            offender.header().prove();
        }
        suspects.note_offence(offender.header(), now);
    }
    assert!(suspects.includes(proven().header()));
    let known = KnownSuspects::default();
    known.refresh(&suspects);
    assert!(known.includes(proven().header(), &suspects));
    // One is tried, and was no offence.
    assert_eq!(suspects.rank(proven().header()), Rank::First);
    suspects.trust(CurrentWork::of(proven().header()));
    known.refresh(&suspects);
    let fresh = of_code::<0>();
    assert!(!suspects.includes(fresh.header()) && !known.includes(fresh.header(), &suspects));
    // Its other jobs are not trusted once one offends.
    suspects.note_offence(fresh.header(), now);
    suspects.trust(CurrentWork::of(proven().header()));
    assert!(suspects.includes(of_code::<0>().header()));
}

#[test]
fn one_job_of_each_code_is_tried_while_all_jobs_are_suspect() {
    let (suspects, now) = (Suspects::default(), Instant::now());
    let (job, other) = (of_code::<0>(), of_code::<17>());
    assert_eq!(suspects.rank(job.header()), Rank::Last);
    let offenders = offenders();
    for offender in &offenders {
        suspects.note_offence(offender.header(), now);
    }
    let ranks = || [&job, &other, &offenders[0]].map(|job| suspects.rank(job.header()));
    assert_eq!(ranks(), [Rank::Tried, Rank::Tried, Rank::Last]);
    assert_eq!(ranks(), [Rank::Last; 3]);
    let (work, _kind) = at_work(1, 0);
    assert_eq!(suspects.rank(work.header()), Rank::Last);
    suspects.expire(now + MEMORY);
    assert_eq!(ranks(), [Rank::Last; 3]);
}

#[test]
fn the_code_of_a_proven_job_is_trusted_while_all_jobs_are_suspect() {
    let (suspects, now) = (Suspects::default(), Instant::now());
    for offender in &offenders() {
        suspects.note_offence(offender.header(), now);
    }
    let (known, other) = (KnownSuspects::default(), of_code::<0>());
    known.refresh(&suspects);
    assert!(known.includes(other.header(), &suspects));
    assert!(!known.includes(proven().header(), &suspects));
    known.refresh(&suspects);
    assert!(!known.includes(other.header(), &suspects));
    assert!(known.includes(of_code::<17>().header(), &suspects));
}

#[test]
fn parts_of_a_line_are_tried_and_trusted_while_all_jobs_are_suspect() {
    let (suspects, now, site) = (Suspects::default(), Instant::now(), Location::caller());
    let keep = |has_room| suspects.include_parts_of(site, has_room);
    assert!(!keep(false));
    for offender in &offenders() {
        suspects.note_offence(offender.header(), now);
    }
    assert!(keep(false), "no thread is free for one that is tried");
    assert!(!keep(true), "one is to be tried");
    let work = CurrentWork {
        code: Code::of_parts(site),
        number: 0,
        family: 0,
        is_known: false,
    };
    let part = of_code::<0>();
    part.header().set_body_bit(body_bit::PART);
    let rank = || lock(&suspects.records).rank(part.header(), work);
    assert_eq!([rank(), rank()], [Rank::Tried; 2], "two thieves at once");
    assert!(keep(true), "it is being tried");
    suspects.trust(work);
    assert!(!keep(false), "the line is trusted");
}

/// Nobody waits for the runner of a scope, and what the thief of a fork took has the room that it was taken for.
#[test]
fn a_part_of_a_line_that_has_offended_itself_is_not_tried_while_all_jobs_are_suspect() {
    let (suspects, quarantine) = (Suspects::default(), Quarantine::new());
    for offender in &offenders() {
        suspects.note_offence(offender.header(), Instant::now());
    }
    let (runnable, part) = testing::job_of(async {});
    part.header().set_body_bit(body_bit::PART);
    suspects.note_offence(part.header(), Instant::now());
    assert_eq!(suspects.rank(part.header()), Rank::Last);
    quarantine.push(runnable, &suspects);
    assert_eq!((quarantine.len(), quarantine.tried()), (1, 0));
    // It belongs to no runtime.
    quarantine.pop().unwrap().into_ptr();
}

#[test]
fn a_job_that_is_cancelled_before_it_is_tried_neither_keeps_its_code_from_a_trial_nor_is_trusted() {
    let (suspects, now) = (Suspects::default(), Instant::now());
    for offender in &offenders() {
        suspects.note_offence(offender.header(), now);
    }
    let quarantine = Quarantine::new();
    let cancelled = testing::runnable();
    let _owes = cancelled.header().state.cancel();
    quarantine.push(cancelled, &suspects);
    assert_eq!(quarantine.tried(), 1);
    let mut released = quarantine.take_released(&suspects, || true);
    assert_eq!((released.len(), quarantine.len()), (1, 0));
    let known = KnownSuspects::default();
    known.refresh(&suspects);
    // SAFETY: the batch keeps the job alive.
    let cancelled = unsafe { &*released.pop().expect("it has one job") };
    assert!(!known.includes(cancelled, &suspects));
    assert!(suspects.includes(testing::runnable().header()));
    quarantine.push(testing::runnable(), &suspects);
    assert_eq!(quarantine.tried(), 1);
}

#[test]
fn all_jobs_stay_suspect_while_too_few_threads_are_left() {
    let (suspects, now) = (Suspects::default(), Instant::now());
    suspects.prolong_all(now);
    assert!(!suspects.is_any());
    for offender in &offenders() {
        suspects.note_offence(offender.header(), now);
    }
    suspects.prolong_all(now + MEMORY / 2);
    suspects.expire(now + MEMORY);
    assert!(suspects.includes(of_code::<0>().header()));
    suspects.expire(now + MEMORY * 2);
    assert!(!suspects.is_any());
}

/// Nobody holds a thread.
fn clear_unheld(suspects: &Suspects, now: Instant) {
    suspects.clear_unheld(Vec::new, 1, now);
}

#[test]
fn a_kind_none_of_whose_jobs_holds_a_thread_is_cleared_while_no_thread_is_free() {
    let (suspects, begin) = (Suspects::default(), Instant::now());
    let (held, late) = (of_code::<1>(), of_code::<2>());
    suspects.note_offence(held.header(), begin);
    suspects.note_offence(late.header(), begin);
    suspects.clear_unheld(|| vec![held.clone(), late.clone()], 1, begin);
    assert!(suspects.includes(late.header()), "it still runs");
    let later = begin + MEMORY / 10;
    suspects.clear_unheld(|| vec![held.clone()], 1, later);
    assert!(suspects.includes(held.header()));
    assert!(!suspects.includes(late.header()));
    suspects.note_offence(late.header(), later);
    assert!(suspects.includes(late.header()), "its next offence");
}

#[test]
fn a_kind_that_goes_on_offending_is_not_cleared_again_and_again() {
    let (suspects, mut now) = (Suspects::default(), Instant::now());
    let late = of_code::<1>();
    let mut offend_and_clear = |pause| {
        now += pause;
        suspects.note_offence(late.header(), now);
        clear_unheld(&suspects, now);
        !suspects.includes(late.header())
    };
    let cleared = (0..50).filter(|_| offend_and_clear(MEMORY / 100)).count();
    assert_eq!(cleared, 8, "no more than cost a tenth of the time");
    assert!(offend_and_clear(MEMORY), "a second later");
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
