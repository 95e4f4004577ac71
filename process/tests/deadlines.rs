//! Deadlines that pass on to nested calls: each belongs to the unit that serves the request, wherever its stack is.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

use std::{
    sync::mpsc,
    time::{Duration, Instant},
};

use tools::{Latch, each_seed, on_each};
use weald_kernel::{SpawnError, Wait, blocking, now, sleep, spawn, wanted_by};
use weald_process::{
    self as process, ChildSpec, Inbox, Pid, Reply, StartError, Strategy, Supervisor,
};

const MS: Duration = Duration::from_millis(1);
const HOUR: Duration = Duration::from_secs(3600);

fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

type Deadline = Option<Instant>;

/// What deadline has this request?
struct Tell(Reply<Deadline>);

enum Ask {
    /// Waits with the stack, and then asks behind, for the sake of this request.
    Serve(Duration, Reply<Deadline>),
    /// The same, with code that blocks.
    Block(Duration, Reply<Deadline>),
    /// Asks behind, for nobody's sake.
    Plain(Reply<Deadline>),
}

fn front(behind: &Pid<Tell>) -> Pid<Ask> {
    let behind = behind.clone();
    let front = process::spawn(async move |mut inbox: Inbox<Ask>| {
        loop {
            let (deadline, reply) = match inbox.receive().await {
                Ask::Serve(time, reply) => {
                    let work = reply.cover(async {
                        sleep(time).wait();
                        behind.call(Tell).await
                    });
                    (work.await, reply)
                }
                Ask::Block(time, reply) => {
                    let work = reply.cover(async {
                        let (_sender, silent) = mpsc::channel::<()>();
                        let _late = blocking(move || silent.recv_timeout(time));
                        behind.call(Tell).await
                    });
                    (work.await, reply)
                }
                Ask::Plain(reply) => (behind.call(Tell).await, reply),
            };
            let _unheard = reply.send(deadline.unwrap());
        }
    });
    front.unwrap().into_pid()
}

type Serve = fn(Duration, Reply<Deadline>) -> Ask;

#[test]
fn a_deadline_stays_with_its_unit_while_the_stacks_of_others_wait_on_the_same_thread() {
    everywhere(async || each_has_its_own(Ask::Serve).await);
}

#[test]
fn a_deadline_stays_with_its_unit_while_others_block() {
    on_each(|runtime| runtime.block_on(each_has_its_own(Ask::Block)));
}

async fn each_has_its_own(serve: Serve) {
    let behind = process::spawn(async |mut inbox: Inbox<Tell>| {
        loop {
            let Tell(reply) = inbox.receive().await;
            let deadline = reply.deadline();
            let _unheard = reply.send(deadline);
        }
    });
    let behind = behind.unwrap().into_pid();
    // The second begins while the first waits, and the first goes on while the second waits.
    let (first, second) = (front(&behind), front(&behind));
    let asks = |front: &Pid<Ask>, time: Duration, deadline: Instant| {
        let front = front.clone();
        spawn(async move {
            let call = front.call(|reply| serve(time, reply));
            call.until(deadline).await
        })
    };
    let (early, late) = (now() + HOUR, now() + 2 * HOUR);
    let one = asks(&first, 20 * MS, early);
    sleep(10 * MS).await;
    let other = asks(&second, 30 * MS, late);
    assert_eq!(one.await.unwrap(), Ok(Some(early)));
    assert_eq!(other.await.unwrap(), Ok(Some(late)));
    for front in [first, second] {
        assert_eq!(front.call(Ask::Plain).await, Ok(None));
        front.kill();
    }
    behind.kill();
}

#[test]
fn a_supervisor_that_is_asked_for_the_sake_of_a_request_is_not_dead_when_its_time_is_over() {
    everywhere(async || {
        let latch = Latch::default();
        let late = latch.clone();
        let slow = ChildSpec::new("slow", move |starting| {
            let (ready, late) = (starting.ready(), late.clone());
            let process = process::spawn(async move |mut inbox: Inbox<()>| {
                late.await;
                ready.say();
                inbox.receive().await;
            })?;
            Ok::<_, SpawnError>(process.into_pid())
        });
        let supervisor = Supervisor::new(Strategy::OneForOne).start().await.unwrap();
        let start = supervisor.start_child(slow.ready_within(HOUR));
        let started = wanted_by(Some(now() + 10 * MS), start).await;
        assert_eq!(started, Err(StartError::TimedOut));
        latch.open();
        // It does what was asked all the same.
        let children = supervisor.children().await.unwrap();
        assert!(children[0].unit.is_some());
        supervisor.stop().await;
    });
}
