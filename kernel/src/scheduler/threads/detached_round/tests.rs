//! What a round does for jobs that wait in quarantine.

use super::*;
use crate::{
    job::{body_bit, testing},
    scheduler::{
        threads::{
            detached_run::{Activity, DetachedRun, ListedRun},
            senders::Sends,
            suspects::tests::{of_code, offenders},
        },
        workers::config::Config,
    },
    timer::clock::ClockKind,
};

fn run_of(job: JobRef) -> DetachedRun {
    DetachedRun {
        code: RunningCode::of(&job),
        job,
        activity: Activity::Compute,
        cause: Cause::Quarantined,
        since: Instant::now(),
        sends: Sends::here(),
    }
}

/// Whether the line of a part becomes trusted that is tried while all jobs are suspect and exceeds the bound, if that
/// is in its panic hook, or in its own code. Without a monitor, as below.
fn makes_its_line_trusted(in_hook: bool) -> bool {
    let config = Config {
        workers: 1,
        stuck_after: Duration::ZERO,
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    for offender in &offenders() {
        shared
            .suspects
            .note_offence(offender.header(), Instant::now());
    }
    let part = of_code::<0>();
    part.header().set_body_bit(body_bit::PART);
    let is_kept = || {
        let site = part.header().extensions.site();
        shared.suspects.include_parts_of(site, false)
    };
    assert!(is_kept());
    if in_hook {
        part.header().begin_panic_hook();
    }
    shared.detached.add(0, run_of(part.clone()));
    run(&shared);
    let is_trusted = !is_kept();
    shared.detached.end(ListedRun::OfThread(0));
    is_trusted
}

#[test]
fn a_part_that_is_tried_and_computes_makes_its_line_trusted_before_it_ends() {
    assert!(makes_its_line_trusted(false));
}

/// What computes is no code of the part.
#[test]
fn a_part_that_is_tried_and_in_its_panic_hook_does_not_make_its_line_trusted() {
    assert!(!makes_its_line_trusted(true));
}

/// Without a monitor: the test runs the rounds.
#[test]
fn a_cancelled_job_leaves_the_quarantine_also_while_as_many_compute_there_as_there_are_workers() {
    let config = Config {
        workers: 1,
        stuck_after: Duration::from_secs(1000),
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    shared.detached.add(0, run_of(testing::job()));
    let (waiting, cancelled) = (testing::runnable(), testing::runnable());
    shared
        .suspects
        .note_offence(waiting.header(), Instant::now());
    let _owes = cancelled.header().state.cancel();
    let address = cancelled.ptr().as_raw().as_ptr();
    for job in [waiting, cancelled] {
        shared.quarantine.push(job, &shared.suspects);
    }
    run(&shared);
    assert_eq!(shared.quarantine.len(), 1);
    assert_eq!(shared.injector.pop(1).pop(), Some(address));
    assert_eq!(shared.quarantine.starting(), 0);
    // They belong to no runtime.
    shared.quarantine.pop().unwrap().into_ptr();
    shared.detached.end(ListedRun::OfThread(0));
}

#[test]
fn a_job_that_announces_does_not_become_suspect_where_there_is_no_quarantine() {
    for (spare_threads, is_suspect) in [(0, false), (1, true)] {
        let config = Config {
            workers: 1,
            spare_threads,
            ..Config::new()
        };
        let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
        let announces = testing::job();
        let mut run = run_of(announces.clone());
        run.cause = Cause::Announced;
        shared.detached.add(0, run);
        note_announced(&shared, &announces);
        assert_eq!(shared.suspects.includes(announces.header()), is_suspect);
        shared.detached.end(ListedRun::OfThread(0));
    }
}

/// No thread is free but those that are left for workers, and six jobs of a suspect kind wait in quarantine. Without a
/// monitor.
fn with_full_quarantine() -> Arc<Shared> {
    let config = Config {
        workers: 2,
        spare_threads: 16,
        stuck_after: Duration::from_secs(1000),
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    while shared.pool.free(&shared) > left_for_workers(&shared) {
        shared.pool.count_new(shared.most_threads()).unwrap();
    }
    let jobs: Vec<_> = (0..6).map(|_| testing::runnable()).collect();
    shared
        .suspects
        .note_offence(jobs[0].header(), Instant::now());
    for job in jobs {
        shared.quarantine.push(job, &shared.suspects);
    }
    assert_eq!((shared.quarantine.len(), shared.quarantine.tried()), (6, 0));
    shared
}

#[test]
fn a_part_that_others_wait_for_gets_one_thread_however_slowly_that_starts() {
    let shared = with_full_quarantine();
    let part = testing::runnable();
    part.header()
        .set_body_bit(body_bit::PART | body_bit::RELIEVES);
    shared.suspects.note_offence(part.header(), Instant::now());
    shared.quarantine.push(part, &shared.suspects);
    assert!(shared.quarantine.is_relieving());
    // The thread that the last round started has not begun.
    shared.quarantine.begin_start();
    shared.pool.count_new(shared.most_threads()).unwrap();
    let threads = shared.pool.threads();
    run(&shared);
    assert_eq!(shared.quarantine.starting(), 1);
    assert_eq!(shared.pool.threads(), threads);
    assert_eq!(shared.quarantine.len(), 7);
}

#[test]
fn a_thread_that_is_left_for_workers_takes_no_other_job_if_its_own_is_gone() {
    let shared = with_full_quarantine();
    assert!(serve::start_quarantine(&shared).is_ok());
    while shared.quarantine.starting() > 0 || !shared.pool.has_idle() {
        std::thread::yield_now();
    }
    assert_eq!(shared.quarantine.len(), 6);
    shared.stop();
}
