//! What a thread of direct-style code costs: written once for all whose threads are shaped like
//! those of the standard library.
//!
//! Invariants: everything runs inside a thread of the system itself, and threads that are not there
//! to be made are parked before the clock starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::measure::Figure;
use super::slope::{sizes, slope};

/// The threads of a system.
pub trait Threads: 'static {
    /// The right to wait for the end of a thread, which returns a number.
    type Handle;
    /// A thread, for whoever wakes it.
    type Thread: Clone + Send + Sync + 'static;

    /// Starts a thread; the sentence says why none could be had.
    fn spawn(body: impl FnOnce() -> usize + Send + 'static) -> Result<Self::Handle, String>;
    /// Waits for its end; none if it panicked.
    fn join(handle: Self::Handle) -> Option<usize>;
    /// The thread that can be joined.
    fn thread(handle: &Self::Handle) -> Self::Thread;
    /// The thread that asks.
    fn current() -> Self::Thread;
    /// Waits until somebody wakes this thread, or has done so before; may also return early.
    fn park();
    /// Wakes a thread.
    fn unpark(thread: &Self::Thread);
    /// Gives way to others.
    fn yield_now();
}

/// One thread makes another and joins it, `n` times.
pub fn create_join<T: Threads>(n: usize) -> Result<Vec<Figure>, String> {
    let clock = Instant::now();
    for index in 0..n {
        ended_with::<T>(T::spawn(move || index)?, index)?;
    }
    Ok(vec![("ns", nanoseconds(clock.elapsed(), n))])
}

/// One thread makes `n` others, and then joins all of them.
pub fn create_all<T: Threads>(n: usize) -> Result<Vec<Figure>, String> {
    let mut handles = Vec::with_capacity(n);
    let clock = Instant::now();
    for index in 0..n {
        handles.push(T::spawn(move || index)?);
    }
    for (index, handle) in handles.into_iter().enumerate() {
        ended_with::<T>(handle, index)?;
    }
    Ok(vec![("ns", nanoseconds(clock.elapsed(), n))])
}

/// `n` threads that wait at the same time: how long it took to make them until all wait, and the
/// slope of the resident memory over their number.
pub fn parked<T: Threads>(
    n: usize,
    resident: impl Fn() -> Result<u64, String>,
) -> Result<Vec<Figure>, String> {
    // Resident before the first measurement, so that the list does not count.
    let mut handles: Vec<Option<T::Handle>> = Vec::new();
    handles.resize_with(n, || None);
    let gate = Gate::<T>::new();
    let (mut points, mut total) = (Vec::new(), Duration::ZERO);
    let mut made = 0;
    for size in sizes(n) {
        let clock = Instant::now();
        for handle in &mut handles[made..size] {
            let gate = Arc::clone(&gate);
            *handle = Some(T::spawn(move || gate.pass())?);
        }
        gate.wait_for(size);
        total += clock.elapsed();
        made = size;
        points.push((size as f64, resident()? as f64));
    }
    gate.open();
    handles
        .iter()
        .flatten()
        .for_each(|handle| T::unpark(&T::thread(handle)));
    for handle in handles.into_iter().flatten() {
        ended_with::<T>(handle, 0)?;
    }
    Ok(vec![
        ("ns", nanoseconds(total, n)),
        ("bytes_per_thread", slope(&points)),
    ])
}

/// Two threads that give way to each other, each of them `n` times.
pub fn give_way<T: Threads>(n: usize) -> Result<Vec<Figure>, String> {
    let elapsed = together::<T, _>(2, |_| {
        move || {
            for _ in 0..n {
                T::yield_now();
            }
        }
    })?;
    Ok(vec![("ns", nanoseconds(elapsed, 2 * n))])
}

/// How long `units` threads need that are parked before and are let go together; `body` makes the
/// work of each.
pub fn together<T: Threads, W>(units: usize, body: impl Fn(usize) -> W) -> Result<Duration, String>
where
    W: FnOnce() + Send + 'static,
{
    let gate = Gate::<T>::new();
    let mut handles = Vec::with_capacity(units);
    for unit in 0..units {
        let (gate, work) = (Arc::clone(&gate), body(unit));
        handles.push(T::spawn(move || {
            let code = gate.pass();
            work();
            code
        })?);
    }
    gate.wait_for(units);
    let clock = Instant::now();
    gate.open();
    handles
        .iter()
        .for_each(|handle| T::unpark(&T::thread(handle)));
    for handle in handles {
        ended_with::<T>(handle, 0)?;
    }
    Ok(clock.elapsed())
}

/// Nanoseconds of a duration for each of `count` things.
#[must_use]
pub fn nanoseconds(elapsed: Duration, count: usize) -> f64 {
    elapsed.as_secs_f64() * 1e9 / count as f64
}

fn ended_with<T: Threads>(handle: T::Handle, wanted: usize) -> Result<(), String> {
    match T::join(handle) {
        Some(number) if number == wanted => Ok(()),
        Some(number) => Err(format!("A thread returned {number} instead of {wanted}.")),
        None => Err("A thread panicked: see the message above.".to_owned()),
    }
}

/// Where threads wait until they are let go, and where the one that made them waits for them.
struct Gate<T: Threads> {
    arrived: AtomicUsize,
    awaited: AtomicUsize,
    opened: AtomicUsize,
    maker: T::Thread,
}

impl<T: Threads> Gate<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            arrived: AtomicUsize::new(0),
            awaited: AtomicUsize::new(usize::MAX),
            opened: AtomicUsize::new(0),
            maker: T::current(),
        })
    }

    /// Counts the calling thread and waits until the gate is open; zero, for a thread to return.
    fn pass(&self) -> usize {
        // The last of those that are awaited sees their number, or the maker sees that it arrived:
        // both write one of the two words and read the other, in one order for all.
        let arrived = self.arrived.fetch_add(1, Ordering::SeqCst) + 1;
        if arrived == self.awaited.load(Ordering::SeqCst) {
            T::unpark(&self.maker);
        }
        // Pairs with the release in `open`.
        while self.opened.load(Ordering::Acquire) == 0 {
            T::park();
        }
        0
    }

    /// Waits until so many have been counted; for the maker alone.
    fn wait_for(&self, threads: usize) {
        self.awaited.store(threads, Ordering::SeqCst);
        while self.arrived.load(Ordering::SeqCst) < threads {
            T::park();
        }
    }

    /// Lets all go that are woken from now on.
    fn open(&self) {
        self.opened.store(1, Ordering::Release);
    }
}
