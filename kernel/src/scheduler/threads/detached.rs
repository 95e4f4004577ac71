//! Detached threads: those that are in a job and own no worker, each with its job, until that poll ends.
//!
//! A thread is detached when the monitor retakes its worker, when it hands its worker off because it blocks, or while
//! it runs a job of the [`quarantine`](crate::scheduler::threads::quarantine).
//!
//! The monitor looks at them each round ([`look`](DetachedThreads::look)). It reports each job that exceeds `stuck_after`
//! and has not announced that it blocks, once. When more threads compute than there are cores, counting those
//! that serve workers, it lowers the priority of the detached ones that compute ([`priority`]).
//! [Senders](super::senders) keep theirs, as many of them as there are cores. A thread in a fork counts, but keeps its
//! priority: no more of these compute than there are workers, and they wait for each other.
//!
//! A job here that is asked to end does so at its next wait, which may be far off. Until then the kill is pending: it is
//! counted and listed, and the monitor reports each pending kill that is older than `stuck_after`, once. It also reports
//! a job that has come to its wait, but that a destructor has held up at its end for that long.
//!
//! The lock of a job's extensions is taken under that of the list, never the other way.

use std::{
    collections::HashMap,
    mem,
    time::{Duration, Instant},
};

use crate::{
    job::JobRef,
    report::{LateName, LateNames},
    scheduler::threads::{
        detached_run::{Activity, Cause, DetachedRun, Overdue, PendingKill, Round, RunningCode},
        priority::{self, Share},
        thread_times::ThreadTimes,
    },
    sys::{Mutex, lock},
};

/// With more computing threads than this for each core, all lowered ones get only what is left over. With a small share
/// each, they would together take an eighth of a busy core.
const CROWD: usize = 4;

/// How many jobs a report names at most.
const NAMED: usize = 10;

/// The detached threads of a runtime.
pub(crate) struct DetachedThreads {
    threads: Mutex<Vec<DetachedThread>>,
    /// Jobs whose workers were retaken, and whose polls have ended since the last look, before a look could report
    /// them.
    ended: Mutex<Vec<Overdue>>,
    /// How many cores the runtime may use.
    cores: usize,
    /// The priority that its threads start with.
    normal: i32,
}

/// A detached thread, and what the monitor has seen of it.
struct DetachedThread {
    /// The system's number of the thread.
    number: u32,
    run: DetachedRun,
    /// How long the run had lasted when the thread was detached.
    held_before: Duration,
    /// In quarantine: what the system reported at the first look.
    first: Option<ThreadTimes>,
    /// How long the thread had run at the last look, if that had to be known.
    ran: Option<Duration>,
    /// In quarantine: whether the run was found to be a long one.
    is_long: bool,
    /// Whether the job was reported, or need not be.
    reported: bool,
    /// Whether a report has named the jobs that it holds up.
    held_up_reported: bool,
    /// Since when the job is known to have been asked to end, if it was.
    killed: Option<Instant>,
    /// When the job was first seen to be ending while a destructor holds the thread.
    ends: Option<Instant>,
    /// Whether a report has told that it does not end, or need not.
    kill_reported: bool,
}

/// A detached thread and the job that holds it.
pub(super) struct Holder {
    pub(super) number: u32,
    pub(super) job: JobRef,
    pub(super) since: Instant,
    pub(super) is_reported: bool,
}

impl DetachedThreads {
    pub(crate) fn new(cores: usize) -> DetachedThreads {
        DetachedThreads {
            threads: Mutex::new(Vec::new()),
            ended: Mutex::new(Vec::new()),
            cores,
            normal: priority::of_this_thread(),
        }
    }

    /// As [`add`](Self::add). False if there is no memory for it.
    pub(crate) fn try_add(&self, number: u32, run: DetachedRun) -> bool {
        let has_room = lock(&self.threads).try_reserve(1).is_ok();
        if has_room {
            self.add(number, run);
        }
        has_room
    }

