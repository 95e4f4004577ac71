//! Programs that try to break the soundness of threads, each with its expected outcome.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]

#[path = "support/on_workers.rs"]
mod on_workers;
#[allow(dead_code, reason = "a part of it is used")]
#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::ThreadId,
    time::Duration,
};

use on_workers::on_workers;
use reports::{collect_reports, reports};
use tools::{Drops, Latch, until, watch};
use weald_fiber as thread;
use weald_kernel::{Runtime, Wait};

fn os_thread() -> ThreadId {
    std::thread::current().id()
}

/// Outcome: after its first wait a thread is always on the same OS thread.
#[test]
fn a_started_thread_stays_on_its_os_thread() {
    on_workers(4, || {
        let threads: Vec<_> = (0..200)
            .map(|_| {
                thread::spawn(|| {
                    thread::yield_now();
                    let here = os_thread();
                    for _ in 0..50 {
                        thread::yield_now();
                        assert_eq!(os_thread(), here);
                    }
                })
            })
            .collect();
        for handle in threads {
            handle.join().unwrap();
        }
    });
}

/// Outcome: the `RefCell` refuses a second borrow; the first one stays valid.
#[test]
fn a_thread_local_that_is_borrowed_across_a_wait() {
    thread_local! {
        static WORDS: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }
    on_workers(1, || {
        let latch = Latch::default();
        let waits = latch.clone();
        let borrows = thread::spawn(move || {
            WORDS.with(|words| {
                let mut words = words.borrow_mut();
                waits.wait();
                words.push(1);
                words.len()
            })
        });
        while latch.waiters() == 0 {
            thread::yield_now();
        }
        let refused = thread::spawn(|| WORDS.with(|words| words.try_borrow_mut().is_err()));
        assert!(refused.join().unwrap());
        latch.open();
        assert_eq!(borrows.join().unwrap(), 1);
    });
}

/// Outcome: the count is right, because only one OS thread ever touches it.
#[test]
fn an_rc_that_a_thread_local_also_holds() {
    thread_local! {
        static SHARED: Rc<Cell<u32>> = Rc::new(Cell::new(0));
    }
    on_workers(4, || {
        let threads: Vec<_> = (0..100)
            .map(|_| {
                thread::spawn(|| {
                    thread::yield_now();
                    for _ in 0..20 {
                        let mine = SHARED.with(Rc::clone);
                        mine.set(mine.get() + 1);
                        thread::yield_now();
                        drop(mine);
                    }
                    SHARED.with(|shared| Rc::strong_count(shared) <= 101)
                })
            })
            .collect();
        for handle in threads {
            assert!(handle.join().unwrap());
        }
    });
}

/// Outcome: others see the lock taken, and it is not poisoned. A `lock` on the same OS thread would block that OS
/// thread forever, which is the documented limit.
#[test]
fn a_guard_of_std_that_is_held_across_a_wait() {
    on_workers(1, || {
        let (lock, latch) = (Arc::new(Mutex::new(1)), Latch::default());
        let holds = {
            let (lock, latch) = (lock.clone(), latch.clone());
            thread::spawn(move || {
                let mut guard = lock.lock().unwrap();
                latch.wait();
                *guard += 1;
            })
        };
        while latch.waiters() == 0 {
            thread::yield_now();
        }
        let tries = {
            let lock = lock.clone();
            thread::spawn(move || lock.try_lock().is_err())
        };
        assert!(tries.join().unwrap());
        latch.open();
        holds.join().unwrap();
        assert_eq!(*lock.lock().unwrap(), 2);
    });
}

/// Outcome: the wait ends, and the join returns the first panic.
#[test]
fn a_wait_in_a_destructor_while_the_stack_unwinds() {
    struct Waits(Latch);
    impl Drop for Waits {
        fn drop(&mut self) {
            self.0.clone().wait();
        }
    }
    on_workers(2, || {
        let latch = Latch::default();
        let waits = Waits(latch.clone());
        let unwinds = thread::spawn(move || {
            let _waits = waits;
            thread::yield_now();
            panic!("first");
        });
        let opens = weald_kernel::spawn(async move {
            tools::until_yielding(|| latch.waiters() > 0).await;
            latch.open();
        });
        match unwinds.wait() {
            Err(thread::JoinError::Panicked(panic)) => assert_eq!(panic.message(), "first"),
            other => panic!("{other:?}"),
        }
        opens.wait().unwrap();
    });
}

