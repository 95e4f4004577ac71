//! The Fibonacci number by its definition: a fork at every level and almost no work between forks.

use super::fork::Fork;
use super::measure::Program;

/// One Fibonacci number to compute.
#[derive(Clone, Copy, Debug)]
pub struct Fib {
    n: u32,
    answer: u64,
}

impl Fib {
    /// The number with this index; `None` above 90, where the number of forks does not fit.
    #[must_use]
    pub fn of(n: usize) -> Option<Self> {
        let n = u32::try_from(n).ok().filter(|n| *n <= 90)?;
        Some(Self { n, answer: 0 })
    }
}

impl Program for Fib {
    fn reset(&mut self) {
        self.answer = 0;
    }

    fn run<F: Fork>(&mut self, scope: &mut F::Scope<'_>) {
        self.answer = fib::<F>(scope, self.n);
    }

    fn check(&self) -> Result<(), String> {
        let right = number(self.n);
        if self.answer == right {
            return Ok(());
        }
        let (n, answer) = (self.n, self.answer);
        Err(format!("fib({n}) is {right}, but {answer} was found."))
    }
}

/// The number with this index, by addition; at most 90.
#[must_use]
pub fn number(n: u32) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn fib<F: Fork>(scope: &mut F::Scope<'_>, n: u32) -> u64 {
    if n < 2 {
        return u64::from(n);
    }
    let (a, b) = F::join(
        scope,
        |scope| fib::<F>(scope, n - 1),
        |scope| fib::<F>(scope, n - 2),
    );
    a + b
}
