//! These tests are inside the crate because, through the public API, only a race leaves a waker in the extensions
//! of a job that is freed.

use std::{
    pin::pin,
    sync::{atomic::AtomicBool, mpsc},
    task::{Context, Wake},
    time::Duration,
};

use super::*;
use crate::{
    JoinHandle, Runtime, job::walked::WalkedJobs, scheduler::workers::context, sleep, spawn_local,
    yield_now,
};

/// How many operations a waker completes when it is dropped: more than a poll's budget.
const OPERATIONS: usize = 1_000;

/// Sends, when dropped, how many operations were ready: all of them, unless a job runs on the thread.
struct Completes(mpsc::Sender<usize>);

impl Wake for Completes {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Completes {
    fn drop(&mut self) {
        let ready = |_: &usize| {
            let cx = &mut Context::from_waker(Waker::noop());
            pin!(sleep(Duration::ZERO)).poll(cx).is_ready()
        };
        let _ = self.0.send((0..OPERATIONS).filter(ready).count());
    }
}

/// Leaves a [`Completes`] in `job`, which drops it with the last reference.
fn leave_with(job: JoinHandle<()>) -> mpsc::Receiver<usize> {
    let (sender, receiver) = mpsc::channel();
    let waker = Waker::from(Arc::new(Completes(sender)));
    job.job().unwrap().header().extensions.lock().joiner = Some(waker);
    receiver
}

/// Ends when the flag is set. It needs no wake, and so nothing else holds a reference.
fn ends_at(flag: &Arc<AtomicBool>) -> impl Future<Output = ()> + Send + 'static {
    let flag = flag.clone();
    async move {
        while !flag.load(Ordering::SeqCst) {
            yield_now().await;
        }
    }
}

#[test]
fn what_is_dropped_with_a_job_finds_no_running_job() {
    let runtime = Runtime::builder().workers(1).build().unwrap();
    // On a worker.
    let flag = Arc::default();
    let dropped = leave_with(runtime.spawn(ends_at(&flag)));
    flag.store(true, Ordering::SeqCst);
    assert_eq!(dropped.recv(), Ok(OPERATIONS));
    // On a thread in `block_on`.
    let ready = runtime.block_on(async {
        let flag = Arc::default();
        let dropped = leave_with(spawn_local(ends_at(&flag)).unwrap());
        flag.store(true, Ordering::SeqCst);
        loop {
            match dropped.try_recv() {
                Ok(ready) => break ready,
                Err(_) => yield_now().await,
            }
        }
    });
    assert_eq!(ready, OPERATIONS);
    // Queued, in a runtime that is dropped.
    let dropped = leave_with(runtime.spawn(ends_at(&Arc::default())));
    drop(runtime);
    assert_eq!(dropped.recv(), Ok(OPERATIONS));
}

#[test]
fn a_thread_that_runs_no_user_code_leaves_the_drop_to_the_releasing_thread() {
    struct Tells(mpsc::Sender<Option<String>>);
    impl Wake for Tells {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Tells {
        fn drop(&mut self) {
            let thread = thread::current().name().map(str::to_owned);
            self.0.send(thread).unwrap();
        }
    }
    let (sender, dropped) = mpsc::channel();
    let new_word = || {
        let word = ExtensionsWord::new(Location::caller());
        word.lock().receiver = Some(Waker::from(Arc::new(Tells(sender.clone()))));
        word
    };
    let word = new_word();
    let watcher = thread::spawn(move || {
        report::forbid_user_code();
        drop(word);
    });
    watcher.join().unwrap();
    assert_eq!(dropped.recv().unwrap().as_deref(), Some("weald-releases"));
    let word = new_word();
    report::without_user_code(|| drop(word));
    assert_eq!(dropped.recv().unwrap().as_deref(), Some("weald-releases"));
    drop(new_word());
    let own = thread::current().name().map(str::to_owned);
    assert_eq!(dropped.recv().unwrap(), own);
}

/// As the monitor, when it was the last to read a job.
#[test]
fn what_a_job_leaves_to_a_thread_that_runs_no_user_code_is_dropped_in_a_job_that_is_named_after_it()
{
    struct Tells(mpsc::Sender<Option<Box<str>>>);
    impl Wake for Tells {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Tells {
        fn drop(&mut self) {
            let job = context::with(context::Context::job_ref);
            let name = job.and_then(|job| job.header().extensions.lock().name.clone());
            self.0.send(name).unwrap();
        }
    }
    let (sender, dropped) = mpsc::channel();
    let runtime = Runtime::builder().workers(1).build().unwrap();
    let leave = || {
        let named = crate::Spawn::new().name("a job");
        let handle = runtime.block_on(async { named.spawn(async {}) });
        let job = handle.job().unwrap().clone();
        runtime.block_on(handle).unwrap();
        job.header().extensions.lock().receiver =
            Some(Waker::from(Arc::new(Tells(sender.clone()))));
        // The worker has let go of it before it runs another one.
        runtime.block_on(runtime.spawn(async {})).unwrap();
        // Others may be reading all jobs of the program, and then do what this test expects of its own thread.
        while !job.is_last() {
            thread::yield_now();
        }
        job
    };
    report::without_user_code(|| drop(leave()));
    assert_eq!(
        dropped.recv().unwrap().as_deref(),
        Some("what a job has left")
    );
    // As a thread that reads all jobs of the program.
    drop(WalkedJobs::new(vec![leave()]));
    assert_eq!(
        dropped.recv().unwrap().as_deref(),
        Some("what a job has left")
    );
    let job = leave();
    drop(runtime);
    report::without_user_code(|| drop(job));
    assert_eq!(
        dropped.recv().unwrap().as_deref(),
        None,
        "no runtime runs a job"
    );
}

#[test]
fn a_waker_that_panics_when_dropped_unwinds_no_thread() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {}
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a dropped waker panics");
        }
    }
    let word = ExtensionsWord::new(Location::caller());
    word.lock().receiver = Some(Waker::from(Arc::new(Panics)));
    drop(word);
}
