//! The last step of a search: a worker sleeps, on the seat of the reactor or parked, until it is woken.

use std::{
    thread::{self, Thread},
    time::{Duration, Instant},
};

use crate::scheduler::workers::search::sees_work;
use crate::{
    biased_lock::Lost,
    queue::sleepers::Before,
    reactor::{Batch, poller_lock::Seated},
    scheduler::workers::{shared::Shared, worker::Tenure},
    sys::Ordering,
};

/// What it takes to wake a sleeping worker.
pub(crate) enum Sleeper {
    /// It parks.
    Parks(Thread),
    /// It waits in the reactor.
    Sits,
}

impl Sleeper {
    /// Ends the sleep. Called with what [`crate::queue::sleepers`] returned, once.
    pub(crate) fn wake(self, shared: &Shared) {
        match self {
            Sleeper::Parks(thread) => thread.unpark(),
            Sleeper::Sits => shared.reactor.notify(),
        }
    }
}

/// Sleeps until there is work, a timer is due, the reactor reports something, or the runtime has news.
/// The worker searches after it.
pub(crate) fn sleep(tenure: &Tenure<'_>) -> Result<(), Lost> {
    let (shared, worker) = (tenure.shared, tenure.worker());
    let seated = shared.reactor.sit_down();
    let sleeper = match &seated {
        Some(_) => Sleeper::Sits,
        None => Sleeper::Parks(thread::current()),
    };
    let from = match tenure.searching.get() {
        true => Before::Searching,
        false => Before::Running,
    };
    shared.idle.announce(worker.index, sleeper, from);
    // After the announcement: an earlier timer or callback from outside finds this worker asleep and wakes
    // it, and so does who forks.
    let inside = tenure.enter()?;
    let deadline = inside.wheel.next_tick();
    let callbacks = !inside.callbacks.is_empty() || !worker.arrivals.is_empty();
    drop(inside);
    let deadline = deadline.map(|tick| shared.clock.start_of(tick));
    let forks = tenure.patience.look(shared);
    let deadline = forks.deadline(deadline);
    let mut batch = tenure.batch.take();
    let lacks_me = seated.is_none() && shared.reactor.lacks_a_sleeper();
    let no_work = !callbacks && !sees_work(shared) && !forks.sees_work(shared) && !lacks_me;
    if no_work && shared.trims.load(Ordering::Acquire) == tenure.trims_seen.get() {
        match &seated {
            Some(seated) => sit(tenure, seated, deadline, &mut batch),
            None => park(tenure, deadline),
        }
    }
    // The seat first: who is awake is not on it.
    drop(seated);
    shared.idle.retract(worker.index);
    tenure.searching.set(true);
    shared.monitor.worker_woke();
    // Only now, so that the jobs that this wakes wake no other worker for themselves.
    shared.reactor.handle(&mut batch);
    tenure.batch.set(batch);
    Ok(())
}

/// How long a sleep may still last; none: it is over.
fn left(tenure: &Tenure<'_>, deadline: Option<Instant>) -> Option<Option<Duration>> {
    let shared = tenure.shared;
    let is_news = shared.is_stopped() || shared.crew.is_wanted() || tenure.home.has_runnable();
    if is_news || !shared.idle.is_asleep(tenure.worker().index) {
        return None;
    }
    match deadline.map(|deadline| deadline.saturating_duration_since(shared.clock.now())) {
        Some(Duration::ZERO) => None,
        left => Some(left),
    }
}

fn park(tenure: &Tenure<'_>, deadline: Option<Instant>) {
    while let Some(left) = left(tenure, deadline) {
        match left {
            None => thread::park(),
            Some(left) => thread::park_timeout(left),
        }
    }
}

fn sit(tenure: &Tenure<'_>, seated: &Seated<'_>, deadline: Option<Instant>, batch: &mut Batch) {
    let reactor = &tenure.shared.reactor;
    // Whoever wakes a job that may run here only unparks this thread, which the poller would not see.
    let _summons = tenure.home.summon_by(reactor);
    while let Some(left) = left(tenure, deadline) {
        reactor.wait(seated, batch, left);
        if !batch.is_empty() {
            return;
        }
    }
}
