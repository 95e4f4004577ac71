//! All lanes of a runtime: where thieves look, and how sleepers and cancels reach those who fork.
//!
//! Lanes are made when a thread needs one and none is free, and stay in the list for good.
//!
//! At most as many regions compute at once as there are workers: a thread that was relieved goes on with its
//! half, and its stand-in must not begin a further one each time.

#![allow(unsafe_code)]

use std::{any::Any, iter, ptr};

use crate::fork::{fork_deque::Lane, stolen_job};
use crate::{
    job::{JobRef, runnable::Runnable},
    scheduler::workers::cancel,
    scheduler::workers::shared::Shared,
    services::Forks,
    sys::{AtomicPtr, AtomicU64, Ordering, barrier},
};

/// Those of `shared`.
pub(super) fn of(shared: &Shared) -> &Lanes {
    let lanes = shared.forks.as_any().downcast_ref();
    lanes.expect("the crate root makes them")
}

/// See the head of this file.
pub(crate) struct Lanes {
    newest: AtomicPtr<Lane>,
    /// How many thefts there were; each gets a number.
    thefts: AtomicU64,
}

impl Lanes {
    pub(crate) fn new() -> Lanes {
        Lanes {
            newest: AtomicPtr::new(ptr::null_mut()),
            thefts: AtomicU64::new(0),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Lane> {
        // Acquire: pairs with the exchange in `claim`: the lane is complete.
        let mut lane: *const Lane = self.newest.load(Ordering::Acquire);
        iter::from_fn(move || {
            // SAFETY: a lane in the list lives as long as the list.
            let current = unsafe { lane.as_ref() }?;
            lane = current.next;
            Some(current)
        })
    }

    /// A lane for the calling thread: a free one, else a new one.
    pub(super) fn claim(&self, shared: &Shared) -> &Lane {
        if let Some(lane) = self.iter().find(|lane| lane.claim()) {
            return lane;
        }
        let mut next = self.newest.load(Ordering::Acquire);
        loop {
            let lane = Box::into_raw(Box::new(Lane::new(shared, next)));
            // Release: pairs with the load in `iter`.
            let order = (Ordering::AcqRel, Ordering::Acquire);
            match self.newest.compare_exchange(next, lane, order.0, order.1) {
                // SAFETY: it is in the list now, and lives as long.
                Ok(_) => return unsafe { &*lane },
                Err(newer) => {
                    // SAFETY: it was made above, and nobody has seen it.
                    drop(unsafe { Box::from_raw(lane) });
                    next = newer;
                }
            }
        }
    }

    /// The number of a new theft.
    pub(super) fn number(&self) -> u64 {
        self.thefts.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether anybody forks at this moment.
    pub(super) fn are_active(&self) -> bool {
        self.iter().any(Lane::is_active)
    }
}

impl Forks<Shared> for Lanes {
    fn steal(&self, shared: &Shared) -> Option<Runnable> {
        match sees_work(shared) {
            true => steal_anyhow(shared),
            false => None,
        }
    }

    fn steal_for_driver(&self, shared: &Shared) -> Option<Runnable> {
        steal_anyhow(shared)
    }

    fn sees_work(&self, shared: &Shared) -> bool {
        sees_work(shared)
    }

    fn wants_helpers(&self, shared: &Shared) -> bool {
        self.are_active() && may_steal(shared)
    }

    fn ring_all(&self) {
        let mut rung = false;
        for lane in self.iter() {
            lane.deque.ring();
            rung = true;
        }
        if rung {
            // Pairs with the light fence of a push: either it sees the ring, or the caller its entry.
            barrier::heavy();
        }
    }

    fn cancel_forks_of(&self, job: &JobRef) {
        // Pairs with the fence in `Region::enter`: either a region that begins now sees the cancel, or it is
        // seen here.
        barrier::full();
        for lane in self.iter() {
            if lane.is_run_by(job) {
                lane.deque.ring();
            } else if lane.is_cancelled_with(job)
                && let Some(descendant) = lane.job()
                && lane.is_cancelled_with(job)
            {
                lane.deque.ring();
                cancel::cancel_alone(&descendant);
            }
        }
    }

    fn is_forking(&self, job: &JobRef) -> bool {
        self.iter()
            .any(|lane| lane.is_active() && lane.is_run_by(job))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        let mut lane = self.newest.load(Ordering::Acquire);
        while !lane.is_null() {
            // SAFETY: `claim` made it, and its runtime is gone, so that no thread has it.
            let owned = unsafe { Box::from_raw(lane) };
            lane = owned.next.cast_mut();
        }
    }
}

/// Whether a further region may compute.
pub(super) fn may_steal(shared: &Shared) -> bool {
    let computing = of(shared).iter().filter(|lane| lane.computes()).count();
    computing < shared.workers.len()
}

/// A region no longer computes, so that another one may. Calls whoever sleeps for want of that: no push did,
/// as long as there was no room.
pub(super) fn room_for_another(shared: &Shared) {
    if shared.idle.sleeping() == 0 || !of(shared).are_active() {
        return;
    }
    for lane in of(shared).iter() {
        lane.deque.ring();
    }
    if sees_work(shared) {
        shared.wake_one();
    }
}

/// Whether there is a half that a worker could steal.
pub(super) fn sees_work(shared: &Shared) -> bool {
    of(shared).iter().any(|lane| lane.deque.has_entries()) && may_steal(shared)
}

fn steal_anyhow(shared: &Shared) -> Option<Runnable> {
    of(shared)
        .iter()
        .filter(|lane| lane.deque.has_entries())
        .find_map(|lane| stolen_job::steal_from(shared, lane, |_| true))
}
