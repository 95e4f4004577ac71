//! Which runs of detached threads are reported, and which senders keep their priority.

use super::*;
use crate::{
    job::testing,
    scheduler::threads::{
        detached_run::RunningCode, detached_thread::hook_watch::LONG_HOOK, senders::Sends,
    },
};

const BOUND: Duration = Duration::from_millis(10);

#[test]
fn a_retaken_job_that_ends_beyond_the_bound_before_a_check_is_reported() {
    let (threads, listed) = retaken(&testing::job(), BOUND);
    threads.end(listed);
    assert!(threads.is_any_unreported());
    assert_eq!(threads.check(BOUND).overdue.len(), 1);
    assert!(threads.check(BOUND).overdue.is_empty());
    assert!(!threads.is_any_unreported());
}

#[test]
fn a_retaken_job_that_announces_that_it_blocks_before_a_check_is_reported() {
    let (threads, listed) = retaken(&testing::job(), BOUND);
    assert!(threads.announce(listed));
    let overdue = threads.check(BOUND).overdue;
    assert_eq!(overdue.len(), 1);
    assert!(overdue[0].held >= BOUND);
    assert!(threads.check(BOUND).overdue.is_empty());
}

#[test]
fn a_run_that_is_excused_is_watched_as_one_that_begins_unless_it_has_announced_that_it_blocks() {
    let job = testing::job();
    let (threads, listed) = retaken(&job, BOUND);
    let found = |bound| threads.check(bound).overdue.len();
    assert_eq!(found(BOUND), 1);
    threads.excuse(&job);
    assert!(threads.is_any_unreported());
    assert_eq!((found(1000 * BOUND), found(Duration::ZERO)), (0, 1));
    threads.excuse(&job);
    assert!(threads.announce(listed));
    threads.excuse(&job);
    assert_eq!(found(Duration::ZERO), 0);
}

#[test]
fn a_part_in_quarantine_that_is_excused_is_watched_on() {
    let (job, threads) = (testing::job(), DetachedThreads::new(2));
    threads.add(0, run(&job, Cause::Quarantined, BOUND));
    lock(&threads.threads)[0].reported = true;
    assert!(!threads.is_any_unreported());
    threads.is_in_fork(&job);
    assert!(threads.is_any_unreported());
    assert_eq!(lock(&threads.threads)[0].run.activity, Activity::Fork);
}

/// A run of a job that began `before` now.
fn run(job: &JobRef, cause: Cause, before: Duration) -> DetachedRun {
    DetachedRun {
        job: job.clone(),
        activity: Activity::Compute,
        cause,
        since: Instant::now().checked_sub(before).unwrap(),
        sends: Sends::here(),
        code: RunningCode::see(job),
    }
}

/// A thread whose worker was retaken from a job, in a run that began `before` now.
fn retaken(job: &JobRef, before: Duration) -> (DetachedThreads, ListedRun) {
    let (threads, number) = (DetachedThreads::new(1), 1);
    threads.add(number, run(job, Cause::Retaken, before));
    (threads, ListedRun::OfThread(number))
}

#[test]
fn what_ran_when_a_worker_was_retaken_beyond_the_bound_is_known_when_the_job_is_reported() {
    for ends_before_the_check in [true, false] {
        let job = testing::job();
        job.header().begin_panic_hook();
        let (threads, listed) = retaken(&job, BOUND);
        job.header().end_panic_hook();
        if ends_before_the_check {
            threads.end(listed);
        }
        let overdue = threads.check(BOUND).overdue;
        assert_eq!(overdue.len(), 1);
        assert_eq!(overdue[0].code, RunningCode::PanicHook);
    }
}

