//! A worker that stays with its stuck thread, because no spare thread is left: which reports tell of that run. Until it
//! ends, each round moves what is due at this worker to others (step 1 of the [monitor](super)).

use std::time::{Duration, Instant};

use crate::{
    job::{JobRef, SeenHook},
    report::{self, LateName, LateNames, NoSpareThread, Retake, StuckRun},
    scheduler::{
        threads::{
            detached_round,
            detached_thread::hook_watch::{FoundCode, HookWatch},
            serve,
        },
        workers::shared::Shared,
    },
};

/// What was reported of one run.
#[derive(Default)]
pub(super) struct StaysStuck {
    /// The run is checked when it has lasted for this long.
    due_at: Duration,
    /// What was reported of the panic hook.
    hook: HookWatch,
}

impl StaysStuck {
    /// Whether the run, which has lasted for `held`, is to be checked: a check takes the lock of the worker's core.
    pub(super) fn is_due(&self, held: Duration) -> bool {
        held >= self.due_at
    }

    /// Reports that no spare thread is left, and what runs in which job: the worker's owner has been in this run for
    /// `held`. `running`: the job, if the owner is still in it, and its panic hook. A job that runs a panic hook is
    /// checked again until its own code is found to run: only a warning of a hook that blocks goes to stderr, and
    /// what the job does behind the hook is reported as its own.
    pub(super) fn check(
        &mut self,
        shared: &Shared,
        running: Option<(JobRef, SeenHook)>,
        held: Duration,
    ) {
        let bound = shared.config.stuck_after;
        self.due_at = Duration::MAX;
        let spare = shared.config.spare_threads;
        serve::report_no_spare_thread(shared, spare, NoSpareThread::WorkerIsStuck);
        let Some((job, hook)) = running else {
            return;
        };
        if detached_round::is_before_callbacks(job.header()) {
            // The callback that it begins may block.
            self.due_at = held + bound;
            return;
        }
        let name = LateName::of(job.header());
        let retake = Retake::Refused;
        let found = self.hook.check(hook);
        if found != FoundCode::Own {
            self.due_at = held + bound;
        }
        match found {
            FoundCode::Own => {
                let run = StuckRun {
                    held,
                    retake,
                    killed: None,
                    is_fork: detached_round::is_fork(shared, &job),
                };
                report::stuck(name, run, LateNames::none());
            }
            FoundCode::Hook => {
                self.hook.begin(held);
                report::panic_hook_runs(name, held, retake);
            }
            FoundCode::ReportedHook => {
                if let Some(ran) = self.hook.warn(held, bound) {
                    report::long_panic_hook(name, ran);
                }
                return;
            }
        }
        // A fork is no excuse, even one that computes: no thread is left for others.
        detached_round::note_offence(shared, &job, true, Instant::now());
    }
}
