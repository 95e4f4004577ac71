//! Threads are started, joined, named, detached, parked and cancelled, and yield in turn.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::async_yields_async,
    reason = "handles are handed out of a block_on"
)]
#![allow(unsafe_code)]

#[path = "support/on_workers.rs"]
mod on_workers;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use on_workers::on_workers;
use tools::{Drops, Latch, until, watch};
use weald_fiber::{self as thread, Builder, JoinError, Prefer};
use weald_kernel::{
    Runtime, Unit, Wait, WaitingJob,
    callback::{self, Owner, When},
};
use weald_sync::{Barrier, reason::Kind};

#[test]
fn a_join_returns_the_threads_result() {
    on_workers(1, || {
        let handles: Vec<_> = (0..1000_u64)
            .map(|n| thread::spawn(move || n * n))
            .collect();
        let sum: u64 = handles
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .sum();
        assert_eq!(sum, 332_833_500);
    });
}

#[test]
fn threads_that_their_joiner_runs_count_as_ended() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let joins = || (0..100).for_each(|_| thread::spawn(|| ()).join().unwrap());
    runtime
        .block_on(async move { thread::spawn(joins).await })
        .unwrap();
    let ended = runtime.metrics().ended;
    assert!((100..=101).contains(&ended), "{ended}");
}

/// Asks as whom the code of its destructor runs.
struct AsWhom(Arc<AtomicU64>);

impl Drop for AsWhom {
    fn drop(&mut self) {
        let number = Unit::current().map_or(0, |unit| unit.number());
        self.0.store(number, Ordering::Relaxed);
    }
}

/// A callback that ends with its thread: its destructor is user code, which runs as the thread, and not as the joiner.
#[test]
fn what_ends_with_a_thread_that_its_joiner_runs_ends_as_that_thread() {
    on_workers(1, || {
        // Its stack then lies ready for the next one.
        thread::spawn(|| ()).join().unwrap();
        let asked = Arc::new(AtomicU64::new(0));
        let value = AsWhom(asked.clone());
        let ends = thread::spawn(move || {
            let far = When::At(Instant::now() + Duration::from_secs(3600));
            callback::once(Owner::current(), far, move || drop(value)).detach();
            Unit::current().unwrap().number()
        });
        let number = ends.join().unwrap();
        until(|| asked.load(Ordering::Relaxed) != 0);
        assert_eq!(asked.load(Ordering::Relaxed), number);
    });
}

/// What a thread that its joiner runs leaves behind, once it has ended or while it waits.
#[test]
fn however_a_thread_ends_that_its_joiner_runs_its_join_learns_of_it() {
    on_workers(1, || {
        let drops = Drops::default();
        for known in [false, true] {
            let output = drops.token();
            let ends = thread::spawn(move || output);
            let known = known.then(|| ends.thread());
            drop(ends.join().unwrap());
            assert_eq!(drops.count(), 1 + usize::from(known.is_some()));
            // It has ended: nobody is unparked.
            known.into_iter().for_each(|known| known.unpark());
        }
        let kept = drops.token();
        let panics = thread::spawn(move || {
            let _kept = kept;
            panic!("on purpose");
        });
        let error = thread::JoinHandle::<()>::join(panics).unwrap_err();
        assert!(
            error.to_string().ends_with("panicked: on purpose"),
            "{error}"
        );
        assert_eq!(drops.count(), 3);
        let waits = thread::spawn(|| {
            thread::yield_now();
            7
        });
        assert_eq!(waits.join().unwrap(), 7);
        let exits = thread::spawn(|| -> u32 { thread::exit(8_u32) });
        assert_eq!(exits.join().unwrap(), 8);
        let cancelled = thread::spawn(|| ());
        cancelled.cancel();
        assert!(cancelled.join().unwrap_err().is_cancelled());
        let cancels_itself = thread::spawn(|| {
            weald_kernel::Unit::current().unwrap().kill();
            thread::yield_now();
        });
        assert!(cancels_itself.join().unwrap_err().is_cancelled());
    });
}

