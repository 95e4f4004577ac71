//! `nqueens`: forks without a cut-off, each of which copies a board.

use super::definition::Workload;
use super::forking::{EXPLAINING, measured};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::queens::Queens;

pub(super) const WORKLOAD: Workload = Workload {
    name: "nqueens",
    question: "Does a search gain from a second worker if it forks down to its leaves?",
    keys: &["n", "forking"],
    optional: &["pause_us"],
    metrics: &["ms", "ns_per_fork"],
    explaining: EXPLAINING,
    remark: "",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    measured(params, Queens::of(params.count("n")?))
}
