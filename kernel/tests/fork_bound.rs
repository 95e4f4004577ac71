//! The bound of root forks that compute at once: those whose threads wait or are blocked do not count, and what they
//! have pushed is stolen although as many others compute as there are workers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tools::{until, watch};
use weald_kernel::{
    Runtime, Wait, block_in_place,
    fork::{join, scope},
};
use weald_sync::oneshot;

/// A runtime whose monitor retakes a stuck worker after 1 ms.
fn quickly_retaking(workers: usize) -> Arc<Runtime> {
    let builder = Runtime::builder().workers(workers);
    let builder = builder.stuck_after(Duration::from_millis(1));
    Arc::new(builder.build().unwrap())
}

/// A runtime whose jobs may hold their workers for as long as they like.
fn never_retaking(workers: usize) -> Arc<Runtime> {
    let builder = Runtime::builder().workers(workers);
    let builder = builder.stuck_after(Duration::from_secs(3600));
    Arc::new(builder.build().unwrap())
}

/// Root forks that hold their threads until this is dropped.
struct Hogs {
    ends: Vec<mpsc::Sender<()>>,
    is_over: Arc<AtomicBool>,
    jobs: Vec<weald_kernel::JoinHandle<()>>,
    runtime: Arc<Runtime>,
}

/// How a hog holds its thread.
#[derive(Clone, Copy)]
enum Holds {
    Blocks,
    BlocksInPlace,
    Computes,
}

impl Hogs {
    /// Starts as many, and returns when each is in its first half.
    fn start(runtime: &Arc<Runtime>, count: usize, holds: Holds) -> Hogs {
        let begun = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let start = |_| {
            let (end, ended) = mpsc::channel::<()>();
            let (begun, is_over) = (begun.clone(), is_over.clone());
            let job = runtime.spawn(async move {
                let hold = move || {
                    begun.fetch_add(1, Ordering::SeqCst);
                    match holds {
                        Holds::Blocks => _ = ended.recv(),
                        Holds::BlocksInPlace => block_in_place(|| _ = ended.recv()),
                        Holds::Computes => while !is_over.load(Ordering::SeqCst) {},
                    }
                };
                join(hold, || ());
            });
            (end, job)
        };
        let (ends, jobs) = (0..count).map(start).unzip();
        until(|| begun.load(Ordering::SeqCst) == count);
        Hogs {
            ends,
            is_over,
            jobs,
            runtime: runtime.clone(),
        }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.ends.clear();
        self.is_over.store(true, Ordering::SeqCst);
        for job in self.jobs.drain(..) {
            self.runtime.block_on(job).unwrap();
        }
    }
}

/// Forks, and the first half waits for the second.
fn waits_for_its_other_half() {
    let (tx, mut rx) = oneshot::channel();
    join(
        move || rx.receive().wait().unwrap(),
        move || tx.send(1).unwrap(),
    );
}

/// As above, but the first half blocks its thread.
fn blocks_for_its_other_half() {
    let (tx, rx) = mpsc::channel();
    join(move || rx.recv().unwrap(), move || tx.send(1).unwrap());
}

fn a_fork_ends_beside(holds: Holds) {
    let _watch = watch();
    let runtime = quickly_retaking(2);
    let _hogs = Hogs::start(&runtime, 2, holds);
    let waits = runtime.spawn(async { waits_for_its_other_half() });
    runtime.block_on(waits).unwrap();
    let blocks = runtime.spawn(async { blocks_for_its_other_half() });
    runtime.block_on(blocks).unwrap();
}

#[test]
fn a_fork_ends_beside_as_many_forks_that_block_as_there_are_workers() {
    a_fork_ends_beside(Holds::Blocks);
}

#[test]
fn a_fork_ends_beside_as_many_forks_that_block_in_place() {
    a_fork_ends_beside(Holds::BlocksInPlace);
}

#[test]
fn a_fork_ends_beside_as_many_forks_that_compute() {
    a_fork_ends_beside(Holds::Computes);
}

/// A thief may take the other half of the first two before the second computes, but not that of a third.
#[test]
fn the_parts_from_which_the_bound_keeps_the_workers_are_listed() {
    let _watch = watch();
    let runtime = quickly_retaking(2);
    let hogs = Hogs::start(&runtime, 3, Holds::Computes);
    until(|| !runtime.waits().held_back_forks.is_empty());
    let waits = runtime.waits();
    let parts = &waits.held_back_forks[0];
    assert!(parts.site.file().ends_with("fork_bound.rs"), "{parts}");
    let by = parts.by.as_ref().unwrap();
    assert!(by.site.file().ends_with("fork_bound.rs"), "{parts}");
    assert!(
        waits
            .to_string()
            .contains("as many forks compute as there are workers")
    );
    drop(hogs);
    assert!(runtime.waits().held_back_forks.is_empty());
}

