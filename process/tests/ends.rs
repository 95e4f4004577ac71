//! The end of a process, as others see it: when it counts as dead, what its calls are told, and long chains of links.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    time::Duration,
};

use tools::{each_seed, on_each, runtime, watch};
use weald_kernel::{Wait, catch_panic, sleep};
use weald_process::{
    self as process, Builder, CallError, ChildSpec, ExitReason, Inbox, Name, Pid, Reply,
    StartError, Strategy, Supervisor, link, monitor,
};

/// Runs `test` with a hundred seeds of the test runtime, and on runtimes of 1, 2 and 4 workers.
fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

enum Request {
    Break(Reply<()>),
    /// Keeps the reply until the request after it.
    BreakLater(Reply<()>),
    Ask(Reply<u32>),
}

/// A server whose handlers panic, and which goes on.
async fn serve(mut inbox: Inbox<Request>) {
    loop {
        let request = inbox.receive().await;
        let _broken = catch_panic(|| match request {
            Request::Break(_reply) => panic!("on purpose"),
            Request::BreakLater(reply) => {
                let inner = catch_panic(move || {
                    let _reply = reply;
                    panic!("on purpose");
                });
                assert_eq!(inner, None::<()>);
            }
            Request::Ask(reply) => drop(reply.send(1)),
        });
    }
}

#[test]
fn a_call_whose_handler_panics_and_is_caught_fails_at_once() {
    everywhere(async || {
        let server = process::spawn(serve).unwrap();
        let pid: &Pid<Request> = server.pid();
        for _ in 0..3 {
            assert_eq!(pid.call(Request::Break).await, Err(CallError::NoReply));
            assert_eq!(pid.call(Request::BreakLater).await, Err(CallError::NoReply));
        }
        assert_eq!(pid.call(Request::Ask).await, Ok(1));
        server.kill();
    });
}

/// Drops the request in a panic that the standard library catches, and not Weald.
fn breaks(request: Request) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _request = request;
        panic!("on purpose");
    }));
    assert!(caught.is_err());
}

#[test]
fn a_call_whose_handler_panics_fails_at_the_next_wait_of_the_callee_whatever_catches_the_panic() {
    everywhere(async || {
        let polled = process::spawn(async |mut inbox: Inbox<Request>| {
            loop {
                breaks(inbox.receive().await);
            }
        });
        let yields = process::spawn(async |mut inbox: Inbox<Request>| {
            loop {
                breaks(inbox.receive().await);
                weald_kernel::yield_now().await;
            }
        });
        let with_its_stack = process::spawn(async |mut inbox: Inbox<Request>| {
            loop {
                breaks(inbox.receive().await);
                sleep(Duration::from_millis(1)).wait();
            }
        });
        for server in [polled, yields, with_its_stack] {
            let server = server.unwrap();
            for _ in 0..3 {
                let call = server.pid().call(Request::Break);
                assert_eq!(call.await, Err(CallError::NoReply));
            }
            server.kill();
        }
    });
}

#[test]
fn what_a_unit_traps_exits_with_is_dropped_before_anyone_is_told_of_its_end() {
    everywhere(async || {
        let held = Arc::new(());
        let holder = held.clone();
        let process = process::spawn(async move |mut inbox: Inbox<()>| {
            inbox.trap_exits(move |_| drop(holder.clone()));
            inbox.receive().await;
        });
        let process = process.unwrap();
        let down = monitor(&process);
        process.pid().send(());
        down.await;
        assert_eq!(Arc::strong_count(&held), 1);
    });
}

/// A reason whose code panics everywhere.
struct Evil;

impl std::fmt::Debug for Evil {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("on purpose, in debug")
    }
}

impl PartialEq for Evil {
    fn eq(&self, _: &Evil) -> bool {
        panic!("on purpose, in eq")
    }
}

impl Eq for Evil {}

impl Drop for Evil {
    fn drop(&mut self) {
        panic!("on purpose, in drop")
    }
}

#[test]
fn a_reason_whose_code_panics_harms_no_supervisor() {
    let test = async || {
        let starts = Arc::new(Mutex::new(0));
        let counted = starts.clone();
        let evil = ChildSpec::process("evil", move |_: Inbox<()>| {
            *counted.lock().unwrap() += 1;
            async { process::exit(ExitReason::custom(Evil)) as () }
        });
        let waits = ChildSpec::process("waits", async |mut inbox: Inbox<()>| inbox.receive().await);
        let supervisor = Supervisor::new(Strategy::OneForOne).intensity(3, Duration::from_secs(60));
        let supervisor = supervisor.child(waits).child(evil).start().await.unwrap();
        let down = monitor(&supervisor).await;
        assert!(matches!(
            down.reason,
            ExitReason::Shutdown | ExitReason::NoProcess
        ));
        assert_eq!(*starts.lock().unwrap(), 4);
        assert!(matches!(
            supervisor.children().await,
            Err(StartError::GaveUp(_))
        ));
    };
    each_seed(10, test);
    on_each(|runtime| runtime.block_on(test()));
}

