//! The life of a pool thread: it serves a worker, is a spare, serves again, until it retires or the runtime stops.
//!
//! [`hand_off`] is how a worker gets a thread, at the start and whenever it is retaken. A spare thread may also be
//! given the jobs of the [`quarantine`](crate::scheduler::threads::quarantine), which it runs without a worker.

#![allow(unsafe_code)]

mod quarantined;

use std::{
    cell::Cell,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    biased_lock::Lease,
    memory,
    report::{self, NoSpareThread},
    scheduler::{
        stackful::stack_context::{self, Duty, Flow},
        threads::{
            detached_end,
            detached_run::ListedRun,
            evict,
            job_kind::CurrentWork,
            pool::{self, Handoff, IdleAs, NoThread, Offer, PinnedJobs, PoolThread},
            round_memory,
        },
        workers::{
            context::{self, Context},
            ready,
            search::sleep,
            serve_end::ServeEnd,
            shared::Shared,
            worker::WorkerLoop,
        },
    },
    stack::{self, signal_stack::SignalStack},
    sys::{Mutex, Ordering, lock},
};

/// A pool thread's own stack: its jobs run on others.
const BASE_STACK: usize = 256 << 10;

/// Gives a worker to an idle thread, or else to a new one. Any thread.
pub(crate) fn hand_off(shared: &Arc<Shared>, handoff: Handoff) -> Result<(), NoThread> {
    if let Some(member) = shared.pool.take_idle() {
        member.accept(Offer::Worker(handoff));
        return Ok(());
    }
    let Some(number) = shared.pool.count_new(shared.most_threads()) else {
        return Err(NoThread {
            handoff,
            error: None,
        });
    };
    match start_thread(shared, number, Offer::Worker(handoff)) {
        Ok(()) => Ok(()),
        Err((Offer::Worker(handoff), error)) => Err(NoThread {
            handoff,
            error: Some(error),
        }),
        Err((Offer::Quarantine, _)) => report::impossible("a thread refused another offer"),
    }
}

/// Takes the worker that has waited longest for a thread. The list has room for all workers.
fn take_orphan(shared: &Shared) -> Option<Handoff> {
    let mut orphans = lock(&shared.orphans);
    (!orphans.is_empty()).then(|| orphans.remove(0))
}

/// The worker at this place of the list of orphans, if the list is that long.
pub(super) fn orphan(shared: &Shared, index: usize) -> Option<usize> {
    lock(&shared.orphans).get(index).map(|orphan| orphan.worker)
}

/// Tries again to give threads to the workers in the list. Called by the monitor. Under the lock, so that a thread of
/// the quarantine that looks for one meanwhile does not miss it.
pub(super) fn hand_off_orphans(shared: &Arc<Shared>) {
    let mut orphans = lock(&shared.orphans);
    for _ in 0..orphans.len() {
        let handoff = orphans.remove(0);
        if let Err(refused) = hand_off(shared, handoff) {
            orphans.push(refused.handoff);
        }
    }
}

/// Why no thread could be had.
pub(super) enum NoQuarantineThread {
    AtBound,
    /// The system refused one.
    Refused(std::io::Error),
}

/// Lets a thread run the jobs of the quarantine: a spare one without pinned jobs, or else a new one, or else (at the
/// bound) a spare one with pinned jobs, which a job that blocks then holds up. Called by the monitor.
pub(super) fn start_quarantine(shared: &Arc<Shared>) -> Result<(), NoQuarantineThread> {
    shared.quarantine.begin_start();
    let given = give_quarantine(shared);
    if given.is_err() {
        shared.quarantine.end_start();
    }
    given
}

fn give_quarantine(shared: &Arc<Shared>) -> Result<(), NoQuarantineThread> {
    if let Some(member) = shared.pool.take_spare(PinnedJobs::No) {
        member.accept(Offer::Quarantine);
        return Ok(());
    }
    if let Some(number) = shared.pool.count_new(shared.most_threads()) {
        let started = start_thread(shared, number, Offer::Quarantine);
        return started.map_err(|(_, error)| NoQuarantineThread::Refused(error));
    }
    let member = shared.pool.take_spare(PinnedJobs::Any);
    let member = member.ok_or(NoQuarantineThread::AtBound)?;
    member.accept(Offer::Quarantine);
    Ok(())
}

