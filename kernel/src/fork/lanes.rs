//! All lanes of a runtime: where thieves look, and how sleepers and cancels reach those who fork.
//!
//! Lanes are made when a thread needs one and none is free, and stay in the list for good.
//!
//! At most as many regions compute at once as there are workers: a thread that was relieved goes on with its
//! half, and its stand-in must not begin a further one each time.

#![allow(unsafe_code)]

use std::{iter, ptr};

use super::{lane::Lane, theft};
use crate::{
    job::JobRef,
    join,
    runnable::Runnable,
    shared::Shared,
    sys::{AtomicPtr, AtomicU64, Ordering, barrier},
};

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

    /// Makes every owner look around at its next push. Called by a worker that has announced its sleep,
    /// before its last look for work.
    pub(crate) fn ring_all(&self) {
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

    /// What `job` forked shall end, because it is cancelled.
    pub(crate) fn cancel_forks_of(&self, job: &JobRef) {
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
                join::cancel_alone(&descendant);
            }
        }
    }

    /// Whether anybody forks at this moment.
    pub(super) fn are_active(&self) -> bool {
        self.iter().any(Lane::is_active)
    }

    /// Whether `job` is in a fork.
    pub(crate) fn is_forking(&self, job: &JobRef) -> bool {
        self.iter()
            .any(|lane| lane.is_active() && lane.is_run_by(job))
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
    let computing = shared.lanes.iter().filter(|lane| lane.computes()).count();
    computing < shared.workers.len()
}

/// A region no longer computes, so that another one may. Calls whoever sleeps for want of that: no push did,
/// as long as there was no room.
pub(super) fn room_for_another(shared: &Shared) {
    if shared.idle.sleeping() == 0 || !shared.lanes.are_active() {
        return;
    }
    for lane in shared.lanes.iter() {
        lane.deque.ring();
    }
    if sees_work(shared) {
        shared.wake_one();
    }
}

/// Whether there is a half that a worker could steal.
pub(super) fn sees_work(shared: &Shared) -> bool {
    shared.lanes.iter().any(|lane| lane.deque.has_entries()) && may_steal(shared)
}

/// Steals the oldest half of a lane, as a job to be run. The caller runs it, or puts it into a queue.
pub(crate) fn steal(shared: &Shared) -> Option<Runnable> {
    match sees_work(shared) {
        true => steal_anyhow(shared),
        false => None,
    }
}

/// As [`steal`], for the driver of a test runtime, on top of whose waiting job it will run.
pub(crate) fn steal_for_driver(shared: &Shared) -> Option<Runnable> {
    steal_anyhow(shared)
}

fn steal_anyhow(shared: &Shared) -> Option<Runnable> {
    shared
        .lanes
        .iter()
        .filter(|lane| lane.deque.has_entries())
        .find_map(|lane| theft::steal_from(shared, lane, |_| true))
}

/// While it lives, the lane's region does not compute.
pub(crate) struct Parked<'a> {
    lane: &'a Lane,
    before: bool,
}

impl<'a> Parked<'a> {
    pub(crate) fn begin(lane: &'a Lane) -> Parked<'a> {
        let before = lane.parked.swap(true, Ordering::Relaxed);
        // Either whoever is about to sleep sees that there is room, or this sees the sleeper.
        barrier::full();
        room_for_another(lane.shared());
        Parked { lane, before }
    }
}

impl Drop for Parked<'_> {
    fn drop(&mut self) {
        self.lane.parked.store(self.before, Ordering::Relaxed);
    }
}
