//! Reads `WORKLOAD key=value ...`, the one form in which every measured program is called.
//!
//! Invariants: an unknown workload or key ends the program with exit code 2 before anything starts, and so does a
//! missing key or a wrong value where it is read; `--version` prints one line and ends it with 0. Keys are read before
//! the clock starts.

use std::collections::BTreeMap;

use crate::report::{bad_usage, tell_version};

/// The workloads and servers, each with its keys besides `workers`.
const WORKLOADS: [(&str, &str); 40] = [
    ("spawn", "n"),
    ("ring", "n m tokens"),
    ("mailbox", "k bytes payload"),
    ("many-to-many", "processes messages"),
    ("fan-in", "senders messages"),
    ("ping-pong", "rounds"),
    ("burst-send", "receivers cores messages"),
    ("lifecycle", "n"),
    ("call", "rounds callee timeout"),
    ("call-behind-queue", "waiting rounds"),
    ("broadcast", "members rounds"),
    ("demo", "processes seconds"),
    ("stall", "offender offenders burst seconds pingers"),
    ("sleep-loop", "beside"),
    ("handoff", "rounds"),
    ("channel", "senders messages kind capacity"),
    ("select", "branches messages kind capacity"),
    ("lock", "units rounds inside"),
    ("condvar", "rounds"),
    ("barrier", "units rounds"),
    ("footprint", "n what"),
    ("callbacks", "n kind"),
    ("timers", "pending"),
    ("quicksort", "n data forking pause_us"),
    ("fib", "n forking pause_us"),
    ("nqueens", "n forking pause_us"),
    ("tree-search", "n depth shape forking pause_us"),
    ("items", "n chain"),
    ("thread", "n what threads"),
    ("tree-read", "nodes tasks what"),
    ("tree-write", "trees nodes mode"),
    ("hot-tree", "writers commits nodes kind retention"),
    ("append", "children commits"),
    ("snapshot", "reads nodes what"),
    ("durable", "writers commits level dir"),
    ("echo", "connections requests"),
    ("hello", "connections requests"),
    ("idle-connections", "connections rest_ms asked"),
    ("board", "connections requests op durability seconds"),
    ("stall-requests", "offender offenders seconds"),
];

/// The keys that may be left out.
const OPTIONAL: &str = "capacity pause_us threads what asked dir durability seconds";
/// The keys whose value is no number.
const WORDS: &str = "payload callee timeout offender burst beside kind inside what data forking shape chain mode \
                     retention level dir asked op durability";
/// The numbers that may be 0.
const FROM_ZERO: &str = "waiting offenders pingers pause_us rest_ms";

/// What a server serves.
const SERVERS: [&str; 3] = ["serve-echo", "serve-hello", "serve-board"];

/// One call of a rival: what to measure, and on how many workers.
#[derive(Debug)]
pub struct Call {
    /// The name of the workload, or what a server serves.
    pub workload: String,
    /// How many OS threads run processes.
    pub workers: usize,
    keys: BTreeMap<String, String>,
}

/// What a channel does with a message that no receiver waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It has room for this many messages; then senders wait.
    Bounded(usize),
    /// It always has room.
    Unbounded,
    /// It has no room: sender and receiver wait for each other.
    Rendezvous,
}

/// All keys that there are.
pub fn all_keys() -> impl Iterator<Item = &'static str> {
    let keys = WORKLOADS.iter().flat_map(|(_, keys)| keys.split(' '));
    keys.chain(["workers"])
}

fn is_one_of(key: &str, keys: &str) -> bool {
    keys.split(' ').any(|known| known == key)
}

/// The arguments of a program that starts another one, as that program with its arguments, and the call. If they ask
/// for the version, the program tells its own.
pub fn split(arguments: &[String]) -> (&[String], &'static Call) {
    let is_ours =
        |word: &String| word == "--version" || WORKLOADS.iter().any(|(name, _)| name == word);
    let Some(at) = arguments.iter().position(is_ours) else {
        bad_usage("Call it as PROGRAM ... WORKLOAD key=value ..., or with --version.");
    };
    let (program, call) = arguments.split_at(at);
    if call[0] == "--version" {
        tell_version(program);
    }
    (program, Call::parse(call, ""))
}

