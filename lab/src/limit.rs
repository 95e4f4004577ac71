//! The limit programs: for a row, the least code of our own that does its work and promises nothing.
//!
//! There is no isolation, no fairness, no monitor and nothing that a second thread could touch, except where two
//! threads must meet. Figures of two processors cannot be compared, but a figure as a multiple of the limit
//! program's in the same run can.
//!
//! Invariants:
//! - a limit program obeys the protocol of `bench_one` and prints a part of its workload's metrics;
//! - its result is checked, and it does the steps that the workload is about, one by one: a message is queued and
//!   taken out again, a unit is put into a queue and run through a function pointer;
//! - only safe code: indices into arrays instead of pointers.

mod barrier;
mod call;
mod channel;
mod fan_in;
mod fib;
mod hello;
mod lock;
mod mailbox;
mod many_to_many;
mod ping_pong;
mod queue;
mod ring;
mod select;
mod spawn;
mod thread;
mod timers;
mod tree;
mod wheel;
mod world;

use crate::error::Error;
use crate::metric::Metric;
use crate::nearest;
use crate::params::Params;
use crate::workload;

/// The name of the system in every record, and the word before the workload on the command line.
pub const NAME: &str = "limit";

/// The limit program of one workload.
#[derive(Debug)]
pub struct Limit {
    /// The workload.
    pub workload: &'static str,
    /// Whether it uses as many threads as there are workers; otherwise one, because a second would only add the
    /// way between two processors.
    pub is_parallel: bool,
    /// Whether it has a program for this kind of row.
    takes: fn(&Params) -> bool,
    run: fn(&Params) -> Result<Vec<Metric>, Error>,
}

/// A program that takes all rows, on one thread.
const fn on_one_thread(
    workload: &'static str,
    run: fn(&Params) -> Result<Vec<Metric>, Error>,
) -> Limit {
    Limit {
        workload,
        is_parallel: false,
        takes: |_| true,
        run,
    }
}

impl Limit {
    /// Whether there is a program for a row with these parameters. Work of the units would only hide the limit.
    #[must_use]
    pub fn takes(&self, params: &Params) -> bool {
        (self.takes)(params) && params.get("work").is_none_or(|work| work == "none")
    }
}

/// All limit programs.
pub static ALL: [Limit; 18] = [
    on_one_thread("spawn", spawn::run),
    on_one_thread("ring", ring::run),
    on_one_thread("mailbox", mailbox::run),
    on_one_thread("ping-pong", ping_pong::run),
    on_one_thread("fan-in", fan_in::run),
    on_one_thread("many-to-many", many_to_many::run),
    Limit {
        workload: "call",
        is_parallel: false,
        takes: call::takes,
        run: call::run,
    },
    on_one_thread("timers", timers::run),
    on_one_thread("channel", channel::run),
    Limit {
        workload: "select",
        is_parallel: false,
        takes: select::takes,
        run: select::run,
    },
    on_one_thread("lock", lock::run),
    on_one_thread("barrier", barrier::run),
    on_one_thread("hot-tree", tree::hot),
    Limit {
        workload: "tree-read",
        is_parallel: true,
        takes: |_| true,
        run: tree::read,
    },
    Limit {
        workload: "tree-write",
        is_parallel: true,
        takes: |_| true,
        run: tree::write,
    },
    Limit {
        workload: "thread",
        is_parallel: false,
        takes: thread::takes,
        run: thread::run,
    },
    Limit {
        workload: "fib",
        is_parallel: true,
        takes: fib::takes,
        run: fib::run,
    },
    Limit {
        workload: "hello",
        is_parallel: true,
        takes: |_| true,
        run: |params| hello::run(NAME, params),
    },
];

/// The limit program of the workload with this name.
#[must_use]
pub fn find(workload: &str) -> Option<&'static Limit> {
    ALL.iter().find(|limit| limit.workload == workload)
}

/// Runs the limit program whose workload is the first word, with the `key=value` arguments that follow it.
pub fn run(words: &[String]) -> Result<Vec<Metric>, Error> {
    let Some((name, words)) = words.split_first() else {
        return Err(Error::Usage("Name a workload after 'limit'.".into()));
    };
    let params = Params::parse(words)?;
    if name == hello::SERVER {
        return hello::serve(&params).map(|()| Vec::new());
    }
    let known: Vec<&str> = ALL.iter().map(|limit| limit.workload).collect();
    let limit =
        find(name).ok_or_else(|| Error::Usage(nearest::unknown("limit program", name, &known)))?;
    workload::find(name)?.check(&params)?;
    if !limit.takes(&params) {
        let sentence = format!("There is no limit program for {name} {params}.");
        return Err(Error::Usage(sentence));
    }
    (limit.run)(&params)
}