/// The joiner of a fresh thread runs it on its own OS thread. If the fresh thread waits, others run there.
#[test]
fn a_thread_that_its_joiner_runs_waits_for_another_on_the_same_os_thread() {
    on_workers(1, || {
        let (first, second) = (Latch::default(), Latch::default());
        let (waits, opens) = (first.clone(), second.clone());
        let pinned = thread::spawn(move || {
            waits.wait();
            opens.open();
        });
        while first.waiters() == 0 {
            thread::yield_now();
        }
        first.open();
        let fresh = thread::spawn(move || {
            second.wait();
            5
        });
        assert_eq!(fresh.join().unwrap(), 5);
        pinned.join().unwrap();
    });
}

#[test]
fn threads_are_joined_from_every_kind_of_unit() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(2).build().unwrap();
    // A foreign thread, a job that awaits, a job that waits, a thread.
    let foreign = runtime.block_on(async { thread::spawn(|| 1) });
    assert_eq!(foreign.join().unwrap(), 1);
    runtime.block_on(async {
        assert_eq!(thread::spawn(|| 2).await.unwrap(), 2);
        let waits = weald_kernel::spawn(async { thread::spawn(|| 3).wait().unwrap() });
        assert_eq!(waits.await.unwrap(), 3);
        let nested = thread::spawn(|| thread::spawn(|| 4).join().unwrap());
        assert_eq!(nested.await.unwrap(), 4);
    });
}

#[test]
fn a_panic_reaches_the_joiner_and_no_other_thread() {
    on_workers(1, || {
        let crashes = thread::spawn(|| -> u32 { panic!("on purpose") });
        let unharmed = thread::spawn(|| 5);
        match crashes.join() {
            Err(JoinError::Panicked(panic)) => assert_eq!(panic.message(), "on purpose"),
            other => panic!("{other:?}"),
        }
        assert_eq!(unharmed.join().unwrap(), 5);
    });
}

#[test]
fn a_panic_after_a_wait_reaches_the_joiner_too_and_runs_destructors() {
    let drops = Drops::default();
    let token = drops.token();
    on_workers(2, move || {
        let crashes = thread::spawn(move || {
            let _token = token;
            thread::yield_now();
            panic!("later");
        });
        assert!(crashes.join().unwrap_err().is_panic());
    });
    assert_eq!(drops.count(), 1);
}

#[test]
fn a_detached_thread_keeps_running() {
    on_workers(1, || {
        let (sender, receiver) = (Latch::default(), Latch::default());
        let (opens, waits) = (receiver.clone(), sender.clone());
        thread::spawn(move || {
            waits.wait();
            opens.open();
        })
        .detach();
        sender.open();
        receiver.wait();
    });
}

#[test]
fn a_handle_says_whether_its_thread_has_ended() {
    for workers in [1, 2, 4] {
        on_workers(workers, || {
            let latch = Latch::default();
            let (waits, (ended, receiver)) = (latch.clone(), mpsc::channel());
            let handle = thread::spawn(move || {
                waits.wait();
                ended.send(()).unwrap();
                5
            });
            assert!(
                !handle.is_finished(),
                "it cannot end before the latch opens"
            );
            while latch.waiters() == 0 {
                thread::yield_now();
            }
            assert!(!handle.is_finished(), "it waits");
            latch.open();
            while !handle.is_finished() {
                thread::yield_now();
            }
            assert_eq!(receiver.try_recv(), Ok(()));
            assert_eq!(handle.join().unwrap(), 5);

            let ends = [
                thread::spawn(|| panic!("on purpose")),
                thread::spawn(|| Latch::default().wait()),
            ];
            ends[1].cancel();
            while !ends.iter().all(thread::JoinHandle::is_finished) {
                thread::yield_now();
            }
            let [panicked, cancelled] = ends.map(thread::JoinHandle::join);
            assert!(panicked.unwrap_err().is_panic());
            assert!(cancelled.unwrap_err().is_cancelled());
        });
    }
}

#[test]
fn names_and_identities() {
    on_workers(1, || {
        let named = Builder::new()
            .name("reader")
            .spawn(|| {
                let current = thread::current();
                (current.name(), current.id())
            })
            .unwrap();
        let (outside, other) = (named.thread(), thread::spawn(|| thread::current().id()));
        assert_eq!(outside.name().as_deref(), Some("reader"));
        let (name, id) = named.join().unwrap();
        assert_eq!(name.as_deref(), Some("reader"));
        assert_eq!(outside.id(), id);
        assert_ne!(other.join().unwrap(), id);
        assert_ne!(thread::current(), outside);
    });
}