    /// Adds the thread with this number.
    pub(crate) fn add(&self, number: u32, run: DetachedRun) {
        // A fork is expected to compute, and shares what it can.
        let reported = run.cause == Cause::Announced || run.activity == Activity::Fork;
        let held_before = run.since.elapsed();
        let mut threads = lock(&self.threads);
        // Under the lock: a kill that this does not see finds the thread in the list.
        let is_killed = run.job.header().state.is_cancelled();
        threads.push(DetachedThread {
            number,
            run,
            held_before,
            first: None,
            ran: None,
            is_long: false,
            reported,
            held_up_reported: false,
            killed: is_killed.then(Instant::now),
            ends: None,
            kill_reported: reported,
        });
    }

    /// `job` was asked to end. Whether it holds one of these threads, and the monitor is to report it in time.
    pub(crate) fn note_kill(&self, job: &JobRef) -> bool {
        let mut threads = lock(&self.threads);
        let found = threads
            .iter_mut()
            .find(|thread| thread.run.job.ptr() == job.ptr());
        found.is_some_and(|thread| {
            thread.killed.get_or_insert_with(Instant::now);
            !thread.kill_reported
        })
    }

    /// The jobs that hold these threads although they were asked to end.
    pub(crate) fn pending_kills(&self) -> Vec<PendingKill> {
        let (threads, now) = (lock(&self.threads), Instant::now());
        let pending = threads.iter().filter_map(|it| it.pending_kill(now));
        pending.collect()
    }

    /// The job of the detached thread with this number announces that it blocks, or that it holds the thread in a wait.
    /// It is not reported from then on. False if it was announced or reported before.
    pub(crate) fn announce(&self, number: u32) -> bool {
        let mut threads = lock(&self.threads);
        let found = threads.iter_mut().find(|thread| thread.number == number);
        let Some(thread) = found.filter(|thread| !thread.reported) else {
            return false;
        };
        thread.reported = true;
        thread.kill_reported = true;
        thread.run.activity = Activity::Block;
        true
    }

    /// The calling thread, which has this number, has ended its poll. False if its priority was lowered and the system
    /// does not let it rise again.
    pub(crate) fn end(&self, number: u32) -> bool {
        // Out of the list first: the monitor can no longer lower it.
        let ended = {
            let mut threads = lock(&self.threads);
            let index = threads.iter().position(|thread| thread.number == number);
            index.map(|index| threads.swap_remove(index))
        };
        let may_serve = priority::restore(self.normal);
        // Without the lock: the last reference to a job drops values of the user.
        let unreported = ended.filter(|thread| !thread.reported);
        if let Some(thread) = unreported.filter(|thread| thread.run.cause == Cause::Retaken) {
            let held = thread.held(Instant::now());
            let DetachedRun {
                job, cause, code, ..
            } = thread.run;
            lock(&self.ended).push(Overdue {
                job,
                held,
                cause,
                code,
                killed: None,
            });
        }
        may_serve
    }

    /// Looks at the threads that were not reported yet: which exceed `bound`, and which of those in quarantine are
    /// busy. Learns about the senders what [`lower_if_crowded`](Self::lower_if_crowded) then needs. Called by the
    /// monitor.
    pub(crate) fn look(&self, bound: Duration) -> Round {
        let now = Instant::now();
        let numbers: Vec<u32> = {
            let threads = lock(&self.threads);
            let sampled = threads
                .iter()
                .filter(|thread| thread.is_sampled(thread.held(now), bound) || thread.is_timed());
            sampled.map(|thread| thread.number).collect()
        };
        // Read without the lock: a thread takes it when its poll ends.
        let times: HashMap<u32, ThreadTimes> = numbers
            .into_iter()
            .filter_map(|number| Some((number, ThreadTimes::of(number)?)))
            .collect();
        let mut round = Round::new(bound);
        for thread in &mut *lock(&self.threads) {
            let held = thread.held(now);
            thread.look(times.get(&thread.number).copied(), held, &mut round);
        }
        let ended = std::mem::take(&mut *lock(&self.ended));
        let overdue = ended.into_iter().filter(|ended| ended.held >= bound);
        round.overdue.extend(overdue);
        round
    }

    /// Whether a job may still have to be reported, so that the monitor must not sleep.
    pub(crate) fn is_any_unreported(&self) -> bool {
        let threads = lock(&self.threads);
        let is_due = |thread: &DetachedThread| {
            let is_told = thread.reported && (thread.kill_reported || thread.killed.is_none());
            !is_told && !thread.run.job.header().state.is_waiting()
        };
        threads.iter().any(is_due) || !lock(&self.ended).is_empty()
    }

