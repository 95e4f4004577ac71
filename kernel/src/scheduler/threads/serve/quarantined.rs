//! The part of the life of a pool thread in which it runs jobs of the
//! [quarantine](crate::scheduler::threads::quarantine), without a worker.

#![allow(unsafe_code)]

use std::time::Instant;

use crate::{
    job::JobRef,
    scheduler::{
        stackful::stack_context::Flow,
        threads::{
            detached_round,
            detached_run::{Activity, Cause, DetachedRun, RunningCode},
            senders::Sends,
            serve::{PoolService, take_orphan},
        },
        workers::{ready, serve_end::ServeEnd},
    },
};

impl PoolService<'_> {
    /// Runs jobs of the quarantine, until there is none, or one is pinned to this thread, or a worker needs it more.
    pub(super) fn run_quarantined(&self) -> Flow {
        self.shared.quarantine.end_start();
        // Another thread may have taken the job for which this one was started, beyond the share.
        let mut may_be_beyond = true;
        let mut has_run_relief = false;
        while !self.shared.is_stopped() {
            if let Some(orphan) = take_orphan(self.shared) {
                self.begin(&orphan);
                break;
            }
            let takes_any = self.takes_any(may_be_beyond);
            let next = match takes_any {
                true => self.shared.quarantine.pop(),
                false => self.shared.quarantine.pop_tried(),
            };
            let Some(job) = next else {
                if takes_any && self.lingers() {
                    continue;
                }
                break;
            };
            has_run_relief |= job.header().relieves();
            may_be_beyond = has_run_relief;
            self.tried
                .set(self.shared.suspects.tried_work(job.header()));
            let (ptr, since) = (job.ptr(), Instant::now());
            let run = DetachedRun {
                // SAFETY: the runnable keeps the job alive.
                job: unsafe { JobRef::new_for(ptr) },
                activity: Activity::Compute,
                cause: Cause::Quarantined,
                since,
                sends: Sends::here(),
                code: RunningCode::Own,
            };
            let number = self.shared.thread_number();
            self.shared.detached.add(number, run);
            self.in_quarantine.set(true);
            // The thread owns no worker, so the run ends like one whose lease was revoked.
            let end = self.worker_loop.run_from(job);
            ready::inject_all(self.shared, self.member.outbox.take());
            if self.worker_loop.is_held() {
                // The job had its stack suspended, and ended while the thread served a worker.
                return match end {
                    Err(ServeEnd::Stopped) => Flow::End,
                    _ => Flow::Continue,
                };
            }
            if self.in_quarantine.get() && since.elapsed() < self.shared.config.stuck_after / 2 {
                // SAFETY: the list of detached threads keeps the job alive until the run is taken out of it below.
                unsafe { ptr.header() }.prove();
            }
            if self.end_quarantined_run() == Flow::End {
                return Flow::End;
            }
            if self.member.pinned.has_pinned_jobs() {
                break;
            }
        }
        Flow::Continue
    }

    /// Waits for a moment for another job of the quarantine, unless others need the thread. Whether there is one.
    fn lingers(&self) -> bool {
        let (shared, pinned) = (self.shared, &self.member.pinned);
        !pinned.has_pinned_jobs()
            && shared.suspects.is_any()
            && shared.pool.has_spare_thread(shared)
            && shared.quarantine.linger(shared.workers.len())
    }

    /// Takes the thread out of the list of detached threads, if a job of the quarantine put it there. The job's run is
    /// over, or the job waits with its stack.
    pub(super) fn end_quarantined_run(&self) -> Flow {
        if !self.in_quarantine.take() {
            return Flow::Continue;
        }
        if let Some(work) = self.tried.take() {
            self.shared.suspects.trust(work);
        }
        self.end_detached_run()
    }

    /// Whether the thread may take any job of the quarantine. Jobs that are tried, or that others wait for, get threads
    /// that are left for workers; such a thread takes only further ones of these.
    fn takes_any(&self, may_be_beyond: bool) -> bool {
        let shared = self.shared;
        let may_be_beyond = may_be_beyond || shared.suspects.are_all();
        !may_be_beyond || detached_round::is_within_share(shared)
    }
}
