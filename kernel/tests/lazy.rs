//! Lazy jobs: code that its joiner takes back, and of which a job is made if somebody else wants it.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    hint::spin_loop,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
    time::{Duration, Instant},
};

use weald_kernel::{
    LazyJob, Runtime, Spawn, Wait, about_to_wait, prefer_stealing, push_lazy, put_back_lazy,
    steal_next, yield_with_stack,
};

const STACK: usize = 64 << 10;

/// A lazy job, and what became of it.
#[repr(C)]
struct Record {
    lazy: LazyJob,
    number: usize,
    /// How often a job was made of it.
    made: AtomicUsize,
    all: Arc<All>,
}

/// What the records of a test share.
#[derive(Default)]
struct All {
    /// The numbers of those of which jobs were made.
    order: Mutex<Vec<usize>>,
    /// Whether jobs are refused what they need.
    refuses: AtomicBool,
    /// How often one was.
    refused: AtomicUsize,
    /// The thread on which the next refusal takes long.
    slow: Mutex<Option<ThreadId>>,
}

// SAFETY: a lazy job is touched only as the functions of this test's subject allow.
unsafe impl Sync for Record {}
// SAFETY: as above.
unsafe impl Send for Record {}

impl Record {
    /// Some that live for ever.
    fn some(count: usize) -> &'static [Record] {
        let all = Arc::<All>::default();
        let record = |number| Record {
            lazy: LazyJob::new(),
            number,
            made: AtomicUsize::new(0),
            all: Arc::clone(&all),
        };
        (0..count).map(record).collect::<Vec<_>>().leak()
    }

    fn push(&'static self) {
        // SAFETY: it stays where it is; `make` may be called.
        assert!(unsafe { push_lazy(&self.lazy, make) });
    }

    fn is_made(&self) -> bool {
        self.made.load(Ordering::Acquire) > 0
    }

    fn order(&self) -> Vec<usize> {
        self.all.order.lock().unwrap().clone()
    }

    fn refuse(&self, refuses: bool) {
        self.all.refuses.store(refuses, Ordering::Release);
    }

    fn refused(&self) -> usize {
        self.all.refused.load(Ordering::Acquire)
    }
}

/// # Safety
/// `lazy` is that of a record, which stays valid during the call.
unsafe fn make(lazy: *const LazyJob) -> bool {
    // SAFETY: the lazy job is the first field of a record.
    let record = unsafe { &*lazy.cast::<Record>() };
    if record.all.refuses.load(Ordering::Acquire) {
        record.all.refused.fetch_add(1, Ordering::Release);
        let mut slow = record.all.slow.lock().unwrap();
        if *slow == Some(thread::current().id()) {
            // For longer than another worker takes to fall asleep; if it does not, nothing fails.
            let begin = Instant::now();
            compute_until(|| begin.elapsed() > Duration::from_millis(100));
            *slow = None;
        }
        return false;
    }
    record.all.order.lock().unwrap().push(record.number);
    record.made.fetch_add(1, Ordering::Release);
    true
}

fn take_lazy(lazy: &LazyJob) -> bool {
    // SAFETY: each test has one runtime.
    unsafe { weald_kernel::take_lazy(lazy) }
}

/// Calls `pause` until `is_so`, for a minute at most.
fn until(is_so: impl Fn() -> bool, pause: impl Fn()) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(60));
        pause();
    }
}

/// Without a call of the runtime.
fn compute_until(is_so: impl Fn() -> bool) {
    until(is_so, spin_loop);
}

fn yield_once() {
    yield_with_stack();
}

/// With workers that the monitor leaves to their threads however busy the machine is.
fn runtime(workers: usize) -> Runtime {
    let builder = Runtime::builder().workers(workers);
    let builder = builder.stuck_after(Duration::from_secs(1000));
    builder.build().unwrap()
}

/// Runs `act` as a fiber that migrates, on a runtime with so many workers.
fn in_fiber(workers: usize, act: impl FnOnce() + Send + 'static) {
    runtime(workers).block_on(async {
        // SAFETY: the code of these tests keeps nothing that depends on the OS thread.
        let fiber = unsafe { Spawn::new().spawn_migrating_fiber(STACK, act) };
        fiber.unwrap().await.unwrap();
    });
}

#[test]
fn a_joiner_takes_it_back_once() {
    in_fiber(1, || {
        let records = Record::some(3);
        records.iter().for_each(Record::push);
        for record in [&records[1], &records[2], &records[0]] {
            assert!(take_lazy(&record.lazy));
            assert!(!take_lazy(&record.lazy));
        }
        about_to_wait();
        assert!(records.iter().all(|record| !record.is_made()));
    });
}

