//! A [detached](super::detached) thread, and how a check of it is judged: whether its job exceeds the bound, holds the
//! thread or only waits for a core, and whether it ends after it was asked to.
//!
//! Nothing here asks the system; a check brings what the system said.

pub(super) mod hook_watch;

use std::{
    mem,
    time::{Duration, Instant},
};

use crate::scheduler::threads::{
    detached_run::{
        Activity, Cause, DetachedRun, ListedRun, LongHook, Overdue, PendingKill, Round, RunningCode,
    },
    detached_thread::hook_watch::{FoundCode, HookWatch},
    thread_times::ThreadTimes,
};

/// A detached thread, and what the monitor has seen of it.
pub(super) struct DetachedThread {
    /// The system's number of the thread.
    pub(super) number: u32,
    pub(super) run: DetachedRun,
    /// How long the run had lasted when the thread was detached.
    pub(super) held_before: Duration,
    /// If the run is judged by times: what the system reported at the first check.
    pub(super) first: Option<ThreadTimes>,
    /// How long the thread had run at the last check, if that had to be known.
    pub(super) ran: Option<Duration>,
    /// In quarantine: whether the run was found to be a long one.
    pub(super) is_long: bool,
    /// Whether the job was reported, or need not be at present.
    pub(super) reported: bool,
    /// Whether the job has announced that it blocks, and not gone on since.
    pub(super) announced: bool,
    /// If it is announced: how long it has held the thread when the system is asked next what the thread does.
    pub(super) asked_at: Duration,
    /// In a fork: since when the thread was seen blocked at each check.
    blocked: Option<Instant>,
    /// Whether it is one root of a fork too many, so that the fork excuses nothing.
    pub(super) counts_in_fork: bool,
    /// Whether a panic hook has ended since the thread was detached, and what followed was watched anew.
    pub(super) renewed: bool,
    /// What was reported of the panic hook.
    hook: HookWatch,
    /// Whether the check under way has [begun](Self::begin_check) at this thread, and the run has not begun again
    /// since.
    is_checked: bool,
    /// Whether a report has named the jobs that it holds up.
    pub(super) held_up_reported: bool,
    /// Since when the job is known to have been asked to end, if it was.
    pub(super) killed: Option<Instant>,
    /// When the job was first seen to be ending while a destructor holds the thread.
    pub(super) ends: Option<Instant>,
    /// Whether a report has told that it does not end, or need not.
    pub(super) kill_reported: bool,
}

impl DetachedThread {
    /// The thread with this number. The monitor has seen nothing of it yet.
    pub(super) fn new(number: u32, run: DetachedRun) -> DetachedThread {
        let reported = run.cause == Cause::Announced;
        DetachedThread {
            number,
            held_before: run.since.elapsed(),
            run,
            first: None,
            ran: None,
            is_long: false,
            reported,
            announced: reported,
            asked_at: Duration::ZERO,
            blocked: None,
            counts_in_fork: false,
            renewed: false,
            hook: HookWatch::default(),
            is_checked: false,
            held_up_reported: false,
            killed: None,
            ends: None,
            kill_reported: reported,
        }
    }

    /// Whether it is in this run.
    pub(super) fn is_in(&self, run: ListedRun) -> bool {
        match run {
            ListedRun::OfThread(number) => self.number == number,
            ListedRun::OfVisit(number, job) => self.number == number && self.run.job.ptr() == job,
        }
    }

    /// The run goes on after what excused it so far: from now on it is watched as one that begins.
    pub(super) fn begin_again(&mut self, activity: Activity) {
        if !matches!(self.run.cause, Cause::Quarantined | Cause::Visits) {
            self.run.cause = Cause::Continued;
        }
        if !matches!(self.run.activity, Activity::ComputeLowered(_)) {
            self.run.activity = activity;
        }
        self.run.since = Instant::now();
        self.held_before = Duration::ZERO;
        self.first = None;
        self.is_long = false;
        self.reported = false;
        self.announced = false;
        self.blocked = None;
        self.counts_in_fork = false;
        self.hook = HookWatch::default();
        self.is_checked = false;
        self.held_up_reported = false;
        self.kill_reported = false;
    }

    /// The job announces that it blocks, or that it holds the thread in a wait. What is to be reported of the run so
    /// far is added to `ended`. False if it was announced or reported before.
    pub(super) fn announce(&mut self, ended: &mut Vec<Overdue>) -> bool {
        // Asked first: of a run that was reported, even if only its panic hook was, nothing is left to report.
        let so_far = self.unreported();
        let _is_over = self.note_hook_end();
        if self.reported {
            return false;
        }
        ended.extend(so_far);
        self.reported = true;
        self.announced = true;
        self.asked_at = Duration::ZERO;
        self.kill_reported = true;
        self.run.activity = Activity::Block;
        true
    }