#[test]
fn of_a_worker_that_was_retaken_early_it_counts_what_ran_at_the_last_check() {
    let job = testing::job();
    job.header().begin_panic_hook();
    let (threads, listed) = retaken(&job, Duration::ZERO);
    // Whether or not this check finds the bound exceeded.
    job.header().end_panic_hook();
    let mut overdue = threads.check(10_000 * BOUND).overdue;
    assert!(overdue.is_empty());
    threads.end(listed);
    lock(&threads.ended)[0].held = BOUND;
    overdue = threads.check(BOUND).overdue;
    assert_eq!(overdue[0].code, RunningCode::Own);
}

#[test]
fn what_follows_a_panic_hook_on_a_detached_thread_is_a_run_that_begins() {
    for ends_before_the_check in [true, false] {
        let job = testing::job();
        job.header().begin_panic_hook();
        let (threads, listed) = retaken(&job, BOUND);
        if !ends_before_the_check {
            assert_eq!(threads.check(BOUND).overdue.len(), 1);
        }
        threads.end_panic_hook(listed, &job, BOUND);
        assert!(!job.header().is_in_panic_hook());
        let overdue = threads.check(BOUND).overdue;
        assert_eq!(overdue.len(), usize::from(ends_before_the_check));
        assert!(
            overdue
                .iter()
                .all(|overdue| overdue.code == RunningCode::PanicHook)
        );
        lock(&threads.threads)[0].run.since = Instant::now().checked_sub(BOUND).unwrap();
        let overdue = threads.check(BOUND).overdue;
        assert!(overdue.len() == 1 && overdue[0].code == RunningCode::Own);
        // It was reported as stuck. A hook later in the same run changes nothing.
        job.header().begin_panic_hook();
        threads.end_panic_hook(listed, &job, BOUND);
        assert!(!threads.is_any_unreported());
    }
}

/// What the first job leaves calls `block_on`, which runs the second one.
#[test]
fn two_runs_of_one_visitor_end_each_for_itself() {
    let (threads, number) = (DetachedThreads::new(1), 1);
    let jobs = [testing::job(), testing::job()];
    for job in &jobs {
        threads.add(number, run(job, Cause::Visits, BOUND));
    }
    let [first, second] = jobs.each_ref().map(|job| job.ptr());
    assert!(threads.announce(ListedRun::OfVisit(number, second)));
    assert!(threads.announce(ListedRun::OfVisit(number, first)));
    assert!(threads.end(ListedRun::OfVisit(number, second)));
    let left: Vec<_> = threads.jobs().iter().map(JobRef::ptr).collect();
    assert!(left == [first]);
}

/// The nice value of the thread with this number.
fn nice(number: u32) -> i32 {
    let thread = rustix::process::Pid::from_raw(i32::try_from(number).unwrap());
    rustix::process::getpriority_process(thread).unwrap()
}

#[test]
fn as_many_senders_as_cores_keep_their_priority_while_they_send() {
    let threads = DetachedThreads::new(1);
    if threads.normal == priority::LOWEST {
        return;
    }
    let (numbers_to, numbers) = std::sync::mpsc::channel();
    let (ends, ended) = std::sync::mpsc::channel::<()>();
    let ended = std::sync::Mutex::new(ended);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            let (numbers_to, ended) = (numbers_to.clone(), &ended);
            scope.spawn(move || {
                let number = rustix::thread::gettid().as_raw_nonzero().get();
                numbers_to.send(u32::try_from(number).unwrap()).unwrap();
                _ = lock(ended).recv();
            });
        }
        let senders: Vec<u32> = numbers.iter().take(2).collect();
        for number in &senders {
            let (job, since) = (testing::job(), Instant::now());
            let run = DetachedRun {
                job,
                activity: Activity::Compute,
                cause: Cause::Retaken,
                since,
                sends: Sends::at_first(0),
                code: RunningCode::Own,
            };
            threads.add(*number, run);
        }
        let beside = Competitors {
            busy_workers: 1,
            closures: 0,
        };
        let lowered = || senders.iter().map(|number| nice(*number) > threads.normal);
        for operations in [1_000, 2_000, 2_000] {
            threads.lower_if_crowded(beside, |_| Some(operations));
            assert_eq!(lowered().collect::<Vec<_>>(), [false, true]);
        }
        // It has no core.
        for _ in 0..100 {
            threads.check(BOUND);
            threads.lower_if_crowded(beside, |_| Some(2_000));
            assert_eq!(lowered().collect::<Vec<_>>(), [false, true]);
        }
        threads.lower_if_crowded(beside, |_| None);
        assert!(lowered().all(|is_lowered| is_lowered));
        drop(ends);
    });
}

