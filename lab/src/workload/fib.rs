//! `fib`: what does a fork cost where next to nothing is done between forks?

use super::Workload;
use super::forking::{EXPLAINING, measured};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::fib::Fib;

pub(super) const WORKLOAD: Workload = Workload {
    name: "fib",
    question: "What does a fork cost where next to nothing is done between two of them?",
    keys: &["n", "forking"],
    optional: &[],
    metrics: &["ms", "ns_per_fork"],
    explaining: EXPLAINING,
    remark: "Every addition is a fork. The serial program is the same source with two calls, which the \
             compiler inlines into each other as it likes; ms_outlined is with calls that it may not \
             inline.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    measured(params, Fib::of(params.count("n")?))
}
