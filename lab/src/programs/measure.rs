//! Measures one program on one system, in turns with its serial forms, so that a machine that drifts
//! drifts for all of them.
//!
//! Invariants:
//! - every answer is checked, those of serial runs too, and a wrong one voids the figures;
//! - a ratio is the median of the ratios of single rounds, never a ratio of times that are minutes
//!   apart; every other round has the opposite order, so that a steady drift cancels out;
//! - the clock runs inside the system, so starting and entering the system is never part of a time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use super::fork::{Counted, Fork, Outlined, Plain};

/// A program with its input and, after a run, its answer.
pub trait Program: Send + 'static {
    /// Prepares another run; not timed.
    fn reset(&mut self);

    /// Does the work.
    fn run<F: Fork>(&mut self, scope: &mut F::Scope<'_>);

    /// Whether the answer is right; the sentence says what is wrong.
    fn check(&self) -> Result<(), String>;

    /// Remembers a first answer, for programs whose right answer is not otherwise known.
    fn keep_answer(&mut self) {}

    /// Does the part of the work that cannot be shared; false if it is too small to count.
    fn run_serial_part(&mut self) -> bool {
        false
    }
}

/// A system that can fork, started with its workers.
pub trait ForkSystem {
    /// How it forks.
    type Forks: Fork;

    /// The number of its workers.
    fn workers(&self) -> usize;

    /// Does the work where forks are possible; the sentence says why it could not.
    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut <Self::Forks as Fork>::Scope<'_>) -> T + Send + 'static;
}

/// A metric and its value.
pub type Figure = (&'static str, f64);

/// Rounds continue for at least this long, and there are at least this many: ratios of single rounds scatter
/// by a tenth, and a median of few of them nearly as much. Only slow programs get fewer rounds.
const LONG_ENOUGH: Duration = Duration::from_millis(500);
const LEAST_ROUNDS: usize = 5;
const TOO_LONG: Duration = Duration::from_secs(5);
/// Short programs are repeated until a run takes about this long.
const ONE_RUN: Duration = Duration::from_millis(1);

/// The figures of a program that forks, beside both of its serial forms.
///
/// `pause`: how long everything sleeps before each run, so that its first fork finds all other workers asleep, and the
/// caches of its own core as cold as those of a program that forks now and then.
pub fn forking<S: ForkSystem, P: Program>(
    system: &S,
    mut program: P,
    pause: Duration,
) -> Result<Vec<Figure>, String> {
    let mut forks = 0;
    let mut times = prepared::<P>(&mut program, &mut forks, pause)?;
    // The threads and stacks that a first run starts are not part of the cost of a fork.
    (_, program) = forked(system, program, times.runs.once())?;
    let mut has_serial_part = true;
    let begin = Instant::now();
    while !times.are_enough(begin) {
        let forks_first = times.forking.len() % 2 == 1;
        if forks_first {
            program = times.time_forking(system, program)?;
        }
        times.time_serial(&mut program)?;
        if has_serial_part {
            has_serial_part = times.time_serial_part(&mut program);
        }
        if !forks_first {
            program = times.time_forking(system, program)?;
        }
    }
    Ok(times.figures(system.workers(), forks))
}

/// The figures of a program's serial forms alone.
pub fn never_forking<P: Program>(mut program: P, pause: Duration) -> Result<Vec<Figure>, String> {
    let mut times = prepared::<P>(&mut program, &mut 0, pause)?;
    let begin = Instant::now();
    while !times.are_enough(begin) {
        times.time_serial(&mut program)?;
    }
    Ok(times.serial_figures())
}

/// The times of single rounds.
#[derive(Debug)]
pub struct Times {
    runs: Runs,
    /// Of the form without forks.
    pub serial: Vec<Duration>,
    /// Of the form whose halves are called as functions; empty if the program has none.
    pub outlined: Vec<Duration>,
    serial_part: Vec<Duration>,
    /// Of the form with forks.
    pub forking: Vec<Duration>,
}

/// How often a program runs for one time, and how long everything sleeps before each run.
#[derive(Clone, Copy, Debug)]
struct Runs {
    repeats: u32,
    pause: Duration,
}

impl Runs {
    /// A single one.
    fn once(self) -> Self {
        Self { repeats: 1, ..self }
    }
}

/// A first run, which counts the forks, touches the program's memory, and measures the length of a run.
fn prepared<P: Program>(
    program: &mut P,
    forks: &mut u64,
    pause: Duration,
) -> Result<Times, String> {
    program.reset();
    program.run::<Counted>(forks);
    program.check()?;
    program.keep_answer();
    let runs = Runs { repeats: 1, pause };
    let once = timed::<Plain, P>(program, &mut (), runs)?;
    Ok(Times::of_runs_like(once, pause))
}

/// The mean time of this many runs.
fn timed<F: Fork, P: Program>(
    program: &mut P,
    scope: &mut F::Scope<'_>,
    Runs { repeats, pause }: Runs,
) -> Result<Duration, String> {
    let mut total = Duration::ZERO;
    for _ in 0..repeats {
        program.reset();
        if !pause.is_zero() {
            #[expect(
                clippy::disallowed_methods,
                reason = "it is the pause that is asked for"
            )]
            std::thread::sleep(pause);
        }
        let clock = Instant::now();
        black_box(&mut *program).run::<F>(scope);
        total += clock.elapsed();
        program.check()?;
    }
    Ok(total / repeats)
}

