//! The workloads that fork and join, on any system: a program is measured beside its serial forms, in the same process
//! and in turns.

use std::time::Duration;

use crate::args::Call;
use crate::programs::fib::Fib;
use crate::programs::measure::{Figure, ForkSystem, Program, forking, never_forking};
use crate::programs::queens::Queens;
use crate::programs::quicksort::{Data, Quicksort};
use crate::programs::tree::{Shape, Tree};
use crate::report::{bad_usage, print};

/// Runs the program that the call names and ends this one.
pub fn fork<S: ForkSystem>(system: &S, call: &Call) -> ! {
    let n = call.count("n");
    print(match call.workload.as_str() {
        "quicksort" => {
            let data = call.word("data", &[("seed", Data::Seed), ("random", Data::Random)]);
            measure(system, call, Quicksort::of(n, data))
        }
        "fib" => measure(system, call, Fib::of(n)),
        "nqueens" => measure(system, call, Queens::of(n)),
        "tree-search" => {
            let shapes = [("random", Shape::Random), ("left", Shape::Left)];
            let tree = Tree::of(n, call.count("depth"), call.word("shape", &shapes));
            measure(system, call, tree)
        }
        _ => bad_usage("This rival has no program for this workload: leave it out."),
    })
}

fn measure<S: ForkSystem, P: Program>(
    system: &S,
    call: &Call,
    program: Option<P>,
) -> Result<Vec<Figure>, String> {
    let program = program
        .unwrap_or_else(|| bad_usage("There is no such program of that size: see the README."));
    // How long everything sleeps before each run.
    let pause = call
        .optional("pause_us")
        .map_or(0, |_| call.number("pause_us", 0));
    let pause = Duration::from_micros(pause);
    if call.word("forking", &[("yes", true), ("never", false)]) {
        forking(system, program, pause)
    } else {
        never_forking(program, pause)
    }
}