/// A job that was reported, is then killed and comes to its end, where a destructor holds the thread.
#[test]
fn a_killed_job_that_hangs_at_its_end_is_reported_and_lets_the_monitor_sleep() {
    let run = run(&testing::job(), Cause::Quarantined, Duration::ZERO);
    let mut thread = DetachedThread::new(0, run);
    thread.reported = true;
    thread.killed = Some(Instant::now());
    thread.run.job.header().note_cancelled();
    let threads = DetachedThreads::new(1);
    lock(&threads.threads).push(thread);
    assert!(threads.check(10_000 * BOUND).unended.is_empty());
    assert!(threads.is_any_unreported());
    lock(&threads.threads)[0].ends = Instant::now().checked_sub(BOUND);
    let unended = threads.check(BOUND).unended;
    assert!(unended.len() == 1 && unended[0].has_come);
    assert!(threads.check(BOUND).unended.is_empty());
    assert!(!threads.is_any_unreported());
    assert!(threads.pending_kills().is_empty());
}

/// Checks a blocked thread whose run has lasted for `held`. Returns how many runs are reported, and how long each
/// hook that a warning names has run.
fn check_blocked(thread: &mut DetachedThread, held: Duration) -> (usize, Vec<Duration>) {
    let mut round = Round::new(BOUND);
    let times = ThreadTimes {
        ran: Duration::ZERO,
        is_blocked: true,
    };
    let _asks = thread.begin_check(held, BOUND);
    thread.check(Some(times), held, &mut round);
    let hooks = round.long_hooks.iter().map(|hook| hook.held);
    (round.overdue.len(), hooks.collect())
}

/// A thread in a panic hook, which was found to exceed the bound at a check when its run had lasted for `held`.
fn in_reported_hook(cause: Cause, activity: Activity, held: Duration) -> DetachedThread {
    let run = DetachedRun {
        activity,
        ..run(&testing::job(), cause, Duration::ZERO)
    };
    let mut thread = DetachedThread::new(0, run);
    thread.run.job.header().begin_panic_hook();
    let mut is_reported = || check_blocked(&mut thread, held) == (1, vec![]);
    while !is_reported() {}
    thread
}

#[test]
fn a_panic_hook_that_goes_on_is_reported_twice_and_does_not_let_the_monitor_sleep_between() {
    let mut thread = in_reported_hook(Cause::Quarantined, Activity::Compute, BOUND);
    assert_eq!(check_blocked(&mut thread, LONG_HOOK), (0, vec![]));
    assert!(thread.awaits_hook());
    let held = BOUND + LONG_HOOK;
    assert_eq!(check_blocked(&mut thread, held), (0, vec![LONG_HOOK]));
    assert!(!thread.awaits_hook());
    assert_eq!(check_blocked(&mut thread, 2 * held), (0, vec![]));
    thread.begin_again(Activity::Compute);
    assert_eq!(check_blocked(&mut thread, held), (1, vec![]), "another run");
}

/// Before the panic, a fork may have computed, or a job of the quarantine waited for a core.
#[test]
fn the_time_of_a_panic_hook_is_not_that_of_its_run() {
    let causes = [
        (Cause::Retaken, Activity::Fork),
        (Cause::Quarantined, Activity::Compute),
    ];
    for (cause, activity) in causes {
        let late = 20 * LONG_HOOK;
        let mut thread = in_reported_hook(cause, activity, late);
        assert_eq!(check_blocked(&mut thread, late + BOUND), (0, vec![]));
        let held = late + LONG_HOOK;
        assert_eq!(check_blocked(&mut thread, held), (0, vec![LONG_HOOK]));
    }
}

