//! Rayon's adapters, for the workload `items`.

use common::programs::items::{Adapters, CHUNK, is_kept, last_byte, mix};
use rayon::prelude::*;

/// Rayon's adapters.
pub(crate) enum Items {}

impl Adapters for Items {
    fn filter(numbers: &[u64]) -> Vec<u64> {
        let numbers = numbers.par_iter().copied();
        numbers.filter(|number| is_kept(*number)).map(mix).collect()
    }

    fn chunks(numbers: &mut [u64]) {
        let chunks = numbers.par_chunks_mut(CHUNK).enumerate();
        chunks.for_each(|(index, chunk)| {
            for number in chunk {
                *number = mix(*number + index as u64);
            }
        });
    }

    fn zip(numbers: &mut [u64], others: &[u64]) {
        let pairs = numbers.par_iter_mut().zip(others);
        pairs.for_each(|(number, other)| *number = number.wrapping_add(*other));
    }

    fn fold(numbers: &[u64]) -> Vec<u64> {
        let empty = || vec![0; 256];
        let count = |mut counts: Vec<u64>, number: &u64| {
            counts[last_byte(*number)] += 1;
            counts
        };
        numbers
            .par_iter()
            .fold(empty, count)
            .reduce(empty, |mut left, right| {
                left.iter_mut()
                    .zip(right)
                    .for_each(|(left, right)| *left += right);
                left
            })
    }

    fn flat_map(numbers: &[u64]) -> u64 {
        numbers
            .par_iter()
            .flat_map_iter(|number| 0..number % 4)
            .sum()
    }

    fn find(numbers: &[u64], wanted: u64) -> Option<u64> {
        numbers
            .par_iter()
            .copied()
            .find_any(|number| mix(*number) == wanted)
    }

    fn sort<T: Ord + Send>(items: &mut [T]) {
        items.par_sort();
    }

    fn sort_unstable<T: Ord + Send>(items: &mut [T]) {
        items.par_sort_unstable();
    }
}
