//! Short chains of adapters over a million numbers, and sorts: what a user of parallel iterators writes all day.
//!
//! The chains are the same on every system, but each has its own adapters, so a system implements [`Adapters`]. Runs on
//! a system and on the iterators of the standard library take turns, and every answer is checked against those.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::fork::Fork;
use super::measure::{Figure, ForkSystem};

/// The chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chain {
    /// Filter, map, collect.
    Filter,
    /// Change chunks by their number.
    Chunks,
    /// Add one vector to another.
    Zip,
    /// Count the last bytes.
    Fold,
    /// Up to three items of each, added up.
    FlatMap,
    /// Look for the last item.
    Find,
    /// Sort numbers; equal ones keep their order.
    Sort,
    /// Sort numbers.
    SortUnstable,
    /// Sort texts, a tenth as many; equal ones keep their order.
    SortTexts,
    /// Sort as many texts.
    SortTextsUnstable,
}

impl Chain {
    /// The chain with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "filter" => Self::Filter,
            "chunks" => Self::Chunks,
            "zip" => Self::Zip,
            "fold" => Self::Fold,
            "flat-map" => Self::FlatMap,
            "find" => Self::Find,
            "sort" => Self::Sort,
            "sort-unstable" => Self::SortUnstable,
            "sort-texts" => Self::SortTexts,
            "sort-texts-unstable" => Self::SortTextsUnstable,
            _ => return None,
        })
    }
}

/// The items of a chunk.
pub const CHUNK: usize = 1_000;

/// The chains on one system. What is passed to each is the same for all systems.
pub trait Adapters {
    /// The numbers that [`is_kept`] keeps, each mixed.
    fn filter(numbers: &[u64]) -> Vec<u64>;
    /// Adds the number of its chunk to each number, and mixes it.
    fn chunks(numbers: &mut [u64]);
    /// Adds to each number the one at the same place.
    fn zip(numbers: &mut [u64], others: &[u64]);
    /// How often each last byte occurs.
    fn fold(numbers: &[u64]) -> Vec<u64>;
    /// The sum of all numbers below the last two bits of each.
    fn flat_map(numbers: &[u64]) -> u64;
    /// The number that mixes to `wanted`.
    fn find(numbers: &[u64], wanted: u64) -> Option<u64>;
    /// Sorts; equal items keep their order.
    fn sort<T: Ord + Send>(items: &mut [T]);
    /// Sorts; equal items may change places.
    fn sort_unstable<T: Ord + Send>(items: &mut [T]);
}

/// Some work on a number.
#[must_use]
pub fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number ^ (number >> 27)
}

/// Whether a number is kept: one of three.
#[must_use]
pub fn is_kept(number: u64) -> bool {
    number.is_multiple_of(3)
}

/// The last byte of a number.
#[must_use]
pub fn last_byte(number: u64) -> usize {
    usize::from(number.to_le_bytes()[0])
}

/// The iterators of the standard library.
#[derive(Debug)]
pub enum Std {}

impl Adapters for Std {
    fn filter(numbers: &[u64]) -> Vec<u64> {
        let kept = numbers.iter().copied().filter(|number| is_kept(*number));
        kept.map(mix).collect()
    }

    fn chunks(numbers: &mut [u64]) {
        for (index, chunk) in numbers.chunks_mut(CHUNK).enumerate() {
            for number in chunk {
                *number = mix(*number + index as u64);
            }
        }
    }

    fn zip(numbers: &mut [u64], others: &[u64]) {
        for (number, other) in numbers.iter_mut().zip(others) {
            *number = number.wrapping_add(*other);
        }
    }

    fn fold(numbers: &[u64]) -> Vec<u64> {
        let mut counts = vec![0; 256];
        for number in numbers {
            counts[last_byte(*number)] += 1;
        }
        counts
    }

    fn flat_map(numbers: &[u64]) -> u64 {
        numbers.iter().flat_map(|number| 0..number % 4).sum()
    }

    fn find(numbers: &[u64], wanted: u64) -> Option<u64> {
        numbers
            .iter()
            .copied()
            .find(|number| mix(*number) == wanted)
    }