#[test]
fn yields_take_turns() {
    on_workers(1, || {
        let order = Arc::new(Mutex::new(Vec::new()));
        let writer = |n: u32| {
            let order = order.clone();
            move || {
                for _ in 0..100 {
                    order.lock().unwrap().push(n);
                    thread::yield_now();
                }
            }
        };
        let both = [thread::spawn(writer(1)), thread::spawn(writer(2))];
        for handle in both {
            handle.join().unwrap();
        }
        // In the first rounds the threads are not pinned yet, so another worker may take them.
        let order = &order.lock().unwrap()[4..196];
        assert!(order.windows(2).all(|pair| pair[0] != pair[1]), "{order:?}");
    });
}

#[test]
fn every_preference_of_a_yield_lets_others_run() {
    for prefer in [Prefer::Fair, Prefer::Local, Prefer::Steal] {
        on_workers(2, move || {
            let turn = Arc::new(AtomicUsize::new(0));
            let threads: Vec<_> = (0..4)
                .map(|me| {
                    let turn = turn.clone();
                    thread::spawn(move || {
                        for round in 0..50 {
                            while turn.load(Ordering::SeqCst) != round * 4 + me {
                                thread::yield_to(prefer);
                            }
                            turn.fetch_add(1, Ordering::SeqCst);
                        }
                    })
                })
                .collect();
            for handle in threads {
                handle.join().unwrap();
            }
        });
    }
}

#[test]
fn an_unpark_before_the_park_counts_once() {
    on_workers(1, || {
        let (sender, receiver) = mpsc::channel();
        let parks = thread::spawn(move || {
            thread::yield_now();
            thread::park();
            sender.send("first").unwrap();
            thread::park();
            sender.send("second").unwrap();
        });
        let parked = parks.thread();
        parked.unpark();
        parked.unpark();
        while receiver.try_recv() != Ok("first") {
            thread::yield_now();
        }
        for _ in 0..100 {
            thread::yield_now();
        }
        assert!(receiver.try_recv().is_err(), "two unparks count as one");
        parked.unpark();
        parks.join().unwrap();
        assert_eq!(receiver.try_recv(), Ok("second"));
    });
}

#[test]
fn a_process_or_foreign_thread_parks_too() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime.block_on(async {
        let job = weald_kernel::spawn(async { thread::park() });
        job.unparker().unwrap().unpark();
        job.await.unwrap();
    });
    let here = thread::current();
    runtime
        .block_on(async move { thread::spawn(move || here.unpark()).await })
        .unwrap();
    thread::park();
}

#[test]
fn a_park_ends_at_its_deadline() {
    on_workers(1, || {
        assert!(!thread::park_timeout(Duration::from_millis(2)));
        thread::current().unpark();
        assert!(thread::park_timeout(Duration::from_secs(3600)));
    });
}

#[test]
fn sleeping_threads_sleep_at_the_same_time() {
    let _watch = watch();
    Runtime::test(3).block_on(async {
        let start = weald_kernel::now();
        let hour = Duration::from_secs(3600);
        let sleepers: Vec<_> = (0..100)
            .map(|_| thread::spawn(move || thread::sleep(hour)))
            .collect();
        for sleeper in sleepers {
            sleeper.await.unwrap();
        }
        assert_eq!(weald_kernel::now() - start, hour);
    });
}

#[test]
fn exit_ends_a_thread_from_deep_inside_its_calls() {
    fn deep(depth: u32) {
        match depth {
            0 => thread::exit(String::from("from below")),
            _ => deep(depth - 1),
        }
    }
    let drops = Drops::default();
    let token = drops.token();
    on_workers(1, move || {
        let exits = thread::spawn(move || -> String {
            let _token = token;
            thread::yield_now();
            deep(50);
            unreachable!("it has exited")
        });
        assert_eq!(exits.join().unwrap(), "from below");
        let wrong = thread::spawn(|| -> u32 { thread::exit("a text") });
        assert!(wrong.join().unwrap_err().is_panic());
    });
    assert_eq!(drops.count(), 1);
}