/// Outcome: a waiting thread does not count as panicking because another one panics, and its `std` locks are not
/// poisoned.
#[test]
fn others_panic_while_a_thread_is_suspended() {
    on_workers(1, || {
        let lock = Arc::new(Mutex::new(0));
        let suspended = {
            let lock = lock.clone();
            thread::spawn(move || {
                let guard = lock.lock().unwrap();
                for _ in 0..50 {
                    thread::yield_now();
                    assert!(!std::thread::panicking());
                }
                drop(guard);
            })
        };
        for _ in 0..20 {
            let crashes = thread::spawn(|| {
                thread::yield_now();
                let caught = catch_unwind(AssertUnwindSafe(|| panic!("caught")));
                assert!(caught.is_err());
                thread::yield_now();
                panic!("not caught");
            });
            assert!(crashes.join().unwrap_err().is_panic());
        }
        suspended.join().unwrap();
        assert!(!lock.is_poisoned());
    });
}

type Waits = Box<dyn FnOnce() + Send>;

/// Waits that never end, by name. `locked` is locked.
fn endless_waits(locked: Arc<weald_sync::Mutex<()>>) -> Vec<(&'static str, Waits)> {
    use weald_sync::{Barrier, Condvar, Mutex, Semaphore, channel, oneshot};
    let condition = (Mutex::new(()), Condvar::new());
    let (full, kept_full) = channel::bounded(1);
    full.try_send(()).unwrap();
    let (kept_open, empty) = channel::unbounded::<()>();
    let (kept_once, mut once) = oneshot::channel::<()>();
    let named = |name, wait: Waits| (name, wait);
    vec![
        named(
            "sleep",
            Box::new(|| thread::sleep(Duration::from_secs(3600))),
        ),
        named("park", Box::new(thread::park)),
        named("lock", Box::new(move || drop(locked.lock().wait()))),
        named(
            "condition",
            Box::new(move || {
                let guard = condition.0.lock().wait();
                drop(condition.1.wait(guard).wait());
            }),
        ),
        named(
            "barrier",
            Box::new(|| {
                let _ = Barrier::new(2).wait().wait();
            }),
        ),
        named(
            "semaphore",
            Box::new(|| drop(Semaphore::new(0).acquire().wait())),
        ),
        named(
            "send",
            Box::new(move || {
                let _kept = kept_full;
                let _ = full.send(()).wait();
            }),
        ),
        named(
            "receive",
            Box::new(move || {
                let _kept = kept_open;
                let _ = empty.receive().wait();
            }),
        ),
        named(
            "oneshot",
            Box::new(move || {
                let _kept = kept_once;
                let _ = once.receive().wait();
            }),
        ),
        named(
            "join",
            Box::new(|| {
                let _ = thread::spawn(thread::park).join();
            }),
        ),
        named(
            "yield",
            Box::new(|| {
                loop {
                    thread::yield_now()
                }
            }),
        ),
        named("a future", Box::new(|| std::future::pending::<()>().wait())),
    ]
}

/// Outcome: at each kind of wait the stack unwinds once, and the join reports the cancel.
#[test]
fn a_cancel_at_every_wait() {
    let lock = Arc::new(weald_sync::Mutex::new(()));
    let waits = endless_waits(lock.clone());
    on_workers(1, move || {
        let _held = lock.lock().wait();
        for (name, wait) in waits {
            let (drops, begun) = (Drops::default(), Latch::default());
            let (token, begins) = (drops.token(), begun.clone());
            let handle = thread::spawn(move || {
                let _token = token;
                begins.open();
                wait();
                unreachable!("the cancel unwinds it");
            });
            begun.wait();
            for _ in 0..3 {
                thread::yield_now();
            }
            handle.cancel();
            assert!(handle.join().unwrap_err().is_cancelled(), "{name}");
            assert_eq!(drops.count(), 1, "{name}");
        }
    });
}