/// Catches a panic while it is dropped.
struct Catches;

impl Drop for Catches {
    fn drop(&mut self) {
        let caught = catch_panic(|| panic!("on purpose, and caught"));
        assert_eq!(caught, None::<()>);
    }
}

#[test]
fn a_panic_that_a_destructor_catches_hides_none_that_ends_the_process() {
    everywhere(async || {
        let server = process::spawn(async |mut inbox: Inbox<Request>| {
            let _catches = Catches;
            let _request = inbox.receive().await;
            panic!("on purpose");
        })
        .unwrap();
        let pid: &Pid<Request> = server.pid();
        let failed = pid.call(Request::Ask).await;
        assert!(
            matches!(&failed, Err(CallError::Died(ExitReason::Crash(crash))) if crash.message() == "on purpose"),
            "{failed:?}"
        );
    });
}

static NAMED: Name<()> = Name::new("looked at");

/// Says, when it is dropped, whether the process is alive and whether it has its name.
struct Looks(Pid<()>, Sender<(bool, bool)>);

impl Drop for Looks {
    fn drop(&mut self) {
        let seen = (self.0.is_alive(), NAMED.whereis().is_ok());
        self.1.send(seen).unwrap();
    }
}

#[test]
fn a_process_is_alive_as_long_as_it_has_its_name() {
    everywhere(async || {
        let (sender, seen) = mpsc::channel();
        // Nobody will take the output, so it is dropped between the end of the code and the release of the name.
        let pid = NAMED
            .spawn(Builder::new(), async move |mut inbox: Inbox<()>| {
                inbox.receive().await;
                Looks(inbox.pid(), sender)
            })
            .unwrap()
            .into_pid();
        pid.send(());
        monitor(&pid).await;
        assert_eq!(seen.recv(), Ok((true, true)));
        assert!(!pid.is_alive());
        assert!(NAMED.whereis().is_err());
    });
}

/// Processes in a row, each linked with the one before it: the first and the last.
async fn chain(length: usize) -> (Pid<()>, Pid<()>) {
    let first = process::spawn(async |mut inbox: Inbox<()>| inbox.receive().await);
    let first = first.unwrap().into_pid();
    let mut last = first.clone();
    let linked = Arc::new(AtomicUsize::new(1));
    for _ in 1..length {
        let (before, linked) = (last.clone(), linked.clone());
        let next = process::spawn(async move |mut inbox: Inbox<()>| {
            link(&before);
            linked.fetch_add(1, Ordering::SeqCst);
            inbox.receive().await
        });
        last = next.unwrap().into_pid();
    }
    tools::until_yielding(|| linked.load(Ordering::SeqCst) == length).await;
    (first, last)
}

#[test]
fn a_long_chain_of_links_ends_with_its_runtime() {
    let _watch = watch();
    for workers in [1, 2] {
        let runtime = runtime(workers);
        let (first, last) = runtime.block_on(chain(20_000));
        drop(runtime);
        assert!(!first.is_alive() && !last.is_alive());
    }
}

#[test]
fn a_long_chain_of_links_ends_with_one_of_its_units() {
    let _watch = watch();
    runtime(2).block_on(async {
        let (first, last) = chain(20_000).await;
        let down = monitor(&last);
        first.exit(&ExitReason::custom("on purpose"));
        assert_eq!(down.await.reason, ExitReason::custom("on purpose"));
    });
}

/// A reason whose destructor asks about the process that was given it.
#[derive(Debug)]
struct Asks(Pid<()>, Sender<bool>);

impl PartialEq for Asks {
    fn eq(&self, other: &Asks) -> bool {
        self.0 == other.0
    }
}

impl Eq for Asks {}

impl Drop for Asks {
    fn drop(&mut self) {
        let _unheard = self.1.send(self.0.is_alive());
    }
}

#[test]
fn a_reason_that_came_too_late_to_count_is_dropped_by_an_end_that_holds_no_lock() {
    everywhere(async || {
        let (sender, dropped) = mpsc::channel();
        let process = process::spawn(async move |inbox: Inbox<()>| {
            let pid = inbox.pid();
            pid.exit(&ExitReason::custom(Asks(pid.clone(), sender)));
            // It returns before it waits.
        });
        let process = process.unwrap();
        let down = monitor(&process).await;
        assert!(matches!(
            down.reason,
            ExitReason::Normal | ExitReason::NoProcess
        ));
        // The caller does not wait in a way that keeps the worker.
        tools::until_yielding(|| dropped.try_recv().is_ok()).await;
    });
}
