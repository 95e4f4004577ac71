//! The table of workloads, and how one is found by its name.
//!
//! To add one, write a new file below and one more line in [`ALL`]. The names of workloads and metrics are
//! fixed, so that figures of different days and systems can be compared.

mod append;
mod barrier;
mod board;
mod broadcast;
mod burst_send;
mod call;
mod call_behind_queue;
mod callbacks;
mod channel;
mod condvar;
mod fan_in;
mod fib;
mod footprint;
mod handoff;
mod hot_tree;
mod idle;
mod index;
mod items;
mod lifecycle;
pub(crate) mod lock;
pub(crate) mod mailbox;
mod many_to_many;
pub(crate) mod network;
mod nqueens;
mod ping_pong;
mod quicksort;
mod recover;
mod reply;
mod ring;
mod select;
mod sleep_loop;
mod snapshot;
pub(crate) mod spawn;
mod stall;
mod stall_requests;
mod thread;
pub(crate) mod timers;
mod tree_read;
mod tree_search;
mod tree_write;
mod trim;

mod definition;
mod durable;
mod fifo;
mod forking;
mod holding;
mod host;
mod journal_offenders;
pub(crate) mod kind;
mod large_commits;
pub(crate) mod memory;
mod offender;
mod senders;
mod tally;
mod team;
pub(crate) mod trees;
mod watch;
mod work;

use crate::error::Error;
use crate::nearest;

pub use definition::Workload;
pub(crate) use offender::compute;

/// The metric of how many messages a process receives each time it is polled.
const POLLS: &[&str] = &["messages_per_poll"];

/// What the key `work` means in a row of messages.
const WORK: &str = "work=2us: a process computes for 2 µs before each message that it sends.";