    /// The panic hook of the job has ended: what follows is watched as a run that begins, once, unless the job has
    /// announced that it blocks, or was itself reported. Whether it is in a fork is seen when it exceeds the bound.
    /// Behind a later hook that was reported, the job is not reported yet. Returns what is to be reported of the run so
    /// far.
    pub(super) fn end_panic_hook(&mut self, bound: Duration) -> Option<Overdue> {
        self.note_code(bound);
        self.run.job.header().end_panic_hook();
        let is_own = self.reported && self.run.code == RunningCode::Own;
        if self.announced || is_own {
            return None;
        }
        if mem::replace(&mut self.renewed, true) {
            let _is_over = self.note_hook_end();
            return None;
        }
        let (so_far, kill_reported) = (self.unreported(), self.kill_reported);
        self.begin_again(Activity::Compute);
        self.kill_reported = kill_reported;
        so_far
    }

    /// Notes what runs, unless the run was reported, or had exceeded the bound when the thread was detached.
    fn note_code(&mut self, bound: Duration) {
        if self.held_before < bound && !self.reported {
            self.run.code = RunningCode::see(&self.run.job);
        }
    }

    /// What is to be reported of a run that nobody watches any longer: it lost its worker, and no check has found that
    /// it exceeds the bound.
    pub(super) fn unreported(&self) -> Option<Overdue> {
        let is_retaken = self.run.cause == Cause::Retaken && self.run.activity != Activity::Fork;
        (is_retaken && !self.reported).then(|| Overdue {
            job: self.run.job.clone(),
            held: self.held(Instant::now()),
            cause: self.run.cause,
            code: self.run.code,
            counts_in_fork: false,
            killed: None,
        })
    }

