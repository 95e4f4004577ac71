//! The OS threads of a runtime: who holds a right, who stands by, who wants one.
//!
//! Invariants:
//! - A right is in exactly one place: held by a serving thread, offered to one, or being handed over.
//! - A thread that stands by is in `spares` or in `wanting`, never in both.
//! - A thread on which local jobs live never retires: they may run nowhere else.
//!
//! Stand-ins are made when a right needs a holder and no spare is there, up to the bound; a spare that
//! nobody needed for a while retires.

use std::{
    sync::Arc,
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::{
    context,
    gate::Epoch,
    local::{self, Home},
    memory,
    shared::Shared,
    stack,
    strand::{self, Duty, Flow},
    sys::{AtomicUsize, Mutex, Ordering, lock},
    worker::{End, Tenure},
};

/// A crew thread's own stack: its jobs run on others.
const BASE_STACK: usize = 256 << 10;

/// The right to a worker, on its way to a thread.
#[must_use = "a right that is dropped is a worker that nobody serves"]
pub(crate) struct Right {
    pub(crate) worker: usize,
    pub(crate) epoch: Epoch,
}

/// One thread of the crew.
struct Member {
    home: Arc<Home>,
    thread: Thread,
    offer: Mutex<Option<Right>>,
}

/// All threads of a runtime.
pub(crate) struct Crew {
    inner: Mutex<Inner>,
    /// How many threads want a right; the length of `wanting`, for workers that look.
    wanted: AtomicUsize,
}

struct Inner {
    spares: Vec<Arc<Member>>,
    wanting: Vec<Arc<Member>>,
    /// Threads that have started and not ended.
    threads: usize,
}

/// In which list a thread is that stands by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StandsBy {
    AsSpare,
    Wanting,
}

/// No thread can be had for a right: as many stand-ins as allowed are there, or the system refuses.
pub(crate) struct NoThread {
    pub(crate) right: Right,
    /// Why the system refused, if it was asked.
    pub(crate) error: Option<std::io::Error>,
}

impl Crew {
    pub(crate) fn new() -> Crew {
        Crew {
            inner: Mutex::new(Inner {
                spares: Vec::new(),
                wanting: Vec::new(),
                threads: 0,
            }),
            wanted: AtomicUsize::new(0),
        }
    }

    /// Whether a thread wants a right. Any thread.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) > 0
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        lock(&self.inner).threads
    }

    /// Whether a right could be given to a thread now, standing by or new.
    pub(crate) fn has_stand_in(&self, shared: &Shared) -> bool {
        let inner = lock(&self.inner);
        let standing_by = inner.spares.len() + inner.wanting.len();
        standing_by > 0 || inner.threads < shared.most_threads()
    }

    /// Wakes every thread that stands by, so that it sees that the runtime stops.
    pub(crate) fn dismiss(&self) {
        let inner = lock(&self.inner);
        for member in inner.spares.iter().chain(&inner.wanting) {
            member.thread.unpark();
        }
    }

    /// Takes a thread that stands by: first one that wants a right, then the latest spare.
    fn take_standing_by(&self) -> Option<Arc<Member>> {
        let mut inner = lock(&self.inner);
        if let Some(member) = inner.wanting.pop() {
            self.wanted.store(inner.wanting.len(), Ordering::Release);
            return Some(member);
        }
        inner.spares.pop()
    }

    fn stand_by(&self, member: &Arc<Member>, shared: &Shared) -> StandsBy {
        let mut inner = lock(&self.inner);
        if !member.home.has_runnable() {
            inner.spares.push(member.clone());
            return StandsBy::AsSpare;
        }
        inner.wanting.push(member.clone());
        self.wanted.store(inner.wanting.len(), Ordering::Release);
        drop(inner);
        // A worker that sleeps looks at what is wanted when it wakes.
        shared.wake_one();
        StandsBy::Wanting
    }

    /// Leaves whichever list the member is in. False if it is in none: an offer is under way.
    fn step_forward(&self, member: &Arc<Member>) -> bool {
        let mut inner = lock(&self.inner);
        let before = inner.spares.len() + inner.wanting.len();
        inner.spares.retain(|other| !Arc::ptr_eq(other, member));
        inner.wanting.retain(|other| !Arc::ptr_eq(other, member));
        self.wanted.store(inner.wanting.len(), Ordering::Release);
        inner.spares.len() + inner.wanting.len() < before
    }
}

/// Gives `right` to a thread that stands by, else to a new one. Any thread.
pub(crate) fn hand_over(shared: &Arc<Shared>, right: Right) -> Result<(), NoThread> {
    if let Some(member) = shared.crew.take_standing_by() {
        *lock(&member.offer) = Some(right);
        member.thread.unpark();
        shared.at_bound.store(false, Ordering::Relaxed);
        return Ok(());
    }
    let number = {
        let mut inner = lock(&shared.crew.inner);
        if inner.threads >= shared.most_threads() {
            return Err(NoThread { right, error: None });
        }
        inner.threads += 1;
        inner.threads
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
            lock(&shared.crew.inner).threads -= 1;
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

impl Service<'_> {
    /// One step of the loop: stand by until a right is there, or serve it until that ends.
    pub(crate) fn step(&self) -> Flow {
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
        strand::run_loop(cx, shared.stack_class(), Duty::Crew(&service));
        if shared.is_stopped() {
            // A job that held this thread beyond the deadline may have been queued once more.
            shared.cancel_in_workers();
            shared.cancel_injected();
        }
        local::evict(shared, &member.home);
        if let Some(lane) = cx.take_spare_lane() {
            lane.unclaim();
        }
        cx.set_home(std::ptr::null());
        cx.set_shared(std::ptr::null());
    });
    context::here().cool();
    memory::flush();
    stack::flush();
    let mut inner = lock(&shared.crew.inner);
    inner.threads -= 1;
    drop(inner);
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
