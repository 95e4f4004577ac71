//! One measured value and its name; unit and direction follow from the name, so they are not kept.

/// A measured value under its fixed name.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The name, as in `ns_per_spawn`.
    pub name: String,
    /// The value in the unit that the name implies.
    pub value: f64,
}

impl Metric {
    /// A value under its name.
    pub fn new(name: &str, value: f64) -> Self {
        Self {
            name: name.to_owned(),
            value,
        }
    }
}

/// Which of two values of a metric is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Costs: times, bytes.
    Lower,
    /// Yields: ticks that came, times faster.
    Higher,
}

/// The unit of a metric, read off its name.
#[must_use]
pub fn unit(name: &str) -> &'static str {
    if name.starts_with("ns_") || name == "ns" {
        "ns"
    } else if name.starts_with("ms_") || name.ends_with("_ms") || name == "ms" {
        "ms"
    } else if name.starts_with("bytes_") || name.ends_with("_bytes") {
        "bytes"
    } else if name == "s" {
        "s"
    } else if name.ends_with("_us") {
        "us"
    } else if name.ends_with("_per_s") {
        "per s"
    } else if name.ends_with("_percent") {
        "percent"
    } else if name.starts_with("cpu_s_") {
        "s"
    } else {
        "count"
    }
}

/// What a metric means, for readers who see its name for the first time; none of an unknown name.
#[must_use]
pub fn meaning(name: &str) -> Option<&'static str> {
    Some(match name {
        "ns_per_spawn" => "time from the first spawn until all processes wait, for each process",
        "ns_per_teardown" => {
            "time until all have ended and dropped what they held, for each process"
        }
        "bytes_per_process" => "growth of resident memory while all wait, for each process",
        "ns_per_hop" => "time for each message that a process received and passed on",
        "ms_with_setup" => "the whole time, with spawning the ring",
        "messages_per_poll" => "messages that a process received on average each time it ran",
        "ns_per_send" => "time to send one message to a mailbox from which nobody takes yet",
        "ns_per_receive" => "time to take one message out of the full mailbox",
        "bytes_per_message" => "growth of resident memory for each message in the mailbox",
        "ns_per_message" => "time from the first send to the last receipt, for each message",
        "ns_per_round_trip" => "time for a message and its answer",
        "ns" => {
            "time for each lock with its unlock, round, meeting, commit, read, or thread: see the row"
        }
        "bytes_per_thread" => "growth of resident memory with each thread that waits",
        "ms" => "the whole time",
        "ms_serial" => "the same source with two calls in the place of each fork",
        "ms_outlined" => "the same with calls that are never inlined",
        "ns_per_fork" => {
            "worker time beyond the serial program's, that of idle workers included, for each fork"
        }
        "speedup" => "the serial program's time by this one's, both in the same rounds",
        "speedup_outlined" => "the same against calls that are never inlined",
        "speedup_bound" => "the speedup at which only the first partition would not be shared",
        "speedup_workers" => "the time on one worker by the time on so many",
        "parallel_percent" => {
            "the share of the work that was done in parallel, after Amdahl, from these two times"
        }
        "bytes_per_callback" => "growth of resident memory with each callback that is pending",
        "intercept_bytes" => "where that line starts: what the program takes without a callback",
        "r" => "how well that line fits, from 0 to 1: the coefficient of correlation",
        "r2" => "the square of that, which some call the coefficient",
        "ns_per_insert" => "time to start a callback that nobody owns at an instant that is given",
        "ns_per_fire" => "time from the wheel to the end of the run, for each callback",
        "ns_per_cancel" => "time to cancel such a callback and free it",
        "ns_per_after" => "time to start a timer of a running unit, with a look at the clock",
        "ns_per_stop" => "time to cancel such a timer by its handle, and free it",
        "lateness_p99_us" => "lateness that 99 of 100 callbacks do not exceed, in microseconds",
        "bytes_per_object" => "growth of resident memory for each lock or channel",
        "ns_per_node" => "time for each node that was visited or written",
        "bytes_per_node" => "growth of resident memory for each node of a new tree",
        "s" => "the whole time",
        "correct" => "trees that were read back as they were written",
        "commits_per_s" => "commits of all writers, for each second",
        "retries_per_commit" => "how often a commit met a newer version than it began from",
        "cpu_s_per_million" => "processor time that the server takes for a million requests",
        "requests_per_s" => "requests that were answered in a second",
        "p99_us" => "time from a request or an edit to its answer that 99 of 100 do not exceed",
        "bytes_per_connection" => {
            "growth of the server's resident memory with each quiet connection"
        }
        "ticks" => "how often a sleep of 5 ms ended during the run",
        "ticks_percent" => "these ticks as a share of those that the same system made undisturbed",
        "lateness_p50_ms" => "lateness that half of the wake-ups do not exceed",
        "lateness_p999_ms" => "lateness that 999 of 1,000 wake-ups do not exceed",
        "lateness_worst_ms" => "lateness of the latest wake-up",
        "growth_kept_percent" => "share of the grown memory that is still held after all ended",
        _ => return None,
    })
}

/// The direction of a metric, read off its name.
#[must_use]
pub fn better(name: &str) -> Better {
    match name {
        "ticks" | "ticks_percent" | "parallel_percent" | "r" | "r2" | "correct"
        | "commits_per_s" | "requests_per_s" => Better::Higher,
        speedup if speedup.starts_with("speedup") => Better::Higher,
        _ => Better::Lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ALL, Workload};

    #[test]
    fn units_follow_from_names() {
        let expected = [
            ("ns_per_spawn", "ns"),
            ("bytes_per_process", "bytes"),
            ("ms_with_setup", "ms"),
            ("lateness_worst_ms", "ms"),
            ("ticks_percent", "percent"),
            ("growth_kept_percent", "percent"),
            ("ticks", "count"),
            ("p99_us", "us"),
            ("cpu_s_per_million", "s"),
            ("requests_per_s", "per s"),
        ];
        for (name, want) in expected {
            assert_eq!(unit(name), want, "{name}");
        }
    }

    #[test]
    fn every_metric_of_every_workload_has_a_meaning() {
        let printable = ALL.iter().flat_map(Workload::printable);
        for name in printable.chain(["ticks_percent", "speedup_workers", "parallel_percent"]) {
            assert!(meaning(name).is_some(), "{name}");
        }
        assert_eq!(meaning("ns_per_wish"), None);
    }

    #[test]
    fn only_yields_are_better_when_higher() {
        assert_eq!(better("commits_per_s"), Better::Higher);
        assert_eq!(better("speedup_workers"), Better::Higher);
        assert_eq!(better("ns_per_node"), Better::Lower);
        assert_eq!(better("ticks_percent"), Better::Higher);
        assert_eq!(better("speedup"), Better::Higher);
        assert_eq!(better("parallel_percent"), Better::Higher);
        assert_eq!(better("growth_kept_percent"), Better::Lower);
        assert_eq!(better("requests_per_s"), Better::Higher);
        assert_eq!(better("cpu_s_per_million"), Better::Lower);
        assert_eq!(better("ns_per_hop"), Better::Lower);
    }
}
