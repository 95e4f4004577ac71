//! `tree-search`: forks without a cut-off in trees that are not balanced.

use super::definition::Workload;
use super::forking::{EXPLAINING, measured};
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::tree::{Shape, Tree};

pub(super) const WORKLOAD: Workload = Workload {
    name: "tree-search",
    question: "Does a second worker find its half of a tree that is not balanced?",
    keys: &["n", "depth", "shape", "forking"],
    optional: &["pause_us"],
    metrics: &["ms", "ns_per_fork"],
    explaining: EXPLAINING,
    remark: "n is the number of nodes; every run must find all of them. shape=random: a node above the last \
             level has four children on average. shape=left: the first half of the tree is a path of \
             depth nested forks, and the other half is at the right of the root.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let shape = match params.text("shape")? {
        "random" => Shape::Random,
        "left" => Shape::Left,
        other => {
            let sentence = format!("shape={other} is neither random nor left.");
            return Err(Error::Usage(sentence));
        }
    };
    let tree = Tree::of(params.count("n")?, params.count("depth")?, shape);
    measured(params, tree)
}
