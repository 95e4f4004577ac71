//! Whether the jobs of a worker spread over other workers: samples of its work, and the sharing that follows from them.
//! By the owner.

use crate::scheduler::workers::{search::sees_work, worker::WorkerLoop};

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

/// Takes a sample of the work between two looks, because many operations have passed. If the work has become coarse, a
/// look comes next, from which on runs are short.
///
/// Without this, a row of senders that compute for 2 µs with each message was shared after 1.5 to 2.3 ms only: the next
/// look may be 64 runs away, and each run completes up to 128 operations.
#[cold]
#[inline(never)]
pub(crate) fn sample_early(worker_loop: &WorkerLoop<'_>) {
    let shared = worker_loop.shared;
    // Where no other worker sleeps, none would be woken.
    if shared.sleepers.sleeping() == 0 || worker_loop.worker().sharing.is_shared() {
        return;
    }
    let coarseness = &worker_loop.coarseness;
    coarseness.sample(shared.clock.now(), worker_loop.runs.get());
    if !coarseness.is_coarse() {
        return;
    }
    // If the lease was revoked, the next take notices it.
    if let Ok(mut core) = worker_loop.enter() {
        core.set_until_look(1);
        drop(core);
        share(worker_loop);
    }
}

/// The time until now is not a part of the work that follows, neither for the pace of the looks nor for the coarseness.
pub(crate) fn restart_clock(worker_loop: &WorkerLoop<'_>) {
    let now = worker_loop.shared.clock.now();
    worker_loop.last_look.set(now);
    worker_loop.coarseness.restart(now);
}
