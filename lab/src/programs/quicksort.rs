//! An ordinary quicksort whose two halves go through a fork.
//!
//! Hoare's partition around the middle element; insertion sort at 50 elements or fewer, and no fork
//! at 400 or fewer.

use super::fork::{Fork, Plain};
use super::measure::Program;
use super::tree::mix;

const INSERTED: usize = 50;
const FORKED_ABOVE: usize = 400;

/// The data to sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// The generator `state = (2017 state + 2020) mod 2027`, seeded with 7: many equal elements.
    Seed,
    /// A random permutation of the numbers from 0.
    Random,
}

/// One array to sort.
#[derive(Clone, Debug)]
pub struct Quicksort {
    given: Vec<u32>,
    work: Vec<u32>,
    sorted: Vec<u32>,
}

impl Quicksort {
    /// An array of `n` elements; `None` if the element numbers do not fit.
    #[must_use]
    pub fn of(n: usize, data: Data) -> Option<Self> {
        let length = u32::try_from(n).ok()?;
        let given = match data {
            Data::Seed => seed(n),
            Data::Random => permutation(length),
        };
        let mut sorted = given.clone();
        sorted.sort_unstable();
        let work = given.clone();
        Some(Self {
            given,
            work,
            sorted,
        })
    }
}

fn seed(n: usize) -> Vec<u32> {
    let mut state = 7;
    let next = || {
        state = (state * 2017 + 2020) % 2027;
        state + 1
    };
    std::iter::repeat_with(next).take(n).collect()
}

/// Fisher and Yates's shuffle: element `i` changes places with a random one that is not behind it.
fn permutation(n: u32) -> Vec<u32> {
    let mut data: Vec<u32> = (0..n).collect();
    let mut state = 0;
    for (place, bound) in (1..data.len()).zip(2_u64..) {
        state += 1;
        let other = usize::try_from(mix(state) % bound).expect("usize has 64 bits");
        data.swap(place, other);
    }
    data
}

impl Program for Quicksort {
    fn reset(&mut self) {
        self.work.copy_from_slice(&self.given);
    }

    fn run<F: Fork>(&mut self, scope: &mut F::Scope<'_>) {
        sort::<F>(scope, &mut self.work);
    }

    fn check(&self) -> Result<(), String> {
        if self.work == self.sorted {
            return Ok(());
        }
        Err("The array is not sorted, or its elements are not those that were given.".to_owned())
    }

    fn run_serial_part(&mut self) -> bool {
        let forked = self.work.len() > FORKED_ABOVE;
        if forked {
            partition(&mut self.work);
        }
        forked
    }
}

fn sort<F: Fork>(scope: &mut F::Scope<'_>, data: &mut [u32]) {
    let length = data.len();
    if length <= INSERTED {
        insert(data);
        return;
    }
    let (left, right) = partition(data);
    if length <= FORKED_ABOVE {
        sort::<Plain>(&mut (), left);
        sort::<Plain>(&mut (), right);
    } else {
        F::join(
            scope,
            |scope| sort::<F>(scope, left),
            |scope| sort::<F>(scope, right),
        );
    }
}

/// Moves what is smaller than the pivot before what is greater. The elements between the two parts
/// equal the pivot and are in their place.
fn partition(data: &mut [u32]) -> (&mut [u32], &mut [u32]) {
    let pivot = data[data.len() / 2];
    // The right end is one past its element, so that it never goes below zero.
    let (mut left, mut right) = (0, data.len());
    loop {
        while data[left] < pivot {
            left += 1;
        }
        while data[right - 1] > pivot {
            right -= 1;
        }
        if left >= right {
            break;
        }
        data.swap(left, right - 1);
        left += 1;
        right -= 1;
        if left >= right {
            break;
        }
    }
    let (before, behind) = data.split_at_mut(left);
    (&mut before[..right], behind)
}

fn insert(data: &mut [u32]) {
    for sorted in 1..data.len() {
        let element = data[sorted];
        let mut place = sorted;
        while place > 0 && data[place - 1] > element {
            data[place] = data[place - 1];
            place -= 1;
        }
        data[place] = element;
    }
}
