//! `quicksort`: an ordinary quicksort with one line changed, so that its halves are forked.

use super::definition::Workload;
use super::forking::measured;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::quicksort::{Data, Quicksort};

pub(super) const WORKLOAD: Workload = Workload {
    name: "quicksort",
    question: "Does forking cost almost nothing, and do two workers halve the time?",
    keys: &["n", "data", "forking"],
    optional: &["pause_us"],
    metrics: &["ms", "speedup"],
    explaining: &[
        "speedup_outlined",
        "ms_serial",
        "ms_outlined",
        "speedup_bound",
    ],
    remark: "speedup is against the same source with two calls in place of a fork, run in turns with \
             it. The first partition cannot be shared: speedup_bound is what the workers could reach \
             if all the rest were shared without loss. Single rounds scatter by a tenth, so a speedup of \
             few runs may be above its bound.",
    run,
};

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let data = match params.text("data")? {
        "seed" => Data::Seed,
        "random" => Data::Random,
        other => {
            let sentence = format!("data={other} is neither seed nor random.");
            return Err(Error::Usage(sentence));
        }
    };
    measured(params, Quicksort::of(params.count("n")?, data))
}