/// Starts the thread with this number in the pool, which was counted before. Returns the offer if the system refuses.
fn start_thread(
    shared: &Arc<Shared>,
    number: usize,
    offer: Offer,
) -> Result<(), (Offer, std::io::Error)> {
    // To start a thread takes memory, and without it the standard library ends the program.
    if !round_memory::is_enough_for_thread() {
        shared.pool.uncount();
        return Err((offer, std::io::ErrorKind::OutOfMemory.into()));
    }
    // The offer is in shared memory, so that it is not lost if the thread cannot start.
    let place = Arc::new(Mutex::new(Some(offer)));
    let (taken, pool) = (place.clone(), shared.clone());
    let started = thread::Builder::new()
        .name(format!("{}-{number}", shared.config.name))
        .stack_size(BASE_STACK)
        .spawn(move || {
            let offer = lock(&taken).take();
            serve(&pool, offer);
        });
    started.map(drop).map_err(|error| {
        shared.pool.uncount();
        let offer = lock(&place).take();
        (
            offer.expect("the thread that would take it never started"),
            error,
        )
    })
}

/// What a pool thread's loops share: they may be on several stacks, one after the other.
pub(crate) struct PoolService<'a> {
    shared: &'a Arc<Shared>,
    member: &'a Arc<PoolThread>,
    worker_loop: WorkerLoop<'a>,
    /// Whether the thread is in the list of detached threads because of a job of the quarantine.
    in_quarantine: Cell<bool>,
    /// What that job does, if its code is trusted once the run ends or comes to a wait.
    tried: Cell<Option<CurrentWork>>,
}

impl Duty for PoolService<'_> {
    /// Waits for a worker if the thread owns none, and serves it until that ends.
    fn step(&self, _cx: &Context) -> Flow {
        ready::inject_all(self.shared, self.member.outbox.take());
        // If a job of the quarantine waits with its stack, this step is the first of a new loop.
        if self.end_quarantined_run() == Flow::End {
            return Flow::End;
        }
        if !self.worker_loop.is_held() {
            match await_offer(self.shared, self.member) {
                None => return Flow::End,
                Some(Offer::Quarantine) => return self.run_quarantined(),
                Some(Offer::Worker(handoff)) => self.begin(&handoff),
            }
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
        let trims_seen = self.worker_loop.trims_seen.get();
        self.shared.trims.note_seen(handoff.worker, trims_seen);
        self.worker_loop
            .begin(&self.shared.workers[handoff.worker], handoff.lease);
    }

    /// The thread is no longer detached. It ends if its priority stays lowered, unless jobs are pinned to it.
    fn end_detached_run(&self) -> Flow {
        let listed = ListedRun::OfThread(self.shared.thread_number());
        let may_serve = detached_end::end(self.shared, listed);
        match may_serve || self.member.pinned.has_pinned_jobs() {
            true => Flow::Continue,
            false => Flow::End,
        }
    }

    /// The poll in which the thread was detached has ended.
    fn end_detached(&self) -> Flow {
        // None: this loop resumed on a stack that was suspended under a lease that has ended since.
        let Some((worker, lease)) = self.worker_loop.end() else {
            return Flow::Continue;
        };
        // SAFETY: *owner*: this loop had the lease, which was revoked, and has just forgotten it.
        unsafe { worker.core.end(lease) };
        self.end_detached_run()
    }

    /// Hands the worker to a thread that wants one for its pinned jobs.
    fn hand_off_on_request(&self) -> Flow {
        let Some((worker, former)) = self.worker_loop.end() else {
            return Flow::Continue;
        };
        let handoff = renew_lease(self.shared, worker.index, former);
        // SAFETY: *owner*: this loop had the lease and has forgotten it; it is revoked by now, here or by the monitor.
        unsafe { worker.core.end(former) };
        let handed = handoff.map(|handoff| hand_off(self.shared, handoff));
        if let Some(Err(refused)) = handed {
            self.begin(&refused.handoff);
        }
        Flow::Continue
    }
}

