//! Cancels at every moment: in the callback itself, while it fires, before it has arrived, many at once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tools::{Drops, on_each, runtime, until, watch};
use weald_kernel::{Runtime, now, sleep};
use weald_process::callback::{self, Handle, Owner, When, once};

const HOUR: Duration = Duration::from_secs(3600);
const MS: Duration = Duration::from_millis(1);

/// Starts a callback that gets its own handle when it runs.
fn with_its_handle(owner: Owner, run: impl FnOnce(Handle) + Send + 'static) {
    let (sender, own) = mpsc::channel();
    let when = When::At(now() + MS);
    let handle = once(owner, when, move || run(own.recv().unwrap()));
    sender.send(handle).unwrap();
}

#[test]
fn a_callback_that_cancels_itself_runs_to_its_end() {
    on_each(|runtime| {
        let (sender, ran) = mpsc::channel();
        runtime.block_on(async {
            for owner in [Owner::runtime(), Owner::current()] {
                let sender = sender.clone();
                with_its_handle(owner, move |own| {
                    // The callback already runs, so the cancel prevents no run.
                    assert!(!own.cancel());
                    assert!(own.is_over());
                    drop(own);
                    sender.send(()).unwrap();
                });
            }
        });
        assert_eq!(ran.iter().take(2).count(), 2);
    });
}

#[test]
fn a_callback_either_fires_or_is_cancelled_when_both_race() {
    let _watch = watch();
    const ROUNDS: usize = 2_000;
    let runtime = runtime(2);
    let (drops, runs) = (Drops::default(), Arc::new(AtomicUsize::new(0)));
    let mut prevented = 0;
    for round in 0..ROUNDS {
        let (token, count) = (drops.token(), runs.clone());
        let started = runtime.spawn(async move {
            // Due at once, or in its turn.
            let when = match round % 2 {
                0 => When::Ready,
                _ => When::At(now()),
            };
            once(Owner::runtime(), when, move || {
                let _token = token;
                count.fetch_add(1, Ordering::SeqCst);
            })
        });
        let handle = runtime.block_on(started).unwrap();
        for _ in 0..round % 50 {
            std::hint::spin_loop();
        }
        prevented += usize::from(handle.cancel());
    }
    until(|| drops.count() == ROUNDS);
    assert_eq!(runs.load(Ordering::SeqCst) + prevented, ROUNDS);
}

#[test]
fn a_callback_cancels_others_that_are_due_at_the_same_time() {
    on_each(|runtime| {
        let drops = Drops::default();
        let runs = Arc::new(AtomicUsize::new(0));
        let others: Arc<Mutex<Vec<Handle>>> = Arc::default();
        runtime.block_on(async {
            let due = When::At(now() + 2 * MS);
            for _ in 0..100 {
                let (others_of_it, token, runs) = (others.clone(), drops.token(), runs.clone());
                let handle = once(Owner::runtime(), due, move || {
                    let _token = token;
                    runs.fetch_add(1, Ordering::SeqCst);
                    for other in std::mem::take(&mut *others_of_it.lock().unwrap()) {
                        other.cancel();
                    }
                });
                others.lock().unwrap().push(handle);
            }
        });
        until(|| drops.count() == 100);
        assert!(runs.load(Ordering::SeqCst) >= 1);
    });
}

#[test]
fn very_many_cancelled_callbacks_give_their_memory_back() {
    let _watch = watch();
    const COUNT: usize = 300_000;
    let runtime = runtime(2);
    let started = runtime.spawn(async {
        let mut handles = Vec::with_capacity(COUNT);
        for n in 0..COUNT {
            let when = When::At(now() + HOUR);
            let words = [n; 8];
            handles.push(once(Owner::runtime(), when, move || {
                std::hint::black_box(words);
            }));
            if n % 1024 == 0 {
                weald_kernel::yield_now().await;
            }
        }
        handles
    });
    let handles = runtime.block_on(started).unwrap();
    // Cancelled from outside, so that the blocks stay in the wheels; nothing else wakes their workers.
    for handle in handles {
        assert!(handle.cancel());
    }
    // What is too little for a sweep stays: some dozens, and those cancelled since the last sweep.
    let bytes = COUNT * 100;
    let total = AtomicUsize::new(0);
    until(|| {
        let more = runtime.trim();
        total.fetch_add(more, Ordering::Relaxed) + more > bytes / 10 * 8
    });
}

#[test]
fn a_callback_cancelled_before_it_reaches_its_worker_never_runs() {
    let _watch = watch();
    let drops = Drops::default();
    let runtime = Arc::new(runtime(1));
    let (release, held) = mpsc::channel::<()>();
    let (sender, blocked) = mpsc::channel();
    // The only worker is in a job while the callbacks arrive.
    let job = runtime.spawn(async move {
        sender.send(()).unwrap();
        held.recv().unwrap();
    });
    blocked.recv().unwrap();
    let outside = {
        let (runtime, drops) = (runtime.clone(), drops.clone());
        thread::spawn(move || {
            runtime.block_on(async {
                for when in [When::Ready, When::At(now() + HOUR)] {
                    for _ in 0..100 {
                        let token = drops.token();
                        let handle = once(Owner::runtime(), when, move || {
                            drop(token);
                            unreachable!("it was cancelled");
                        });
                        handle.cancel();
                    }
                }
            });
        })
    };
    outside.join().unwrap();
    assert_eq!(drops.count(), 200);
    release.send(()).unwrap();
    runtime.block_on(job).unwrap();
}

#[test]
fn handles_outlive_their_runtime() {
    let _watch = watch();
    let drops = Drops::default();
    let runtime = runtime(2);
    let handles: Vec<Handle> = runtime.block_on(async {
        let one = |_| {
            let token = drops.token();
            once(Owner::runtime(), When::At(now() + HOUR), move || {
                drop(token)
            })
        };
        (0..100).map(one).collect()
    });
    runtime.shutdown(Duration::ZERO);
    assert_eq!(drops.count(), 100);
    for handle in &handles {
        assert!(handle.is_over());
        assert!(!handle.cancel());
    }
}

#[test]
fn dropping_a_handle_does_not_cancel() {
    let _watch = watch();
    Runtime::test(1).block_on(async {
        let (sender, ran) = mpsc::channel();
        drop(callback::after(MS, move || sender.send(()).unwrap()));
        sleep(2 * MS).await;
        assert_eq!(ran.try_recv(), Ok(()));
    });
}
