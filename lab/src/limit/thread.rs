//! `thread`: stacks that are switched on one OS thread, by corosensei, and kept for the next thread.
//!
//! There is no program for `parked`: 100,000 of its stacks are more mappings than Linux allows a process.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::lock::counted;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::threads::nanoseconds;

type Stackful = Coroutine<(), (), usize, DefaultStack>;

pub(super) fn takes(params: &Params) -> bool {
    params.get("what") != Some("parked")
}

pub(super) fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let n = params.count("n")?;
    let threads = || params.count("threads");
    let ns = match params.text("what")? {
        "create-join" => create_join(n)?,
        "create-all" => create_all(n)?,
        "yield" => turns(2, n)?,
        "lock" => locked(1, n)?,
        "lock-contended" => locked(threads()?, n)?,
        // A meeting on one OS thread is a turn for each; so is a wait for the other's turn.
        "barrier" => turns(threads()?, n)? * threads()? as f64,
        "condvar" => turns(2, n)? * 2.0,
        other => {
            let sentence = format!("what={other} is not one of the measurements of threads.");
            return Err(Error::Usage(sentence));
        }
    };
    Ok(vec![Metric::new("ns", ns)])
}

fn new_stack() -> Result<DefaultStack, Error> {
    let no_stack = |error| Error::workload(format!("Cannot make a stack: {error}."));
    DefaultStack::new(64 << 10).map_err(no_stack)
}

/// Runs a thread to its end on a stack that is given back.
#[inline]
fn run_to_end(
    stack: DefaultStack,
    body: impl FnOnce() -> usize + 'static,
    wanted: usize,
) -> Result<DefaultStack, Error> {
    let mut thread = Stackful::with_stack(stack, move |_: &Yielder<(), ()>, ()| body());
    match thread.resume(()) {
        CoroutineResult::Return(number) if number == wanted => Ok(thread.into_stack()),
        _ => Err(Error::workload("A thread returned another number.")),
    }
}

fn create_join(n: usize) -> Result<f64, Error> {
    let mut stack = new_stack()?;
    let clock = Instant::now();
    for index in 0..n {
        stack = run_to_end(stack, move || index, index)?;
    }
    Ok(nanoseconds(clock.elapsed(), n))
}

fn create_all(n: usize) -> Result<f64, Error> {
    let mut stack = new_stack()?;
    let mut bodies = Vec::new();
    let clock = Instant::now();
    for index in 0..n {
        bodies.push(move || index);
    }
    for (index, body) in bodies.into_iter().enumerate() {
        stack = run_to_end(stack, body, index)?;
    }
    Ok(nanoseconds(clock.elapsed(), n))
}

/// Threads that wait for each other this many times, in turns; the time per turn.
fn turns(threads: usize, rounds: usize) -> Result<f64, Error> {
    let done = Rc::new(Cell::new(0_usize));
    let mut all = Vec::with_capacity(threads);
    for _ in 0..threads {
        let done = Rc::clone(&done);
        let body = move |yielder: &Yielder<(), ()>, ()| {
            for _ in 0..rounds {
                done.set(done.get() + 1);
                yielder.suspend(());
            }
            0
        };
        all.push(Stackful::with_stack(new_stack()?, body));
    }
    let clock = Instant::now();
    run_in_turns(&mut all)?;
    let elapsed = clock.elapsed();
    let wanted = threads * rounds;
    if done.get() != wanted {
        let sentence = format!("{} turns instead of {wanted}.", done.get());
        return Err(Error::workload(sentence));
    }
    Ok(nanoseconds(elapsed, wanted))
}

/// Threads that take one lock, each this many times without a wait.
fn locked(threads: usize, rounds: usize) -> Result<f64, Error> {
    let shared = Rc::new((AtomicBool::new(false), RefCell::new(Ok(0))));
    let mut all = Vec::with_capacity(threads);
    for _ in 0..threads {
        let shared = Rc::clone(&shared);
        let body = move |_: &Yielder<(), ()>, ()| {
            let (is_held, count) = &*shared;
            let before = count.replace(Ok(0));
            let _zero = count.replace(before.and_then(|before| counted(is_held, before, rounds)));
            0
        };
        all.push(Stackful::with_stack(new_stack()?, body));
    }
    let clock = Instant::now();
    run_in_turns(&mut all)?;
    let elapsed = clock.elapsed();
    let (count, wanted) = (shared.1.replace(Ok(0))?, threads * rounds);
    if count != wanted {
        let sentence = format!("{count} counts instead of {wanted}.");
        return Err(Error::workload(sentence));
    }
    Ok(nanoseconds(elapsed, wanted))
}

/// Resumes all in turn until each has ended.
fn run_in_turns(all: &mut [Stackful]) -> Result<(), Error> {
    let mut left = all.len();
    while left > 0 {
        for thread in all.iter_mut().filter(|thread| !thread.done()) {
            match thread.resume(()) {
                CoroutineResult::Yield(()) => {}
                CoroutineResult::Return(0) => left -= 1,
                CoroutineResult::Return(_) => {
                    return Err(Error::workload("A thread returned another number."));
                }
            }
        }
    }
    Ok(())
}
