//! Foreign code in the runtime's hands: a waker that a timer, a descriptor or the end of a job fires runs in a job of
//! its own, which is retaken and named like any other; and payloads that do not belong where they are raised.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::async_yields_async, reason = "a block_on returns handles")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    any::Any,
    future::{pending, poll_fn},
    io::{Read, Write},
    os::unix::net::UnixStream,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use reports::{collect_reports, flushed, reports};
use tools::{Latch, on_each, runtime, until, watch};
use weald_kernel::{
    AsUnit, Interest, IoSource, JoinError, JoinSet, Runtime, Unit, Wait, block_on, catch_panic,
    catch_panic_message, catch_unwinding, fork, is_in_job, scope, sleep,
};

/// Whether a call was made in a job, and the name of its thread.
type Place = (bool, Option<String>);

/// A waker that blocks its OS thread until it is told to go on, and notes where it was called.
struct Blocks {
    go: Mutex<Receiver<()>>,
    called: Sender<Place>,
}

impl Wake for Blocks {
    fn wake(self: Arc<Self>) {
        let place = (is_in_job(), thread::current().name().map(str::to_owned));
        self.called.send(place).unwrap();
        self.go.lock().unwrap().recv().unwrap();
    }
}

/// A blocking waker, what tells it to go on, and what tells where it was called.
fn blocks() -> (Waker, Sender<()>, Receiver<Place>) {
    let (go, goes) = channel();
    let (called, calls) = channel();
    let blocks = Blocks {
        go: Mutex::new(goes),
        called,
    };
    (Waker::from(Arc::new(blocks)), go, calls)
}

fn poll_once<F: Future + Unpin>(future: &mut F, waker: &Waker) {
    let polled = Pin::new(future).poll(&mut Context::from_waker(waker));
    assert!(polled.is_pending());
}

/// A wait for a moment that is pending at its first poll: if that comes too late, because the thread has lost its core,
/// the wait begins again.
fn moment<F: Future>(begin: impl Fn() -> F + Unpin) -> impl Future<Output = F::Output> + Unpin {
    let mut begun: Option<Pin<Box<F>>> = None;
    poll_fn(move |cx| {
        if let Some(wait) = &mut begun {
            return wait.as_mut().poll(cx);
        }
        let wait = loop {
            let mut wait = Box::pin(begin());
            if wait.as_mut().poll(cx).is_pending() {
                break wait;
            }
        };
        begun = Some(wait);
        Poll::Pending
    })
}

/// A [`moment`] of a runtime's timer.
fn short_sleep() -> impl Future<Output = ()> + Send + Unpin {
    moment(|| sleep(Duration::from_millis(1)))
}

/// Registers a blocking waker in a job called `maker`, by `register`, and checks that the report names the job.
fn its_maker_is_named<F: Future + Send + 'static>(
    name: &'static str,
    begin: impl FnOnce() -> (F, Box<dyn FnOnce() + Send>) + Send + 'static,
) {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (waker, go, calls) = blocks();
    let (kept, keep) = channel();
    let maker = async move {
        let (future, fire) = begin();
        let mut future = Box::pin(future);
        poll_once(&mut future, &waker);
        kept.send(future).ok();
        fire();
    };
    let maker =
        runtime.block_on(async { weald_kernel::Spawn::new().name("the maker").spawn(maker) });
    runtime.block_on(maker).unwrap();
    let _kept = keep.recv().unwrap();
    others_go_on_and_it_is_named(&runtime, name, &go, &calls);
}

#[test]
fn a_waker_that_a_job_left_in_a_timer_is_named_after_the_job() {
    its_maker_is_named("`a waker of the maker, fired by a timer`", || {
        (short_sleep(), Box::new(|| {}))
    });
}

#[test]
fn a_waker_that_a_job_left_at_the_end_of_another_is_named_after_the_job() {
    its_maker_is_named("`a waker of the maker, fired by the end of a job`", || {
        let latch = Latch::default();
        let job = weald_kernel::spawn(latch.clone());
        (job, Box::new(move || latch.open()))
    });
}

#[test]
fn a_waker_that_a_job_left_in_a_set_is_named_after_the_job() {
    its_maker_is_named("`a waker of the maker, fired by the end of a job`", || {
        let latch = Latch::default();
        let mut set = JoinSet::new();
        set.spawn(latch.clone());
        let joined = async move { set.join_next().await };
        (joined, Box::new(move || latch.open()))
    });
}

