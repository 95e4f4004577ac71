//! `fib`: what does a fork cost where almost no work is done between forks?

use super::definition::Workload;
use super::forking::{EXPLAINING, measured};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::fib::Fib;

pub(super) const WORKLOAD: Workload = Workload {
    name: "fib",
    question: "What does a fork cost where there is almost no work between forks?",
    keys: &["n", "forking"],
    optional: &["pause_us"],
    metrics: &["ms", "ns_per_fork"],
    explaining: EXPLAINING,
    remark: "Every addition is a fork. The serial program is the same source with plain calls, which the \
             compiler may inline into each other; ms_outlined is measured with calls that it may not \
             inline.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    measured(params, Fib::of(params.count("n")?))
}
