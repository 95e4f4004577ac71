//! A foreign thread in `block_on`: it parks, and meanwhile runs the jobs that are pinned to it.

use std::{
    any::type_name,
    cell::{Cell, OnceCell},
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
};

use weald_sync::hooks::Parker;

use crate::{
    FEATURES,
    scheduler::{
        stackful::{
            duties::RunPinned,
            pinned::PinnedQueue,
            stack_context,
            visit_run::{VisitRun, main_poll::MainFuture},
            wait::{
                Meanwhile,
                block::RECHECK,
                hold::{PinnedPart, is_hold_limit_over},
                panic_hook::{self, is_in_panic_hook},
            },
        },
        threads::{
            blocking_threads, evict,
            visits::{self, Polling},
        },
        workers::{context, shared::Shared},
    },
};

/// Runs `future` to its end on a thread that runs no job.
#[track_caller]
pub(super) fn wait_on_foreign_thread<F: Future>(
    shared: &Arc<Shared>,
    mut future: Pin<&mut F>,
    meanwhile: Meanwhile<'_>,
) -> F::Output {
    shared.process.assert_here();
    let parker = Parker::woken();
    let waker = parker.waker();
    let _waits = blocking_threads::wait_here();
    let main = MainFuture {
        site: Location::caller(),
        type_name: type_name::<F>(),
    };
    let visit = Visit::begin(shared, main);
    let cx = context::here();
    // On a stack of ours, there is another base further out, which runs the jobs pinned to this thread.
    let is_base = stack_context::root(cx).is_none();
    let is_main = is_base && matches!(meanwhile, Meanwhile::RunsPinned);
    let set_polling = |polling| visits::set_polling(shared, &visit.pinned, polling);
    let hook = OnceCell::new();
    let in_hook = || thread::panicking() && *hook.get_or_init(is_in_panic_hook);
    let part = meanwhile.part();
    let has_part = || part.as_ref().is_some_and(PinnedPart::is_runnable);
    // Caught, because the end of the visit unwinds the stacks that are suspended on this thread, and the thread must
    // not be unwinding itself then.
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let _outer = is_main.then(|| set_polling(Polling::Interrupted));
        loop {
            if parker.take() {
                let _polled = is_main.then(|| set_polling(Polling::Begins));
                if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker))
                {
                    return output;
                }
            }
            shared.process.assert_here();
            if FEATURES.driver.is_driving() {
                panic_hook::drive_until(&hook, &|| parker.is_woken());
                continue;
            }
            let has_work =
                || is_base && visit.pinned.has_runnable() && meanwhile.runs_pinned() && !in_hook();
            if has_work() {
                run_pinned(shared, &visit.pinned, &parker);
            }
            if part.as_ref().is_some_and(|part| part.run(shared)) {
                continue;
            }
            // Other threads may steal what it forked, as if it did not compute.
            let _parked = cx.fork_wait();
            while !parker.is_woken() && !has_work() && !has_part() {
                meanwhile.park_thread();
            }
        }
    }));
    drop(visit);
    ran.unwrap_or_else(|payload| resume_unwind(payload))
}

impl<'a> Meanwhile<'a> {
    fn runs_pinned(self) -> bool {
        match self {
            Meanwhile::RunsPinned => true,
            Meanwhile::Holds(awaited) => is_hold_limit_over(awaited, awaited.waits()),
        }
    }

    /// A part of what the thread waits for, which may have to run there.
    fn part(self) -> Option<PinnedPart<'a>> {
        match self {
            Meanwhile::RunsPinned => None,
            Meanwhile::Holds(awaited) => Some(PinnedPart::of(awaited)),
        }
    }

    fn park_thread(self) {
        match self {
            Meanwhile::RunsPinned => thread::park(),
            // No wake reports that the work has begun to wait.
            Meanwhile::Holds(_) => thread::park_timeout(RECHECK),
        }
    }
}

/// Runs the pinned jobs that are runnable now, each once, and then more while the future that the thread waits for is
/// not woken.
fn run_pinned(shared: &Shared, pinned: &PinnedQueue, parker: &Parker) {
    let due = Cell::new(pinned.len());
    let is_over = || match due.get() {
        0 => parker.is_woken(),
        left => {
            due.set(left - 1);
            false
        }
    };
    let cx = context::here();
    let _polling = visits::set_polling(shared, pinned, Polling::Interrupted);
    let outer = context::nested_run::OuterRun::new();
    let _nested = cx.begin_nested(&outer);
    stack_context::run_loop(cx, shared.stack_class(), &RunPinned(&is_over));
}

/// A foreign thread's time inside `block_on`: it belongs to the runtime, and has a pinned queue. An inner `block_on` of
/// the same runtime shares the queue of the outer one, so that the outer one's jobs continue.
struct Visit<'a> {
    shared: &'a Arc<Shared>,
    pinned: Arc<PinnedQueue>,
    /// What the context held before; none for an inner visit.
    before: Option<(*const Shared, *const PinnedQueue)>,
}

impl<'a> Visit<'a> {
    fn begin(shared: &'a Arc<Shared>, main: MainFuture) -> Visit<'a> {
        let here = context::here();
        let is_inner = here.shared().is_some_and(|outer| outer.id() == shared.id());
        if let Some(pinned) = here.pinned().filter(|_| is_inner) {
            return Visit {
                shared,
                pinned,
                before: None,
            };
        }
        let pinned = Arc::new(PinnedQueue::of_visit(VisitRun::here(main)));
        shared.pool.enter_visit(pinned.clone());
        let before = (
            here.set_shared(Arc::as_ptr(shared)),
            here.set_pinned(Arc::as_ptr(&pinned)),
        );
        Visit {
            shared,
            pinned,
            before: Some(before),
        }
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        if let Some((shared, pinned)) = self.before {
            // In a forked process: what the jobs hold is the other one's.
            if self.shared.process.is_here() {
                evict::evict(self.shared, &self.pinned);
                self.shared.pool.leave_visit(&self.pinned);
            }
            context::here().set_shared(shared);
            context::here().set_pinned(pinned);
        }
    }
}
