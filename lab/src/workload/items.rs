//! `items`: chains of adapters in the shape of iterators, on several workers.

use weald::fork;

use super::definition::{Workload, workers};
use super::forking::{Weald, metrics};
use super::host::build;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::items::{Adapters, CHUNK, Chain, is_kept, last_byte, measured, mix};

pub(super) const WORKLOAD: Workload = Workload {
    name: "items",
    question: "Do chains of adapters cost no more than the standard library's, and do workers share them?",
    keys: &["n", "chain"],
    optional: &[],
    metrics: &["ms", "speedup"],
    explaining: &["ms_serial"],
    remark: "speedup is against the same chain of the standard library's iterators, in turns. zip moves much memory \
             and computes little, so its bound is the memory's bandwidth. Of texts there are n/10.",
    run,
};

/// Weald's adapters.
enum Items {}

impl Adapters for Items {
    fn filter(numbers: &[u64]) -> Vec<u64> {
        let numbers = fork::items(numbers).map(|number| *number);
        numbers.filter(|number| is_kept(*number)).map(mix).collect()
    }

    fn chunks(numbers: &mut [u64]) {
        let chunks = fork::items(numbers).chunks_mut(CHUNK).enumerate();
        chunks.for_each(|(index, chunk)| {
            for number in chunk {
                *number = mix(*number + index as u64);
            }
        });
    }

    fn zip(numbers: &mut [u64], others: &[u64]) {
        let pairs = fork::items(numbers).zip(others);
        pairs.for_each(|(number, other)| *number = number.wrapping_add(*other));
    }

    fn fold(numbers: &[u64]) -> Vec<u64> {
        fork::items(numbers).fold(
            || vec![0; 256],
            |mut counts, number| {
                counts[last_byte(*number)] += 1;
                counts
            },
            |mut left, right| {
                left.iter_mut()
                    .zip(right)
                    .for_each(|(left, right)| *left += right);
                left
            },
        )
    }

    fn flat_map(numbers: &[u64]) -> u64 {
        fork::items(numbers).flat_map(|number| 0..number % 4).sum()
    }

    fn find(numbers: &[u64], wanted: u64) -> Option<u64> {
        fork::items(numbers)
            .find_any(|number| mix(**number) == wanted)
            .copied()
    }

    fn sort<T: Ord + Send>(items: &mut [T]) {
        fork::sort(items);
    }

    fn sort_unstable<T: Ord + Send>(items: &mut [T]) {
        fork::sort_unstable(items);
    }
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let name = params.text("chain")?;
    let chain = Chain::named(name)
        .ok_or_else(|| Error::Usage(format!("chain={name} is not a chain of adapters.")))?;
    let weald = Weald {
        runtime: build(params, 1)?,
        workers: workers(params)?,
    };
    metrics(measured::<_, Items>(&weald, chain, params.count("n")?))
}
