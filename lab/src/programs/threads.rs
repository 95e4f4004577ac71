//! The cost of a thread of direct-style code, written once for all systems whose threads are shaped like
//! those of the standard library.
//!
//! Invariants: everything runs inside a thread of the system itself; unless creating threads is what is
//! measured, they are parked before the clock starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::measure::Figure;
use super::slope::{sizes, slope};

/// The threads of a system.
pub trait Threads: 'static {
    /// The right to join a thread, which returns a number.
    type Handle;
    /// A thread, for callers that wake it.
    type Thread: Clone + Send + Sync + 'static;

    /// Starts a thread; the sentence says why none could be started.
    fn spawn(body: impl FnOnce() -> usize + Send + 'static) -> Result<Self::Handle, String>;
    /// Waits for its end; `None` if it panicked.
    fn join(handle: Self::Handle) -> Option<usize>;
    /// The thread of a handle.
    fn thread(handle: &Self::Handle) -> Self::Thread;
    /// The calling thread.
    fn current() -> Self::Thread;
    /// Waits until this thread is woken, or returns at once if it was woken before; may also return early.
    fn park();
    /// Wakes a thread.
    fn unpark(thread: &Self::Thread);
    /// Yields to others.
    fn yield_now();
}

/// One thread creates another and joins it, `n` times.
pub fn create_join<T: Threads>(n: usize) -> Result<Vec<Figure>, String> {
    let clock = Instant::now();
    for index in 0..n {
        ended_with::<T>(T::spawn(move || index)?, index)?;
    }
    Ok(vec![("ns", nanoseconds(clock.elapsed(), n))])
}

/// One thread creates `n` others and then joins all of them.
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

/// `n` threads that wait at the same time: the time from the first creation until all wait, and the
/// slope of the resident memory over their number.
pub fn parked<T: Threads>(
    n: usize,
    resident: impl Fn() -> Result<u64, String>,
) -> Result<Vec<Figure>, String> {
    // Resident before the first measurement, so that the list does not count.
    let mut handles: Vec<Option<T::Handle>> = Vec::new();
    handles.resize_with(n, || None);
    let latch = StartLatch::<T>::new();
    let (mut points, mut total) = (Vec::new(), Duration::ZERO);
    let mut made = 0;
    for size in sizes(n) {
        let clock = Instant::now();
        for handle in &mut handles[made..size] {
            let latch = Arc::clone(&latch);
            *handle = Some(T::spawn(move || latch.pass())?);
        }
        latch.wait_for(size);
        total += clock.elapsed();
        made = size;
        points.push((size as f64, resident()? as f64));
    }
    latch.open();
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

/// Two threads that yield to each other, each of them `n` times.
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

/// How long `units` threads take that are parked before the start and released together. `body` creates
/// the work of each.
pub fn together<T: Threads, W>(units: usize, body: impl Fn(usize) -> W) -> Result<Duration, String>
where
    W: FnOnce() + Send + 'static,
{
    let latch = StartLatch::<T>::new();
    let mut handles = Vec::with_capacity(units);
    for unit in 0..units {
        let (latch, work) = (Arc::clone(&latch), body(unit));
        handles.push(T::spawn(move || {
            let code = latch.pass();
            work();
            code
        })?);
    }
    latch.wait_for(units);
    let clock = Instant::now();
    latch.open();
    handles
        .iter()
        .for_each(|handle| T::unpark(&T::thread(handle)));
    for handle in handles {
        ended_with::<T>(handle, 0)?;
    }
    Ok(clock.elapsed())
}

/// Nanoseconds of a duration per item of `count`.
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

/// Where threads wait until they are released, and where their creator waits for them.
struct StartLatch<T: Threads> {
    arrived: AtomicUsize,
    awaited: AtomicUsize,
    opened: AtomicUsize,
    maker: T::Thread,
}

impl<T: Threads> StartLatch<T> {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            arrived: AtomicUsize::new(0),
            awaited: AtomicUsize::new(usize::MAX),
            opened: AtomicUsize::new(0),
            maker: T::current(),
        })
    }

    /// Counts the calling thread and waits until the latch is open; returns zero, for the thread to return.
    fn pass(&self) -> usize {
        // Either the last awaited thread sees the awaited number, or the creator sees that it arrived:
        // both write one of the two words and read the other, in one order for all threads.
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

    /// Waits until this many have been counted; only the creator may call it.
    fn wait_for(&self, threads: usize) {
        self.awaited.store(threads, Ordering::SeqCst);
        while self.arrived.load(Ordering::SeqCst) < threads {
            T::park();
        }
    }

    /// Releases all threads that are woken from now on.
    fn open(&self) {
        self.opened.store(1, Ordering::Release);
    }
}
