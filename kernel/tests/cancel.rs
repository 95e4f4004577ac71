//! Cancelling: a job ends at its next wait, wherever it is, and its destructors run exactly once.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/tools.rs"]
mod tools;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use tools::{Drops, Latch, for_seeds, on_each, runtime, until, watch};
use weald_kernel::{
    Attachment, Ending, JoinError, Unit, Wait,
    callback::{self, Owner, When},
    catch_panic, catch_unwinding, fork, sleep, spawn, yield_now, yield_with_stack,
};

#[test]
fn a_waiting_job_is_dropped_where_it_waits() {
    on_each(|runtime| {
        let (drops, latch) = (Drops::default(), Latch::default());
        let (token, waits) = (drops.token(), latch.clone());
        let job = runtime.spawn(async move {
            let _token = token;
            waits.await;
        });
        until(|| latch.waiters() == 1);
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert_eq!(drops.count(), 1);
        latch.open();
    });
}

#[test]
fn a_queued_job_never_starts() {
    let _watch = watch();
    let runtime = runtime(1);
    let (drops, polled) = (Drops::default(), Arc::new(AtomicBool::new(false)));
    let (token, seen) = (drops.token(), polled.clone());
    let ended = runtime.spawn(async move {
        // On the only worker: the new job cannot start before this one waits.
        let job = spawn(async move {
            let _token = token;
            seen.store(true, Ordering::SeqCst);
        });
        job.cancel();
        job.await
    });
    assert!(runtime.block_on(ended).unwrap().unwrap_err().is_cancelled());
    assert_eq!((drops.count(), polled.load(Ordering::SeqCst)), (1, false));
}

#[test]
fn a_running_job_runs_on_to_its_next_wait() {
    on_each(|runtime| {
        let drops = Drops::default();
        let token = drops.token();
        let (running, is_running) = mpsc::channel();
        let (go, may_go) = mpsc::channel();
        let (passed, has_passed) = mpsc::channel();
        let job = runtime.spawn(async move {
            let _token = token;
            running.send(()).unwrap();
            may_go.recv().unwrap();
            passed.send(1).unwrap();
            yield_now().await;
            passed.send(2).unwrap();
        });
        is_running.recv().unwrap();
        job.cancel();
        assert_eq!(drops.count(), 0);
        go.send(()).unwrap();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert_eq!(has_passed.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(drops.count(), 1);
    });
}

/// Waits when it is dropped, and counts how often that wait is polled.
struct WaitsWhenDropped {
    latch: Latch,
    polls: Arc<AtomicUsize>,
}

impl Drop for WaitsWhenDropped {
    fn drop(&mut self) {
        let mut latch = self.latch.clone();
        std::future::poll_fn(|cx| {
            self.polls.fetch_add(1, Ordering::SeqCst);
            std::pin::Pin::new(&mut latch).poll(cx)
        })
        .wait();
    }
}

#[test]
fn a_cancelled_job_that_waits_in_a_destructor_sleeps_until_it_is_woken() {
    on_each(|runtime| {
        let (latch, begun) = (Latch::default(), Latch::default());
        let polls = Arc::new(AtomicUsize::new(0));
        let waits = WaitsWhenDropped {
            latch: latch.clone(),
            polls: polls.clone(),
        };
        let begins = begun.clone();
        let job = runtime.spawn(async move {
            let _waits = waits;
            begins.open();
            std::future::pending::<()>().await;
        });
        runtime.block_on(begun);
        job.cancel();
        until(|| latch.waiters() == 1);
        for _ in 0..100 {
            runtime.block_on(runtime.spawn(yield_now())).unwrap();
        }
        latch.open();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        let polls = polls.load(Ordering::SeqCst);
        assert!(polls <= 3, "it was polled {polls} times");
    });
}

/// Says that it is dropped, and then waits for ever.
struct WaitsForEver(mpsc::Sender<()>);

impl Drop for WaitsForEver {
    fn drop(&mut self) {
        self.0.send(()).unwrap();
        std::future::pending::<()>().wait();
    }
}

/// In a job, `act` waits for ever after it has sent, in code of others. The cancel that ends that wait goes no further
/// there, and the job ends at its own next wait.
fn goes_no_further_there(act: impl Fn(mpsc::Sender<()>) + Clone + Send + 'static) {
    on_each(|runtime| {
        let (waits, waiting) = mpsc::channel();
        let [left, passed] = [(), ()].map(|()| Arc::new(AtomicBool::new(false)));
        let (act, leaves, passes) = (act.clone(), left.clone(), passed.clone());
        let job = runtime.spawn(async move {
            act(waits);
            leaves.store(true, Ordering::SeqCst);
            yield_with_stack();
            passes.store(true, Ordering::SeqCst);
        });
        waiting.recv().unwrap();
        job.cancel();
        assert!(runtime.block_on(job).unwrap_err().is_cancelled());
        assert!(left.load(Ordering::SeqCst), "the unwinding has left it");
        assert!(!passed.load(Ordering::SeqCst));
    });
}

#[test]
fn a_job_that_is_cancelled_in_the_destructor_of_a_payload_ends_at_its_own_next_wait() {
    goes_no_further_there(|waits| {
        let caught = catch_panic(|| std::panic::panic_any(WaitsForEver(waits)));
        assert!(caught.is_none());
    });
}

#[test]
fn a_job_that_is_cancelled_in_the_destructor_of_a_callback_ends_at_its_own_next_wait() {
    goes_no_further_there(|waits| {
        let waits = WaitsForEver(waits);
        let when = When::At(Instant::now() + Duration::from_secs(3600));
        let handle = callback::once(Owner::runtime(), when, move || drop(waits));
        assert!(handle.cancel());
    });
}

/// Waits for ever when it is told that its job has survived a panic.
struct WaitsWhenTold(mpsc::Sender<()>);

impl Attachment for WaitsWhenTold {
    fn ended(&self, _: Ending) {}

    fn survived(&self) {
        self.0.send(()).unwrap();
        std::future::pending::<()>().wait();
    }
}

#[test]
fn a_job_that_is_cancelled_while_its_attachment_is_told_of_a_panic_ends_at_its_own_next_wait() {
    goes_no_further_there(|waits| {
        let told = Unit::current().unwrap().attach(|_| WaitsWhenTold(waits));
        assert!(told.is_some());
        fork::scope(|scope| scope.spawn(Unit::tell_if_it_goes_on));
    });
}

#[test]
fn no_unwinding_leaves_isolated_code_if_the_job_is_cancelled_while_its_attachment_is_told() {
    goes_no_further_there(|waits| {
        let told = Unit::current().unwrap().attach(|_| WaitsWhenTold(waits));
        assert!(told.is_some());
        assert!(catch_unwinding::<()>(|| panic!("caught")).is_none());
    });
}

#[test]
fn a_running_job_that_ends_without_a_wait_keeps_its_value() {
    let _watch = watch();
    let runtime = runtime(2);
    let (running, is_running) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    let job = runtime.spawn(async move {
        running.send(()).unwrap();
        may_go.recv().unwrap();
        5
    });
    is_running.recv().unwrap();
    job.cancel();
    go.send(()).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), 5);
}

