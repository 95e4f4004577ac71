//! Detached threads: those that are in a job and own no worker, each with its job, until that poll ends.
//!
//! A thread is detached when the monitor retakes its worker, when it hands its worker off because it blocks, or while
//! it runs a job of the [`quarantine`](crate::scheduler::threads::quarantine). A thread in `block_on` that runs a job
//! of its own for long is in the list, too ([`visits`](super::visits)).
//!
//! The monitor checks them each round ([`check`](DetachedThreads::check)); `detached_thread.rs` judges one of them.
//! It reports each job that exceeds `stuck_after` and has not announced that it blocks, once. When more threads compute
//! than there are cores, counting those that serve workers, it lowers the priority of the detached ones that compute
//! ([`priority`]). [Senders](super::senders) keep theirs, as many of them as there are cores. A thread in a fork
//! counts, but keeps its priority, because the parts of a fork wait for each other. As many roots of forks as there are
//! cores are in this position; a further one is taken for a job that computes. A thread in a fork is reported only if
//! it blocks.
//!
//! A job that has announced that it blocks is watched again when the [announcement
//! ends](DetachedThreads::end_announcement), so it may be reported a second time.
//!
//! A job here that is asked to end does so at its next wait, which may be far off. Until then the kill is pending: it
//! is counted and listed, and the monitor reports each pending kill that is older than `stuck_after`, once. It also
//! reports a job that has come to its wait, but that a destructor has held up at its end for that long.
//!
//! The lock of a job's extensions is taken under that of the list, never the other way.

use std::{
    collections::HashMap,
    mem,
    time::{Duration, Instant},
};

