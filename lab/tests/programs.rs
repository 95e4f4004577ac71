//! The programs that fork give right answers however they are run, and report wrong ones.

#![allow(
    clippy::unwrap_used,
    reason = "a test ends at the first thing that goes wrong"
)]

use std::time::Duration;

use weald_lab::programs::fib::Fib;
use weald_lab::programs::fork::{Counted, Fork, Outlined, Plain};
use weald_lab::programs::measure::{ForkSystem, Program, forking, never_forking};
use weald_lab::programs::queens::Queens;
use weald_lab::programs::quicksort::{Data, Quicksort};
use weald_lab::programs::tree::{Shape, Tree};

/// A system that runs the second half first, and the first half on another thread.
struct Backwards;

enum Joins {}

impl Fork for Joins {
    type Scope<'a> = ();

    fn join<A, B, RA, RB>(_: &mut (), a: A, b: B) -> (RA, RB)
    where
        A: FnOnce(&mut ()) -> RA + Send,
        B: FnOnce(&mut ()) -> RB + Send,
        RA: Send,
        RB: Send,
    {
        let b = b(&mut ());
        let a = std::thread::scope(|scope| scope.spawn(|| a(&mut ())).join().unwrap());
        (a, b)
    }
}

impl ForkSystem for Backwards {
    type Forks = Joins;

    fn workers(&self) -> usize {
        2
    }

    fn enter<T, W>(&self, work: W) -> Result<T, String>
    where
        T: Send + 'static,
        W: FnOnce(&mut ()) -> T + Send + 'static,
    {
        Ok(work(&mut ()))
    }
}

/// A program that counts its runs, and whose answer is wrong after this many.
struct Wrong {
    runs: usize,
    right: usize,
}

impl Program for Wrong {
    fn reset(&mut self) {}

    fn run<F: Fork>(&mut self, scope: &mut F::Scope<'_>) {
        let (one, none) = F::join(scope, |_| 1, |_| 0);
        self.runs += one + none;
    }

    fn check(&self) -> Result<(), String> {
        if self.runs <= self.right {
            return Ok(());
        }
        Err("Wrong.".to_owned())
    }
}

/// Runs a program once in each way and checks every answer; returns how often it forked.
fn forks_of(mut program: impl Program) -> u64 {
    let mut forks = 0;
    program.reset();
    program.run::<Counted>(&mut forks);
    program.check().unwrap();
    program.keep_answer();
    program.reset();
    assert!(
        program.check().is_err(),
        "an answer is only there after a run"
    );
    program.run::<Plain>(&mut ());
    program.check().unwrap();
    program.reset();
    program.run::<Outlined>(&mut ());
    program.check().unwrap();
    program.reset();
    program.run::<Joins>(&mut ());
    program.check().unwrap();
    forks
}

#[test]
fn every_way_to_run_a_program_gives_the_same_answer() {
    assert_eq!(forks_of(Fib::of(12).unwrap()), 232, "one less than fib(13)");
    assert!(forks_of(Queens::of(6).unwrap()) > 0);
    let random = Tree::of(4_723, 5, Shape::Random).unwrap();
    assert!(forks_of(random) > 2_000);
    let left = Tree::of(1_024, 16, Shape::Left).unwrap();
    assert!(forks_of(left) >= 1_000);
}

#[test]
fn the_deep_path_is_as_deep_as_it_says() {
    let depths = [4, 16, 64].map(|depth| Tree::of(1_024, depth, Shape::Left).unwrap());
    for tree in depths {
        forks_of(tree);
    }
    assert!(Tree::of(1_000, 16, Shape::Left).is_none());
}

#[test]
fn arrays_of_every_length_are_sorted() {
    for n in (1..130).chain([400, 401, 1_000, 5_000]) {
        for data in [Data::Seed, Data::Random] {
            let mut array = Quicksort::of(n, data).unwrap();
            array.reset();
            array.run::<Plain>(&mut ());
            array.check().unwrap();
            array.reset();
            array.run::<Joins>(&mut ());
            array.check().unwrap();
        }
    }
}

#[test]
fn an_array_that_is_not_sorted_is_found() {
    let mut array = Quicksort::of(1_000, Data::Random).unwrap();
    assert!(array.check().is_err());
    assert!(array.run_serial_part(), "its first partition");
    assert!(array.check().is_err());
}

#[test]
fn a_wrong_answer_of_any_run_voids_the_figures() {
    assert!(never_forking(Wrong { runs: 0, right: 0 }, Duration::ZERO).is_err());
    // The first two runs prepare; many more follow.
    for right in [0, 1, 2, 50] {
        let figures = forking(&Backwards, Wrong { runs: 0, right }, Duration::ZERO);
        assert_eq!(figures.unwrap_err(), "Wrong.", "after {right}");
    }
}

#[test]
fn impossible_sizes_are_refused() {
    assert!(Queens::of(0).is_none() && Queens::of(17).is_none());
    assert!(Fib::of(91).is_none());
}
