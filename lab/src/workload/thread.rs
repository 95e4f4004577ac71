//! `thread`: what does a thread of direct-style code cost, and what do its waits cost?
//!
//! The measuring code is itself a thread of Weald. Locks, barriers and conditions are those of
//! `weald::sync`, in waits that keep the stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use weald::sync::{Barrier, Condvar, Mutex};
use weald::thread::{self, JoinHandle, Thread};
use weald::{SpawnError, Wait};

use super::definition::Workload;
use super::forking::metrics;
use super::host::build;
use super::memory::resident;
use crate::error::Error;
use crate::metric::Metric;
use crate::params::Params;
use crate::programs::measure::Figure;
use crate::programs::threads::{
    Threads, create_all, create_join, give_way, nanoseconds, parked, together,
};

pub(super) const WORKLOAD: Workload = Workload {
    name: "thread",
    question: "What do a thread of direct-style code and its waits cost?",
    keys: &["n", "what"],
    optional: &["threads"],
    metrics: &["ns", "bytes_per_thread"],
    explaining: &[],
    remark: "create-join, create-all: ns is per thread. parked: ns is per thread until all wait, with the \
             growth of resident memory as the slope over nine sizes up to n. yield: ns is per switch between \
             two threads. lock-contended and barrier: n is the number of rounds of each thread.",
    run,
};

/// What is measured, with the number of threads where there are several.
#[derive(Clone, Copy)]
enum Measured {
    CreateJoin,
    CreateAll,
    Parked,
    Yield,
    Lock(usize),
    Barrier(usize),
    Condvar,
}

impl Measured {
    fn read(params: &Params) -> Result<Self, Error> {
        let many = |params: &Params| params.count("threads");
        let what = match params.text("what")? {
            "create-join" => Self::CreateJoin,
            "create-all" => Self::CreateAll,
            "parked" => Self::Parked,
            "yield" => Self::Yield,
            "lock" => Self::Lock(1),
            "condvar" => Self::Condvar,
            "lock-contended" => return Ok(Self::Lock(many(params)?)),
            "barrier" => return Ok(Self::Barrier(many(params)?)),
            other => {
                let sentence = format!("what={other} is not one of the measurements of threads.");
                return Err(Error::Usage(sentence));
            }
        };
        match params.get("threads") {
            None => Ok(what),
            Some(_) => Err(Error::Usage(
                "Only lock-contended and barrier have a number of threads.".into(),
            )),
        }
    }

    fn measure(self, n: usize) -> Result<Vec<Figure>, String> {
        match self {
            Self::CreateJoin => create_join::<Fibers>(n),
            Self::CreateAll => create_all::<Fibers>(n),
            Self::Parked => parked::<Fibers>(n, || resident().map_err(|e| e.to_string())),
            Self::Yield => give_way::<Fibers>(n),
            Self::Lock(threads) => lock(threads, n),
            Self::Barrier(threads) => barrier(threads, n),
            Self::Condvar => condvar(n),
        }
    }
}

/// The threads of Weald.
enum Fibers {}

impl Threads for Fibers {
    type Handle = JoinHandle<usize>;
    type Thread = Thread;

    fn spawn(body: impl FnOnce() -> usize + Send + 'static) -> Result<Self::Handle, String> {
        thread::Builder::new()
            .spawn(body)
            .map_err(|error| not_started(&error))
    }

    fn join(handle: Self::Handle) -> Option<usize> {
        handle.join().ok()
    }

    fn thread(handle: &Self::Handle) -> Thread {
        handle.thread().clone()
    }

    fn current() -> Thread {
        thread::current()
    }

    fn park() {
        thread::park();
    }

    fn unpark(thread: &Thread) {
        thread.unpark();
    }

    fn yield_now() {
        thread::yield_now();
    }
}

fn not_started(error: &SpawnError) -> String {
    format!("Cannot start a thread: {error}.")
}

fn run(params: &Params) -> Result<Vec<Metric>, Error> {
    let (n, what) = (params.count("n")?, Measured::read(params)?);
    let runtime = build(params, n)?;
    let figures = runtime.block_on(async move {
        let main = thread::Builder::new().spawn(move || what.measure(n));
        let main = main.map_err(|error| not_started(&error))?;
        main.await
            .map_err(|reason| format!("The measuring thread ended early: {reason}."))?
    });
    metrics(figures)
}

fn lock(threads: usize, rounds: usize) -> Result<Vec<Figure>, String> {
    let count = Arc::new(Mutex::new(0_usize));
    let elapsed = together::<Fibers, _>(threads, |_| {
        let count = Arc::clone(&count);
        move || {
            for _ in 0..rounds {
                *count.lock().wait() += 1;
            }
        }
    })?;
    let (counted, wanted) = (*count.lock().wait(), threads * rounds);
    if counted != wanted {
        return Err(format!(
            "The lock let two in at once: {counted} counts instead of {wanted}."
        ));
    }
    Ok(vec![("ns", nanoseconds(elapsed, wanted))])
}

fn barrier(threads: usize, rounds: usize) -> Result<Vec<Figure>, String> {
    let meeting = Arc::new((Barrier::new(threads), AtomicUsize::new(0)));
    let elapsed = together::<Fibers, _>(threads, |_| {
        let meeting = Arc::clone(&meeting);
        move || {
            let (barrier, led) = &*meeting;
            let leads = |_: &usize| barrier.wait().wait().is_leader();
            led.fetch_add((0..rounds).filter(leads).count(), Ordering::Relaxed);
        }
    })?;
    // All have been joined, which orders what they counted before this.
    let led = meeting.1.load(Ordering::Relaxed);
    if led != rounds {
        return Err(format!("{rounds} rounds had {led} leaders."));
    }
    Ok(vec![("ns", nanoseconds(elapsed, rounds))])
}

fn condvar(rounds: usize) -> Result<Vec<Figure>, String> {
    let turn = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let elapsed = together::<Fibers, _>(2, |me| {
        let turn = Arc::clone(&turn);
        move || {
            let (of, changed) = &*turn;
            let mut of = of.lock().wait();
            for _ in 0..rounds {
                while *of != me {
                    of = changed.wait(of).wait();
                }
                *of = 1 - me;
                changed.notify_one();
            }
        }
    })?;
    Ok(vec![("ns", nanoseconds(elapsed, rounds))])
}
