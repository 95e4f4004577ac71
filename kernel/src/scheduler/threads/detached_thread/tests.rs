//! What a look at a detached thread concludes from the times that the system tells.

use super::*;
use crate::{job::testing, scheduler::threads::senders::Sends};

const BOUND: Duration = Duration::from_millis(10);

/// A thread that runs a job of the quarantine, and was looked at when that began.
fn in_quarantine() -> DetachedThread {
    let run = DetachedRun {
        job: testing::job(),
        activity: Activity::Compute,
        cause: Cause::Quarantined,
        since: Instant::now(),
        sends: Sends::here(),
        code: RunningCode::Own,
    };
    let first = Some(times(0, false));
    DetachedThread {
        first,
        ..DetachedThread::new(0, run)
    }
}

fn times(ran_ms: u64, is_blocked: bool) -> ThreadTimes {
    let ran = Duration::from_millis(ran_ms);
    ThreadTimes { ran, is_blocked }
}

fn look(thread: &mut DetachedThread, now: Option<ThreadTimes>, held: Duration) -> Round {
    let mut round = Round::new(BOUND);
    thread.look(now, held, &mut round);
    round
}

#[test]
fn a_thread_that_waits_for_a_core_is_busy_and_no_offender_however_long_it_waits() {
    let mut thread = in_quarantine();
    let round = look(&mut thread, Some(times(1, false)), 100 * BOUND);
    assert_eq!(
        (round.busy, round.long.len(), round.overdue.len()),
        (1, 0, 0)
    );
    let round = look(&mut thread, Some(times(5, false)), 101 * BOUND);
    assert_eq!(
        (round.busy, round.long.len(), round.overdue.len()),
        (0, 1, 1)
    );
}

#[test]
fn a_thread_that_is_first_seen_beyond_the_bound_may_have_waited_for_a_core() {
    let mut thread = in_quarantine();
    thread.first = None;
    let round = look(&mut thread, Some(times(70, false)), 2 * BOUND);
    assert_eq!((round.busy, round.overdue.len()), (1, 0));
    let round = look(&mut thread, Some(times(75, false)), 3 * BOUND);
    assert_eq!((round.busy, round.overdue.len()), (0, 1));
}

#[test]
fn a_blocked_thread_is_sampled_when_it_begins_when_its_run_is_long_and_beyond_the_bound() {
    let mut thread = in_quarantine();
    assert!(thread.is_sampled(BOUND / 10, BOUND));
    let round = look(&mut thread, Some(times(0, true)), BOUND / 10);
    assert_eq!((round.busy, round.quarantined), (0, 1));
    assert!(!thread.is_sampled(BOUND / 4, BOUND));
    let round = look(&mut thread, None, BOUND / 4);
    assert_eq!((round.busy, round.quarantined), (0, 1));
    assert!(thread.is_sampled(BOUND / 2, BOUND));
    let round = look(&mut thread, Some(times(0, true)), BOUND / 2);
    assert_eq!((round.long.len(), round.overdue.len()), (1, 0));
    assert!(!thread.is_sampled(BOUND - BOUND / 10, BOUND));
    assert!(thread.is_sampled(BOUND, BOUND));
    let round = look(&mut thread, Some(times(0, true)), BOUND);
    assert_eq!((round.long.len(), round.overdue.len()), (0, 1));
    assert!(!thread.is_sampled(2 * BOUND, BOUND));
}