/// All workloads, in the order of the report.
pub static ALL: [Workload; 45] = [
    Workload {
        name: "spawn",
        question: "How light is a process, and does the cost stay flat as their number grows?",
        keys: &["n"],
        optional: &["huge"],
        metrics: &["ns_per_spawn", "bytes_per_process", "ns_per_teardown"],
        explaining: &[],
        remark: "At small sizes the processes may fit into a huge page that was touched before, so \
                 memory that grew by less than 8 MiB is shown but not judged. \
                 Rows with huge=off run without huge pages.",
        run: spawn::run,
    },
    Workload {
        name: "ring",
        question: "What does it cost to wake a parked process with a message?",
        keys: &["n", "m", "tokens"],
        optional: &["work"],
        metrics: &["ns_per_hop", "ms_with_setup"],
        explaining: POLLS,
        remark: WORK,
        run: ring::run,
    },
    Workload {
        name: "mailbox",
        question: "What does a queued message cost in time and memory?",
        keys: &["k", "bytes", "payload"],
        optional: &[],
        metrics: &["ns_per_send", "ns_per_receive", "bytes_per_message"],
        explaining: &[],
        remark: "shared: the text is one static string. fresh: each message owns a copy, \
                 allocated when it is sent and freed when it is received.",
        run: mailbox::run,
    },
    Workload {
        name: "many-to-many",
        question: "What does a message cost when all send to all?",
        keys: &["processes", "messages"],
        optional: &["work"],
        metrics: &["ns_per_message"],
        explaining: POLLS,
        remark: WORK,
        run: many_to_many::run,
    },
    Workload {
        name: "fan-in",
        question: "What does a message cost when many send to one?",
        keys: &["senders", "messages"],
        optional: &["work"],
        metrics: &["ns_per_message"],
        explaining: POLLS,
        remark: WORK,
        run: fan_in::run,
    },
    Workload {
        name: "burst-send",
        question: "What does a message cost when one process sends for long without a wait?",
        keys: &["receivers", "cores"],
        optional: &["messages"],
        metrics: &["ns_per_message"],
        explaining: POLLS,
        remark: "messages is the number for all receivers together, which get one each in turn. \
                 cores=1: the whole program is bound to one processor.",
        run: burst_send::run,
    },
    Workload {
        name: "ping-pong",
        question: "How long does a round trip between two processes take?",
        keys: &["rounds"],
        optional: &[],
        metrics: &["ns_per_round_trip"],
        explaining: &[],
        remark: "",
        run: ping_pong::run,
    },
    lifecycle::WORKLOAD,
    call::WORKLOAD,
    call_behind_queue::WORKLOAD,
    reply::WORKLOAD,
    broadcast::WORKLOAD,
    Workload {
        name: "stall",
        question: "Does one unit that blocks or computes stop the others?",
        keys: &["offenders", "offender", "seconds"],
        optional: &[
            "burst",
            "pingers",
            "what",
            "overtaken",
            "nodes",
            "bytes",
            "dir",
        ],
        metrics: &[
            "ticks",
            "ticks_percent",
            "lateness_p999_ms",
            "lateness_worst_ms",
            "ns_per_hop",
        ],
        explaining: &[
            "named_percent",
            "commit_p50_ms",
            "commit_p999_ms",
            "commit_worst_ms",
        ],
        remark: "ticks_percent compares the ticks with those that the same system made \
                 without offenders in the same round; a single run compares them with the clock. \
                 An offender sleeps 20 ms and then holds its OS thread for 300 ms. \
                 offender=file reads a FIFO that nobody writes, to the end; each tick also reads a small file \
                 and looks up localhost, and is late by what they take; offenders=0 is the row without. \
                 offender=hook blocks in the program's panic hook, unwinding waits in a destructor while a panic \
                 unwinds, receptor blocks in a thread of a receptor, callback in a callback. \
                 offender=sends sends 1,200,000 messages to 60 processes in turn without a wait, and again when they \
                 have received all. \
                 burst=yes: all start at once and offend for 2 s; the ticks count 100 ms later, \
                 the lateness from the start. \
                 offender=commit: offenders make large commits (what) to trees of their own, the commit times are \
                 those of small commits to another tree, one each millisecond. offenders=0 is the row without. \
                 offender=sync, offender=append: the same for buffered commits to a forest on disk, whose syncs take a \
                 second, or to which many bytes are appended at once.",
        run: stall::run,
    },
    Workload {
        name: "handoff",
        question: "How long does a woken process wait while the one that woke it goes on computing?",
        keys: &["rounds"],
        optional: &[],
        metrics: &["lateness_worst_ms", "lateness_p50_ms"],
        explaining: &[],
        remark: "The waking process computes for 50 ms after each wake, \
                 and another worker is idle.",
        run: handoff::run,
    },
    Workload {
        name: "trim",
        question: "How much of the processes' memory is kept after they have ended?",
        keys: &["n"],
        optional: &[],
        metrics: &["growth_kept_percent"],
        explaining: &[],
        remark: "",
        run: trim::run,
    },
    Workload {
        name: "channel",
        question: "What does a message through a channel cost?",
        keys: &["senders", "messages", "kind"],
        optional: &["capacity", "work"],
        metrics: &["ns_per_message"],
        explaining: &[],
        remark: "messages is the number that each sender sends. A channel of kind=rendezvous has no buffer: \
                 sender and receiver wait for each other. work=2us: a sender computes for 2 µs before each message.",
        run: channel::run,
    },
    Workload {
        name: "select",
        question: "What does it cost to receive from whichever of several channels has a message?",
        keys: &["branches", "messages", "kind"],
        optional: &["capacity", "work"],
        metrics: &["ns_per_message"],
        explaining: &[],
        remark: "Each channel has a sender of its own, and messages is the number that each of them sends. \
                 work=2us: a sender computes for 2 µs before each message.",
        run: select::run,
    },
    Workload {
        name: "lock",
        question: "What does it cost to lock and unlock a mutex?",
        keys: &["units", "rounds", "inside"],
        optional: &["work"],
        metrics: &["ns"],
        explaining: &[],
        remark: "ns is per lock, count and unlock. \
                 inside=nothing: on one worker, the lock is hardly ever found held. \
                 inside=yield: each owner yields once while it holds the lock, so that others do. \
                 work=2us: each computes for 2 µs before it locks.",
        run: lock::run,
    },
    Workload {
        name: "condvar",
        question: "How long does a round trip take between two processes that take turns?",
        keys: &["rounds"],
        optional: &[],
        metrics: &["ns"],
        explaining: &[],
        remark: "ns is per round, in which both have a turn. Tokio has no condition variable: \
                 it is measured with Notify, smol with Event, GHC with a transaction that waits.",
        run: condvar::run,
    },
    Workload {
        name: "barrier",
        question: "How long does a meeting of all processes take?",
        keys: &["units", "rounds"],
        optional: &["work"],
        metrics: &["ns"],
        explaining: &[],
        remark: "ns is per round. Go has no barrier: it is measured with a mutex and a \
                 condition variable. work=2us: each computes for 2 µs before each meeting.",
        run: barrier::run,
    },
    Workload {
        name: "footprint",
        question: "How many bytes does an unused lock or channel take?",
        keys: &["n", "what"],
        optional: &[],
        metrics: &["bytes_per_object"],
        explaining: &[],
        remark: "Growth of resident memory, so the allocator's overhead is included. The mutex \
                 guards nothing. A channel has both of its ends; a bounded one has room for one \
                 integer.",
        run: footprint::run,
    },
    Workload {
        name: "callbacks",
        question: "How many bytes does a closure that waits for its time take?",
        keys: &["n", "kind"],
        optional: &["owner"],
        metrics: &["bytes_per_callback", "intercept_bytes", "r", "r2"],
        explaining: &[],
        remark: "Least squares over one to n callbacks, without huge pages. once: a closure that holds two \
                 words. loop: one that sleeps between its rounds. One process owns all, unless the row \
                 says that the runtime does. Rivals use their own means for code that sleeps.",
        run: callbacks::run,
    },
    Workload {
        name: "timers",
        question: "What does a timed callback cost, and how late is it?",
        keys: &["pending"],
        optional: &[],
        metrics: &[
            "ns_per_insert",
            "ns_per_fire",
            "ns_per_cancel",
            "ns_per_after",
            "ns_per_stop",
            "lateness_p99_us",
        ],
        explaining: &[],
        remark: "On warm memory. Insert, fire and cancel measure Weald's timer wheel alone, with the time passed in. \
                 After and stop measure the public calls: start after a duration, with an owner, and cancel by handle. \
                 With two workers or more, one of them computes while lateness is measured.",
        run: timers::run,
    },
    sleep_loop::WORKLOAD,
    idle::WORKLOAD,
    quicksort::WORKLOAD,
    fib::WORKLOAD,
    nqueens::WORKLOAD,
    tree_search::WORKLOAD,
    items::WORKLOAD,
    thread::WORKLOAD,
    tree_read::WORKLOAD,
    tree_write::WORKLOAD,
    hot_tree::WORKLOAD,
    durable::WORKLOAD,
    recover::WORKLOAD,
    watch::WORKLOAD,
    append::WORKLOAD,
    snapshot::WORKLOAD,
    index::WORKLOAD,
    network::ECHO,
    network::HELLO,
    network::IDLE,
    stall_requests::WORKLOAD,
    board::WORKLOAD,
];