/// While it lives, the context of the calling thread names its runtime and what it has in the pool. Dropping it takes
/// all of that out, even when a defect unwinds the thread: destructors of thread-local values run later than those of
/// what the context named, and may wake jobs.
struct Identity<'a>(&'a Context);

impl<'a> Identity<'a> {
    fn assume(cx: &'a Context, shared: &'a Arc<Shared>, member: &'a PoolThread) -> Identity<'a> {
        cx.set_shared(Arc::as_ptr(shared));
        cx.set_pinned(Arc::as_ptr(&member.pinned));
        cx.set_outbox(Arc::as_ptr(&member.outbox));
        Identity(cx)
    }
}

impl Drop for Identity<'_> {
    fn drop(&mut self) {
        // Both are set only if the thread unwinds.
        self.0.clear_worker();
        self.0.set_job(None);
        self.0.set_outbox(std::ptr::null());
        self.0.set_pinned(std::ptr::null());
        self.0.set_shared(std::ptr::null());
    }
}

fn serve(shared: &Arc<Shared>, first: Option<Offer>) {
    let _signal_stack = SignalStack::provide();
    sleep::wake_on_time();
    // It may stay lowered.
    let _is_normal = shared.detached.begin();
    let member = Arc::new(PoolThread::here(shared.thread_number(), first));
    let _reports = shared.subscriber.enter();
    pool::set_pool_of(shared.id());
    context::with(|cx| {
        let identity = Identity::assume(cx, shared, &member);
        let membership = shared.pool.enter(&member);
        let service = PoolService {
            shared,
            member: &member,
            worker_loop: WorkerLoop::new(cx, shared, &member.pinned),
            in_quarantine: Cell::new(false),
            tried: Cell::new(None),
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
        cx.set_outbox(std::ptr::null());
        drop(membership);
        ready::inject_all(shared, member.outbox.take());
        drop(identity);
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
    // Until its next owner looks around.
    shared.workers[worker].sharing.share();
    Some(Handoff {
        worker,
        lease: foreign.revoke(),
    })
}

/// Waits in the pool for an offer. None: the thread retires.
fn await_offer(shared: &Arc<Shared>, member: &Arc<PoolThread>) -> Option<Offer> {
    let retire_at = Instant::now() + shared.config.retire_after;
    loop {
        if let Some(offer) = lock(&member.offer).take() {
            return Some(offer);
        }
        if shared.is_stopped() {
            return None;
        }
        let idle_as = shared.pool.enlist(member, shared);
        wait_for_event(shared, member, idle_as, retire_at);
        if !shared.pool.delist(member) {
            // Another thread took this one from the list: its offer is there, or about to be.
            await_promised(member);
            continue;
        }
        if Instant::now() >= retire_at && !member.pinned.has_pinned_jobs() {
            return lock(&member.offer).take();
        }
    }
}

fn wait_for_event(shared: &Shared, member: &PoolThread, idle_as: IdleAs, retire_at: Instant) {
    loop {
        // A runnable pinned job turns a spare thread into one that wants a worker. For a thread that wants one already
        // it changes nothing.
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

fn await_promised(member: &PoolThread) {
    while lock(&member.offer).is_none() {
        thread::park();
    }
}

/// The system refused a thread for the quarantine: reports it, once until there is a thread again.
pub(super) fn report_refused_thread(shared: &Shared, error: &std::io::Error) {
    if !shared.at_bound.swap(true, Ordering::Relaxed) {
        report::no_thread(Some(error));
    }
}

/// All spare threads are in use, or all `bound` of the quarantine: reports which jobs hold them. Reports it again only
/// after some were free and no job waited for one.
pub(crate) fn report_no_spare_thread(shared: &Shared, bound: usize, so: NoSpareThread) {
    if !shared.at_bound.swap(true, Ordering::Relaxed) {
        report::no_spare_thread(bound, so, shared.detached.names());
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
