//! The duties of loops that run in the middle of another run: to run the pinned jobs of the thread, or to run one job.

use std::cell::Cell;

use crate::{
    job::runnable::Runnable,
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            stack_context::{self, Duty, Flow},
        },
        threads::visits,
        workers::{
            context::{self, Context},
            run,
        },
    },
};

/// Runs the jobs that are pinned to the thread, until none is runnable or the closure returns true.
pub(crate) struct RunPinned<'a>(pub(crate) &'a dyn Fn() -> bool);

impl Duty for RunPinned<'_> {
    fn step(&self, cx: &Context) -> Flow {
        let is_over = self.0;
        let visit = visits::here(cx);
        match cx
            .pinned_here()
            .filter(|_| !is_over())
            .and_then(PinnedQueue::pop)
        {
            Some(job) => {
                if let Some(visit) = visit {
                    visits::begin_run(visit, job.ptr());
                }
                run::run_without_worker(cx, job, budget(cx));
                Flow::Continue
            }
            None => {
                visit.map(visits::end_run);
                Flow::End
            }
        }
    }
}

/// Runs one job.
struct RunOne(Cell<Option<Runnable>>);

impl Duty for RunOne {
    fn step(&self, cx: &Context) -> Flow {
        let Some(job) = self.0.take() else {
            return Flow::End;
        };
        run::run_without_worker(cx, job, budget(cx));
        Flow::Continue
    }
}

fn budget(cx: &Context) -> u32 {
    cx.shared()
        .map_or(u32::MAX, |shared| shared.config.poll_budget)
}

/// Runs `job` once, nested in the run of the calling stack. It runs on another stack, so that it can be suspended while
/// the caller continues.
pub(crate) fn run_nested(cx: &Context, class: u32, job: Runnable) {
    let outer = context::nested_run::OuterRun::new();
    let _nested = cx.begin_nested(&outer);
    stack_context::run_loop(cx, class, &RunOne(Cell::new(Some(job))));
}
