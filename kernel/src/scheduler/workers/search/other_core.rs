//! Wakes a sleeping thread on another core than the caller's, which goes on computing there.
//!
//! Linux chooses the core of a thread when it wakes. It may choose the waker's, although another one is idle: in a
//! virtual machine a core that has nothing to do looks as if the host had taken it, and some systems pack threads on
//! few cores on purpose. The thread then waits until the waker sleeps or has used its time slice, about 3 ms, and a
//! fork of 2 ms has ended by then. So the waker takes its own core from the sleeper's for the length of the call that
//! wakes, and gives it back right after, when the choice is made; the system may move the thread back later.
//!
//! One thread of the program does so at a time ([`ALONE`]); another one that wakes meanwhile leaves the choice to the
//! system. Otherwise it could read the narrow cores, and leave them to the sleeper for good. A thread or process that
//! the woken one starts before it has its cores back inherits the narrow ones: within one system call of the waker,
//! unless the waker loses its own core in that moment.
//!
//! It takes three system calls. It serves where the waker goes on with work of its own beside the woken one. A chain of
//! messages is faster where its cache lines are, and where no core is idle the choice is better left to the system.

#![allow(unsafe_code)]

use std::sync::Mutex;

use rustix::{
    process::Pid,
    thread::{CpuSet, sched_getaffinity, sched_setaffinity},
};

/// Held while a thread's cores are narrow.
static ALONE: Mutex<()> = Mutex::new(());

/// Calls `wake`, which wakes the thread with this number. Any thread; the other one should be asleep, else it is moved
/// from the caller's core for a moment.
///
/// Where the caller's core is the only one that the thread may use, this only calls `wake`, and so it does if the
/// system refuses, or while another thread does the same.
pub(crate) fn wake_on_other_core(number: u32, wake: impl FnOnce()) {
    let Ok(_alone) = ALONE.try_lock() else {
        return wake();
    };
    let thread = i32::try_from(number).ok().and_then(Pid::from_raw);
    let cores = thread.and_then(|_| sched_getaffinity(thread).ok());
    let others = cores.and_then(|cores| without(cores, own_core()));
    let narrowed = others.is_some_and(|others| sched_setaffinity(thread, &others).is_ok());
    wake();
    if let Some(cores) = cores.filter(|_| narrowed) {
        // An error means that the thread has ended meanwhile.
        let _widened = sched_setaffinity(thread, &cores);
    }
}

/// The core that the caller runs on. (rustix would call the vDSO at an address that the system tells also under
/// valgrind, which has no vDSO there.)
fn own_core() -> usize {
    // SAFETY: it takes nothing, and returns a number; negative is an error.
    let core = unsafe { libc::sched_getcpu() };
    usize::try_from(core).unwrap_or(usize::MAX)
}

/// The cores but one, unless none is left or it is not among them.
fn without(mut cores: CpuSet, core: usize) -> Option<CpuSet> {
    if core >= CpuSet::MAX_CPU || !cores.is_set(core) || cores.count() < 2 {
        return None;
    }
    cores.unset(core);
    Some(cores)
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread};

    use super::*;

    fn set(cores: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cores.iter().for_each(|core| set.set(*core));
        set
    }

    #[test]
    fn the_own_core_is_left_out_unless_it_is_the_only_one() {
        assert_eq!(without(set(&[0, 1, 5]), 1), Some(set(&[0, 5])));
        assert_eq!(without(set(&[0, 5]), 1), None);
        assert_eq!(without(set(&[1]), 1), None);
        assert_eq!(without(set(&[0, 1]), CpuSet::MAX_CPU), None);
    }

    #[test]
    fn a_woken_thread_may_use_the_same_cores_as_before_and_was_without_the_wakers_when_it_woke() {
        let before = sched_getaffinity(None).unwrap();
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let sleeper = thread::spawn(move || {
            let number = rustix::thread::gettid();
            tell.send(number.as_raw_nonzero().get().unsigned_abs())
                .unwrap();
            ended.recv().unwrap();
        });
        let number = told.recv().unwrap();
        let of_sleeper = || sched_getaffinity(Pid::from_raw(number.cast_signed())).unwrap();
        let expected = before.count() - u32::from(before.count() > 1);
        // Another test may hold the lock.
        while !{
            let mut was_alone = false;
            wake_on_other_core(number, || {
                was_alone = of_sleeper().count() == expected && ALONE.try_lock().is_err();
            });
            assert_eq!(of_sleeper(), before);
            was_alone
        } {
            thread::yield_now();
        }
        end.send(()).unwrap();
        sleeper.join().unwrap();
    }
}
