//! The reports of jobs that stand still, because another one, or the future of `block_on`, holds their OS thread. Made
//! by the monitor.

use std::time::Duration;

use super::{LateName, LateNames, ReportKind, of_job_late};

/// A job's thread is detached, and the jobs `held_up` can run only there.
pub(crate) fn holds_up(named: LateName, held: Duration, held_up: LateNames) {
    let held_ms = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
    of_job_late(ReportKind::HoldsUp { held_ms }, named, move |named| {
        let held_up = units_wait(held_up);
        format!(
            "{named} has held its OS thread for {held:.1?}.{held_up} Wrap blocking calls in weald::blocking, which \
             holds no thread, or let long computations yield."
        )
    });
}

/// A thread outside of jobs has polled the future of its `block_on` for so long, and the jobs `held_up` can run only
/// there.
pub(crate) fn main_future_holds_up(named: LateName, held: Duration, held_up: LateNames) {
    let held_ms = u64::try_from(held.as_millis()).unwrap_or(u64::MAX);
    of_job_late(ReportKind::HoldsUp { held_ms }, named, move |named| {
        let held_up = units_wait(held_up);
        format!(
            "{named} has blocked or computed for {held:.1?} without a wait.{held_up} Spawn what blocks or computes, or \
             await weald::offload."
        )
    });
}

/// A sentence about the units that stand still while another one holds their OS thread: started threads, jobs in a wait
/// with their stack, and local jobs. Runs user code.
pub(super) fn units_wait(held_up: LateNames) -> String {
    match held_up.all() {
        0 => String::new(),
        1 => format!(" 1 unit of its OS thread waits for it: {}.", held_up.now()),
        n => format!(
            " {n} units of its OS thread wait for it: {}.",
            held_up.now()
        ),
    }
}