use crate::{
    job::JobRef,
    report::{self, LateName, LateNames},
    scheduler::threads::{
        detached_run::{Activity, Cause, DetachedRun, ListedRun, Overdue, PendingKill, Round},
        detached_thread::DetachedThread,
        priority::{self, CpuShare},
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
    /// Jobs whose workers were retaken, and whose polls have ended since the last check, or that have announced that
    /// they block, before a check could report them.
    ended: Mutex<Vec<Overdue>>,
    /// How many cores the runtime may use.
    cores: usize,
    /// The priority that its threads start with.
    normal: i32,
}

/// What computes beside the detached threads.
#[derive(Clone, Copy)]
pub(super) struct Competitors {
    pub(super) busy_workers: usize,
    /// Closures of blocking threads.
    pub(super) closures: usize,
}

/// A detached thread and the job that holds it.
pub(super) struct Holder {
    pub(super) number: u32,
    pub(super) job: JobRef,
    pub(super) since: Instant,
    /// Whether the job was reported, or need not be at present.
    pub(super) is_reported: bool,
    /// Whether a report has named the jobs that it holds up.
    pub(super) held_up_reported: bool,
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

    /// Whether the priority of the calling thread is lowered. Threads that it starts inherit that.
    pub(crate) fn is_lowered_here(&self) -> bool {
        priority::is_lowered(self.normal)
    }

    /// The calling thread begins to serve the runtime: it gets the priority of its other threads. It may have inherited
    /// that of a thread that was lowered, or the slices of the monitor. False if the system refuses, so that the thread
    /// stays lowered.
    #[must_use]
    pub(crate) fn begin(&self) -> bool {
        priority::restore(self.normal)
    }

    /// The priority of threads that are not lowered.
    pub(super) fn normal(&self) -> i32 {
        self.normal
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
        self.add_if(number, run, || true);
    }

    /// As [`add`](Self::add), if `is_current` says so, which is called under the lock of the list.
    pub(super) fn add_if(&self, number: u32, run: DetachedRun, is_current: impl FnOnce() -> bool) {
        let mut thread = DetachedThread::new(number, run);
        let mut threads = lock(&self.threads);
        // Under the lock: a kill that this does not see finds the thread in the list.
        let is_killed = thread.run.job.header().state.is_cancelled();
        thread.killed = is_killed.then(Instant::now);
        if is_current() {
            threads.push(thread);
        }
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

    /// The job of this run announces that it blocks, or that it holds the thread in a wait. It is not reported from
    /// then on. False if it was announced or reported before. A panic hook that was reported before does not count.
    pub(crate) fn announce(&self, run: ListedRun) -> bool {
        let mut threads = lock(&self.threads);
        let found = threads.iter_mut().find(|thread| thread.is_in(run));
        found.is_some_and(|thread| thread.announce(&mut lock(&self.ended)))
    }

    /// Whether the threads of the pool whose jobs have announced that they block, and not gone on since, are more than
    /// `most`.
    pub(super) fn announced_exceed(&self, most: usize) -> bool {
        let threads = lock(&self.threads);
        let is_announced = |it: &&DetachedThread| it.announced && it.run.cause != Cause::Visits;
        threads.len() > most && threads.iter().filter(is_announced).count() > most
    }

    /// The job of this run has done what it had announced. It is watched from now on, as a run that begins.
    /// `is_forking`: whether it is in a fork.
    pub(crate) fn end_announcement(&self, run: ListedRun, is_forking: bool) {
        let mut threads = lock(&self.threads);
        let found = threads.iter_mut().find(|thread| thread.is_in(run));
        let Some(thread) = found.filter(|thread| thread.announced) else {
            return;
        };
        thread.begin_again(match is_forking {
            true => Activity::Fork,
            false => Activity::Compute,
        });
    }

    /// The panic hook that ran for a panic of `job` has ended. If the job holds the thread in this run, what follows is
    /// watched as a run that begins. `bound`: how long a run may take.
    pub(super) fn end_panic_hook(&self, run: ListedRun, job: &JobRef, bound: Duration) {
        let mut threads = lock(&self.threads);
        let found = threads
            .iter_mut()
            .find(|thread| thread.is_in(run) && thread.run.job.ptr() == job.ptr());
        match found {
            Some(thread) => lock(&self.ended).extend(thread.end_panic_hook(bound)),
            None => job.header().end_panic_hook(),
        }
    }

    /// The forks of some of these threads may be over, although the polls are not: what follows is watched as a run
    /// that begins. Called by the monitor.
    pub(super) fn note_ends_of_forks(&self, is_fork: impl Fn(&JobRef) -> bool) {
        let mut threads = lock(&self.threads);
        let forking = threads
            .iter_mut()
            .filter(|thread| thread.run.activity == Activity::Fork && !thread.announced);
        for thread in forking {
            if !is_fork(&thread.run.job) {
                thread.begin_again(Activity::Compute);
            }
        }
    }

    /// `job`, which went on after what it had announced and holds its thread for long, is in a fork by now, or it is a
    /// part of one in quarantine that computes: it is judged as other forks are.
    pub(super) fn is_in_fork(&self, job: &JobRef) {
        let mut threads = lock(&self.threads);
        let found = threads
            .iter_mut()
            .find(|thread| thread.run.job.ptr() == job.ptr());
        let may_return = |it: &&mut DetachedThread| match it.run.cause {
            Cause::Continued | Cause::Visits | Cause::Quarantined => true,
            Cause::Announced | Cause::Retaken => false,
        };
        if let Some(thread) = found.filter(|it| may_return(it) && !it.announced) {
            if !matches!(thread.run.activity, Activity::ComputeLowered(_)) {
                thread.run.activity = Activity::Fork;
            }
            thread.reported = false;
            thread.kill_reported = false;
        }
    }

    /// Nobody is to blame for what `job` has done so far, so it was not reported: it is watched from now on as a run
    /// that begins.
    pub(super) fn excuse(&self, job: &JobRef) {
        let mut threads = lock(&self.threads);
        let found = threads
            .iter_mut()
            .find(|thread| thread.run.job.ptr() == job.ptr());
        if let Some(thread) = found.filter(|it| it.reported && !it.announced) {
            thread.begin_again(Activity::Compute);
        }
    }

    /// Whether a job has been found to exceed the bound on a thread that was listed for this cause.
    #[cfg(all(test, not(loom)))]
    pub(super) fn has_found(&self, cause: Cause) -> bool {
        let threads = lock(&self.threads);
        let mut threads = threads.iter();
        threads.any(|thread| thread.run.cause == cause && thread.reported)
    }

    /// The run that the calling thread was in has ended. False if the priority of a thread of the pool was lowered and
    /// the system does not let it rise again.
    pub(crate) fn end(&self, run: ListedRun) -> bool {
        // Out of the list first: the monitor can no longer lower it.
        let ended = {
            let mut threads = lock(&self.threads);
            let index = threads.iter().position(|thread| thread.is_in(run));
            index.map(|index| threads.swap_remove(index))
        };
        let may_serve = match run {
            ListedRun::OfThread(_) => priority::restore(self.normal),
            // Its priority is the user's.
            ListedRun::OfVisit(..) => true,
        };
        if let Some(thread) = ended {
            lock(&self.ended).extend(thread.unreported());
            // It may be the last reference, since others drop theirs at any time: then this is user code, and nobody
            // watches the thread now.
            report::without_user_code(|| drop(thread));
        }
        may_serve
    }

    /// Returns the job of this run if it has ended, has left user values, and only this list refers to it. It is
    /// watched from now on as a run that begins.
    pub(super) fn begin_destructors(&self, run: ListedRun) -> Option<JobRef> {
        let mut threads = lock(&self.threads);
        let thread = threads.iter_mut().find(|thread| thread.is_in(run))?;
        let job = &thread.run.job;
        if !job.header().state.is_done() || !job.is_last() {
            return None;
        }
        let job = job.clone();
        if !job.header().extensions.has_user_values() {
            return None;
        }
        lock(&self.ended).extend(thread.unreported());
        thread.begin_again(Activity::Compute);
        Some(job)
    }

    /// Checks the threads that were not reported yet: which exceed `bound`, and which of those in quarantine are
    /// busy. Learns about the senders what [`lower_if_crowded`](Self::lower_if_crowded) then needs. Called by the
    /// monitor.
    pub(crate) fn check(&self, bound: Duration) -> Round {
        let now = Instant::now();
        let numbers: Vec<u32> = {
            let mut threads = lock(&self.threads);
            let asked = threads.iter_mut().filter_map(|thread| {
                let asks = thread.begin_check(thread.held(now), bound);
                asks.then_some(thread.number)
            });
            asked.collect()
        };
        // Read without the lock: a thread takes it when its poll ends.
        let times: HashMap<u32, ThreadTimes> = numbers
            .into_iter()
            .filter_map(|number| Some((number, ThreadTimes::of(number)?)))
            .collect();
        let mut round = Round::new(bound);
        for thread in &mut *lock(&self.threads) {
            let held = thread.held(now);
            thread.check(times.get(&thread.number).copied(), held, &mut round);
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
            (!is_told || thread.awaits_hook()) && !thread.run.job.header().state.is_waiting()
        };
        threads.iter().any(is_due) || !lock(&self.ended).is_empty()
    }

    /// Lowers the priority of threads that compute, if these and their competitors outnumber the cores, and then
    /// returns their share of the cores. Senders keep theirs, but no more of them than there are cores. `operations`:
    /// the count of the thread with a number. Called by the monitor, after [`check`](Self::check).
    ///
    /// Priorities change under the lock, so that no thread is lowered after it has restored its own. Nothing else that
    /// asks the system happens there, because each thread takes the lock when its poll ends.
    pub(super) fn lower_if_crowded(
        &self,
        Competitors {
            busy_workers,
            closures,
        }: Competitors,
        operations: impl Fn(u32) -> Option<u32>,
    ) -> Option<CpuShare> {
        let mut threads = lock(&self.threads);
        let computing = threads
            .iter()
            .filter(|thread| thread.run.activity != Activity::Block);
        let computing = computing.count() + closures;
        if computing + busy_workers <= self.cores {
            return None;
        }
        let share = match computing > CROWD * self.cores {
            true => CpuShare::Rest,
            false => CpuShare::Small,
        };
        let (mut senders, mut forks) = (0, 0);
        for thread in &mut *threads {
            if thread.is_root_of_fork() {
                forks += 1;
                if forks > self.cores {
                    // So many do not wait for each other. It is one that computes, and is reported.
                    thread.run.activity = Activity::Compute;
                    thread.counts_in_fork = true;
                }
            }
            if thread.run.cause == Cause::Visits {
                continue;
            }
            // A run that is judged by times and has not exceeded the bound may be short, and may hold a lock.
            let is_long = !thread.is_judged_by_times() || thread.reported;
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
        Some(share)
    }

    /// The detached threads that `is_wanted` selects by number, each with the job that holds it.
    pub(super) fn holders(&self, is_wanted: impl Fn(u32) -> bool) -> Vec<Holder> {
        let threads = lock(&self.threads);
        let wanted = threads.iter().filter(|thread| is_wanted(thread.number));
        let holders = wanted.map(|thread| Holder {
            number: thread.number,
            job: thread.run.job.clone(),
            since: thread.run.since,
            is_reported: thread.reported,
            held_up_reported: thread.held_up_reported,
        });
        holders.collect()
    }

    /// Notes that a report has named the jobs that the thread with this number holds up.
    pub(super) fn set_held_up_reported(&self, number: u32) {
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

    /// The names of the jobs that hold a thread of the pool at this moment.
    pub(super) fn names(&self) -> LateNames {
        let threads = lock(&self.threads);
        let of_pool = threads
            .iter()
            .filter(|thread| thread.run.cause != Cause::Visits);
        let jobs: Vec<&JobRef> = of_pool.map(|thread| &thread.run.job).collect();
        LateNames::of(
            jobs.into_iter().map(|job| LateName::of(job.header())),
            NAMED,
        )
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