impl Call {
    /// Reads the arguments that follow those that choose the rival; `version` is what `--version` prints. It lives
    /// until the program ends.
    pub fn parse(arguments: &[String], version: &str) -> &'static Self {
        let Some((workload, pairs)) = arguments.split_first() else {
            bad_usage(
                "No workload is given: call it as WORKLOAD key=value ..., or with --version.",
            );
        };
        if workload == "--version" {
            println!("{version}");
            std::process::exit(0);
        }
        let known = WORKLOADS.iter().find(|(name, _)| name == workload);
        let keys = match known {
            Some((_, keys)) => keys,
            None if SERVERS.contains(&workload.as_str()) => "",
            None => bad_usage(&format!(
                "The workload `{workload}` is unknown: see the README."
            )),
        };
        let mut call = Self {
            workload: workload.clone(),
            workers: 0,
            keys: BTreeMap::new(),
        };
        for pair in pairs {
            call.add(pair, keys);
        }
        call.workers = call.count("workers");
        Box::leak(Box::new(call))
    }

    fn add(&mut self, pair: &str, keys: &str) {
        let Some((key, value)) = pair.split_once('=') else {
            bad_usage(&format!(
                "The argument `{pair}` is not of the form key=value."
            ));
        };
        if key != "workers" && !is_one_of(key, keys) {
            bad_usage(&format!(
                "The key `{key}` does not belong to this workload: leave it out."
            ));
        }
        if self.keys.insert(key.to_owned(), value.to_owned()).is_some() {
            bad_usage(&format!("The key `{key}` is given twice: give it once."));
        }
    }

    /// All keys with their values, for a program that trusts them: none is missing, and numbers are numbers. Which
    /// words a key takes is for the program to say.
    pub fn checked(&self) -> impl Iterator<Item = (&str, &str)> {
        let known = WORKLOADS.iter().find(|(name, _)| *name == self.workload);
        for key in known.map_or("", |(_, keys)| keys).split_whitespace() {
            if is_one_of(key, OPTIONAL) && self.optional(key).is_none() {
                continue;
            }
            if is_one_of(key, WORDS) {
                self.text(key);
            } else {
                self.number(key, u64::from(!is_one_of(key, FROM_ZERO)));
            }
        }
        self.keys
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// A whole number of at least 1.
    pub fn count(&self, key: &str) -> usize {
        usize::try_from(self.number(key, 1)).expect("usize has 64 bits")
    }

    /// A whole number of at least `least`.
    pub fn number(&self, key: &str, least: u64) -> u64 {
        match self.text(key).parse() {
            Ok(number) if number >= least => number,
            _ => bad_usage(&format!(
                "The key `{key}` takes a whole number of at least {least}."
            )),
        }
    }

    /// What the value of a key means, which is one of these words.
    pub fn word<T: Copy>(&self, key: &str, known: &[(&str, T)]) -> T {
        let value = self.text(key);
        let found = known.iter().find(|(word, _)| *word == value);
        found.map_or_else(
            || {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                let words = words.join(", ");
                bad_usage(&format!(
                    "The key `{key}` takes one of these here: {words}."
                ))
            },
            |(_, meant)| *meant,
        )
    }

    /// Whether the value of a key is `yes`, and not `no`.
    pub fn is_yes(&self, key: &str) -> bool {
        self.word(key, &[("yes", true), ("no", false)])
    }

    /// The kind of a channel.
    pub fn kind(&self) -> Kind {
        match self.text("kind") {
            "bounded" => Kind::Bounded(self.count("capacity")),
            "unbounded" => Kind::Unbounded,
            "rendezvous" => Kind::Rendezvous,
            _ => bad_usage("The key `kind` takes `bounded`, `unbounded` or `rendezvous`."),
        }
    }

    /// The value of a key.
    pub fn text(&self, key: &str) -> &str {
        self.optional(key).unwrap_or_else(|| {
            bad_usage(&format!(
                "The key `{key}` is missing: give it as {key}=VALUE."
            ))
        })
    }

    /// The value of a key that may be left out.
    pub fn optional(&self, key: &str) -> Option<&str> {
        self.keys.get(key).map(String::as_str)
    }
}

impl Kind {
    /// How many messages there is room for; `None` means unbounded.
    pub fn room(self) -> Option<usize> {
        match self {
            Self::Bounded(capacity) => Some(capacity),
            Self::Rendezvous => Some(0),
            Self::Unbounded => None,
        }
    }
}
