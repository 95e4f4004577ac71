//! What a check of a detached thread concludes from the times that the system reports.

use super::*;
use crate::{
    job::{body_bit, testing},
    scheduler::threads::senders::Sends,
};

const BOUND: Duration = Duration::from_millis(10);

/// A thread that runs a job of the quarantine, and was checked when that began.
fn in_quarantine() -> DetachedThread {
    let run = DetachedRun {
        job: testing::job(),
        activity: Activity::Compute,
        cause: Cause::Quarantined,
        since: Instant::now(),
        sends: Sends::here(),
        code: RunningCode::Own,
    };
    let first = Some(computing(0));
    DetachedThread {
        first,
        ..DetachedThread::new(0, run)
    }
}

/// It was excused because it computes in a fork.
#[test]
fn a_part_that_has_computed_in_quarantine_and_then_blocks_is_found() {
    let mut thread = in_quarantine();
    thread.run.job.header().set_body_bit(body_bit::PART);
    thread.run.activity = Activity::Fork;
    for (ran, held) in [(1, BOUND / 2), (20, 2 * BOUND), (30, 3 * BOUND)] {
        let round = check(&mut thread, Some(computing(ran)), held);
        assert_eq!(round.overdue.len(), 0);
        assert_eq!(round.busy, usize::from(held < BOUND));
        assert_eq!(thread.run.activity, Activity::Fork);
    }
    let blocks = |thread: &mut DetachedThread| check(thread, Some(blocked(30)), 4 * BOUND).overdue;
    assert!(blocks(&mut thread).is_empty());
    thread.blocked = Instant::now().checked_sub(BOUND);
    assert!(blocks(&mut thread)[0].counts_in_fork);
    assert!(thread.reported);
}

/// The times of a thread that has run so many ms, and runs.
fn computing(ran_ms: u64) -> ThreadTimes {
    let ran = Duration::from_millis(ran_ms);
    ThreadTimes {
        ran,
        is_blocked: false,
    }
}

/// The times of a thread that has run so many ms, and is blocked.
fn blocked(ran_ms: u64) -> ThreadTimes {
    ThreadTimes {
        is_blocked: true,
        ..computing(ran_ms)
    }
}

fn check(thread: &mut DetachedThread, now: Option<ThreadTimes>, held: Duration) -> Round {
    let mut round = Round::new(BOUND);
    let _asks = thread.begin_check(held, BOUND);
    thread.check(now, held, &mut round);
    round
}

#[test]
fn a_thread_that_waits_for_a_core_is_busy_and_no_offender_however_long_it_waits() {
    let mut thread = in_quarantine();
    let round = check(&mut thread, Some(computing(1)), 100 * BOUND);
    assert_eq!(
        (round.busy, round.long.len(), round.overdue.len()),
        (1, 0, 0)
    );
    let round = check(&mut thread, Some(computing(5)), 101 * BOUND);
    assert_eq!(
        (round.busy, round.long.len(), round.overdue.len()),
        (0, 1, 1)
    );
}

#[test]
fn a_thread_that_is_first_seen_beyond_the_bound_may_have_waited_for_a_core() {
    let mut thread = in_quarantine();
    thread.first = None;
    let round = check(&mut thread, Some(computing(70)), 2 * BOUND);
    assert_eq!((round.busy, round.overdue.len()), (1, 0));
    let round = check(&mut thread, Some(computing(75)), 3 * BOUND);
    assert_eq!((round.busy, round.overdue.len()), (0, 1));
}

#[test]
fn a_blocked_thread_is_sampled_when_it_begins_when_its_run_is_long_and_beyond_the_bound() {
    let mut thread = in_quarantine();
    assert!(thread.is_sampled(BOUND / 10, BOUND));
    let round = check(&mut thread, Some(blocked(0)), BOUND / 10);
    assert_eq!((round.busy, round.quarantined), (0, 1));
    assert!(!thread.is_sampled(BOUND / 4, BOUND));
    let round = check(&mut thread, None, BOUND / 4);
    assert_eq!((round.busy, round.quarantined), (0, 1));
    assert!(thread.is_sampled(BOUND / 2, BOUND));
    let round = check(&mut thread, Some(blocked(0)), BOUND / 2);
    assert_eq!((round.long.len(), round.overdue.len()), (1, 0));
    assert!(!thread.is_sampled(BOUND - BOUND / 10, BOUND));
    assert!(thread.is_sampled(BOUND, BOUND));
    let round = check(&mut thread, Some(blocked(0)), BOUND);
    assert_eq!((round.long.len(), round.overdue.len()), (0, 1));
    assert!(!thread.is_sampled(2 * BOUND, BOUND));
}

/// The check does not judge that time.
#[test]
fn a_panic_hook_that_begins_during_a_check_is_not_reported_in_the_place_of_the_job() {
    let mut thread = in_quarantine();
    let mut round = Round::new(BOUND);
    assert!(thread.begin_check(2 * BOUND, BOUND));
    thread.run.job.header().begin_panic_hook();
    thread.check(Some(computing(7)), 2 * BOUND, &mut round);
    let codes: Vec<_> = round.overdue.iter().map(|it| it.code).collect();
    assert_eq!(codes, [RunningCode::Own]);
}

/// It may have waited for a core for all of that time, and the system was not asked, because the hook was reported.
#[test]
fn a_thread_whose_reported_panic_hook_ends_during_a_check_is_judged_at_the_next_one() {
    let mut thread = in_quarantine();
    thread.run.job.header().begin_panic_hook();
    let round = check(&mut thread, Some(computing(7)), 2 * BOUND);
    assert_eq!(round.overdue.len(), 1);
    // As behind an earlier hook of the run.
    thread.renewed = true;
    let mut round = Round::new(BOUND);
    assert!(!thread.begin_check(3 * BOUND, BOUND));
    assert!(thread.end_panic_hook(BOUND).is_none());
    thread.check(None, 3 * BOUND, &mut round);
    assert_eq!((round.busy, round.overdue.len()), (1, 0));
    let round = check(&mut thread, Some(computing(14)), 4 * BOUND);
    assert!(round.overdue.len() == 1 && round.overdue[0].code == RunningCode::Own);
}

#[test]
fn a_thread_that_is_listed_during_a_check_is_judged_at_the_next_one() {
    let mut thread = in_quarantine();
    let mut round = Round::new(BOUND);
    thread.check(None, 2 * BOUND, &mut round);
    assert_eq!((round.busy, round.overdue.len()), (1, 0));
    let round = check(&mut thread, Some(computing(7)), 2 * BOUND);
    assert_eq!(round.overdue.len(), 1);
}