#[test]
fn threads_that_may_migrate_work_alike() {
    on_workers(2, || {
        let total = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = (0..200)
            .map(|_| {
                let total = total.clone();
                // SAFETY: it keeps nothing that depends on the OS thread.
                let started = unsafe {
                    Builder::new().spawn_migrating(move || {
                        for _ in 0..50 {
                            thread::yield_now();
                            total.fetch_add(1, Ordering::Relaxed);
                        }
                    })
                };
                started.unwrap()
            })
            .collect();
        for handle in threads {
            handle.join().unwrap();
        }
        assert_eq!(total.load(Ordering::Relaxed), 10_000);
    });
}

/// They switch from stack to stack, and any worker may resume one as soon as its stack is left. Those that end give
/// their blocks to the next ones.
#[test]
fn threads_that_may_migrate_switch_to_each_other_on_several_workers() {
    const AT_ONCE: usize = 8;
    on_workers(4, || {
        let (barrier, met) = (Arc::new(Barrier::new(AT_ONCE)), Arc::default());
        for _ in 0..50 {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|extra| {
                    let (barrier, met) = (Arc::clone(&barrier), Arc::<AtomicUsize>::clone(&met));
                    let code = move || {
                        for _ in 0..10 {
                            barrier.wait().wait();
                            met.fetch_add(1, Ordering::Relaxed);
                        }
                        (0..extra).for_each(|_| thread::yield_now());
                    };
                    // SAFETY: it keeps nothing that depends on the OS thread.
                    unsafe { Builder::new().spawn_migrating(code) }.unwrap()
                })
                .collect();
            for handle in threads {
                handle.join().unwrap();
            }
        }
        assert_eq!(met.load(Ordering::Relaxed), 50 * AT_ONCE * 10);
    });
}

/// Code that is polled promises nothing, and may keep what depends on the OS thread. Between two waits the thread
/// migrates.
#[test]
fn a_thread_that_may_migrate_stays_on_its_os_thread_in_the_poll_of_a_wait() {
    on_workers(4, || {
        let (wakes, to_wake) = mpsc::channel::<thread::Thread>();
        let waker = std::thread::spawn(move || {
            to_wake.iter().for_each(|thread| thread.unpark());
        });
        let moved = Arc::new(AtomicUsize::new(0));
        let here = || std::thread::current().id();
        let threads: Vec<_> = (0..16)
            .map(|_| {
                let (wakes, moved) = (wakes.clone(), moved.clone());
                let waits = move || {
                    wakes.send(thread::current()).unwrap();
                    thread::park();
                };
                // SAFETY: it keeps nothing that depends on the OS thread, except in what it polls.
                let started = unsafe {
                    Builder::new().spawn_migrating(move || {
                        for _ in 0..300 {
                            async {
                                let before = here();
                                waits();
                                waits();
                                assert_eq!(before, here());
                            }
                            .wait();
                            let before = here();
                            waits();
                            moved.fetch_add(usize::from(before != here()), Ordering::Relaxed);
                        }
                    })
                };
                started.unwrap()
            })
            .collect();
        for handle in threads {
            handle.join().unwrap();
        }
        drop(wakes);
        waker.join().unwrap();
        assert!(moved.load(Ordering::Relaxed) > 0, "none has migrated");
    });
}

/// An ordinary thread that wakes it, and then gives way, switches to the loop and not to it.
#[test]
fn a_thread_that_may_migrate_ends_after_a_wait_in_a_poll() {
    on_workers(1, || {
        // SAFETY: it keeps nothing that depends on the OS thread.
        let started = unsafe { Builder::new().spawn_migrating(|| async { thread::park() }.wait()) };
        let migrates = started.unwrap();
        yields_and_unparks(migrates.thread().clone())
            .join()
            .unwrap();
        migrates.join().unwrap();
    });
}

#[test]
fn a_thread_that_may_migrate_unwinds_in_a_wait_behind_one_in_a_poll() {
    let drops = Drops::default();
    let token = drops.token();
    on_workers(1, move || {
        // SAFETY: as above.
        let started = unsafe {
            Builder::new().spawn_migrating(move || {
                let _token = token;
                async { thread::park() }.wait();
                thread::park();
            })
        };
        let migrates = started.unwrap();
        yields_and_unparks(migrates.thread().clone())
            .join()
            .unwrap();
        migrates.cancel();
        assert!(migrates.join().unwrap_err().is_cancelled());
    });
    assert_eq!(drops.count(), 1);
}

