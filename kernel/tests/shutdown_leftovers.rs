//! User code that is left when a runtime stops, which are closures of callbacks that have not run, wakers of other
//! executors, and what ended jobs hold: a shutdown neither runs it on its caller's thread nor waits for it beyond the
//! deadline, and names it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/blocker.rs"]
mod blocker;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::pending,
    io::Read,
    os::unix::net::UnixStream,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use blocker::Blocker;
use tools::{runtime, until, watch};
use weald_kernel::{
    Describe, Interest, IoSource, Runtime, ShutdownReport, Spawn,
    callback::{self, Owner, When},
    offload, sleep, spawn,
};

const DEADLINE: Duration = Duration::from_millis(50);
const LATER: Duration = Duration::from_secs(3_600);

/// Blocks at its blocker when it is dropped, and when it is woken.
struct Blocks(Blocker);

impl Drop for Blocks {
    fn drop(&mut self) {
        self.0.block();
    }
}

impl Describe for Blocks {
    fn name(&self) -> String {
        "a description that blocks".to_owned()
    }
}

impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Blocks")
    }
}

struct WakeBlocks(Blocker);

impl Wake for WakeBlocks {
    fn wake(self: Arc<WakeBlocks>) {
        self.0.block();
    }
}

fn blocking_waker(blocker: &Blocker) -> Waker {
    Waker::from(Arc::new(WakeBlocks(blocker.clone())))
}

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    let polled = Pin::new(future).poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending());
}

/// Starts a callback for later whose closure holds `held`.
fn hold_in_callback(held: impl Send + 'static) {
    let later = When::At(std::time::Instant::now() + LATER);
    callback::once(Owner::runtime(), later, move || drop(held)).detach();
}

/// The names of the leftovers in the report. There are at least this many leftovers; on a busy machine the threads for
/// them may not have begun, and then the report only counts them.
fn names(report: &ShutdownReport, least: usize) -> Vec<&str> {
    let names = report.not_stopped.iter();
    let names: Vec<_> = names.map(|named| named.name.as_deref().unwrap()).collect();
    assert!(names.len() + report.left >= least, "{report:?}");
    names
}

#[test]
fn a_callback_whose_closure_blocks_when_it_is_dropped_is_named_and_holds_up_no_other() {
    let _watch = watch();
    let (runtime, blocker, dropped) = (runtime(1), Blocker::default(), Arc::new(()));
    runtime.block_on(async {
        hold_in_callback(Blocks(blocker.clone()));
        (0..100).for_each(|_| hold_in_callback(dropped.clone()));
    });
    let report = runtime.shutdown(DEADLINE);
    let is_blocker = |name: &&str| name.starts_with("callback ") && name.contains("Blocks");
    let names = names(&report, 1);
    // Of the others, one that has just begun may be named too.
    assert!(
        names.iter().filter(|name| is_blocker(name)).count() <= 1,
        "{names:?}"
    );
    let is_of_this_file = |file: &str| file.ends_with("shutdown_leftovers.rs");
    let mut sites = report.not_stopped.iter().map(|named| named.site.file());
    assert!(sites.all(is_of_this_file));
    until(|| Arc::strong_count(&dropped) == 1);
    assert_eq!(blocker.begun(), 1);
    blocker.open();
}

#[test]
fn a_dropped_runtime_leaves_a_closure_that_blocks_behind() {
    let _watch = watch();
    let builder = Runtime::builder().workers(1);
    let builder = builder.shutdown_deadline(Duration::from_millis(10));
    let (runtime, blocker) = (builder.build().unwrap(), Blocker::default());
    runtime.block_on(async { hold_in_callback(Blocks(blocker.clone())) });
    drop(runtime);
    until(|| blocker.begun() == 1);
    blocker.open();
}

/// The wakers wait for timers that fire because the runtime stops.
#[test]
fn a_waker_that_blocks_is_named_and_others_are_called_all_the_same() {
    let _watch = watch();
    let (runtime, blocker) = (runtime(1), Blocker::default());
    let waker = blocking_waker(&blocker);
    let mut timers: Vec<_> = (0..2).map(|_| Box::pin(sleep(LATER))).collect();
    runtime.block_on(async { timers.iter_mut().for_each(|timer| poll_once(timer, &waker)) });
    let woken = Arc::new(AtomicUsize::new(0));
    let mut last = Box::pin(sleep(LATER));
    let counts = Waker::from(Arc::new(Counts(woken.clone())));
    runtime.block_on(async { poll_once(&mut last, &counts) });
    let report = runtime.shutdown(DEADLINE);
    for name in names(&report, 2) {
        assert_eq!(name, "a waker fired by a timer");
    }
    until(|| blocker.begun() == 2 && woken.load(Ordering::SeqCst) == 1);
    blocker.open();
}

