//! Lazy jobs: code that its joiner takes back, and of which a job is made if somebody else wants it.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    hint::spin_loop,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use weald_kernel::{
    LazyJob, Runtime, Spawn, Wait, about_to_wait, push_lazy, take_lazy, yield_with_stack,
};

const STACK: usize = 64 << 10;

/// A lazy job, and what became of it.
#[repr(C)]
struct Record {
    lazy: LazyJob,
    number: usize,
    /// How often a job was to be made of it.
    made: AtomicUsize,
    /// The numbers of those of which jobs were made.
    order: Arc<Mutex<Vec<usize>>>,
}

// SAFETY: a lazy job is touched only as the functions of this test's subject allow.
unsafe impl Sync for Record {}
// SAFETY: as above.
unsafe impl Send for Record {}

impl Record {
    /// Some that live for ever.
    fn some(count: usize) -> &'static [Record] {
        let order = Arc::<Mutex<_>>::default();
        let record = |number| Record {
            lazy: LazyJob::new(),
            number,
            made: AtomicUsize::new(0),
            order: Arc::clone(&order),
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
}

unsafe fn make(lazy: *const LazyJob) {
    // SAFETY: the lazy job is the first field of a record.
    let record = unsafe { &*lazy.cast::<Record>() };
    record.order.lock().unwrap().push(record.number);
    record.made.fetch_add(1, Ordering::Release);
}

/// Runs `act` as a fiber that migrates, on a runtime with so many workers, which the monitor leaves to their threads
/// however busy the machine is.
fn in_fiber(workers: usize, act: impl FnOnce() + Send + 'static) {
    let runtime = Runtime::builder()
        .workers(workers)
        .stuck_after(Duration::from_secs(1000))
        .build()
        .unwrap();
    runtime.block_on(async {
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
        assert_eq!(*records[0].order.lock().unwrap(), [0, 2, 3]);
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
        while !records[1].is_made() {
            yield_with_stack();
        }
        assert_eq!(*records[0].order.lock().unwrap(), [0, 1]);
    });
}

#[test]
fn another_worker_takes_the_oldest_from_one_that_computes() {
    in_fiber(2, || {
        let records = Record::some(2);
        records.iter().for_each(Record::push);
        // Without a call of the runtime.
        while !records[1].is_made() {
            spin_loop();
        }
        assert_eq!(*records[0].order.lock().unwrap(), [0, 1]);
        assert!(records.iter().all(|record| !take_lazy(&record.lazy)));
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
        // Without a call of the runtime, so the joiner runs on the other worker.
        while !DONE.load(Ordering::Acquire) {
            spin_loop();
        }
        // One of the two has it, or a thief is about to.
        while !TAKEN.load(Ordering::Relaxed) && !records[0].is_made() {
            spin_loop();
        }
        assert!(!take_lazy(&records[0].lazy));
        assert_eq!(
            usize::from(TAKEN.load(Ordering::Relaxed)) + records[0].made.load(Ordering::Acquire),
            1
        );
        joiner.unwrap().wait().unwrap();
    });
}
