//! What a round does for jobs that wait in quarantine.

use super::*;
use crate::{
    job::testing,
    scheduler::{
        threads::{
            detached_run::{Activity, DetachedRun, ListedRun},
            senders::Sends,
        },
        workers::config::Config,
    },
    timer::clock::ClockKind,
};

/// Without a monitor: the test runs the rounds.
#[test]
fn a_cancelled_job_leaves_the_quarantine_also_while_as_many_compute_there_as_there_are_workers() {
    let config = Config {
        workers: 1,
        stuck_after: Duration::from_secs(1000),
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let run_of = |job| DetachedRun {
        job,
        activity: Activity::Compute,
        cause: Cause::Quarantined,
        since: Instant::now(),
        sends: Sends::here(),
        code: RunningCode::Own,
    };
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
