//! From which fork deques workers may steal, while others of the family hold threads; and what becomes of a part that a
//! thief took just before the quarantine was full.

use std::{
    panic::Location,
    sync::{Condvar, atomic::AtomicBool as StdBool},
    thread,
};

use weald_sync::{Wait, oneshot};

use super::*;
use crate::{
    JoinHandle, Runtime,
    job::testing,
    scheduler::workers::{config::Config, context},
    sys::{Mutex, lock},
    timer::clock::ClockKind,
};

/// With these spare threads and workers a family may hold two threads.
const MOST: usize = 2;

/// A root fork that `job` runs; none: a foreign thread.
fn begun<'a>(shared: &'a Shared, job: Option<&JobRef>) -> &'a ForkDeque {
    let fork_deque = of(shared).claim(shared);
    fork_deque.set_thread(context::here());
    fork_deque.begin(job.map(JobRef::ptr), Location::caller(), None);
    fork_deque
}

/// As [`begun`], and the root fork holds its thread to wait for a stolen job.
fn holding<'a>(shared: &'a Shared, job: Option<&JobRef>) -> &'a ForkDeque {
    let fork_deque = begun(shared, job);
    fork_deque.begin_wait();
    fork_deque.set_holds_thread(true);
    fork_deque
}

/// Whether a worker may steal from a root fork of `family` that computes, while as many root forks of `holder` as one
/// family may have hold a thread, except `freed`.
fn admits(family: Option<&JobRef>, holder: Option<&JobRef>, freed: usize) -> bool {
    let config = Config {
        workers: 2,
        spare_threads: MOST * SHARE_OF_FAMILY,
        ..Config::new()
    };
    let (shared, _handoffs) = Shared::new(config, ClockKind::Real).unwrap();
    let mut forks: Vec<_> = (0..MOST).map(|_| holding(&shared, holder)).collect();
    for holder in &forks[..freed] {
        holder.set_holds_thread(false);
    }
    let computes = begun(&shared, family);
    forks.push(computes);
    let admits = of(&shared).admits(&shared, computes);
    for fork_deque in forks {
        fork_deque.set_holds_thread(false);
        fork_deque.end();
        fork_deque.unclaim();
    }
    admits
}

#[test]
fn workers_steal_from_a_family_until_it_holds_as_many_threads_as_it_may() {
    let (family, other) = (testing::job(), testing::job());
    assert!(!admits(Some(&family), Some(&family), 0));
    assert!(admits(Some(&family), Some(&family), 1));
    assert!(admits(Some(&family), Some(&other), 0));
}

#[test]
fn foreign_threads_that_hold_themselves_stop_no_steal() {
    assert!(admits(None, None, 0));
}

/// Threads block here until it is opened.
#[derive(Default)]
struct Latch {
    blocked: Mutex<usize>,
    is_open: StdBool,
    opened: Condvar,
}

impl Latch {
    fn block(&self) {
        let mut blocked = lock(&self.blocked);
        *blocked += 1;
        while !self.is_open.load(Ordering::SeqCst) {
            blocked = self.opened.wait(blocked).unwrap();
        }
    }

    fn open(&self) {
        let _blocked = lock(&self.blocked);
        self.is_open.store(true, Ordering::SeqCst);
        self.opened.notify_all();
    }

    fn wait_for(&self, blocked: usize) {
        until(|| *lock(&self.blocked) == blocked);
    }
}

/// Fails after a minute, longer than anything that a test waits for may take.
fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed().as_secs() < 60, "not in a minute");
        thread::yield_now();
    }
}

/// A job that forks `part`, at the line of all such jobs. Its first half computes until `goes_on`, and then waits until
/// the part has begun.
fn fork_of(
    runtime: &Runtime,
    goes_on: &Arc<StdBool>,
    part: impl FnOnce() + Send + 'static,
) -> JoinHandle<()> {
    let goes_on = goes_on.clone();
    runtime.spawn(async move {
        let (begins, mut begun) = oneshot::channel();
        let part = move || {
            begins.send(()).unwrap();
            part();
        };
        let waits = move || {
            while !goes_on.load(Ordering::SeqCst) {
                thread::yield_now();
            }
            begun.receive().wait().unwrap();
        };
        crate::fork::join(waits, part);
    })
}

/// Parts that block hold all threads of the quarantine. The test then does what a thief does that saw room a moment
/// before: with a fork of the same line whose part blocks too, and with one whose part ends all blocks. No deque has
/// these parts any longer, so nobody can take them by a relief.
#[test]
fn parts_that_a_thief_took_just_before_the_quarantine_was_full_begin_one_after_the_other() {
    // Two are left for workers: the part that blocks gets one at once, and the next one the other a second later.
    let (spare, left) = (16, 2);
    let runtime = Runtime::builder().workers(2).spare_threads(spare);
    let runtime = runtime.build().unwrap();
    let (latch, shared) = (Arc::new(Latch::default()), &runtime.shared);
    let blocks = |goes_on| {
        let latch = latch.clone();
        fork_of(&runtime, goes_on, move || latch.block())
    };
    let at_once = Arc::new(StdBool::new(true));
    let mut jobs: Vec<_> = (0..spare - left).map(|_| blocks(&at_once)).collect();
    latch.wait_for(spare - left);
    let steal_plainly = |goes_on: &StdBool| {
        let stolen = Cell::new(None);
        until(|| {
            stolen.set(shared.forks.steal_for_driver(shared));
            let is_stolen = stolen
                .take()
                .map(|part| shared.quarantine.push(part, &shared.suspects));
            // A worker may have taken it by the room of the last round.
            is_stolen.is_some() || shared.quarantine.has(thief::is_stolen_without_relief)
        });
        goes_on.store(true, Ordering::SeqCst);
    };
    let taken = Arc::new(StdBool::new(false));
    jobs.push(blocks(&taken));
    steal_plainly(&taken);
    latch.wait_for(spare - left + 1);
    let (taken, frees) = (Arc::new(StdBool::new(false)), latch.clone());
    jobs.push(fork_of(&runtime, &taken, move || frees.open()));
    steal_plainly(&taken);
    until(|| latch.is_open.load(Ordering::SeqCst));
    for job in jobs {
        runtime.block_on(job).unwrap();
    }
}