#[test]
fn a_wait_makes_jobs_of_all_in_their_order() {
    in_fiber(1, || {
        let records = Record::some(4);
        records.iter().for_each(Record::push);
        assert!(take_lazy(&records[1].lazy));
        about_to_wait();
        assert_eq!(records[0].order(), [0, 2, 3]);
        assert!(!take_lazy(&records[0].lazy));
    });
}

#[test]
fn a_worker_makes_jobs_of_what_an_ended_job_has_left() {
    let records = Record::some(2);
    in_fiber(1, move || {
        // SAFETY: as in `in_fiber`.
        let ended = unsafe {
            Spawn::new().spawn_migrating_fiber(STACK, move || records.iter().for_each(Record::push))
        };
        ended.unwrap().wait().unwrap();
        until(|| records[1].is_made(), yield_once);
        assert_eq!(records[0].order(), [0, 1]);
    });
}

#[test]
fn another_worker_takes_the_oldest_from_one_that_computes() {
    in_fiber(2, || {
        let records = Record::some(2);
        records.iter().for_each(Record::push);
        compute_until(|| records[1].is_made());
        assert_eq!(records[0].order(), [0, 1]);
        assert!(records.iter().all(|record| !take_lazy(&record.lazy)));
    });
}

#[test]
fn a_third_worker_takes_those_of_two_that_compute() {
    in_fiber(3, || {
        // Rings that were shared before stay so for a while.
        for _ in 0..50 {
            let (own, others) = (Record::some(1), Record::some(1));
            let runs = Arc::new(AtomicBool::new(false));
            let begun = runs.clone();
            // SAFETY: as in `in_fiber`.
            let other = unsafe {
                Spawn::new().spawn_migrating_fiber(STACK, move || {
                    others[0].push();
                    begun.store(true, Ordering::Release);
                    compute_until(|| others[0].is_made() && own[0].is_made());
                })
            };
            compute_until(|| runs.load(Ordering::Acquire));
            own[0].push();
            compute_until(|| others[0].is_made() && own[0].is_made());
            other.unwrap().wait().unwrap();
        }
    });
}

#[test]
fn a_joiner_on_another_worker_takes_it() {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicBool = AtomicBool::new(false);
    in_fiber(2, || {
        let records = Record::some(1);
        // SAFETY: as in `in_fiber`.
        let joiner = unsafe {
            Spawn::new().spawn_migrating_fiber(STACK, move || {
                // A thief may be faster, which makes a job of it.
                TAKEN.store(take_lazy(&records[0].lazy), Ordering::Relaxed);
                DONE.store(true, Ordering::Release);
            })
        };
        records[0].push();
        // So the joiner runs on the other worker.
        compute_until(|| DONE.load(Ordering::Acquire));
        // One of the two has it, or a thief is about to.
        compute_until(|| TAKEN.load(Ordering::Relaxed) || records[0].is_made());
        assert!(!take_lazy(&records[0].lazy));
        assert_eq!(
            usize::from(TAKEN.load(Ordering::Relaxed)) + records[0].made.load(Ordering::Acquire),
            1
        );
        joiner.unwrap().wait().unwrap();
    });
}

#[test]
fn another_worker_takes_the_oldest_though_it_is_busy() {
    in_fiber(2, || {
        let records = Record::some(1);
        static RUNS: AtomicBool = AtomicBool::new(false);
        // SAFETY: as in `in_fiber`.
        let busy = unsafe {
            Spawn::new().spawn_migrating_fiber(STACK, move || {
                RUNS.store(true, Ordering::Release);
                until(|| records[0].is_made(), yield_once);
            })
        };
        compute_until(|| RUNS.load(Ordering::Acquire));
        records[0].push();
        compute_until(|| records[0].is_made());
        busy.unwrap().wait().unwrap();
    });
}

