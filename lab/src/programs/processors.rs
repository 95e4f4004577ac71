//! Which processors a measured server runs on, and which are left to the program that asks it.
//!
//! Invariant: the processors that this program may use are read once, before any thread of it is bound.

use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processors of this program in two parts.
#[derive(Debug)]
struct Parted {
    server: CpuSet,
    others: CpuSet,
}

/// Calls `start`, which starts a server with so many workers. If this program may use more processors than that, the
/// server gets as many as it has workers, and from then on this thread, with what it starts, has the others.
///
/// # Errors
/// Those of `start`; a sentence, if the system refuses.
pub(super) fn apart<T>(
    workers: usize,
    start: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let Some(parted) = parted(workers) else {
        return start();
    };
    bind(&parted.server)?;
    let started = start();
    bind(&parted.others)?;
    started
}

/// Whether there are more processors than a server has workers.
pub(super) fn has_others(workers: usize) -> bool {
    parted(workers).is_some()
}

/// `None`, if no processor would be left, or the system does not tell.
fn parted(workers: usize) -> Option<Parted> {
    static USABLE: OnceLock<Option<CpuSet>> = OnceLock::new();
    let usable = USABLE.get_or_init(|| sched_getaffinity(None).ok());
    part(usable.as_ref()?, workers)
}

fn part(usable: &CpuSet, workers: usize) -> Option<Parted> {
    let (mut server, mut others) = (CpuSet::new(), CpuSet::new());
    let numbers = (0..CpuSet::MAX_CPU).filter(|number| usable.is_set(*number));
    for (at, number) in numbers.enumerate() {
        let part = if at < workers {
            &mut server
        } else {
            &mut others
        };
        part.set(number);
    }
    (others.count() > 0).then_some(Parted { server, others })
}

fn bind(processors: &CpuSet) -> Result<(), String> {
    let bound = sched_setaffinity(None, processors);
    bound.map_err(|error| format!("Cannot choose the processors: {error}."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(numbers: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        numbers.iter().for_each(|number| set.set(*number));
        set
    }

    #[test]
    fn a_server_has_as_many_processors_as_workers_and_others_are_left() {
        let usable = set(&[1, 3, 4]);
        for (workers, server, others) in [(1, &[1][..], &[3, 4][..]), (2, &[1, 3], &[4])] {
            let parted = part(&usable, workers).unwrap();
            assert_eq!([parted.server, parted.others], [server, others].map(set));
        }
        assert!(part(&usable, 3).is_none() && part(&usable, 9).is_none());
    }

    #[test]
    fn what_is_started_runs_on_the_processors_of_the_server() {
        // A thread of its own, because it stays bound.
        let bound = std::thread::spawn(|| {
            let own = || sched_getaffinity(None).map_err(|error| error.to_string());
            // The second server is started from the processors that the first one has left.
            let servers = [0; 2].map(|_| apart(1, own).unwrap());
            (servers, own().unwrap(), parted(1))
        });
        // On a machine with one processor there is nothing to part.
        if let (servers, own, Some(parted)) = bound.join().unwrap() {
            assert_eq!((servers, own), ([parted.server; 2], parted.others));
        }
    }
}
