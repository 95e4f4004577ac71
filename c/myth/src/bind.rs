//! Binding workers to cores, for programs that ask for it (`MYTH_BIND_WORKERS`).
//!
//! Worker *n* is bound to the core that is at place *n* of the list, which begins anew when it is at its end. All are
//! bound before the first thread runs. The list is that of `MYTH_CPU_LIST`, without the cores that the program may not
//! use: numbers and ranges, `0,4-8,10-20:2`. As in MassiveThreads, a range leaves out its end.

#![allow(unsafe_code)]

use std::{
    cell::Cell,
    env, mem,
    sync::{Arc, Barrier, mpsc},
};

use weald_kernel::{Runtime, worker_index};

thread_local! {
    static IS_BOUND: Cell<bool> = const { Cell::new(false) };
}

/// The cores for the workers.
pub(crate) fn cores() -> Vec<usize> {
    let usable = affinity();
    let Ok(list) = env::var("MYTH_CPU_LIST") else {
        return usable;
    };
    match parse(&list) {
        Some(mut cores) => {
            cores.retain(|core| usable.contains(core));
            cores
        }
        None => {
            eprintln!("myth: MYTH_CPU_LIST is malformed, and ignored: {list}");
            usable
        }
    }
}

/// Binds the OS threads that serve the workers of a runtime, which runs nothing yet.
///
/// Nothing takes a worker away from its OS thread ([`crate::runtime`]). So a job that blocks keeps its worker, and the
/// next one, which is spawned when it has begun, gets another.
pub(crate) fn bind_all(runtime: &Runtime, workers: usize, cores: &[usize]) {
    if cores.is_empty() {
        return;
    }
    let all_are_bound = Arc::new(Barrier::new(workers + 1));
    let (bound, is_bound) = mpsc::channel();
    for _ in 0..workers {
        let (cores, bound) = (cores.to_vec(), bound.clone());
        let all_are_bound = Arc::clone(&all_are_bound);
        let job = runtime.spawn(async move {
            bind_here(&cores);
            bound.send(()).expect("the starter waits for it");
            all_are_bound.wait();
        });
        job.detach();
        is_bound.recv().expect("the job runs");
    }
    all_are_bound.wait();
}

/// Binds the calling OS thread, if it serves a worker and is not bound.
// In a frame of its own: the caller may resume on another OS thread.
#[inline(never)]
pub(crate) fn bind_here(cores: &[usize]) {
    if IS_BOUND.get() || cores.is_empty() {
        return;
    }
    let Some(worker) = worker_index() else { return };
    IS_BOUND.set(true);
    // SAFETY: a set of cores is plain data, and zero is the empty set.
    let mut set = unsafe { mem::zeroed::<libc::cpu_set_t>() };
    let core = cores[worker % cores.len()];
    // SAFETY: the core is one that the system has named, so it is in the range of the set.
    unsafe { libc::CPU_SET(core, &mut set) };
    // A refusal changes nothing but speed.
    // SAFETY: the set is valid, and has the size that is passed.
    let _refused = unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) };
}

/// The cores that the program may use.
fn affinity() -> Vec<usize> {
    // SAFETY: as above.
    let mut set = unsafe { mem::zeroed::<libc::cpu_set_t>() };
    // SAFETY: as above; the call fills it.
    if unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) } != 0 {
        return Vec::new();
    }
    let bits = 8 * size_of_val(&set);
    (0..bits)
        // SAFETY: the core is in the range of the set.
        .filter(|&core| unsafe { libc::CPU_ISSET(core, &set) })
        .collect()
}

fn parse(list: &str) -> Option<Vec<usize>> {
    let mut cores = Vec::new();
    for range in list.split(',') {
        let (range, step) = match range.split_once(':') {
            Some((range, step)) => (range, step.parse().ok()?),
            None => (range, 1),
        };
        let (from, to) = match range.split_once('-') {
            Some((from, to)) => (from.parse().ok()?, to.parse().ok()?),
            None => {
                let core = range.parse::<usize>().ok()?;
                (core, core + 1)
            }
        };
        if step == 0 || to > MOST {
            return None;
        }
        cores.extend((from..to).step_by(step));
    }
    Some(cores)
}

/// More cores than a system has.
const MOST: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_cores_has_numbers_ranges_and_steps() {
        assert_eq!(parse("0-3,5"), Some(vec![0, 1, 2, 5]));
        assert_eq!(parse("0-7:3"), Some(vec![0, 3, 6]));
        for malformed in ["", "a", "1-", "1-4:0", "1,,2", "0-99999999"] {
            assert_eq!(parse(malformed), None, "{malformed:?}");
        }
    }
}