#[test]
fn a_waker_that_a_job_left_in_a_scope_is_named_after_the_job() {
    its_maker_is_named("`a waker of the maker, fired by the end of a job`", || {
        let latch = Latch::default();
        let child = latch.clone();
        let ended = scope(async move |scope| drop(scope.spawn(child)));
        (ended, Box::new(move || latch.open()))
    });
}

#[test]
fn a_waker_that_a_job_left_with_an_offloaded_closure_holds_no_blocking_thread_and_is_named() {
    let name = "`a waker of the maker, fired by the end of a blocking call`";
    its_maker_is_named(name, || {
        let (go, goes) = channel();
        let closure = weald_kernel::offload(move || goes.recv().unwrap());
        (closure, Box::new(move || go.send(()).unwrap()))
    });
}

/// The only worker's thread is in the waker: jobs and timers of others go on, and the report says what it is.
fn others_go_on_and_it_is_named(
    runtime: &Runtime,
    name: &str,
    go: &Sender<()>,
    calls: &Receiver<Place>,
) {
    let (in_job, _) = calls.recv().unwrap();
    assert!(in_job, "a waker ran outside of a job");
    runtime
        .block_on(runtime.spawn(async { sleep(Duration::from_millis(1)).await }))
        .unwrap();
    until(|| !reports("weald::monitor", name).is_empty());
    let report = &reports("weald::monitor", name)[0].text;
    // Outside of jobs no line of user code is behind it, and one of Weald's would say nothing.
    let whose = match name.contains(" of the maker") {
        true => format!("{name} spawned at kernel/tests/foreign_code.rs:"),
        false => format!("{name}, which comes from outside of units, has blocked"),
    };
    assert!(report.contains(&whose), "{report}");
    go.send(()).unwrap();
}

#[test]
fn a_waker_that_blocks_in_a_timer_holds_up_nobody_and_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (waker, go, calls) = blocks();
    let mut timer = short_sleep();
    runtime.block_on(async { poll_once(&mut timer, &waker) });
    others_go_on_and_it_is_named(&runtime, "`a waker fired by a timer`", &go, &calls);
}

#[test]
fn a_waker_that_blocks_in_a_report_holds_up_nobody_and_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (waker, go, calls) = blocks();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let source = runtime.block_on(async { IoSource::new(theirs).unwrap() });
    let polled = source.poll_operate(
        Interest::Read,
        &mut Context::from_waker(&waker),
        |mut io| io.read(&mut [0; 8]).map(weald_kernel::Done::Maybe),
    );
    assert!(polled.is_pending());
    ours.write_all(b"x").unwrap();
    others_go_on_and_it_is_named(&runtime, "`a waker fired by a descriptor`", &go, &calls);
}

#[test]
fn a_waker_that_blocks_at_the_end_of_a_job_holds_up_nobody_and_is_named() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let (waker, go, calls) = blocks();
    let latch = Latch::default();
    let mut job = runtime.spawn(latch.clone());
    poll_once(&mut job, &waker);
    latch.open();
    others_go_on_and_it_is_named(&runtime, "`a waker fired by the end of a job`", &go, &calls);
}

#[test]
fn a_waker_that_blocks_in_a_time_limit_outside_of_runtimes_holds_up_nobody_and_is_named() {
    collect_reports();
    let _watch = watch();
    let _installs_the_hooks = runtime(1);
    let (waker, go, calls) = blocks();
    let after = || weald_sync::after(Duration::from_millis(1));
    let mut wait = moment(|| after().into_future());
    poll_once(&mut wait, &waker);
    let place = (false, Some("weald-wakers".to_owned()));
    assert_eq!(calls.recv().unwrap(), place);
    after().wait();
    let sentence = "a time limit outside of runtimes has fired it, and another thread";
    until(|| !reports("weald::monitor", sentence).is_empty());
    let report = &reports("weald::monitor", sentence)[0];
    let name = "`a waker fired by a timer`, which comes from outside of units,";
    assert!(report.text.contains(name), "{report:?}");
    go.send(()).unwrap();
}

/// While one worker is busy and the other sleeps, the monitor fires the busy one's timers.
#[test]
fn the_monitor_calls_no_waker() {
    let _watch = watch();
    for _ in 0..5 {
        let runtime = runtime(2);
        let (waker, go, calls) = blocks();
        go.send(()).unwrap();
        let called = runtime.block_on(runtime.spawn(async move {
            let mut timer = short_sleep();
            poll_once(&mut timer, &waker);
            calls.recv().unwrap()
        }));
        let (in_job, thread) = called.unwrap();
        assert!(
            in_job,
            "a waker ran outside of a job, on the thread {thread:?}"
        );
    }
}

