//! The life of a thread of the pool: it serves a worker, stands by, serves again, until it retires.

#![allow(unsafe_code)]

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crate::{
    biased_lock::Epoch,
    memory, report,
    scheduler::{
        stackful::{
            pinned::Home,
            stack_context::{self, Duty, Flow},
        },
        threads::{
            evict,
            pool::{Member, NoThread, Right, StandsBy},
        },
        workers::{
            context::{self, Context},
            shared::Shared,
            worker::{End, Tenure},
        },
    },
    stack,
    sys::{Mutex, Ordering, lock},
};

/// A crew thread's own stack: its jobs run on others.
const BASE_STACK: usize = 256 << 10;

/// Gives `right` to a thread that stands by, else to a new one. Any thread.
pub(crate) fn hand_over(shared: &Arc<Shared>, right: Right) -> Result<(), NoThread> {
    if let Some(member) = shared.crew.take_standing_by() {
        *lock(&member.offer) = Some(right);
        member.thread.unpark();
        shared.at_bound.store(false, Ordering::Relaxed);
        return Ok(());
    }
    let Some(number) = shared.crew.count_new(shared.most_threads()) else {
        return Err(NoThread { right, error: None });
    };
    // The right travels in a shared place, so that it survives a thread that cannot start.
    let place = Arc::new(Mutex::new(Some(right)));
    let (taken, crew) = (place.clone(), shared.clone());
    let started = thread::Builder::new()
        .name(format!("{}-{number}", shared.config.name))
        .stack_size(BASE_STACK)
        .spawn(move || {
            let right = lock(&taken).take();
            serve(&crew, right);
        });
    match started {
        Ok(_detached) => {
            shared.at_bound.store(false, Ordering::Relaxed);
            Ok(())
        }
        Err(error) => {
            shared.crew.uncount();
            let right = lock(&place)
                .take()
                .expect("the thread that would take it never started");
            Err(NoThread {
                right,
                error: Some(error),
            })
        }
    }
}

/// What a crew thread's loops share: they may be on several stacks, one after the other.
pub(crate) struct Service<'a> {
    shared: &'a Arc<Shared>,
    member: &'a Arc<Member>,
    tenure: Tenure<'a>,
}

impl Duty for Service<'_> {
    /// Stands by until a right is there, or serves it until that ends.
    fn step(&self, _cx: &Context) -> Flow {
        if !self.tenure.is_held() {
            let Some(right) = await_right(self.shared, self.member) else {
                return Flow::End;
            };
            self.begin(&right);
        }
        match self.tenure.serve() {
            End::Lost => self.lost(),
            End::Wanted => self.give_to_who_wants(),
            End::Stopped => {
                self.tenure.end();
                Flow::End
            }
        }
    }
}

impl Service<'_> {
    fn begin(&self, right: &Right) {
        self.tenure
            .begin(&self.shared.workers[right.worker], right.epoch);
    }

    fn lost(&self) -> Flow {
        // Without a right: this loop goes on from a stack that was left under an earlier one.
        let Some((worker, epoch)) = self.tenure.end() else {
            return Flow::Continue;
        };
        worker.gate.end(epoch);
        let number = self.shared.thread_number();
        match self.shared.relieved.end(number) || self.member.home.has_residents() {
            true => Flow::Continue,
            false => Flow::End,
        }
    }

    fn give_to_who_wants(&self) -> Flow {
        let Some((worker, former)) = self.tenure.end() else {
            return Flow::Continue;
        };
        let right = renew(self.shared, worker.index, former);
        worker.gate.end(former);
        let handed = right.map(|right| hand_over(self.shared, right));
        if let Some(Err(refused)) = handed {
            self.begin(&refused.right);
        }
        Flow::Continue
    }
}

/// The life of a crew thread: serve, stand by, serve again, until it retires or the runtime stops.
fn serve(shared: &Arc<Shared>, first: Option<Right>) {
    let member = Arc::new(Member {
        home: Arc::new(Home::new()),
        thread: thread::current(),
        offer: Mutex::new(first),
    });
    context::with(|cx| {
        cx.set_shared(Arc::as_ptr(shared));
        cx.set_home(Arc::as_ptr(&member.home));
        let service = Service {
            shared,
            member: &member,
            tenure: Tenure::new(cx, shared, &member.home),
        };
        stack_context::run_loop(cx, shared.stack_class(), &service);
        if shared.is_stopped() {
            // A job that held this thread beyond the deadline may have been queued once more.
            shared.cancel_in_workers();
            shared.cancel_injected();
        }
        evict::evict(shared, &member.home);
        if let Some(fork) = cx.take_spare_root_fork() {
            // SAFETY: kept by this thread, and nothing forks here any more.
            unsafe { fork.as_ref() }.give_back();
        }
        cx.set_home(std::ptr::null());
        cx.set_shared(std::ptr::null());
    });
    context::here().cool();
    memory::flush();
    stack::flush();
    shared.crew.uncount();
    shared.thread_ended();
}

/// The right to `worker`, renewed by the thread that held it since `epoch` and gives it up. None: it
/// was taken over in the meantime.
pub(crate) fn renew(shared: &Shared, worker: usize, epoch: Epoch) -> Option<Right> {
    let mut outsider = shared.workers[worker].gate.enter_outside();
    if !outsider.is_current(epoch) {
        return None;
    }
    shared.workers[worker].set_running_none();
    Some(Right {
        worker,
        epoch: outsider.take_over(),
    })
}

/// Stands by until a right is offered. None: the thread retires.
fn await_right(shared: &Arc<Shared>, member: &Arc<Member>) -> Option<Right> {
    let retire_at = Instant::now() + shared.config.retire_after;
    loop {
        if let Some(right) = lock(&member.offer).take() {
            return Some(right);
        }
        if shared.is_stopped() {
            return None;
        }
        let stands_by = shared.crew.stand_by(member, shared);
        wait_for_news(shared, member, stands_by, retire_at);
        if !shared.crew.step_forward(member) {
            // Somebody took this thread from the list: its offer is there, or about to be.
            continue_until_offered(member);
            continue;
        }
        if Instant::now() >= retire_at && !member.home.has_residents() {
            return lock(&member.offer).take();
        }
    }
}

fn wait_for_news(shared: &Shared, member: &Member, stands_by: StandsBy, retire_at: Instant) {
    loop {
        // What came since it stood by is news only to a spare.
        let news = lock(&member.offer).is_some()
            || shared.is_stopped()
            || (stands_by == StandsBy::AsSpare && member.home.has_runnable());
        let left = retire_at.saturating_duration_since(Instant::now());
        if news || (left.is_zero() && !member.home.has_residents()) {
            return;
        }
        match member.home.has_residents() {
            true => thread::park_timeout(left.max(Duration::from_secs(1))),
            false => thread::park_timeout(left),
        }
    }
}

fn continue_until_offered(member: &Member) {
    while lock(&member.offer).is_none() {
        thread::park();
    }
}

/// All stand-ins are in use: reports which jobs hold a thread. Once, until a stand-in is free again.
pub(crate) fn report_no_stand_in(shared: &Shared) {
    if !shared.at_bound.swap(true, Ordering::Relaxed) {
        report::no_stand_in(shared.config.stand_ins, &shared.relieved.jobs());
    }
}