/// The names of all workloads.
#[must_use]
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|workload| workload.name).collect()
}

/// The workload with this name, or a sentence that suggests the nearest name.
pub fn find(name: &str) -> Result<&'static Workload, Error> {
    ALL.iter()
        .find(|workload| workload.name == name)
        .ok_or_else(|| Error::Usage(nearest::unknown("workload", name, &names())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::meaning;
    use crate::params::Params;

    #[test]
    fn names_are_found_and_near_misses_suggested() {
        assert_eq!(find("ring").unwrap().name, "ring");
        let sentence = find("many-to-mny").unwrap_err().to_string();
        assert!(sentence.contains("'many-to-many'?"), "{sentence}");
        assert!(sentence.contains("handoff"), "{sentence}");
    }

    #[test]
    fn keys_are_checked() {
        let ring = find("ring").unwrap();
        let check = |words: &[&str]| ring.check(&Params::parse(words).unwrap());
        assert!(check(&["n=1", "m=1", "tokens=1", "workers=2"]).is_ok());
        assert!(
            check(&["n=1", "m=1", "tokens=1"]).is_err(),
            "workers is missing"
        );
        assert!(
            check(&["n=1", "m=1", "workers=1"]).is_err(),
            "tokens is missing"
        );
        assert!(
            check(&["n=1", "m=1", "tokens=1", "workers=2", "x=1"]).is_err(),
            "x is unknown"
        );
    }

    #[test]
    fn size_is_the_first_key() {
        let params = Params::parse(&["m=3", "n=7", "tokens=1"]).unwrap();
        assert_eq!(find("ring").unwrap().size(&params), Some(7));
    }

    #[test]
    fn every_metric_of_every_workload_has_a_meaning() {
        let printable = ALL.iter().flat_map(Workload::printable);
        for name in printable.chain([
            "ticks_percent",
            "speedup_workers",
            "parallel_percent",
            "times_one_worker",
        ]) {
            assert!(meaning(name).is_some(), "{name}");
        }
        assert_eq!(meaning("ns_per_wish"), None);
    }
}