struct Panics;

impl Wake for Panics {
    fn wake(self: Arc<Self>) {
        panic!("a waker in a tool panics");
    }
}

#[test]
fn a_waker_that_panics_when_a_tool_calls_it_is_reported() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    for in_a_job in [false, true] {
        let (sender, mut receiver) = weald_sync::oneshot::channel();
        let mut receives = Box::pin(receiver.receive().into_future());
        poll_once(&mut receives, &Waker::from(Arc::new(Panics)));
        let sends = move || sender.send(1).unwrap();
        let reported = match in_a_job {
            false => {
                sends();
                "a waker panicked: a waker in a tool panics"
            }
            true => {
                let sends = async move { sends() };
                let user = weald_kernel::Spawn::new().name("the user of a tool");
                runtime.block_on(async { user.spawn(sends).await }).unwrap();
                "a waker panicked in `the user of a tool` spawned at kernel/tests/foreign_code.rs:"
            }
        };
        until(|| !reports("weald::panic", reported).is_empty());
    }
}

#[test]
fn a_waker_that_panics_when_a_timer_fires_it_is_named_after_the_job_that_left_it() {
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let leaves = async {
        let mut sleep = short_sleep();
        poll_once(&mut sleep, &Waker::from(Arc::new(Panics)));
        sleep
    };
    let maker = weald_kernel::Spawn::new().name("one that leaves a waker");
    let _kept = runtime.block_on(async { maker.spawn(leaves).await });
    let named = "a waker panicked in `a waker of one that leaves a waker, fired by a timer` spawned at \
                 kernel/tests/foreign_code.rs:";
    until(|| !reports("weald::panic", named).is_empty());
}

/// Notes, when it is dropped, whether it is in a job; then panics.
struct NotesItsDrop(Mutex<Sender<bool>>);

impl Wake for NotesItsDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for NotesItsDrop {
    fn drop(&mut self) {
        self.0.lock().unwrap().send(is_in_job()).unwrap();
        std::panic::panic_any(Explodes);
    }
}

#[test]
fn the_waker_of_a_cancelled_timer_is_dropped_in_a_job() {
    collect_reports();
    on_each(|runtime| {
        let (sender, dropped) = channel();
        let waker = Waker::from(Arc::new(NotesItsDrop(Mutex::new(sender))));
        runtime.block_on(async {
            // So long that it does not fire before the waker is dropped here.
            let mut timer = moment(|| sleep(Duration::from_millis(100)));
            poll_once(&mut timer, &waker);
            drop(waker);
            // From this thread the timer cannot be unlinked: the worker finds it at its deadline.
            drop(timer);
        });
        assert!(
            dropped.recv().unwrap(),
            "a waker was dropped outside of a job"
        );
        assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    });
}

/// A payload whose destructor panics, with another such payload.
struct Explodes;

impl Drop for Explodes {
    fn drop(&mut self) {
        std::panic::panic_any(Explodes);
    }
}

#[test]
fn wakers_that_a_close_fires_do_not_harm_each_other() {
    struct Panics(Sender<()>);
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            self.0.send(()).unwrap();
            std::panic::panic_any(Explodes);
        }
    }
    let _watch = watch();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let (sender, woken) = channel();
        let mut timers = Vec::new();
        runtime.block_on(async {
            for _ in 0..4 {
                let mut timer = Box::pin(sleep(Duration::from_secs(3600)));
                poll_once(&mut timer, &Waker::from(Arc::new(Panics(sender.clone()))));
                timers.push(timer);
            }
        });
        drop(runtime);
        assert_eq!(woken.try_iter().count(), 4);
    }
}

#[test]
fn a_payload_whose_destructor_panics_harms_nobody_who_joins_drops_or_detaches() {
    on_each(|runtime| {
        let explode = || runtime.spawn(async { std::panic::panic_any(Explodes) });
        // A joiner that drops the payload.
        let joined: Result<(), JoinError> = runtime.block_on(explode());
        assert!(joined.as_ref().unwrap_err().is_panic());
        drop(joined);
        // Dropping the handle of a job that has panicked, and detaching it.
        let (dropped, detached) = (explode(), explode());
        until(|| dropped.is_finished() && detached.is_finished());
        drop(dropped);
        detached.detach();
        // Code that takes the payload has it.
        let Err(JoinError::Panicked(panic)) = runtime.block_on(explode()) else {
            panic!("the job has panicked");
        };
        std::mem::forget(panic.into_payload().downcast::<Explodes>().unwrap());
    });
}

