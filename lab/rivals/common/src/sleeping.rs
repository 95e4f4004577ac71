//! The workloads of units that sleep, `callbacks` and `timers`, which are the same in every rival.
//!
//! A rival says how it starts something that sleeps; deadlines and the count of latenesses are those of Weald's
//! workload.

use std::hint::black_box;
use std::time::Duration;

use crate::programs::measure::Figure;
use crate::programs::slope::line;
use crate::report::print_metrics;

/// How long a sleeper that must never run sleeps.
pub const HOUR: Duration = Duration::from_secs(3600);

/// Prints the line through points of a number of sleepers and a resident memory, and ends the program.
pub fn print_line(points: &[(f64, f64)]) -> ! {
    print_metrics(&figures_of_line(points))
}

/// The figures of that line.
pub fn figures_of_line(points: &[(f64, f64)]) -> [Figure; 4] {
    let line = line(points);
    [
        ("bytes_per_callback", line.slope),
        ("intercept_bytes", line.intercept),
        ("r", line.r2.max(0.0).sqrt()),
        ("r2", line.r2),
    ]
}

/// The data and the work of something that sleeps.
#[derive(Clone, Copy, Debug)]
pub struct Captured([usize; 2]);

impl Captured {
    /// Hides the captured values from the compiler.
    pub fn new(index: usize) -> Self {
        Self(black_box([index; 2]))
    }

    /// Uses the captured values.
    pub fn run(self) {
        black_box(self.0);
    }
}
