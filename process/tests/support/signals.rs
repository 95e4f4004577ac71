//! Processes that a test drives by steps, for the tests of signals.

#![allow(dead_code, reason = "each test file uses only some of it")]

use weald_kernel::yield_now;
use weald_process::{self as process, Down, Exit, ExitReason, Inbox, Process};

use crate::tools::{Latch, each_seed, on_each};

/// Runs `test` with a hundred seeds of the test runtime, and on runtimes of 1, 2 and 4 workers.
pub(crate) fn everywhere(test: impl AsyncFn()) {
    each_seed(100, &test);
    on_each(|runtime| runtime.block_on(test()));
}

#[derive(Debug)]
pub(crate) enum Message {
    Text(u32),
    Exit(Exit),
    Down(Down),
    Stop,
}

/// The steps of a process that a test drives.
pub(crate) type Step = Box<dyn FnOnce(&mut Inbox<Message>) + Send>;

/// A process that waits for [`Message::Stop`], after `step`, and then returns what came before.
pub(crate) fn waiting(step: impl FnOnce(&mut Inbox<Message>) + Send + 'static) -> Waiting {
    let step: Step = Box::new(step);
    process::spawn(async move |mut inbox: Inbox<Message>| {
        step(&mut inbox);
        until_stop(inbox).await
    })
    .unwrap()
}

pub(crate) async fn until_stop(mut inbox: Inbox<Message>) -> Vec<Message> {
    let mut seen = Vec::new();
    loop {
        match inbox.receive().await {
            Message::Stop => return seen,
            message => seen.push(message),
        }
    }
}

pub(crate) type Waiting = Process<Message, Vec<Message>>;

/// Lets others run. No test depends on how far they come.
pub(crate) async fn settle() {
    for _ in 0..50 {
        yield_now().await;
    }
}

pub(crate) fn custom() -> ExitReason {
    ExitReason::custom("on purpose")
}

pub(crate) fn exits(seen: &[Message]) -> Vec<&ExitReason> {
    seen.iter()
        .filter_map(|message| match message {
            Message::Exit(exit) => Some(&exit.reason),
            _ => None,
        })
        .collect()
}

/// A process that traps exits already.
pub(crate) async fn trapping() -> Waiting {
    let latch = Latch::default();
    let traps = latch.clone();
    let process = waiting(move |inbox| {
        inbox.trap_exits(Message::Exit);
        traps.open();
    });
    latch.await;
    process
}