#[test]
fn a_finished_job_keeps_its_value() {
    on_each(|runtime| {
        let job = runtime.spawn(async { 3 });
        until(|| job.is_finished());
        job.cancel();
        assert_eq!(runtime.block_on(job).unwrap(), 3);
    });
}

#[test]
fn a_job_may_cancel_another_in_its_destructor() {
    on_each(|runtime| {
        runtime.block_on(async {
            struct CancelsOther(weald_kernel::JoinHandle<()>);
            impl Drop for CancelsOther {
                fn drop(&mut self) {
                    self.0.cancel();
                }
            }
            let drops = Drops::default();
            let token = drops.token();
            let other = spawn(async move {
                let _token = token;
                std::future::pending::<()>().await;
            });
            let cancels = CancelsOther(other);
            let first = spawn(async move {
                let _cancels = cancels;
                std::future::pending::<()>().await;
            });
            yield_now().await;
            first.cancel();
            assert!(first.await.unwrap_err().is_cancelled());
            tools::until_yielding(|| drops.count() == 1).await;
        });
    });
}

#[test]
fn cancels_race_with_wakes_ends_and_joins() {
    for_seeds(6, |random| {
        let runtime = runtime(1 + random.below(4));
        let drops = Drops::default();
        let outcomes = AtomicUsize::new(0);
        let rounds = 400;
        for _ in 0..rounds {
            let (token, latch) = (drops.token(), Latch::default());
            let (waits, yields, sleeps) = (latch.clone(), random.below(3), random.below(4) == 0);
            let job = runtime.spawn(async move {
                let _token = token;
                for _ in 0..yields {
                    yield_now().await;
                }
                if sleeps {
                    sleep(std::time::Duration::from_millis(1)).await;
                }
                waits.await;
            });
            let spins = random.below(200);
            std::thread::scope(|scope| {
                scope.spawn(|| latch.open());
                for _ in 0..spins {
                    std::hint::spin_loop();
                }
                job.cancel();
                job.cancel();
            });
            match runtime.block_on(job) {
                Ok(()) | Err(JoinError::Cancelled) => outcomes.fetch_add(1, Ordering::Relaxed),
                Err(error) => panic!("{error}"),
            };
        }
        assert_eq!(outcomes.into_inner(), rounds);
        assert_eq!(drops.count(), rounds);
    });
}