/// A thread that has waited unparks `other`, which waits, and gives way.
fn yields_and_unparks(other: thread::Thread) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        (0..10).for_each(|_| thread::yield_now());
        other.unpark();
        (0..10).for_each(|_| thread::yield_now());
    })
}

#[test]
fn threads_that_may_migrate_run_their_destructors_at_a_shutdown() {
    let _watch = watch();
    for workers in [1, 2, 4] {
        let drops = Drops::default();
        let runtime = Runtime::builder().workers(workers).build().unwrap();
        let never = Latch::default();
        let threads: Vec<_> = (0..10)
            .map(|_| {
                let (token, waits) = (drops.token(), never.clone());
                runtime.block_on(async {
                    // SAFETY: it keeps nothing that depends on the OS thread.
                    let started = unsafe {
                        Builder::new().spawn_migrating(move || {
                            let _token = token;
                            waits.wait();
                        })
                    };
                    started.unwrap()
                })
            })
            .collect();
        until(|| never.waiters() == 10);
        let report = runtime.shutdown(Duration::from_secs(20));
        assert!(report.not_stopped.is_empty(), "{report:?}");
        assert_eq!(drops.count(), 10);
        for handle in threads {
            assert!(handle.join().unwrap_err().is_cancelled());
        }
    }
}

#[test]
fn stacks_are_reused_and_given_back() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    runtime
        .block_on(async {
            thread::spawn(|| {
                let parked: Vec<_> = (0..1000).map(|_| thread::spawn(thread::park)).collect();
                thread::yield_now();
                for handle in &parked {
                    handle.thread().unpark();
                }
                for handle in parked {
                    handle.join().unwrap();
                }
            })
            .await
        })
        .unwrap();
    // A worker that is awake keeps the stacks that it has at hand.
    until(|| runtime.trim() > 0);
}

#[test]
fn a_pause_is_listed_with_the_line_of_its_call() {
    const HOUR: Duration = Duration::from_secs(3600);
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let pauses: [(u32, fn()); 4] = [
        (line!(), || thread::sleep(HOUR)),
        (line!(), || thread::sleep_until(weald_kernel::now() + HOUR)),
        (line!(), || thread::park()),
        (line!(), || _ = thread::park_timeout(HOUR)),
    ];
    for (line, pause) in pauses {
        let paused = runtime.block_on(async { thread::spawn(pause) });
        let site = loop {
            let waits = runtime.waits();
            let mut sites = waits.jobs.iter().filter_map(|job| job.reason?.site);
            if let Some(site) = sites.next() {
                break site;
            }
            std::thread::yield_now();
        };
        assert_eq!((site.file(), site.line()), (file!(), line));
        paused.cancel();
        assert!(paused.join().unwrap_err().is_cancelled());
    }
}

#[test]
fn the_end_of_a_thread_or_a_scope_is_awaited_at_a_line_of_the_program() {
    let _watch = watch();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let job = runtime.spawn(async { thread::spawn(thread::park).await });
    let line = line!() - 1;
    let ends_here = |job: WaitingJob| {
        let reason = job.reason.filter(|reason| reason.kind == Kind::End);
        let site = reason.and_then(|reason| reason.site);
        site.is_some_and(|site| (site.file(), site.line()) == (file!(), line))
    };
    until(|| runtime.waits().jobs.into_iter().any(ends_here));
    job.cancel();
    let waits = runtime.block_on(async {
        thread::spawn(|| thread::scope(|scope| drop(scope.spawn(thread::park))))
    });
    let line = line!() - 2;
    let is_at_line = |job: WaitingJob| {
        let reason = job.reason.filter(|reason| reason.kind == Kind::Children);
        let site = reason.and_then(|reason| reason.site);
        site.is_some_and(|site| (site.file(), site.line()) == (file!(), line))
    };
    until(|| runtime.waits().jobs.into_iter().any(is_at_line));
    waits.cancel();
    assert!(waits.join().unwrap_err().is_cancelled());
}
