//! Reads `WORKLOAD key=value ...`, the one form in which every measured program is called.
//!
//! Invariants: an unknown workload, an unknown key, a missing key or a wrong value ends the program
//! with exit code 2; `--version` prints one line and ends it with 0. Called once, first thing in
//! `main`.

use std::collections::BTreeMap;

use crate::forking::Forking;
use crate::processes::Processes;
use crate::programs::items::Chain;
use crate::report::bad_usage;
use crate::sleeping::Sleeping;
use crate::stalling::Stall;
use crate::threading::Threading;
use crate::waiting::Waiting;

/// One call of a rival: what to measure, and on how many workers.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// What to measure.
    pub workload: Workload,
    /// How many OS threads run processes.
    pub workers: usize,
}

/// A workload with its parameters.
#[derive(Clone, Copy, Debug)]
pub enum Workload {
    /// Start `n` processes, then end them.
    Spawn {
        /// How many processes.
        n: usize,
    },
    /// Send tokens round a ring of processes.
    Ring {
        /// How many processes.
        n: usize,
        /// How many rounds each token makes.
        m: u64,
        /// How many tokens go round at once; at most `n`.
        tokens: usize,
    },
    /// One process sends itself messages and then receives them.
    Mailbox {
        /// How many messages.
        k: usize,
        /// How long the text of each message is.
        bytes: usize,
        /// Whether the messages share one text.
        payload: Payload,
    },
    /// Processes send to pseudo-random others.
    ManyToMany {
        /// How many processes.
        processes: usize,
        /// How many messages each sends.
        messages: usize,
    },
    /// Many senders, one receiver.
    FanIn {
        /// How many senders.
        senders: usize,
        /// How many messages each sends.
        messages: usize,
    },
    /// Two processes send one small integer back and forth.
    PingPong {
        /// How many round trips.
        rounds: u64,
    },
    /// One process sends to each of its receivers in turn.
    BurstSend {
        /// How many receivers.
        receivers: usize,
        /// How many messages each of them gets.
        each: usize,
        /// How many processors the whole program may use.
        cores: usize,
    },
    /// Processes tick while units block, compute, panic and deadlock; it prints lines instead of metrics.
    Demo {
        /// How many processes tick.
        processes: u32,
        /// For how many seconds.
        seconds: u64,
    },
    /// A ticker and pingers beside units that do not yield.
    Stall(Stall),
    /// A unit wakes another one and then computes.
    Handoff {
        /// How many times.
        rounds: u64,
    },
    /// A workload of processes that know of each other.
    Processes(Processes),
    /// A workload of channels, locks and the like.
    Waiting(Waiting),
    /// A workload of units that sleep.
    Sleeping(Sleeping),
    /// A program that forks and joins.
    Forking(Forking),
    /// What a thread of direct-style code costs.
    Thread(Threading),
    /// A chain of adapters over many numbers.
    Items {
        /// How many numbers.
        n: usize,
        /// Which chain.
        chain: Chain,
    },
}

/// Where the text of a `mailbox` message comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// All messages refer to one text.
    Shared,
    /// Each message has a copy of its own, freed when it is received.
    Fresh,
}

impl Call {
    /// Reads the arguments of the process; `version` is what `--version` prints.
    pub fn from_env(version: &str) -> Self {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        Self::parse(&arguments, version)
    }

    /// Reads the given arguments; for rivals that take an option of their own before them.
    pub fn parse(arguments: &[String], version: &str) -> Self {
        let Some((workload, pairs)) = arguments.split_first() else {
            bad_usage(
                "No workload is given: call it as WORKLOAD key=value ..., or with --version.",
            );
        };
        if workload == "--version" {
            println!("{version}");
            std::process::exit(0);
        }
        let mut keys = Keys::read(pairs);
        let workload = keys.workload(workload);
        let workers = keys.count("workers");
        keys.finish();
        Self { workload, workers }
    }
}

/// The `key=value` arguments that have not been asked for yet.
pub(crate) struct Keys(BTreeMap<String, String>);

