//! One measured value and its name. Unit and direction follow from the name, so neither is stored.

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
    /// Lower is better: times, bytes.
    Lower,
    /// Higher is better: ticks, speedups, rates.
    Higher,
}

/// The unit of a metric, derived from its name.
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

/// What a metric means, for readers who see its name for the first time; `None` for an unknown name.
#[must_use]
pub fn meaning(name: &str) -> Option<&'static str> {
    Some(match name {
        "ns_per_spawn" => "time per process, from the first spawn until all of them wait",
        "ns_per_teardown" => "time per process, until all have ended and dropped what they held",
        "bytes_per_process" => "growth of resident memory per process, while all of them wait",
        "ns_per_hop" => "time per message that a process receives and passes on",
        "ms_with_setup" => "total time, spawning the ring included",
        "messages_per_poll" => {
            "average number of messages that a process received each time it ran"
        }
        "ns_per_send" => "time to send one message to a mailbox that nobody empties yet",
        "ns_per_receive" => "time to take one message out of the full mailbox",
        "bytes_per_message" => "growth of resident memory per message in the mailbox",
        "ns_per_message" => "time per message, from the first send to the last receipt",
        "ns_per_round_trip" => "time for a message and its answer",
        "ns" => {
            "time per lock and unlock, round, meeting, commit, read, thread, call or watched end, depending on the row"
        }
        "bytes_per_thread" => "growth of resident memory per waiting thread",
        "ms" => "total time",
        "ms_serial" => "time of the same source with two calls in place of each fork",
        "ms_outlined" => "time of the same source with two calls that are never inlined",
        "ns_per_fork" => "worker time per fork beyond the serial program's, idle workers included",
        "speedup" => "the serial program's time divided by this one's, both from the same rounds",
        "speedup_outlined" => "the same ratio, against calls that are never inlined",
        "speedup_bound" => "the speedup if all work except the first partition were shared",
        "speedup_workers" => "the time on one worker divided by the time on this many",
        "times_one_worker" => {
            "the first figure of this row as a multiple of that on one worker, from the same rounds"
        }
        "parallel_percent" => {
            "the share of the work done in parallel, by Amdahl's law from these two times"
        }
        "bytes_per_callback" => {
            "growth of resident memory per pending callback: the slope of a fitted line"
        }
        "intercept_bytes" => "where that line starts: the memory of the program without callbacks",
        "r" => "how well that line fits, from 0 to 1: the correlation coefficient",
        "r2" => "the square of r, the coefficient of determination",
        "ns_per_insert" => "time to start a callback without an owner, at a given instant",
        "ns_per_fire" => "time per callback, from the timer wheel to the end of its run",
        "ns_per_cancel" => "time to cancel and free a callback without an owner",
        "ns_per_after" => "time to start a timer of a running unit, reading the clock included",
        "ns_per_stop" => "time to cancel such a timer by its handle and free it",
        "lateness_p99_us" => "lateness that 99 of 100 callbacks do not exceed",
        "bytes_per_object" => "growth of resident memory per lock or channel",
        "ns_per_node" => "time per node visited or written",
        "bytes_per_node" => "growth of resident memory per node of a new tree",
        "s" => "total time",
        "correct" => "number of trees that were read back as they were written",
        "cpu_s_per_million" => "processor time of the server per million requests",
        "requests_per_s" => "requests answered per second",
        "p99_us" => "time from a request or an edit to its answer, which 99 of 100 do not exceed",
        "bytes_per_connection" => "growth of the server's resident memory per idle connection",
        "processor_ms" => "processor time of all threads of a program that has nothing to do",
        "ticks" => "number of 5 ms sleeps that ended during the run",
        "ticks_percent" => "these ticks as a share of those that the same system makes undisturbed",
        "named_percent" => {
            "share of the offenders that a report named with the place of their spawn"
        }
        "commit_p50_ms" => "time of a commit to another tree, which half of them do not exceed",
        "commit_p999_ms" => "time of such a commit, which 999 of 1,000 do not exceed",
        "commit_worst_ms" => "time of the longest such commit",
        "lateness_p50_ms" => "lateness that half of the wake-ups do not exceed",
        "lateness_p999_ms" => "lateness that 999 of 1,000 wake-ups do not exceed",
        "lateness_worst_ms" => "lateness of the latest wake-up",
        "growth_kept_percent" => {
            "share of that growth of memory that is still held after all processes ended"
        }
        _ => return of_processes(name).or_else(|| of_commits(name)),
    })
}

/// The same for those of processes that know of each other.
fn of_processes(name: &str) -> Option<&'static str> {
    Some(match name {
        "bytes_per_link" => {
            "growth of resident memory per process that is linked and monitored, at both ends"
        }
        "ping_pong_percent" => {
            "this time as a share of that of ping-pong, measured in turns in the same run"
        }
        "empty_queue_percent" => {
            "this time as a share of that of a caller with an empty inbox, in turns in the same run"
        }
        _ => return None,
    })
}

/// The same for those of commits.
fn of_commits(name: &str) -> Option<&'static str> {
    Some(match name {
        "commits_per_s" => "commits per second, of all writers together",
        "bytes_per_commit" => {
            "bytes of the journal per commit, everything around the commit's own included"
        }
        "limit_per_s" => "commits per second of the limit program, measured right after",
        "limit_percent" => "the rate as a share of the limit program's",
        "decoding_percent" => "time to decode the same records alone, as a share of the opening's",
        "bytes_on_disk" => "bytes of all files of the journal per commit, checkpoints included",
        "grown_bytes" => "growth of resident memory while the second half of the commits was made",
        "commits_behind" => "records between the checkpoint before the version and the version",
        "retries_per_commit" => "times per commit that another commit came first",
        "p50_us" => "time from an edit to its answer, which half of them do not exceed",
        _ => return of_boards(name),
    })
}

/// The same for those of servers beside offenders, and of boards.
fn of_boards(name: &str) -> Option<&'static str> {
    Some(match name {
        "p99_ratio" => {
            "p99_us divided by the same without offenders or writers, earlier in the same run"
        }
        "errors" => "answers that were not as they should be",
        "hello_ratio" => {
            "processor time of a request, divided by one of the same server's empty handler"
        }
        "buffered_ratio" => {
            "requests per second, divided by those of buffered writes, measured in turns"
        }
        "p999_us" => "time from a request to its answer, which 999 of 1,000 do not exceed",
        "rss_bytes" => "the server's resident memory after the last request",
        "bytes_per_answer" => "the average length of an answer with its head",
        "writes_per_s" => "messages written per second to the other board",
        "large_ratio" => {
            "processor time of a page of the large board, divided by that of a small one"
        }
        "older_ratio" => "the same for an older version that memory has",
        "disk_ratio" => "the same for an older version that only the disk has, once it is open",
        "disk_first_ms" => "time of the first look at that version",
        "delivered_ms" => {
            "time from a message until all readers have heard of it, the median of all messages"
        }
        "delivered_worst_ms" => "the longest such time",
        "bytes_per_reader" => "growth of the server's resident memory per reader of live events",
        _ => return None,
    })
}

/// The direction of a metric, derived from its name.
#[must_use]
pub fn better(name: &str) -> Better {
    match name {
        "ticks" | "ticks_percent" | "named_percent" | "parallel_percent" | "r" | "r2"
        | "correct" | "commits_per_s" | "requests_per_s" | "writes_per_s" | "limit_per_s"
        | "limit_percent" | "decoding_percent" | "buffered_ratio" => Better::Higher,
        speedup if speedup.starts_with("speedup") => Better::Higher,
        _ => Better::Lower,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
