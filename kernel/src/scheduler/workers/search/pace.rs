//! How a look follows the pace of the jobs since the last one: how soon the next look is due, and whether thieves may take
//! from the ring.

use crate::{
    scheduler::workers::{search::sees_work, worker::WorkerLoop},
    timer::clock::TICK,
};

/// The most jobs that run between two looks.
const LOOK_EVERY_MAX: u32 = 64;

/// Halves the number of jobs between two looks if the jobs since the last look took longer than half a tick; doubles it
/// if they took less than an eighth of a tick. Neither a sleep nor the spinning before it counts as time that jobs
/// took: both set `last_look` anew when they end.
pub(super) fn adapt(worker_loop: &WorkerLoop<'_>) {
    let now = worker_loop.shared.clock.now();
    let took = now.saturating_duration_since(worker_loop.last_look.replace(now));
    worker_loop.coarseness.sample(took, worker_loop.runs.get());
    let every = worker_loop.look_every.get();
    if worker_loop.shared.is_driven() {
        // One job at a time, so that each next one is drawn.
        worker_loop.look_every.set(1);
    } else if took > TICK / 2 {
        worker_loop.look_every.set((every / 2).max(1));
    } else if took < TICK / 8 {
        worker_loop.look_every.set((every * 2).min(LOOK_EVERY_MAX));
    }
}

/// Shares the ring while the work is coarse.
pub(super) fn share(worker_loop: &WorkerLoop<'_>) {
    let sharing = &worker_loop.worker().sharing;
    match worker_loop.coarseness.is_coarse() {
        false => sharing.withdraw(),
        true if sharing.is_shared() => {}
        true => {
            sharing.share();
            if sees_work(worker_loop.shared) {
                worker_loop.shared.wake_one();
            }
        }
    }
}