#[test]
fn a_payload_whose_destructor_panics_does_not_replace_the_panic_of_a_fork() {
    on_each(|runtime| {
        let message = |code: fn()| match runtime.block_on(runtime.spawn(async move { code() })) {
            Err(JoinError::Panicked(panic)) => panic.message().to_owned(),
            _ => panic!("no panic"),
        };
        let halves: fn() = || {
            fork::join(
                || panic!("the first half"),
                || std::panic::panic_any(Explodes),
            );
        };
        let parts: fn() = || {
            fork::scope(|scope| {
                scope.spawn(|| panic!("the first half"));
                scope.spawn(|| std::panic::panic_any(Explodes));
            });
        };
        let pieces: fn() = || {
            fork::Grain::of(1).for_each(0..64_usize, |item| match item {
                0 => panic!("the first half"),
                _ => std::panic::panic_any(Explodes),
            });
        };
        for code in [halves, parts, pieces] {
            assert_eq!(message(code), "the first half");
        }
    });
}

/// The payload with which a cancel unwinds a wait.
fn caught_cancel(runtime: &Runtime) -> Box<dyn Any + Send> {
    let (sender, payload) = channel();
    let latch = Latch::default();
    let waits = latch.clone();
    let job = runtime.spawn(async move {
        let caught = catch_unwind(AssertUnwindSafe(|| block_on(waits)));
        sender.send(caught.unwrap_err()).unwrap();
    });
    until(|| latch.waiters() == 1);
    job.cancel();
    payload.recv().unwrap()
}

#[test]
fn a_cancel_that_is_raised_again_in_a_healthy_job_is_a_panic() {
    on_each(|runtime| {
        let payload = caught_cancel(runtime);
        let job = runtime.spawn(async move { resume_unwind(payload) });
        match runtime.block_on(job) {
            Err(JoinError::Panicked(panic)) => {
                assert!(
                    panic.message().contains("another job's cancel"),
                    "{panic:?}"
                );
            }
            Err(other) => panic!("not a panic but: {other}"),
            Ok(()) => unreachable!(),
        }
    });
}

#[test]
fn a_cancel_that_is_raised_again_outside_of_jobs_is_a_panic() {
    on_each(|runtime| {
        let payloads = [(); 3].map(|()| caught_cancel(runtime));
        let [first, second, third] = payloads;
        assert_eq!(catch_panic(|| -> u8 { resume_unwind(first) }), None);
        assert_eq!(catch_unwinding(|| -> u8 { resume_unwind(second) }), None);
        let message = catch_panic_message(|| -> u8 { resume_unwind(third) }).unwrap_err();
        assert!(message.contains("another job's cancel"), "{message}");
    });
}

#[test]
fn a_cancel_that_is_raised_again_in_a_healthy_fork_drops_no_half_and_no_part() {
    on_each(|runtime| {
        let (first, second) = (caught_cancel(runtime), caught_cancel(runtime));
        let ran = Arc::new([const { AtomicBool::new(false) }; 2]);
        let runs = ran.clone();
        let job = runtime.spawn(async move {
            let halves = || {
                fork::join(
                    || resume_unwind(first),
                    || runs[0].store(true, Ordering::SeqCst),
                )
            };
            let _panic = catch_unwind(AssertUnwindSafe(halves));
            fork::scope(|scope| {
                scope.spawn(|| resume_unwind(second));
                scope.spawn(|| runs[1].store(true, Ordering::SeqCst));
            });
        });
        assert!(runtime.block_on(job).unwrap_err().is_panic());
        assert!(ran.iter().all(|ran| ran.load(Ordering::SeqCst)));
    });
}

/// One operation ends all waits. Ahead of the job waits a future with a waker that blocks.
#[test]
fn a_waker_that_blocks_in_a_tool_comes_after_the_jobs_and_the_unit_that_released_the_tool_is_named()
{
    let _watch = watch();
    collect_reports();
    let runtime = runtime(1);
    let barrier = Arc::new(weald_sync::Barrier::new(3));
    let (waker, go, calls) = blocks();
    let mut first = Box::pin(barrier.wait().into_future());
    poll_once(&mut first, &waker);
    let own = barrier.clone();
    let waits = runtime.spawn(async move { own.wait().await.is_leader() });
    until(|| runtime.waits().jobs.len() == 1);
    let own = barrier.clone();
    let releases = async move { own.wait().await.is_leader() };
    let releases = runtime.block_on(async {
        weald_kernel::Spawn::new()
            .name("releases the tool")
            .spawn(releases)
    });
    assert!(calls.recv().unwrap().0, "a waker ran outside of a job");
    runtime.block_on(waits).unwrap();
    until(|| !reports("weald::monitor", "`releases the tool`").is_empty());
    go.send(()).unwrap();
    runtime.block_on(releases).unwrap();
}