    /// Lowers the priority of those that compute, if with `busy_workers` they are more than the cores. Not that of
    /// senders, unless these are more than the cores. `operations`: the count of the thread with a number. Called by the
    /// monitor, after [`look`](Self::look).
    ///
    /// Priorities change under the lock, so that no thread is lowered after it has restored its own. Nothing else that
    /// asks the system happens there, because each thread takes the lock when its poll ends.
    pub(crate) fn lower_if_crowded(
        &self,
        busy_workers: usize,
        operations: impl Fn(u32) -> Option<u32>,
    ) {
        let mut threads = lock(&self.threads);
        let computing = threads
            .iter()
            .filter(|thread| thread.run.activity != Activity::Block);
        let computing = computing.count();
        if computing + busy_workers <= self.cores {
            return;
        }
        let share = match computing > CROWD * self.cores {
            true => Share::Rest,
            false => Share::Small,
        };
        let mut senders = 0;
        for thread in &mut *threads {
            // A run in quarantine that has not exceeded the bound may be short, and may hold a lock.
            let is_long = thread.run.cause != Cause::Quarantined || thread.reported;
            let is_due = match thread.run.activity {
                Activity::Compute | Activity::Send => is_long,
                Activity::ComputeLowered(before) => before < share,
                Activity::Block | Activity::Fork => false,
            };
            let may_send = is_due && !matches!(thread.run.activity, Activity::ComputeLowered(_));
            if may_send && senders < self.cores && thread.sends(&operations) {
                senders += 1;
                if mem::replace(&mut thread.run.activity, Activity::Send) != Activity::Send {
                    priority::shorten_slices(thread.number, self.normal);
                }
            } else if is_due {
                priority::lower(thread.number, self.normal, share);
                thread.run.activity = Activity::ComputeLowered(share);
            }
        }
    }

    /// The detached threads that `is_wanted` selects by number, each with the job that holds it.
    pub(super) fn holders(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<Holder> {
        let threads = lock(&self.threads);
        let wanted = threads.iter().filter(|thread| is_wanted(thread.number));
        let holders = wanted.map(|thread| Holder {
            number: thread.number,
            job: thread.run.job.clone(),
            since: thread.run.since,
            is_reported: thread.held_up_reported,
        });
        holders.collect()
    }

    /// Notes that a report has named the jobs that the thread with this number holds up.
    pub(super) fn set_reported(&self, number: u32) {
        let mut threads = lock(&self.threads);
        let found = threads.iter_mut().find(|thread| thread.number == number);
        if let Some(thread) = found {
            thread.held_up_reported = true;
        }
    }

    /// The jobs that hold a thread at this moment.
    pub(crate) fn jobs(&self) -> Vec<JobRef> {
        let threads = lock(&self.threads);
        threads
            .iter()
            .map(|thread| thread.run.job.clone())
            .collect()
    }

    /// Those that have not announced it.
    pub(crate) fn unannounced_jobs(&self) -> Vec<JobRef> {
        let threads = lock(&self.threads);
        let runs = threads.iter().map(|thread| &thread.run);
        let unannounced = runs.filter(|run| run.cause != Cause::Announced);
        unannounced.map(|run| run.job.clone()).collect()
    }

    /// The names of the jobs that hold a thread at this moment.
    pub(super) fn names(&self) -> LateNames {
        let threads = lock(&self.threads);
        let jobs = threads.iter().map(|thread| thread.run.job.header());
        LateNames::of(jobs.map(LateName::of), NAMED)
    }
}

impl DetachedThread {
    /// How long the job has held the thread.
    fn held(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.run.since)
    }

    /// Whether it still sends.
    fn sends(&mut self, operations: impl Fn(u32) -> Option<u32>) -> bool {
        let operations = operations(self.number);
        operations.is_some_and(|operations| self.run.sends.look(operations, self.ran))
    }

    /// Whether the monitor asks the system what the thread does. A thread that was seen blocked is checked again only
    /// when its run becomes a long one and when it exceeds `stuck_after`: hundreds may be blocked, and a check takes 10
    /// µs.
    fn is_sampled(&self, held: Duration, bound: Duration) -> bool {
        let is_due = match self.run.activity {
            Activity::Block => held >= bound || (held >= bound / 2 && !self.is_long),
            Activity::Fork | Activity::Compute | Activity::Send | Activity::ComputeLowered(_) => {
                true
            }
        };
        self.run.cause == Cause::Quarantined && !self.reported && is_due
    }