impl Keys {
    pub(crate) fn read(pairs: &[String]) -> Self {
        let mut keys = BTreeMap::new();
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                bad_usage(&format!(
                    "The argument `{pair}` is not of the form key=value."
                ));
            };
            if keys.insert(key.to_owned(), value.to_owned()).is_some() {
                bad_usage(&format!("The key `{key}` is given twice: give it once."));
            }
        }
        Self(keys)
    }

    fn workload(&mut self, name: &str) -> Workload {
        match name {
            "spawn" => Workload::Spawn { n: self.count("n") },
            "ring" => self.ring(),
            "mailbox" => Workload::Mailbox {
                k: self.count("k"),
                bytes: self.count("bytes"),
                payload: self.payload(),
            },
            "many-to-many" => Workload::ManyToMany {
                processes: self.count("processes"),
                messages: self.count("messages"),
            },
            "fan-in" => Workload::FanIn {
                senders: self.count("senders"),
                messages: self.count("messages"),
            },
            "ping-pong" => Workload::PingPong {
                rounds: self.number("rounds", 1),
            },
            "burst-send" => self.burst_send(),
            "demo" => Workload::Demo {
                processes: u32::try_from(self.count("processes"))
                    .unwrap_or_else(|_| bad_usage("There are too many processes.")),
                seconds: self.number("seconds", 1),
            },
            "stall" => Workload::Stall(self.stall()),
            "sleep-loop" => Workload::Stall(self.sleep_loop()),
            "handoff" => Workload::Handoff {
                rounds: self.number("rounds", 1),
            },
            "items" => Workload::Items {
                n: self.count("n"),
                chain: Chain::named(&self.take("chain"))
                    .unwrap_or_else(|| bad_usage("There is no such chain of adapters.")),
            },
            "thread" => Workload::Thread(self.threading()),
            _ => self.other(name).unwrap_or_else(|| {
                bad_usage(&format!(
                    "The workload `{name}` is unknown: see the README."
                ))
            }),
        }
    }

    /// The workloads that have a file of their own.
    fn other(&mut self, name: &str) -> Option<Workload> {
        let waiting = self.waiting(name).map(Workload::Waiting);
        let sleeping = || self.sleeping(name).map(Workload::Sleeping);
        let other = waiting.or_else(sleeping);
        let other = other.or_else(|| self.processes(name).map(Workload::Processes));
        other.or_else(|| self.forking(name).map(Workload::Forking))
    }

    fn burst_send(&mut self) -> Workload {
        let (receivers, messages) = (self.count("receivers"), self.count("messages"));
        Workload::BurstSend {
            receivers,
            each: messages.div_ceil(receivers),
            cores: self.count("cores"),
        }
    }

    fn ring(&mut self) -> Workload {
        let (n, m, tokens) = (self.count("n"), self.number("m", 1), self.count("tokens"));
        if tokens > n {
            bad_usage("There are more tokens than processes: give tokens <= n.");
        }
        Workload::Ring { n, m, tokens }
    }

    fn payload(&mut self) -> Payload {
        match self.take("payload").as_str() {
            "shared" => Payload::Shared,
            "fresh" => Payload::Fresh,
            _ => bad_usage("The key `payload` takes `shared` or `fresh`."),
        }
    }

    pub(crate) fn count(&mut self, key: &str) -> usize {
        usize::try_from(self.number(key, 1)).expect("usize has 64 bits")
    }

    pub(crate) fn number(&mut self, key: &str, least: u64) -> u64 {
        match self.take(key).parse() {
            Ok(number) if number >= least => number,
            _ => bad_usage(&format!(
                "The key `{key}` takes a whole number of at least {least}."
            )),
        }
    }

    pub(crate) fn take(&mut self, key: &str) -> String {
        self.0.remove(key).unwrap_or_else(|| {
            bad_usage(&format!(
                "The key `{key}` is missing: give it as {key}=VALUE."
            ))
        })
    }

    pub(crate) fn take_optional(&mut self, key: &str) -> Option<String> {
        self.0.remove(key)
    }

    pub(crate) fn finish(self) {
        if let Some(key) = self.0.keys().next() {
            bad_usage(&format!(
                "The key `{key}` does not belong to this workload: leave it out."
            ));
        }
    }
}
