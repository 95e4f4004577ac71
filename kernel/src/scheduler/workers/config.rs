//! What a runtime was built with, and the defaults that depend on the machine.

use std::{fs, thread, time::Duration};

/// What a runtime was built with.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) workers: usize,
    pub(crate) name: String,
    pub(crate) process_limit: usize,
    pub(crate) stuck_after: Duration,
    pub(crate) mailbox_mark: usize,
    pub(crate) spare_threads: usize,
    pub(crate) blocking_threads: usize,
    pub(crate) held_operations: usize,
    pub(crate) retire_after: Duration,
    pub(crate) poll_budget: u32,
    pub(crate) next_slot_runs: u32,
    pub(crate) thread_stack: usize,
    pub(crate) fork_stack: usize,
    pub(crate) shutdown_deadline: Duration,
}

impl Config {
    pub(crate) fn new() -> Config {
        Config {
            workers: available_workers(),
            name: "weald".to_owned(),
            process_limit: 1 << 24,
            stuck_after: Duration::from_millis(10),
            mailbox_mark: 100_000,
            spare_threads: 512,
            blocking_threads: 512,
            held_operations: 1024,
            retire_after: Duration::from_secs(10),
            poll_budget: 128,
            next_slot_runs: 32,
            thread_stack: 2 << 20,
            fork_stack: 1 << 30,
            shutdown_deadline: Duration::from_secs(5),
        }
    }
}

/// Durations are capped at a hundred years, so that they can be added to any point in time.
pub(crate) const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// How many cores this program may use: its scheduling affinity or its cgroup's quota, whichever is less; at least 1.
///
/// ```
/// assert!(weald::available_workers() >= 1);
/// ```
pub fn available_workers() -> usize {
    let affinity = thread::available_parallelism().map_or(1, usize::from);
    quota("/sys/fs/cgroup/cpu.max")
        .map_or(affinity, |quota| affinity.min(quota))
        .max(1)
}

/// The quota of a version-2 cgroup in cores, rounded up. The standard library reads it too, but not where the program
/// sees its own cgroup as the root.
fn quota(path: &str) -> Option<usize> {
    let text = fs::read_to_string(path).ok()?;
    parse_quota(&text)
}

/// A fuzz target calls it, too.
pub(super) fn parse_quota(text: &str) -> Option<usize> {
    let mut words = text.split_whitespace();
    let quota: usize = words.next()?.parse().ok()?;
    let period: usize = words.next()?.parse().ok()?;
    (period > 0).then(|| quota.div_ceil(period))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_rounded_up_and_max_means_none() {
        assert_eq!(parse_quota("150000 100000\n"), Some(2));
        assert_eq!(parse_quota("50000 100000"), Some(1));
        assert_eq!(parse_quota("max 100000"), None);
        assert_eq!(parse_quota(""), None);
    }
}
