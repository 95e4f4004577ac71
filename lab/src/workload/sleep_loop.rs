//! `sleep-loop`: how many sleeps of 5 ms, one begun after the other has ended, fit into two seconds?
//!
//! The run of `stall` without offenders: its ticker alone, or beside its pingers.

use super::definition::Workload;
use super::stall;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;

pub(super) const WORKLOAD: Workload = Workload {
    name: "sleep-loop",
    question: "How late does a short sleep end?",
    keys: &["beside"],
    optional: &[],
    metrics: &["ticks", "lateness_p999_ms", "lateness_worst_ms"],
    explaining: &["ticks_percent", "ns_per_hop"],
    remark: "One unit sleeps 5 ms again and again for two seconds, each time counted from the end of the last: the \
             clock has room for 400 ticks. Alone, or beside 1,000 processes that ping each other.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let pingers = match params.text("beside")? {
        "nothing" => 0,
        "pingers" => 1_000,
        other => {
            let sentence = format!("beside={other} is neither nothing nor pingers.");
            return Err(Error::Usage(sentence));
        }
    };
    let calm = Params::default()
        .with("workers", params.text("workers")?)
        .with("offender", "none")
        .with("offenders", 0)
        .with("pingers", pingers)
        .with("seconds", 2);
    stall::run(&calm)
}