/// Tells at its drop whether the running unit panics.
struct TellsPanic(Sender<bool>);

impl Drop for TellsPanic {
    fn drop(&mut self) {
        self.0.send(Unit::is_panicking()).unwrap();
    }
}

#[test]
fn a_panic_of_code_that_is_called_apart_is_one_for_its_destructors() {
    let _watch = watch();
    let (runtime, (tell, told)) = (runtime(1), channel());
    let (unit, tells) = (runtime.spawn(pending::<()>()), TellsPanic(tell));
    unit.as_unit().unwrap().call_apart("a call for", move || {
        let _tells = tells;
        panic!("it was called apart");
    });
    assert!(told.recv().unwrap());
}

#[test]
fn a_shutdown_ends_a_wait_of_code_that_is_called_apart() {
    let _watch = watch();
    collect_reports();
    let (runtime, (tell, told), (begins, begun)) = (runtime(1), channel(), channel());
    let (unit, tells) = (runtime.spawn(pending::<()>()), TellsPanic(tell));
    unit.as_unit().unwrap().call_apart("a wait for", move || {
        let _tells = tells;
        begins.send(()).unwrap();
        pending::<()>().wait();
    });
    begun.recv().unwrap();
    let report = runtime.shutdown(Duration::from_secs(60));
    assert!(report.not_stopped.is_empty(), "{report:?}");
    assert!(!told.recv().unwrap());
    flushed();
    assert!(reports("weald::panic", "a wait for").is_empty());
}

/// The only worker is held until the shutdown is over.
#[test]
fn code_that_is_called_apart_and_has_not_begun_at_a_shutdown_is_called_and_its_wait_ends() {
    let _watch = watch();
    let builder = Runtime::builder().workers(1);
    let runtime = builder
        .stuck_after(Duration::from_secs(3600))
        .build()
        .unwrap();
    let ((release, released), (hold, held)) = (channel::<()>(), channel());
    let holder = runtime.spawn(async move {
        hold.send(()).unwrap();
        released.recv().unwrap_err();
    });
    held.recv().unwrap();
    let ((tell, told), (end, ends)) = (channel(), channel());
    let (unit, tells) = (runtime.spawn(pending::<()>()), TellsPanic(tell));
    unit.as_unit().unwrap().call_apart("a wait for", move || {
        let _tells = tells;
        // A destructor would be told that its unit ends.
        end.send(Unit::current_if_ending().is_some()).unwrap();
        pending::<()>().wait();
    });
    let report = runtime.shutdown(Duration::ZERO);
    assert!(!ends.recv().unwrap(), "it was called as a destructor");
    assert!(!told.recv().unwrap());
    let is_call = |named: &weald_kernel::JobName| named.to_string().contains("a wait for");
    assert!(!report.not_stopped.iter().any(is_call), "{report:?}");
    drop(release);
    holder.wait().unwrap();
}

/// Waits when it is woken, which a cancel of the unit that wakes it ends.
struct Waits(Sender<()>);

impl Wake for Waits {
    fn wake(self: Arc<Self>) {
        self.0.send(()).unwrap();
        pending::<()>().wait();
    }
}

#[test]
fn a_cancel_that_ends_a_wait_of_a_foreign_waker_ends_the_next_wait_of_the_unit_too() {
    let _watch = watch();
    let runtime = runtime(1);
    let barrier = Arc::new(weald_sync::Barrier::new(2));
    let (begins, begun) = channel();
    let mut first = Box::pin(barrier.wait().into_future());
    poll_once(&mut first, &Waker::from(Arc::new(Waits(begins))));
    let ((go_on, goes_on), own) = (channel(), barrier.clone());
    let releases = runtime.spawn(async move {
        own.wait().wait();
        weald_kernel::cancel_point();
        go_on.send(()).unwrap();
    });
    begun.recv().unwrap();
    releases.cancel();
    assert!(goes_on.recv().is_err(), "the cancel was swallowed");
    assert!(runtime.block_on(releases).unwrap_err().is_cancelled());
}