/// Outcome: a thread that has not started is dropped, and its code never runs.
#[test]
fn a_cancel_before_the_start() {
    let drops = Drops::default();
    let token = drops.token();
    on_workers(1, move || {
        let handle = thread::spawn(move || {
            let _token = token;
            unreachable!("it was cancelled");
        });
        handle.cancel();
        assert!(handle.join().unwrap_err().is_cancelled());
    });
    assert_eq!(drops.count(), 1);
}

/// Outcome: both resume, because the job's stack is suspended, too.
#[test]
fn a_job_waits_for_a_thread_of_its_own_os_thread() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let job = runtime.spawn(async {
        let starts = Latch::default();
        let waits = starts.clone();
        let fiber = thread::spawn(move || {
            waits.wait();
            7
        });
        weald_kernel::yield_now().await;
        starts.open();
        fiber.join().unwrap()
    });
    assert_eq!(runtime.block_on(job).unwrap(), 7);
}

/// Outcome: jobs and threads that have not started run elsewhere; those that are suspended on the blocked OS thread
/// wait for it; the monitor names the thread that blocks.
#[test]
fn a_thread_blocks_its_os_thread_with_others_on_it() {
    collect_reports();
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .stuck_after(Duration::from_millis(2))
        .build()
        .unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    let (latch, begun) = (Latch::default(), Arc::new(AtomicUsize::new(0)));
    let pinned = {
        let (waits, begun) = (latch.clone(), begun.clone());
        runtime.block_on(async {
            thread::spawn(move || {
                begun.fetch_add(1, Ordering::SeqCst);
                waits.wait();
                os_thread()
            })
        })
    };
    until(|| begun.load(Ordering::SeqCst) == 1);
    let blocker = runtime.block_on(async {
        thread::Builder::new()
            .name("the blocker")
            .spawn(move || {
                thread::yield_now();
                blocked.recv().unwrap();
                os_thread()
            })
            .unwrap()
    });
    until(|| !reports("weald::monitor", "the blocker").is_empty());
    latch.open();
    // A new thread starts elsewhere, while the pinned one waits for its own OS thread.
    let elsewhere = runtime.block_on(async { thread::spawn(os_thread).await.unwrap() });
    assert!(!pinned.is_finished());
    release.send(()).unwrap();
    let blocked_thread = blocker.join().unwrap();
    assert_eq!(pinned.join().unwrap(), blocked_thread);
    assert_ne!(elsewhere, blocked_thread);
}

/// Outcome: every stack unwinds, on its own OS thread.
#[test]
fn a_runtime_is_dropped_with_suspended_stacks() {
    struct Here(Arc<Mutex<Vec<bool>>>, Option<ThreadId>);
    impl Drop for Here {
        fn drop(&mut self) {
            let is_own = self.1 == Some(os_thread());
            self.0.lock().unwrap().push(is_own);
        }
    }
    let _watch = watch();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let runtime = Runtime::builder().workers(2).build().unwrap();
    let begun = Arc::new(AtomicUsize::new(0));
    for _ in 0..100 {
        let (here, begun) = (Here(ends.clone(), None), begun.clone());
        runtime
            .block_on(async move {
                thread::spawn(move || {
                    let mut here = here;
                    here.1 = Some(os_thread());
                    begun.fetch_add(1, Ordering::SeqCst);
                    thread::park();
                })
            })
            .detach();
    }
    until(|| begun.load(Ordering::SeqCst) == 100);
    drop(runtime);
    assert_eq!(*ends.lock().unwrap(), [true; 100]);
}

/// Outcome: all of them stay parked at once, and all resume.
#[test]
fn very_many_parked_threads() {
    on_workers(2, || {
        let count = Arc::new(AtomicUsize::new(0));
        let parked: Vec<_> = (0..20_000)
            .map(|_| {
                let count = count.clone();
                thread::spawn(move || {
                    count.fetch_add(1, Ordering::SeqCst);
                    thread::park();
                })
            })
            .collect();
        while count.load(Ordering::SeqCst) < parked.len() {
            thread::yield_now();
        }
        for handle in &parked {
            handle.thread().unpark();
        }
        for handle in parked {
            handle.join().unwrap();
        }
    });
}