    /// How long the job has held the thread.
    pub(super) fn held(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.run.since)
    }

    /// Whether it still sends.
    pub(super) fn sends(&mut self, operations: impl Fn(u32) -> Option<u32>) -> bool {
        let operations = operations(self.number);
        operations.is_some_and(|operations| self.run.sends.check(operations, self.ran))
    }

    /// Whether the wall clock does not say how long the run has been: the thread may have waited for a core since it
    /// began.
    pub(super) fn is_judged_by_times(&self) -> bool {
        matches!(
            self.run.cause,
            Cause::Quarantined | Cause::Continued | Cause::Visits
        )
    }

    /// Whether the run is in a fork, and was retaken, or went on after an announcement, or is a part that runs in
    /// quarantine.
    fn is_in_fork(&self) -> bool {
        self.run.activity == Activity::Fork
            && (self.run.cause != Cause::Quarantined || self.run.job.header().is_part())
    }

    /// Whether it computes in a fork that its own job has begun, and not in a part of another job's fork.
    pub(super) fn is_root_of_fork(&self) -> bool {
        self.run.activity == Activity::Fork && !self.run.job.header().is_part()
    }

    /// Whether the monitor asks the system what the thread does. A thread that was seen blocked is checked again only
    /// when its run becomes a long one and when it exceeds `stuck_after`: hundreds may be blocked, and a check takes 10
    /// µs. For the same reason one that has announced that it blocks is checked when it has held the thread for twice
    /// as long as at the last check: it may compute.
    pub(super) fn is_sampled(&self, held: Duration, bound: Duration) -> bool {
        if self.announced {
            return held >= self.asked_at.max(bound);
        }
        let is_due = match self.run.activity {
            Activity::Block => held >= bound || (held >= bound / 2 && !self.is_long),
            Activity::Fork | Activity::Compute | Activity::Send | Activity::ComputeLowered(_) => {
                true
            }
        };
        (self.is_judged_by_times() || self.is_in_fork()) && !self.reported && is_due
    }

    /// Whether the monitor asks the system how long the thread has run, as only that tells whether it still sends.
    pub(super) fn is_timed(&self) -> bool {
        self.run.activity == Activity::Send && self.run.sends.depends_on_time()
    }

    /// The kill of its job, if the job has not come to a wait since.
    pub(super) fn pending_kill(&self, now: Instant) -> Option<PendingKill> {
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
    fn check_kill(&mut self, bound: Duration) -> Option<PendingKill> {
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

    /// Whether the monitor has to check whether a panic hook that was reported still runs.
    pub(super) fn awaits_hook(&self) -> bool {
        self.hook.awaits_warning() && !self.announced
    }

    /// True if the panic hook that was reported is over, and the run is not one that begins: then the job's own code
    /// runs now, and is not reported yet.
    pub(super) fn note_hook_end(&mut self) -> bool {
        let is_due = self.hook.is_begun() && !self.announced;
        let is_over =
            is_due && self.hook.check(self.run.job.header().see_panic_hook()) == FoundCode::Own;
        if is_over {
            self.run.code = RunningCode::Own;
            self.reported = false;
            self.is_checked = false;
        }
        is_over
    }

    /// The run, which has lasted for `held`, was reported.
    fn set_reported(&mut self, held: Duration) {
        self.reported = true;
        if self.run.code == RunningCode::PanicHook {
            self.hook.begin(held);
        }
    }

    /// The first part of a check: what runs, which is what the check will report. True if the system is to be asked
    /// what the thread does.
    pub(super) fn begin_check(&mut self, held: Duration, bound: Duration) -> bool {
        if !self.note_hook_end() {
            self.note_code(bound);
            if self.is_in_fork() && !self.reported {
                self.run.code = RunningCode::see(&self.run.job);
            }
        }
        self.is_checked = true;
        self.is_sampled(held, bound) || self.is_timed()
    }

    /// The second part of a check, when the system was asked. Without the first part nothing is judged: the thread was
    /// not in the list then, or its run has begun again, or what was reported is over.
    pub(super) fn check(&mut self, now: Option<ThreadTimes>, held: Duration, round: &mut Round) {
        let bound = round.bound;
        let ran = mem::replace(&mut self.ran, now.map(|times| times.ran));
        round.unended.extend(self.check_kill(bound));
        let is_quarantined = self.run.cause == Cause::Quarantined;
        round.quarantined += usize::from(is_quarantined);
        if !mem::take(&mut self.is_checked) {
            round.busy += usize::from(is_quarantined && self.run.activity != Activity::Block);
            return;
        }
        if self.announced && self.is_sampled(held, bound) {
            self.asked_at = 2 * held;
            if now.is_some() {
                self.note_activity(now);
            }
        }
        if self.reported {
            if !self.announced {
                let ran = self.hook.warn(held, bound);
                let job = || self.run.job.clone();
                round
                    .long_hooks
                    .extend(ran.map(|held| LongHook { job: job(), held }));
            }
            return;
        }
        if self.is_in_fork() {
            if self.check_fork(now, ran, round) {
                self.set_reported(held);
            }
            let is_busy = is_quarantined && self.blocked.is_none() && held < bound;
            round.busy += usize::from(is_busy);
            return;
        }
        let is_due = self.is_sampled(held, bound);
        if self.is_judged_by_times() && is_due {
            self.note_activity(now);
        }
        // A thread that waits for a core would wait longer beside more threads.
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
            self.set_reported(held);
            self.kill_reported |= self.killed.is_some();
            round.overdue.push(Overdue {
                job: self.run.job.clone(),
                held,
                cause: self.run.cause,
                code: self.run.code,
                counts_in_fork: self.run.activity == Activity::Block
                    || self.run.cause == Cause::Retaken
                    || self.counts_in_fork,
                killed: self.pending_kill(Instant::now()).map(|kill| kill.pending),
            });
        }
        self.first = self.first.or(now);
    }

    /// Notes what the thread does, according to the system.
    fn note_activity(&mut self, now: Option<ThreadTimes>) {
        self.run.activity = match now {
            Some(times) if times.is_blocked => Activity::Block,
            _ => match self.run.activity {
                known @ (Activity::Send | Activity::ComputeLowered(_)) => known,
                _ => Activity::Compute,
            },
        };
    }

    /// A part of [`check`](Self::check), for a thread in a fork. A fork is expected to compute, and shares what it can.
    /// But if it blocks for as long as the bound, that is an offence, and the result is true. `ran`: how long the
    /// thread had run at the last check.
    fn check_fork(
        &mut self,
        now: Option<ThreadTimes>,
        ran: Option<Duration>,
        round: &mut Round,
    ) -> bool {
        let is_blocked = now.is_some_and(|now| now.is_blocked && Some(now.ran) == ran);
        if !is_blocked || self.run.job.header().state.is_waiting() {
            self.blocked = None;
            return false;
        }
        let since = *self.blocked.get_or_insert_with(Instant::now);
        let is_over = since.elapsed() >= round.bound;
        if is_over {
            round.overdue.push(Overdue {
                job: self.run.job.clone(),
                held: since.elapsed(),
                cause: self.run.cause,
                code: self.run.code,
                counts_in_fork: true,
                killed: None,
            });
        }
        is_over
    }

    /// Whether the thread is blocked, or has run for `long`, so that it did not just wait for a core. Always true for a
    /// thread whose worker was retaken.
    fn has_held(&self, now: Option<ThreadTimes>, long: Duration) -> bool {
        match (self.is_judged_by_times(), self.first, now) {
            (true, Some(first), Some(now)) => {
                now.is_blocked || now.ran.saturating_sub(first.ran) >= long
            }
            (true, None, Some(now)) => now.is_blocked,
            _ => true,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