/// As a short one does, or the second in a run.
#[test]
fn a_panic_hook_that_ends_and_does_not_begin_the_run_again_leaves_the_job_to_be_reported() {
    for is_warned in [false, true] {
        let mut thread = in_reported_hook(Cause::Quarantined, Activity::Compute, BOUND);
        if is_warned {
            let held = BOUND + LONG_HOOK;
            assert_eq!(check_blocked(&mut thread, held), (0, vec![LONG_HOOK]));
        }
        thread.run.job.header().end_panic_hook();
        assert_eq!(check_blocked(&mut thread, 4 * LONG_HOOK), (1, vec![]));
        assert!(!thread.awaits_hook() && thread.run.code == RunningCode::Own);
        assert_eq!(check_blocked(&mut thread, 5 * LONG_HOOK), (0, vec![]));
    }
}

/// Each check finds a hook, and the job went on between the two.
#[test]
fn a_second_panic_hook_is_not_taken_for_the_one_that_was_reported() {
    let mut thread = in_reported_hook(Cause::Quarantined, Activity::Compute, BOUND);
    thread.run.job.header().end_panic_hook();
    thread.run.job.header().begin_panic_hook();
    let held = BOUND + LONG_HOOK;
    assert_eq!(check_blocked(&mut thread, held), (1, vec![]));
    assert!(!thread.awaits_hook() && thread.run.code == RunningCode::Own);
    assert_eq!(check_blocked(&mut thread, 2 * held), (0, vec![]));
}

#[test]
fn a_job_that_announces_directly_behind_a_reported_panic_hook_is_not_reported() {
    let job = testing::job();
    job.header().begin_panic_hook();
    let (threads, listed) = retaken(&job, BOUND);
    assert_eq!(threads.check(BOUND).overdue.len(), 1);
    assert!(!threads.announce(listed), "the hook itself announces");
    // As a short one does.
    job.header().end_panic_hook();
    assert!(threads.announce(listed));
    assert!(!threads.is_any_unreported());
    assert!(threads.check(BOUND).overdue.is_empty());
}

/// The monitor may sleep, because a warning has told of the hook.
#[test]
fn the_end_of_a_second_reported_hook_of_a_run_keeps_the_monitor_awake() {
    let mut thread = in_reported_hook(Cause::Quarantined, Activity::Compute, BOUND);
    let (job, threads) = (thread.run.job.clone(), DetachedThreads::new(1));
    let held = BOUND + LONG_HOOK;
    assert_eq!(check_blocked(&mut thread, held), (0, vec![LONG_HOOK]));
    thread.renewed = true;
    lock(&threads.threads).push(thread);
    assert!(!threads.is_any_unreported());
    threads.end_panic_hook(ListedRun::OfThread(0), &job, BOUND);
    assert!(threads.is_any_unreported());
}

/// It has waited for a core since.
#[test]
fn what_a_thread_does_behind_a_reported_panic_hook_is_asked_at_the_check_that_finds_its_end() {
    let threads = DetachedThreads::new(1);
    let mut thread = in_reported_hook(Cause::Quarantined, Activity::Block, BOUND);
    thread.number = rustix::thread::gettid()
        .as_raw_nonzero()
        .get()
        .unsigned_abs();
    thread.first = ThreadTimes::of(thread.number);
    assert!(thread.first.is_some());
    thread.run.job.header().end_panic_hook();
    let bound = 10_000 * BOUND;
    thread.run.since = Instant::now().checked_sub(2 * bound).unwrap();
    lock(&threads.threads).push(thread);
    assert!(threads.check(bound).overdue.is_empty());
    assert!(threads.is_any_unreported());
}
