//! The workloads that fork and join: their keys, and how they run on any system.
//!
//! Only `args` reads them. A program that forks is measured beside its serial forms, in the same
//! process and in turns.

use std::time::Duration;

use crate::args::Keys;
use crate::programs::fib::Fib;
use crate::programs::measure::{Figure, ForkSystem, Program, forking, never_forking};
use crate::programs::queens::Queens;
use crate::programs::quicksort::{Data, Quicksort};
use crate::programs::tree::{Shape, Tree};
use crate::report::{bad_usage, fail, print_metrics};

/// A program with its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Forking {
    task: Task,
    /// Whether it forks at all.
    forks: bool,
    /// How long everything sleeps before each run.
    pause: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    Quicksort {
        n: usize,
        data: Data,
    },
    Fib {
        n: usize,
    },
    Queens {
        n: usize,
    },
    Tree {
        n: usize,
        depth: usize,
        shape: Shape,
    },
}

impl Forking {
    /// Whether it is the sort, the only program that does not fork at every level.
    #[must_use]
    pub fn is_quicksort(&self) -> bool {
        matches!(self.task, Task::Quicksort { .. })
    }

    /// Runs it on a system and ends the program.
    pub fn run<S: ForkSystem>(self, system: &S) -> ! {
        let figures = match self.task {
            Task::Quicksort { n, data } => self.measure(system, Quicksort::of(n, data)),
            Task::Fib { n } => self.measure(system, Fib::of(n)),
            Task::Queens { n } => self.measure(system, Queens::of(n)),
            Task::Tree { n, depth, shape } => self.measure(system, Tree::of(n, depth, shape)),
        };
        match figures {
            Ok(figures) => print_metrics(&figures),
            Err(sentence) => fail(&sentence),
        }
    }

    fn measure<S: ForkSystem, P: Program>(
        self,
        system: &S,
        program: Option<P>,
    ) -> Result<Vec<Figure>, String> {
        let program = program
            .unwrap_or_else(|| bad_usage("There is no such program of that size: see the README."));
        if self.forks {
            forking(system, program, self.pause)
        } else {
            never_forking(program, self.pause)
        }
    }
}

impl Keys {
    /// The program with this name, if it is one.
    pub(crate) fn forking(&mut self, name: &str) -> Option<Forking> {
        let task = match name {
            "quicksort" => Task::Quicksort {
                n: self.count("n"),
                data: self.data(),
            },
            "fib" => Task::Fib { n: self.count("n") },
            "nqueens" => Task::Queens { n: self.count("n") },
            "tree-search" => Task::Tree {
                n: self.count("n"),
                depth: self.count("depth"),
                shape: self.shape(),
            },
            _ => return None,
        };
        let forks = match self.take("forking").as_str() {
            "yes" => true,
            "never" => false,
            _ => bad_usage("The key `forking` takes `never` or `yes`."),
        };
        let pause = match self.take_optional("pause_us").map(|text| text.parse()) {
            None => 0,
            Some(Ok(pause)) => pause,
            Some(Err(_)) => bad_usage("The key `pause_us` takes a number of microseconds."),
        };
        Some(Forking {
            task,
            forks,
            pause: Duration::from_micros(pause),
        })
    }

    fn data(&mut self) -> Data {
        match self.take("data").as_str() {
            "seed" => Data::Seed,
            "random" => Data::Random,
            _ => bad_usage("The key `data` takes `seed` or `random`."),
        }
    }

    fn shape(&mut self) -> Shape {
        match self.take("shape").as_str() {
            "random" => Shape::Random,
            "left" => Shape::Left,
            _ => bad_usage("The key `shape` takes `random` or `left`."),
        }
    }
}
