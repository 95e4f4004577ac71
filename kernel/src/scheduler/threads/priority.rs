//! The system's priority of threads that were detached while they computed.
//!
//! A detached thread keeps computing beside the thread that now serves its worker. Where cores are short, both would
//! get equal time, and every job would wait longer with each such thread. So its priority is lowered until its poll
//! ends ([`detached`](crate::scheduler::threads::detached) says when). Without privilege a priority can be lowered but
//! not raised again; such a thread ends after its poll instead of becoming a spare.

use rustix::process::{Pid, getpriority_process, setpriority_process};

/// How much lower, in steps of nice: 15 steps leave about one part in 28 beside one busy worker.
const STEPS: i32 = 15;

/// The priority of the calling thread.
pub(crate) fn of_this_thread() -> i32 {
    getpriority_process(None).unwrap_or(0)
}

/// Lowers the thread with this number, whose normal priority is `normal`.
pub(crate) fn lower(thread: u32, normal: i32) {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    // An error means that the thread has ended, or that the system refuses: the priority stays as it is.
    let _ = setpriority_process(thread, (normal + STEPS).min(19));
}

/// Restores the calling thread's normal priority. False if the system does not allow it.
pub(crate) fn restore(normal: i32) -> bool {
    of_this_thread() <= normal || setpriority_process(None, normal).is_ok()
}
