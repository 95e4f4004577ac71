//! The workloads of what processes have beyond messages: links and exits, calls, groups.
//!
//! Only `args` reads them, from the same keys in every rival.

use crate::args::Keys;
use crate::report::bad_usage;

/// A workload of processes that know of each other, with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Processes {
    /// One process links and monitors others and learns of their ends.
    Lifecycle {
        /// How many others.
        n: usize,
    },
    /// One process makes requests to another one.
    Call {
        /// How many requests.
        rounds: u64,
        /// Whether the system's own kind of servers answers, in place of a loop.
        is_server: bool,
        /// Whether the caller waits for five seconds at most.
        has_timeout: bool,
    },
    /// The same without a limit, while messages wait in the caller's mailbox.
    CallBehindQueue {
        /// How many messages.
        waiting: usize,
        /// How many requests.
        rounds: u64,
    },
    /// One process sends to all members of a group.
    Broadcast {
        /// How many members.
        members: usize,
        /// How many messages each of them gets.
        rounds: usize,
    },
}

impl Keys {
    /// The workload of processes with this name, if it is one.
    pub(crate) fn processes(&mut self, name: &str) -> Option<Processes> {
        Some(match name {
            "lifecycle" => Processes::Lifecycle { n: self.count("n") },
            "call" => Processes::Call {
                rounds: self.number("rounds", 1),
                is_server: self.is_server(),
                has_timeout: self.one_of("timeout", "yes", "no"),
            },
            "call-behind-queue" => Processes::CallBehindQueue {
                waiting: usize::try_from(self.number("waiting", 0)).expect("usize has 64 bits"),
                rounds: self.number("rounds", 1),
            },
            "broadcast" => Processes::Broadcast {
                members: self.count("members"),
                rounds: self.count("rounds"),
            },
            _ => return None,
        })
    }

    /// Whether `callee` is a server. A process that answers and one that answers through a oneshot are the same here.
    fn is_server(&mut self) -> bool {
        match self.take("callee").as_str() {
            "server" => true,
            "process" | "oneshot" => false,
            _ => bad_usage("The key `callee` takes `process`, `oneshot` or `server`."),
        }
    }

    /// Whether the value of a key is `yes`, and not `no`.
    fn one_of(&mut self, key: &str, yes: &str, no: &str) -> bool {
        match self.take(key) {
            value if value == yes => true,
            value if value == no => false,
            _ => bad_usage(&format!("The key `{key}` takes `{yes}` or `{no}`.")),
        }
    }
}