#[test]
fn a_job_that_prefers_others_makes_jobs_of_them() {
    static RUNS: AtomicBool = AtomicBool::new(false);
    static PUSHED: AtomicBool = AtomicBool::new(false);
    static DONE: AtomicBool = AtomicBool::new(false);
    in_fiber(2, || {
        let records = Record::some(40);
        let act = || {
            RUNS.store(true, Ordering::Release);
            // Both workers compute, so no thief takes any.
            compute_until(|| PUSHED.load(Ordering::Acquire));
            assert!(steal_next());
            assert_eq!(records[0].order(), [0]);
            prefer_stealing();
            assert_eq!(records[0].order(), [0, 1, 2]);
            DONE.store(true, Ordering::Release);
        };
        // SAFETY: as in `in_fiber`.
        let fiber = unsafe { Spawn::new().spawn_migrating_fiber(STACK, act) };
        compute_until(|| RUNS.load(Ordering::Acquire));
        records.iter().for_each(Record::push);
        PUSHED.store(true, Ordering::Release);
        compute_until(|| DONE.load(Ordering::Acquire));
        fiber.unwrap().wait().unwrap();
        // Both workers take the rest now, so in any order.
        compute_until(|| records[0].order().len() == records.len());
    });
}

#[test]
fn after_one_that_was_refused_there_is_one_try_for_all() {
    in_fiber(1, || {
        let records = Record::some(100);
        records[0].refuse(true);
        records.iter().for_each(Record::push);
        (0..10).for_each(|_| about_to_wait());
        assert_eq!(records[0].refused(), 1);
        assert!(records.iter().all(|record| record.lazy.is_refused()));
        // A joiner takes what it wants, and gives it back.
        assert!(take_lazy(&records[7].lazy) && !take_lazy(&records[7].lazy));
        // SAFETY: as in `push`.
        unsafe { put_back_lazy(&records[7].lazy, make) };
        // One that comes later waits for its turn.
        let later = Record::some(1);
        later[0].push();
        about_to_wait();
        assert!(later[0].lazy.is_refused());
        // A look has tried them, and in vain.
        until(|| records[0].refused() > 1, yield_once);
        assert!(take_lazy(&records[3].lazy));
        records[0].refuse(false);
        until(|| later[0].is_made(), yield_once);
        let order: Vec<usize> = (0..100).filter(|it| ![3, 7].contains(it)).collect();
        assert_eq!(records[0].order(), [order, vec![7]].concat());
    });
}

/// One that was refused waits for a worker that sleeps, while all others compute. The caller keeps its OS thread.
fn the_last_worker_tries(
    workers: usize,
    compute_beside: impl Fn(&'static Record) + Send + 'static,
) {
    let act = move || {
        let records = Record::some(1);
        records[0].refuse(true);
        records[0].push();
        about_to_wait();
        compute_beside(&records[0]);
        records[0].refuse(false);
        compute_until(|| records[0].is_made());
    };
    runtime(workers).block_on(async {
        let fiber = Spawn::new().spawn_fiber(STACK, act);
        fiber.unwrap().await.unwrap();
    });
}

#[test]
fn a_worker_that_has_slept_for_long_tries_while_all_others_compute() {
    the_last_worker_tries(3, |record| {
        static RUNS: AtomicBool = AtomicBool::new(false);
        compute_until(|| record.refused() > 4);
        let compute = || {
            RUNS.store(true, Ordering::Release);
            compute_until(|| record.is_made());
        };
        // SAFETY: as in `in_fiber`.
        let fiber = unsafe { Spawn::new().spawn_migrating_fiber(STACK, compute) };
        compute_until(|| RUNS.load(Ordering::Acquire));
        fiber.unwrap().detach();
    });
}

#[test]
fn a_worker_that_fell_asleep_during_a_try_tries_again_while_the_other_computes() {
    the_last_worker_tries(2, |record| {
        let own = thread::current().id();
        *record.all.slow.lock().unwrap() = Some(own);
        // A look of this worker tries, and the other one falls asleep meanwhile.
        until(|| record.all.slow.lock().unwrap().is_none(), yield_once);
    });
}

#[test]
fn a_runtime_that_sleeps_tries_them_again() {
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let records = Record::some(2);
    records[0].refuse(true);
    runtime.block_on(async {
        let push = move || records.iter().for_each(Record::push);
        // SAFETY: as in `in_fiber`.
        let fiber = unsafe { Spawn::new().spawn_migrating_fiber(STACK, push) };
        fiber.unwrap().await.unwrap();
    });
    // Nothing else is left to do.
    compute_until(|| records[0].refused() > 3);
    records[0].refuse(false);
    compute_until(|| records[1].is_made());
    assert_eq!(records[0].order(), [0, 1]);
}

#[test]
fn a_thread_without_a_worker_wakes_one_that_tries() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let records = Record::some(1);
    // Nothing else wakes the only worker.
    compute_until(|| runtime.metrics().sleeping == 1);
    runtime.block_on(async {
        // SAFETY: as in `push`.
        unsafe { put_back_lazy(&records[0].lazy, make) };
        compute_until(|| records[0].is_made());
    });
}