/// Counts its calls.
struct Counts(Arc<AtomicUsize>);

impl Wake for Counts {
    fn wake(self: Arc<Counts>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_waker_that_waits_for_a_descriptor_and_blocks_is_named() {
    let _watch = watch();
    let (runtime, blocker) = (runtime(1), Blocker::default());
    let (_ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let source = runtime.block_on(async { IoSource::new(theirs).unwrap() });
    let waker = blocking_waker(&blocker);
    let read = |mut io: &UnixStream| io.read(&mut [0; 8]).map(weald_kernel::Done::Maybe);
    let polled = source.poll_operate(Interest::Read, &mut Context::from_waker(&waker), read);
    assert!(polled.is_pending());
    let report = runtime.shutdown(DEADLINE);
    for name in names(&report, 1) {
        assert_eq!(name, "a waker fired by a descriptor");
    }
    until(|| blocker.begun() == 1);
    blocker.open();
}

/// The only blocking thread is in use, so the closure has not begun.
#[test]
fn an_offloaded_closure_that_blocks_when_it_is_dropped_is_named() {
    let _watch = watch();
    let builder = Runtime::builder().workers(1).blocking_threads(1);
    let (runtime, blocker, holder) = (
        builder.build().unwrap(),
        Blocker::default(),
        Blocker::default(),
    );
    let (holds, held) = (holder.clone(), Blocks(blocker.clone()));
    runtime.block_on(async {
        spawn(offload(move || holds.block())).detach();
    });
    until(|| holder.begun() == 1);
    let mut offloaded = Box::pin(runtime.block_on(async { offload(|| drop(held)) }));
    runtime.block_on(async { poll_once(&mut offloaded, Waker::noop()) });
    let report = runtime.shutdown(DEADLINE);
    // The one that runs, and the one that is dropped.
    assert_eq!(report.not_stopped.len() + report.left, 2, "{report:?}");
    until(|| blocker.begun() == 1);
    blocker.open();
    holder.open();
}

/// The shutdown has the last reference to the job.
#[test]
fn a_description_that_blocks_when_it_is_dropped_is_named() {
    let _watch = watch();
    let (runtime, blocker) = (runtime(1), Blocker::default());
    let described = Spawn::new().described_by(Arc::new(Blocks(blocker.clone())));
    runtime.block_on(async { described.spawn(pending::<()>()).detach() });
    let report = runtime.shutdown(DEADLINE);
    assert_eq!(report.cancelled, 1);
    assert!(names(&report, 1).len() <= 1, "{report:?}");
    until(|| blocker.begun() == 1);
    blocker.open();
}

/// The job that shuts its runtime down, and one that is pinned to its thread, end only afterwards.
#[test]
fn a_job_that_shuts_its_runtime_down_does_not_wait_for_what_others_have_left() {
    let _watch = watch();
    let (runtime, blocker) = (Mutex::new(Some(runtime(2))), Blocker::default());
    let (runtime, ends) = (Arc::new(runtime), blocker.clone());
    let (own, (tell, told)) = (runtime.clone(), mpsc::channel());
    let shuts_down = async move {
        let described = || Spawn::new().described_by(Arc::new(Blocks(ends.clone())));
        described().spawn(pending::<()>()).detach();
        described().spawn_local(pending::<()>()).unwrap().detach();
        let runtime = own.lock().unwrap().take().unwrap();
        tell.send(runtime.shutdown(DEADLINE)).unwrap();
    };
    let lock = runtime.lock().unwrap();
    lock.as_ref().unwrap().spawn(shuts_down).detach();
    drop(lock);
    let report = told.recv().unwrap();
    assert_eq!(report.cancelled, 2);
    assert!(names(&report, 1).len() <= 1, "{report:?}");
    until(|| blocker.begun() == 2);
    blocker.open();
}
