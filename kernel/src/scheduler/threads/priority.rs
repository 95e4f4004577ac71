//! The system's priority of threads that were detached while they computed.
//!
//! A detached thread keeps computing beside the thread that now serves its worker. Where cores are short, both would
//! get equal time, and every job would wait longer with each such thread. So its priority is lowered until its poll
//! ends ([`detached`](crate::scheduler::threads::detached) says when). Without privilege a priority can be lowered but
//! not raised again; such a thread ends after its poll instead of becoming a spare.
//!
//! A lower priority gives the thread less time. But once the thread has a core, it may keep the core for a whole time
//! slice (about 3 ms), although a worker has just become runnable. So its slices are made as short as the system allows
//! (`sched_setattr`, from Linux 6.12; before, only the priority has an effect).
//!
//! A few such threads share a small part of each core. Many would share a large one, so when there are many, they get
//! only what is left over (the system's idle policy; each still gets about a three-hundredth of a busy core).

#![allow(unsafe_code)]

use std::sync::OnceLock;

use rustix::process::{Pid, getpriority_process, setpriority_process};

/// What a lowered thread gets of a core that a worker keeps busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CpuShare {
    Small,
    /// The rest.
    Rest,
}

/// How much lower, in steps of nice: 15 steps leave about one part in 28 beside one busy worker.
const STEPS: i32 = 15;
/// The lowest priority, as nice. Of a program that has it, no thread can be lowered.
pub(crate) const LOWEST: i32 = 19;
/// The slice of a lowered thread, in nanoseconds: the least that the system accepts.
const SHORT_SLICE: u64 = 100_000;
/// The system's own slice.
const NORMAL_SLICE: u64 = 0;

/// The system's record of a thread's scheduling, in its first version.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    slice: u64,
    deadline: u64,
    period: u64,
}

/// The priority of the calling thread. Called before the first thread of a runtime is lowered.
pub(crate) fn of_this_thread() -> i32 {
    let _known = normal_policy();
    getpriority_process(None).unwrap_or(0)
}

/// The policy of the program's threads, as the first thread that built a runtime had it: the whole program may run by
/// the idle policy.
fn normal_policy() -> libc::c_int {
    static POLICY: OnceLock<libc::c_int> = OnceLock::new();
    let of_thread = || match attributes(0) {
        Some(own) if own.policy == libc::SCHED_IDLE.unsigned_abs() => libc::SCHED_IDLE,
        _ => libc::SCHED_OTHER,
    };
    *POLICY.get_or_init(of_thread)
}

/// Lowers the thread with this number, whose normal priority is `normal`.
pub(crate) fn lower(thread: u32, normal: i32, share: CpuShare) {
    let (policy, nice) = match share {
        CpuShare::Small => (normal_policy(), (normal + STEPS).min(LOWEST)),
        CpuShare::Rest => (libc::SCHED_IDLE, LOWEST),
    };
    if set(thread, policy, nice, SHORT_SLICE) {
        return;
    }
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    // An error means that the thread has ended, or that the system refuses: the priority stays as it is.
    let _set = setpriority_process(thread, nice);
}

/// Leaves the thread with this number its priority `normal`, and makes its slices short.
pub(crate) fn shorten_slices(thread: u32, normal: i32) {
    // If the system refuses, the slices stay as they are.
    let _set = set(thread, normal_policy(), normal, SHORT_SLICE);
}

/// Whether the calling thread is lowered, whose normal priority is `normal`.
pub(crate) fn is_lowered(normal: i32) -> bool {
    match attributes(0) {
        // The idle policy leaves the priority as it was.
        Some(own) => own.nice > normal || !has_normal_policy(&own),
        None => getpriority_process(None).is_ok_and(|own| own > normal),
    }
}

fn has_normal_policy(own: &Attributes) -> bool {
    own.policy != libc::SCHED_IDLE.unsigned_abs() || normal_policy() == libc::SCHED_IDLE
}

/// Restores the calling thread's normal policy, priority and slices. False if the system does not allow it.
pub(crate) fn restore(normal: i32) -> bool {
    let (is_lowered, own) = (is_lowered(normal), attributes(0));
    let has_short_slices = own.is_some_and(|own| own.slice == SHORT_SLICE);
    if !is_lowered && !has_short_slices {
        return true;
    }
    let has_policy = own.is_none_or(|own| has_normal_policy(&own));
    set(0, normal_policy(), normal, NORMAL_SLICE)
        || !is_lowered
        || has_policy && setpriority_process(None, normal).is_ok()
}

/// Sets policy, priority and slice of the thread with this number, or of the calling one if it is 0. False if the
/// system refuses, or if somebody else gave the thread a policy.
fn set(thread: u32, policy: libc::c_int, nice: i32, slice: u64) -> bool {
    let ours = [libc::SCHED_OTHER, libc::SCHED_IDLE].map(i32::unsigned_abs);
    let Some(mut attributes) = attributes(thread) else {
        return false;
    };
    if !ours.contains(&attributes.policy) {
        return false;
    }
    attributes.policy = policy.unsigned_abs();
    attributes.nice = nice;
    attributes.slice = slice;
    // SAFETY: the system reads as many bytes of `attributes` as its first field says, which the call above has set.
    let set = unsafe {
        libc::syscall(
            libc::SYS_sched_setattr,
            thread,
            &raw const attributes,
            0_u32,
        )
    };
    set == 0
}

/// How the system schedules the thread with this number, or the calling one if it is 0. None if the system does not
/// tell.
fn attributes(thread: u32) -> Option<Attributes> {
    let mut attributes = Attributes::default();
    let size = size_of::<Attributes>();
    // SAFETY: the system writes at most `size` bytes, all of them of `attributes`.
    let got = unsafe {
        libc::syscall(
            libc::SYS_sched_getattr,
            thread,
            &raw mut attributes,
            size,
            0_u32,
        )
    };
    (got == 0).then_some(attributes)
}