    /// Whether the monitor asks the system how long the thread has run, as only that tells whether it still sends.
    fn is_timed(&self) -> bool {
        self.run.activity == Activity::Send && self.run.sends.depends_on_time()
    }

    /// The kill of its job, if the job has not come to a wait since.
    fn pending_kill(&self, now: Instant) -> Option<PendingKill> {
        self.kill(now).filter(|kill| !kill.has_come)
    }

    /// The kill of its job, if the job holds the thread.
    fn kill(&self, now: Instant) -> Option<PendingKill> {
        let killed = self.killed?;
        let header = self.run.job.header();
        let holds = !header.state.is_waiting();
        holds.then(|| PendingKill {
            job: self.run.job.clone(),
            pending: now.saturating_duration_since(self.ends.unwrap_or(killed)),
            has_come: header.is_being_ended(),
        })
    }

    /// The kill of a job that was reported as stuck before, if it is to be reported now.
    fn look_at_kill(&mut self, bound: Duration) -> Option<PendingKill> {
        if self.kill_reported || !self.reported {
            return None;
        }
        let now = Instant::now();
        if self.kill(now).is_some_and(|kill| kill.has_come) {
            self.ends.get_or_insert(now);
        }
        let due = self.kill(now).filter(|it| it.pending >= bound);
        self.kill_reported = due.is_some();
        due
    }

    fn look(&mut self, now: Option<ThreadTimes>, held: Duration, round: &mut Round) {
        let bound = round.bound;
        self.ran = now.map(|times| times.ran);
        round.unended.extend(self.look_at_kill(bound));
        let is_quarantined = self.run.cause == Cause::Quarantined;
        round.quarantined += usize::from(is_quarantined);
        if self.reported {
            return;
        }
        if self.held_before < bound {
            self.run.code = RunningCode::of(&self.run.job);
        }
        let is_due = self.is_sampled(held, bound);
        if is_quarantined && is_due {
            self.run.activity = match now {
                Some(times) if times.is_blocked => Activity::Block,
                _ => match self.run.activity {
                    known @ (Activity::Send | Activity::ComputeLowered(_)) => known,
                    _ => Activity::Compute,
                },
            };
        }
        // One that waits for a core would wait longer beside more threads.
        let is_over = held >= bound && self.has_held(now, bound / 2);
        if is_quarantined && self.run.activity != Activity::Block && !is_over {
            round.busy += 1;
        }
        let is_half = held >= bound / 2 && self.first.is_some();
        if is_quarantined && is_due && !self.is_long && is_half && self.has_held(now, bound / 4) {
            self.is_long = true;
            if self.run.code == RunningCode::Own {
                round.long.push(self.run.job.clone());
            }
        }
        let is_waiting = self.run.job.header().state.is_waiting();
        if is_over && !is_waiting {
            self.reported = true;
            self.kill_reported |= self.killed.is_some();
            round.overdue.push(Overdue {
                job: self.run.job.clone(),
                held,
                cause: self.run.cause,
                code: self.run.code,
                killed: self.pending_kill(Instant::now()).map(|kill| kill.pending),
            });
        }
        self.first = self.first.or(now);
    }

