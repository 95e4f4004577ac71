//! What the monitor knows of one worker, and what it concludes from a check of the worker's thread.

use std::{
    mem,
    time::{Duration, Instant},
};

use crate::scheduler::{
    threads::{
        detached_run::Activity, monitor::stays_stuck::StaysStuck, senders::Sends,
        thread_times::ThreadTimes,
    },
    workers::run_word::RunWord,
};

/// A thread that is found blocked at this many checks of one run blocks, even if it has run in between.
const BLOCKED_CHECKS: u32 = 4;

/// What the monitor knows of one worker.
pub(super) struct Watched {
    pub(super) running: RunWord,
    pub(super) since: Instant,
    /// What the system reported of the thread at the first check. The system reports late how long a thread has run, so
    /// time from before this run may be missing there. Therefore a check in the second half of `stuck_after` replaces
    /// this, once: the first that finds that the thread has run since ([`Watched::check`]).
    pub(super) times: Option<ThreadTimes>,
    /// Whether `times` is that of the later check.
    pub(super) is_settled: bool,
    /// What the system reported at the last check.
    pub(super) last: Option<ThreadTimes>,
    /// Whether the thread was blocked at two checks, the last one included.
    pub(super) blocks: bool,
    /// At how many checks the thread was blocked.
    pub(super) blocked_checks: u32,
    /// What is known of the thread's operations, since `times`.
    pub(super) sends: Option<Sends>,
    /// What was reported of this run for want of a spare thread.
    pub(super) stays_stuck: StaysStuck,
    /// Whether the run was noted as a long one.
    pub(super) is_long: bool,
}

impl Watched {
    pub(super) fn new(running: RunWord) -> Watched {
        Watched {
            running,
            since: Instant::now(),
            times: None,
            is_settled: false,
            last: None,
            blocks: false,
            blocked_checks: 0,
            sends: None,
            stays_stuck: StaysStuck::default(),
            is_long: false,
        }
    }

    /// The next check of the thread: what it does in the run.
    pub(super) fn check(&mut self, now: Option<ThreadTimes>) -> Holding {
        let holding = self.conclude(now);
        self.blocks = holding == Holding::Blocked;
        holding
    }

    fn conclude(&mut self, now: Option<ThreadTimes>) -> Holding {
        // The first check was made a round ago at least.
        let last = mem::replace(&mut self.last, now).or(self.times);
        let (Some(then), Some(now)) = (self.times, now) else {
            return Holding::Blocked;
        };
        if now.is_blocked {
            // It counts as blocked only if two checks in a row find it so, because a page fault is over in a moment; or
            // if many checks do, because it may block in short steps.
            self.blocked_checks += 1;
            let has_been = self.blocked_checks >= BLOCKED_CHECKS
                || last.is_some_and(|last| last.is_blocked && last.ran == now.ran);
            return match has_been {
                true => Holding::Blocked,
                false => Holding::Unknown,
            };
        }
        if !self.is_settled {
            if now.ran != then.ran {
                self.times = Some(now);
                self.is_settled = true;
            }
            return Holding::Unknown;
        }
        Holding::Ran(now.ran.saturating_sub(then.ran))
    }

    /// What the thread does, as the checks have found. A fork excuses a thread that computes, and at a single check it
    /// may be in a page fault, or wait for a moment for a lock. `is_blocked_now`: what the system said last.
    pub(super) fn activity(&self, is_forking: bool, is_blocked_now: bool) -> Activity {
        match is_blocked_now {
            true if self.blocks || !is_forking => Activity::Block,
            _ if is_forking => Activity::Fork,
            _ => Activity::Compute,
        }
    }

    /// What is known of the thread's operations; it has completed this many by now. Without an earlier check, what it
    /// completed before this run cannot be told from what it completed in the run, so nothing shows that it sends.
    pub(super) fn sends_after(&self, operations: u32) -> Sends {
        let mut sends = self.sends.unwrap_or(Sends::at_first(operations));
        sends.check(operations, None);
        sends
    }
}

/// What a thread was seen to do in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holding {
    /// It waits for a core, as far as is known.
    Unknown,
    /// It is blocked; or the system does not tell, so that the wall clock decides.
    Blocked,
    /// It has run for so long, at least.
    Ran(Duration),
}

impl Holding {
    /// Whether the thread is blocked, or has run for this long, so that it did not just wait for a core.
    pub(super) fn is_for(self, long: Duration) -> bool {
        match self {
            Holding::Unknown => false,
            Holding::Blocked => true,
            Holding::Ran(ran) => ran >= long,
        }
    }
}
