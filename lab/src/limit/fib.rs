//! `fib`: every fork is an entry in the caller's own array, which another thread gets only if it asks.
//!
//! The protocol between two threads is one word for each, `asks`:
//!
//! - `CALM`: it has work of its own;
//! - `HUNGRY`: it looks for work; only it writes this, and takes it back by a compare-and-exchange;
//! - a job: another thread answered with a compare-and-exchange of `HUNGRY`.
//!
//! The thief stores the answer into the place of the entry, and the owner waits for it there, hungry itself.
//! A thread has given away the entries below its `given`, the oldest ones, which are the largest.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::fib::number;

const CALM: u64 = 0;
const HUNGRY: u64 = 1;
/// A job is this bit, the owner, the place in its array and the number, from the highest to the lowest byte pair.
const JOB: u64 = 1 << 63;
/// An answer that has not come.
const PENDING: u64 = u64::MAX;
/// More entries than waiting threads can nest.
const PLACES: usize = 4096;
/// Rounds continue for at least this long.
const LONG_ENOUGH: Duration = Duration::from_millis(100);
const LEAST_ROUNDS: usize = 5;
/// Short programs are repeated until a round takes about this long.
const ONE_ROUND: Duration = Duration::from_millis(1);

/// What others may touch of a thread.
struct Public {
    asks: AtomicU64,
    answers: Vec<AtomicU64>,
}

struct Partners {
    threads: Vec<Public>,
    /// How many threads are hungry, so that a fork looks at one word.
    hungry: AtomicU64,
    ended: AtomicBool,
}

/// A thread with its forks.
struct Worker<'a> {
    shared: &'a Partners,
    me: usize,
    forks: [u32; PLACES],
    top: usize,
    /// The entries below were given away.
    given: usize,
}

/// Its threads never sleep, so it says nothing about a pause.
pub(super) fn takes(params: &Params) -> bool {
    params.get("forking") == Some("yes") && params.get("pause_us").is_none()
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (n, workers) = (params.count("n")?, params.count("workers")?);
    let n = u32::try_from(n).ok().filter(|n| *n <= 90);
    let n =
        n.ok_or_else(|| Error::Usage(format!("This program cannot have the size {params}.")))?;
    let public = |_| Public {
        asks: AtomicU64::new(CALM),
        answers: (0..PLACES).map(|_| AtomicU64::new(PENDING)).collect(),
    };
    let shared = Partners {
        threads: (0..workers).map(public).collect(),
        hungry: AtomicU64::new(0),
        ended: AtomicBool::new(false),
    };
    let times = std::thread::scope(|scope| {
        for me in 1..workers {
            let shared = &shared;
            scope.spawn(move || {
                Worker::new(shared, me).help_until(|| shared.ended.load(Ordering::Relaxed))
            });
        }
        let times = measure(&mut Worker::new(&shared, 0), n);
        shared.ended.store(true, Ordering::Relaxed);
        times
    });
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    Ok(vec![Metric::new("ms", times[times.len() / 2])])
}

/// The milliseconds of each round.
fn measure(worker: &mut Worker<'_>, n: u32) -> Result<Vec<f64>, Error> {
    let right = number(n);
    let mut once = || {
        let clock = Instant::now();
        let answer = worker.fib(black_box(n));
        let elapsed = clock.elapsed();
        if answer != right {
            let sentence = format!("fib({n}) is {right}, but {answer} was found.");
            return Err(Error::workload(sentence));
        }
        Ok(elapsed)
    };
    let repeats = u32::try_from(ONE_ROUND.as_nanos() / once()?.as_nanos().max(1));
    let repeats = repeats.unwrap_or(u32::MAX).max(1);
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.len() < LEAST_ROUNDS || begin.elapsed() < LONG_ENOUGH {
        let mut total = Duration::ZERO;
        for _ in 0..repeats {
            total += once()?;
        }
        times.push(1e3 * total.as_secs_f64() / f64::from(repeats));
    }
    Ok(times)
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Partners, me: usize) -> Self {
        Self {
            shared,
            me,
            forks: [0; PLACES],
            top: 0,
            given: 0,
        }
    }

    fn fib(&mut self, n: u32) -> u64 {
        if n < 2 {
            return u64::from(n);
        }
        let place = self.top;
        self.forks[place] = n - 2;
        self.top = place + 1;
        if self.shared.hungry.load(Ordering::Relaxed) > 0 {
            self.give();
        }
        let first = self.fib(n - 1);
        self.top = place;
        if place < self.given {
            self.given = place;
            return first + self.answer(place);
        }
        first + self.fib(n - 2)
    }

    /// Gives the oldest fork to a thread that is hungry.
    #[cold]
    fn give(&mut self) {
        let shared = self.shared;
        for thread in &shared.threads {
            if self.given == self.top {
                return;
            }
            let job = JOB | (self.me as u64) << 40 | (self.given as u64) << 16;
            let job = job | u64::from(self.forks[self.given]);
            let asks = &thread.asks;
            // The thief stores its answer after it has read the job, so nothing else is ordered by it.
            if asks.load(Ordering::Relaxed) == HUNGRY
                && asks
                    .compare_exchange(HUNGRY, job, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                self.given += 1;
            }
        }
    }

    /// The answer to a fork that was given away; helps others until it has come.
    #[cold]
    fn answer(&mut self, place: usize) -> u64 {
        let answer = &self.shared.threads[self.me].answers[place];
        // The owner of a nested job continues above this place.
        self.top = place + 1;
        self.given = place + 1;
        self.help_until(|| answer.load(Ordering::Acquire) != PENDING);
        self.top = place;
        self.given = place;
        answer.swap(PENDING, Ordering::Relaxed)
    }

    /// Does the work of others until something has happened.
    fn help_until(&mut self, has_happened: impl Fn() -> bool) {
        let shared = self.shared;
        let asks = &shared.threads[self.me].asks;
        while !has_happened() {
            asks.store(HUNGRY, Ordering::Release);
            shared.hungry.fetch_add(1, Ordering::Relaxed);
            while asks.load(Ordering::Acquire) == HUNGRY && !has_happened() {
                std::hint::spin_loop();
            }
            shared.hungry.fetch_sub(1, Ordering::Relaxed);
            let taken_back =
                asks.compare_exchange(HUNGRY, CALM, Ordering::AcqRel, Ordering::Acquire);
            if let Err(job) = taken_back {
                asks.store(CALM, Ordering::Relaxed);
                self.help(job);
            }
        }
    }

    fn help(&mut self, job: u64) {
        let (owner, place) = (job >> 40 & 0xFFFF, job >> 16 & 0xFFFF);
        let n = u32::try_from(job & 0xFFFF).expect("it has 16 bits");
        let answer = self.fib(n);
        let at = |index: u64| usize::try_from(index).expect("it has 16 bits");
        let owner = &self.shared.threads[at(owner)];
        owner.answers[at(place)].store(answer, Ordering::Release);
    }
}