/// A scope of ten parts that compute until the flag is set. Returns when so many of them do.
fn computing_scope(
    runtime: &Runtime,
    computing: usize,
) -> (weald_kernel::JoinHandle<()>, Arc<AtomicBool>) {
    let (begun, is_over) = (Arc::<AtomicUsize>::default(), Arc::<AtomicBool>::default());
    let (begins, ends) = (begun.clone(), is_over.clone());
    let job = runtime.spawn(async move {
        scope(|scope| {
            for _ in 0..10 {
                scope.spawn(|| {
                    begins.fetch_add(1, Ordering::SeqCst);
                    while !ends.load(Ordering::SeqCst) {}
                });
            }
        });
    });
    until(|| begun.load(Ordering::SeqCst) == computing);
    (job, is_over)
}

#[test]
fn a_scope_whose_parts_are_held_back_is_listed_once() {
    let _watch = watch();
    let runtime = never_retaking(3);
    // The owner runs a part, too, and two runners.
    let (job, is_over) = computing_scope(&runtime, 3);
    until(|| !runtime.waits().held_back_forks.is_empty());
    let listed = runtime.waits().held_back_forks;
    is_over.store(true, Ordering::SeqCst);
    runtime.block_on(job).unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert!(!listed[0].to_string().contains("own thread"));
}

/// The owner and a runner compute; the third worker is busy, with a job that does not fork.
#[test]
fn a_scope_that_may_have_a_further_thread_is_not_listed() {
    let _watch = watch();
    let runtime = never_retaking(3);
    let (begun, is_free) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    let (begins, frees) = (begun.clone(), is_free.clone());
    let busy = runtime.spawn(async move {
        begins.store(true, Ordering::SeqCst);
        while !frees.load(Ordering::SeqCst) {}
    });
    until(|| begun.load(Ordering::SeqCst));
    let (job, is_over) = computing_scope(&runtime, 2);
    let listed = runtime.waits().held_back_forks;
    is_over.store(true, Ordering::SeqCst);
    is_free.store(true, Ordering::SeqCst);
    runtime.block_on(job).unwrap();
    runtime.block_on(busy).unwrap();
    assert!(listed.is_empty(), "{listed:?}");
}

#[test]
fn a_fork_ends_beside_foreign_threads_that_block_in_forks() {
    let _watch = watch();
    let runtime = quickly_retaking(2);
    let begun = Arc::new(AtomicUsize::new(0));
    let start = |_| {
        let (end, ended) = mpsc::channel::<()>();
        let (begun, runtime) = (begun.clone(), runtime.clone());
        let fork = move || {
            let hold = move || {
                begun.fetch_add(1, Ordering::SeqCst);
                _ = ended.recv();
            };
            join(hold, || ());
        };
        let thread = thread::spawn(move || runtime.block_on(async { fork() }));
        (end, thread)
    };
    let (ends, threads): (Vec<_>, Vec<_>) = (0..2).map(start).unzip();
    until(|| begun.load(Ordering::SeqCst) == 2);
    let waits = runtime.spawn(async { waits_for_its_other_half() });
    runtime.block_on(waits).unwrap();
    let blocks = runtime.spawn(async { blocks_for_its_other_half() });
    runtime.block_on(blocks).unwrap();
    drop(ends);
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}

#[test]
fn on_one_worker_a_half_that_blocks_its_thread_is_followed_by_the_other() {
    let _watch = watch();
    let runtime = quickly_retaking(1);
    let blocks = runtime.spawn(async { blocks_for_its_other_half() });
    runtime.block_on(blocks).unwrap();
    let in_place = runtime.spawn(async { block_in_place(blocks_for_its_other_half) });
    runtime.block_on(in_place).unwrap();
}

/// The thread has lost its worker while it still computed, so nobody saw then that it is blocked.
#[test]
fn on_one_worker_a_half_that_computes_and_then_blocks_is_followed_by_the_other() {
    let _watch = watch();
    let runtime = quickly_retaking(1);
    let detached = runtime.clone();
    let job = runtime.spawn(async move {
        let (tx, rx) = mpsc::channel();
        let first = move || {
            until(|| detached.metrics().detached > 0);
            drop(detached);
            rx.recv().unwrap();
        };
        join(first, move || tx.send(1).unwrap());
    });
    runtime.block_on(job).unwrap();
}
