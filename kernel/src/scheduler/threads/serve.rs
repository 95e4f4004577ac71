//! The life of a pool thread: it serves a worker, is a spare, serves again, until it retires.
//!
//! [`hand_off`] is how a worker gets a thread, at the start and whenever it is retaken.

#![allow(unsafe_code)]

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    biased_lock::Lease,
    memory, report,
    scheduler::{
        stackful::{
            pinned::PinnedQueue,
            stack_context::{self, Duty, Flow},
        },
        threads::{
            evict,
            pool::{self, Handoff, IdleAs, NoThread, PoolThread},
        },
        workers::{
            context::{self, Context},
            shared::Shared,
            worker::{ServeEnd, WorkerLoop},
        },
    },
    stack,
    sys::{Mutex, Ordering, lock},
};

/// A pool thread's own stack: its jobs run on others.
const BASE_STACK: usize = 256 << 10;

/// Gives a worker to an idle thread, or else to a new one. Any thread.
pub(crate) fn hand_off(shared: &Arc<Shared>, handoff: Handoff) -> Result<(), NoThread> {
    if let Some(member) = shared.pool.take_idle() {
        *lock(&member.offer) = Some(handoff);
        member.thread.unpark();
        shared.at_bound.store(false, Ordering::Relaxed);
        return Ok(());
    }
    let Some(number) = shared.pool.count_new(shared.most_threads()) else {
        return Err(NoThread {
            handoff,
            error: None,
        });
    };
    // The handoff travels in a shared place, so that it survives a thread that cannot start.
    let place = Arc::new(Mutex::new(Some(handoff)));
    let (taken, pool) = (place.clone(), shared.clone());
    let started = thread::Builder::new()
        .name(format!("{}-{number}", shared.config.name))
        .stack_size(BASE_STACK)
        .spawn(move || {
            let handoff = lock(&taken).take();
            serve(&pool, handoff);
        });
    match started {
        Ok(_detached) => {
            shared.at_bound.store(false, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => {
            shared.pool.uncount();
            let handoff = lock(&place)
                .take()
                .expect("the thread that would take it never started");
            Err(NoThread {
                handoff,
                error: Some(error),
            })
        }
    }
}

/// What a pool thread's loops share: they may be on several stacks, one after the other.
pub(crate) struct PoolService<'a> {
    shared: &'a Arc<Shared>,
    member: &'a Arc<PoolThread>,
    worker_loop: WorkerLoop<'a>,
}

impl Duty for PoolService<'_> {
    /// Waits for a worker if the thread owns none, and serves it until that ends.
    fn step(&self, _cx: &Context) -> Flow {
        if !self.worker_loop.is_held() {
            let Some(handoff) = await_handoff(self.shared, self.member) else {
                return Flow::End;
            };
            self.begin(&handoff);
        }
        match self.worker_loop.serve() {
            ServeEnd::Revoked => self.end_detached(),
            ServeEnd::Wanted => self.hand_off_on_request(),
            ServeEnd::Stopped => {
                self.worker_loop.end();
                Flow::End
            }
        }
    }
}

impl PoolService<'_> {
    fn begin(&self, handoff: &Handoff) {
        self.worker_loop
            .begin(&self.shared.workers[handoff.worker], handoff.lease);
    }

    /// The poll in which the thread was detached has ended.
    fn end_detached(&self) -> Flow {
        // None: this loop resumed on a stack that was suspended under a lease that has ended since.
        let Some((worker, lease)) = self.worker_loop.end() else {
            return Flow::Continue;
        };
        worker.core.end(lease);
        let number = self.shared.thread_number();
        match self.shared.detached.end(number) || self.member.pinned.has_pinned_jobs() {
            true => Flow::Continue,
            false => Flow::End,
        }
    }

    /// Hands the worker to a thread that wants one for its pinned jobs.
    fn hand_off_on_request(&self) -> Flow {
        let Some((worker, former)) = self.worker_loop.end() else {
            return Flow::Continue;
        };
        let handoff = renew_lease(self.shared, worker.index, former);
        worker.core.end(former);
        let handed = handoff.map(|handoff| hand_off(self.shared, handoff));
        if let Some(Err(refused)) = handed {
            self.begin(&refused.handoff);
        }
        Flow::Continue
    }
}