    fn sort<T: Ord + Send>(items: &mut [T]) {
        items.sort();
    }

    fn sort_unstable<T: Ord + Send>(items: &mut [T]) {
        items.sort_unstable();
    }
}

/// The numbers of one chain, and what it made of them.
struct ChainData {
    numbers: Vec<u64>,
    changed: Vec<u64>,
    answer: Vec<u64>,
    /// Only where texts are sorted.
    texts: Vec<String>,
}

impl ChainData {
    fn new(n: usize) -> Self {
        let numbers: Vec<u64> = (0..n as u64).map(mix).map(|number| number >> 1).collect();
        Self {
            changed: numbers.clone(),
            numbers,
            answer: Vec::new(),
            texts: Vec::new(),
        }
    }

    /// Before the clock starts.
    fn prepare(&mut self, chain: Chain) {
        self.changed.copy_from_slice(&self.numbers);
        match chain {
            Chain::Sort | Chain::SortUnstable => {
                let changed = self.changed.iter_mut();
                changed.for_each(|number| *number = mix(*number));
            }
            Chain::SortTexts | Chain::SortTextsUnstable => {
                let numbers = self.numbers.iter().step_by(10).copied().map(mix);
                let text = |number| format!("{number:x}{}", number % 1_000);
                self.texts = numbers.map(text).collect();
            }
            _ => {}
        }
    }

    /// Runs a chain once, and returns how long it took.
    fn time<A: Adapters>(&mut self, chain: Chain) -> Duration {
        self.prepare(chain);
        let numbers = black_box(&self.numbers[..]);
        let wanted = mix(numbers[numbers.len() - 1]);
        let begin = Instant::now();
        self.answer = match chain {
            Chain::Filter => A::filter(numbers),
            Chain::Fold => A::fold(numbers),
            Chain::FlatMap => vec![A::flat_map(numbers)],
            Chain::Find => A::find(numbers, wanted).into_iter().collect(),
            Chain::Chunks => {
                A::chunks(&mut self.changed);
                Vec::new()
            }
            Chain::Zip => {
                A::zip(&mut self.changed, numbers);
                Vec::new()
            }
            Chain::Sort => {
                A::sort(&mut self.changed);
                Vec::new()
            }
            Chain::SortUnstable => {
                A::sort_unstable(&mut self.changed);
                Vec::new()
            }
            Chain::SortTexts => {
                A::sort(&mut self.texts);
                Vec::new()
            }
            Chain::SortTextsUnstable => {
                A::sort_unstable(&mut self.texts);
                Vec::new()
            }
        };
        begin.elapsed()
    }
}

/// Rounds continue for this long; there are at least some, and not too many.
const LONG_ENOUGH: Duration = Duration::from_millis(400);
const LEAST: usize = 5;

/// The figures of a chain over `n` numbers.
pub fn measured<S: ForkSystem, A: Adapters>(
    system: &S,
    chain: Chain,
    n: usize,
) -> Result<Vec<Figure>, String> {
    let (mut serial, mut data) = (ChainData::new(n), ChainData::new(n));
    let (mut times, mut serial_times) = (Vec::new(), Vec::new());
    let begin = Instant::now();
    while times.len() <= LEAST || begin.elapsed() < LONG_ENOUGH {
        serial_times.push(serial.time::<Std>(chain).as_secs_f64());
        let enter = move |_: &mut <S::Forks as Fork>::Scope<'_>| {
            let time = data.time::<A>(chain);
            (data, time.as_secs_f64())
        };
        let time;
        (data, time) = system.enter(enter)?;
        times.push(time);
        let same = |data: &ChainData, serial: &ChainData| {
            data.answer == serial.answer
                && data.changed == serial.changed
                && data.texts == serial.texts
        };
        if !same(&data, &serial) {
            return Err(
                "A chain of adapters gave another answer than the standard library's.".into(),
            );
        }
    }
    // The first round starts threads and touches memory.
    let (ms, ms_serial) = (1e3 * median(&times[1..]), 1e3 * median(&serial_times[1..]));
    Ok(vec![
        ("ms", ms),
        ("speedup", ms_serial / ms),
        ("ms_serial", ms_serial),
    ])
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