/// [`timed`] inside a system, which takes the program and returns it.
fn forked<S: ForkSystem, P: Program>(
    system: &S,
    mut program: P,
    runs: Runs,
) -> Result<(Duration, P), String> {
    let (time, program) = system.enter(move |scope| {
        let time = timed::<S::Forks, P>(&mut program, scope, runs);
        (time, program)
    })?;
    Ok((time?, program))
}

impl Times {
    /// No times yet of a program that takes `once` for a run.
    #[must_use]
    pub fn of_runs_like(once: Duration, pause: Duration) -> Self {
        let repeats = ONE_RUN.as_nanos() / once.as_nanos().max(1);
        let repeats = u32::try_from(repeats).unwrap_or(u32::MAX).max(1);
        Self {
            runs: Runs { repeats, pause },
            serial: Vec::new(),
            outlined: Vec::new(),
            serial_part: Vec::new(),
            forking: Vec::new(),
        }
    }

    /// How often the program runs for one time.
    #[must_use]
    pub fn repeats(&self) -> u32 {
        self.runs.repeats
    }

    /// Whether rounds that began at `begin` are enough.
    #[must_use]
    pub fn are_enough(&self, begin: Instant) -> bool {
        let elapsed = begin.elapsed();
        let rounds = self.serial.len();
        (rounds >= LEAST_ROUNDS && elapsed >= LONG_ENOUGH) || (rounds > 0 && elapsed >= TOO_LONG)
    }

    /// Times both serial forms once.
    fn time_serial<P: Program>(&mut self, program: &mut P) -> Result<(), String> {
        let plain = timed::<Plain, P>(program, &mut (), self.runs)?;
        let outlined = timed::<Outlined, P>(program, &mut (), self.runs)?;
        self.serial.push(plain);
        self.outlined.push(outlined);
        Ok(())
    }

    /// Times the forking form once.
    fn time_forking<S: ForkSystem, P: Program>(
        &mut self,
        system: &S,
        program: P,
    ) -> Result<P, String> {
        let (time, program) = forked(system, program, self.runs)?;
        self.forking.push(time);
        Ok(program)
    }

    /// Times the part that is serial in any case, if there is one.
    fn time_serial_part<P: Program>(&mut self, program: &mut P) -> bool {
        let mut total = Duration::ZERO;
        for _ in 0..self.runs.repeats {
            program.reset();
            let clock = Instant::now();
            if !black_box(&mut *program).run_serial_part() {
                return false;
            }
            total += clock.elapsed();
        }
        self.serial_part.push(total / self.runs.repeats);
        true
    }

    /// The figures of the serial forms alone.
    #[must_use]
    pub fn serial_figures(&self) -> Vec<Figure> {
        let mut figures = vec![("ms", milliseconds(&self.serial))];
        if !self.outlined.is_empty() {
            figures.push(("ms_outlined", milliseconds(&self.outlined)));
        }
        figures
    }

    /// The figures of a program that forks this often; 0 where a cost for each fork would say nothing.
    #[must_use]
    pub fn figures(&self, workers: usize, forks: u64) -> Vec<Figure> {
        let mut figures = vec![
            ("ms", milliseconds(&self.forking)),
            ("speedup", ratio(&self.serial, &self.forking)),
            ("ms_serial", milliseconds(&self.serial)),
        ];
        if !self.outlined.is_empty() {
            figures.push(("speedup_outlined", ratio(&self.outlined, &self.forking)));
            figures.push(("ms_outlined", milliseconds(&self.outlined)));
        }
        let workers = workers as f64;
        if !self.serial_part.is_empty() {
            let share = ratio(&self.serial_part, &self.serial);
            figures.push(("speedup_bound", workers / (1.0 + (workers - 1.0) * share)));
        } else if forks > 0 {
            // Where forks are few and the work between them is long, this figure would be noise.
            let pairs = self.forking.iter().zip(&self.serial);
            let beyond = pairs.map(|(f, s)| workers * f.as_secs_f64() - s.as_secs_f64());
            figures.push(("ns_per_fork", 1e9 * median(beyond) / forks as f64));
        }
        figures
    }
}

fn milliseconds(times: &[Duration]) -> f64 {
    1e3 * median(times.iter().map(Duration::as_secs_f64))
}

/// The median of the ratios of single rounds.
fn ratio(above: &[Duration], below: &[Duration]) -> f64 {
    let pairs = above.iter().zip(below);
    median(pairs.map(|(above, below)| above.as_secs_f64() / below.as_secs_f64()))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    }
}