    /// Whether the thread is blocked, or has run for `long`, so that it did not just wait for a core. Always true for a
    /// thread whose worker was retaken.
    fn has_held(&self, now: Option<ThreadTimes>, long: Duration) -> bool {
        match (self.run.cause, self.first, now) {
            (Cause::Quarantined, Some(first), Some(now)) => {
                now.is_blocked || now.ran.saturating_sub(first.ran) >= long
            }
            (Cause::Quarantined, None, Some(now)) => now.is_blocked,
            _ => true,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
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
        DetachedThread {
            number: 0,
            run,
            held_before: Duration::ZERO,
            first: Some(times(0, false)),
            ran: None,
            is_long: false,
            reported: false,
            held_up_reported: false,
            killed: None,
            ends: None,
            kill_reported: false,
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
    fn a_retaken_job_that_ends_beyond_the_bound_before_a_look_is_reported() {
        let threads = DetachedThreads::new(1);
        let DetachedThread { run, .. } = in_quarantine();
        let since = Instant::now().checked_sub(BOUND).unwrap();
        let cause = Cause::Retaken;
        threads.add(
            1,
            DetachedRun {
                cause,
                since,
                ..run
            },
        );
        threads.end(1);
        assert!(threads.is_any_unreported());
        assert_eq!(threads.look(BOUND).overdue.len(), 1);
        assert!(threads.look(BOUND).overdue.is_empty());
        assert!(!threads.is_any_unreported());
    }

    /// A thread whose worker was retaken from a job, in a run that began `before` now.
    fn retaken(job: &JobRef, before: Duration) -> (DetachedThreads, u32) {
        let (threads, number) = (DetachedThreads::new(1), 1);
        let run = DetachedRun {
            job: job.clone(),
            activity: Activity::Compute,
            cause: Cause::Retaken,
            since: Instant::now().checked_sub(before).unwrap(),
            sends: Sends::here(),
            code: RunningCode::of(job),
        };
        threads.add(number, run);
        (threads, number)
    }

    #[test]
    fn what_ran_when_a_worker_was_retaken_beyond_the_bound_is_known_when_the_job_is_reported() {
        for ends_before_the_look in [true, false] {
            let job = testing::job();
            job.header().set_in_panic_hook(true);
            let (threads, number) = retaken(&job, BOUND);
            job.header().set_in_panic_hook(false);
            if ends_before_the_look {
                threads.end(number);
            }
            let overdue = threads.look(BOUND).overdue;
            assert_eq!(overdue.len(), 1);
            assert_eq!(overdue[0].code, RunningCode::PanicHook);
        }
    }

    #[test]
    fn of_a_worker_that_was_retaken_early_it_counts_what_ran_at_the_last_look() {
        let job = testing::job();
        job.header().set_in_panic_hook(true);
        let (threads, number) = retaken(&job, Duration::ZERO);
        // Whether or not this look finds the bound exceeded.
        job.header().set_in_panic_hook(false);
        let mut overdue = threads.look(10_000 * BOUND).overdue;
        assert!(overdue.is_empty());
        threads.end(number);
        lock(&threads.ended)[0].held = BOUND;
        overdue = threads.look(BOUND).overdue;
        assert_eq!(overdue[0].code, RunningCode::Own);
    }

    /// The nice value of the thread with this number.
    fn nice(number: u32) -> i32 {
        let thread = rustix::process::Pid::from_raw(i32::try_from(number).unwrap());
        rustix::process::getpriority_process(thread).unwrap()
    }

    #[test]
    fn as_many_senders_as_cores_keep_their_priority_while_they_send() {
        let threads = DetachedThreads::new(1);
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
            let lowered = || senders.iter().map(|number| nice(*number) > threads.normal);
            for operations in [1_000, 2_000, 2_000] {
                threads.lower_if_crowded(1, |_| Some(operations));
                assert_eq!(lowered().collect::<Vec<_>>(), [false, true]);
            }
            // It has no core.
            for _ in 0..100 {
                threads.look(BOUND);
                threads.lower_if_crowded(1, |_| Some(2_000));
                assert_eq!(lowered().collect::<Vec<_>>(), [false, true]);
            }
            threads.lower_if_crowded(1, |_| None);
            assert!(lowered().all(|is_lowered| is_lowered));
            drop(ends);
        });
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

    /// A job that was reported, is then killed and comes to its end, where a destructor holds the thread.
    #[test]
    fn a_killed_job_that_hangs_at_its_end_is_reported_and_lets_the_monitor_sleep() {
        let mut thread = in_quarantine();
        thread.reported = true;
        thread.killed = Some(Instant::now());
        thread.run.job.header().note_cancelled();
        let threads = DetachedThreads::new(1);
        lock(&threads.threads).push(thread);
        assert!(threads.look(10_000 * BOUND).unended.is_empty());
        assert!(threads.is_any_unreported());
        lock(&threads.threads)[0].ends = Instant::now().checked_sub(BOUND);
        let unended = threads.look(BOUND).unended;
        assert!(unended.len() == 1 && unended[0].has_come);
        assert!(threads.look(BOUND).unended.is_empty());
        assert!(!threads.is_any_unreported());
        assert!(threads.pending_kills().is_empty());
    }
}