/// The life of a pool thread: serve, wait, serve again, until it retires or the runtime stops.
fn serve(shared: &Arc<Shared>, first: Option<Handoff>) {
    let member = Arc::new(PoolThread {
        pinned: Arc::new(PinnedQueue::new()),
        thread: thread::current(),
        offer: Mutex::new(first),
    });
    pool::set_pool_of(shared.id());
    context::with(|cx| {
        cx.set_shared(Arc::as_ptr(shared));
        cx.set_pinned(Arc::as_ptr(&member.pinned));
        let service = PoolService {
            shared,
            member: &member,
            worker_loop: WorkerLoop::new(cx, shared, &member.pinned),
        };
        stack_context::run_loop(cx, shared.stack_class(), &service);
        if shared.is_stopped() {
            // A job that held this thread beyond the deadline may have been queued once more.
            shared.cancel_in_workers();
            shared.cancel_injected();
        }
        evict::evict(shared, &member.pinned);
        if let Some(fork) = cx.take_spare_thread_fork() {
            // SAFETY: kept by this thread, and nothing forks here any longer.
            unsafe { fork.as_ref() }.give_back();
        }
        cx.set_pinned(std::ptr::null());
        cx.set_shared(std::ptr::null());
    });
    context::here().flush_stack();
    memory::flush();
    stack::flush();
    pool::set_pool_of(context::NO_RUNTIME);
    shared.pool.uncount();
    shared.thread_ended();
}

/// Replaces the lease of `worker`, which the calling thread owns by `lease` and is about to hand off. None: the worker
/// was retaken in the meantime.
pub(crate) fn renew_lease(shared: &Shared, worker: usize, lease: Lease) -> Option<Handoff> {
    let mut foreign = shared.workers[worker].core.enter_foreign();
    if !foreign.is_current(lease) {
        return None;
    }
    shared.workers[worker].set_running_none();
    Some(Handoff {
        worker,
        lease: foreign.revoke(),
    })
}

/// Waits in the pool until a worker is offered. None: the thread retires.
fn await_handoff(shared: &Arc<Shared>, member: &Arc<PoolThread>) -> Option<Handoff> {
    let retire_at = Instant::now() + shared.config.retire_after;
    loop {
        if let Some(handoff) = lock(&member.offer).take() {
            return Some(handoff);
        }
        if shared.is_stopped() {
            return None;
        }
        let idle_as = shared.pool.enlist(member, shared);
        wait_for_event(shared, member, idle_as, retire_at);
        if !shared.pool.delist(member) {
            // Another thread took this one from the list: its offer is there, or about to be.
            await_offer(member);
            continue;
        }
        if Instant::now() >= retire_at && !member.pinned.has_pinned_jobs() {
            return lock(&member.offer).take();
        }
    }
}

fn wait_for_event(shared: &Shared, member: &PoolThread, idle_as: IdleAs, retire_at: Instant) {
    loop {
        // A runnable job turns a spare into a thread that wants a worker; for the latter it changes nothing.
        let must_wake = lock(&member.offer).is_some()
            || shared.is_stopped()
            || (idle_as == IdleAs::Spare && member.pinned.has_runnable());
        let left = retire_at.saturating_duration_since(Instant::now());
        if must_wake || (left.is_zero() && !member.pinned.has_pinned_jobs()) {
            return;
        }
        match member.pinned.has_pinned_jobs() {
            true => thread::park_timeout(left.max(Duration::from_secs(1))),
            false => thread::park_timeout(left),
        }
    }
}

fn await_offer(member: &PoolThread) {
    while lock(&member.offer).is_none() {
        thread::park();
    }
}

/// All spare threads are in use: reports which jobs hold a thread. Once, until a handoff succeeds again.
pub(crate) fn report_no_spare_thread(shared: &Shared) {
    if !shared.at_bound.swap(true, Ordering::Relaxed) {
        report::no_spare_thread(shared.config.spare_threads, &shared.detached.jobs());
    }
}
