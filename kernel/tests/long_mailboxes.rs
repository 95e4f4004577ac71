//! A mailbox that grows is named once, and listed until its receiver has caught up.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    sync::mpsc::{self, Receiver, Sender},
    time::{Duration, Instant},
};

use reports::{collect_reports, reports};
use tools::{until, watch};
use weald_kernel::{Address, JoinHandle, Mailbox, Mark, Runtime, Spawn, timeout};

const MARK: usize = 2_000;

fn marked() -> Runtime {
    Runtime::builder()
        .workers(1)
        .mailbox_mark(MARK)
        .build()
        .unwrap()
}

/// A job that tells of each message that it receives, and then waits until it may receive another one.
struct Slow {
    job: JoinHandle<()>,
    address: Address<u32>,
    took: Receiver<()>,
    allow: Sender<()>,
}

impl Slow {
    fn start(runtime: &Runtime, name: &'static str) -> Slow {
        let (allow, allowed) = mpsc::channel();
        let (takes, took) = mpsc::channel();
        let (job, address) = runtime.block_on(async {
            let receives = |mut mailbox: Mailbox<u32>| async move {
                loop {
                    poll_fn(|cx| mailbox.poll_receive(cx)).await;
                    takes.send(()).unwrap();
                    if allowed.recv().is_err() {
                        return;
                    }
                }
            };
            let spawned = Spawn::new().name(name).spawn_with_mailbox(receives);
            spawned.unwrap()
        });
        Slow {
            job,
            address,
            took,
            allow,
        }
    }

    /// Posts a message, which the job receives alone, and then as many as said, which it finds together.
    fn post_at_once(&self, messages: usize) {
        post(&self.address, 1);
        self.took.recv().unwrap();
        post(&self.address, messages);
        self.allow.send(()).unwrap();
        self.took.recv().unwrap();
    }

    /// Lets the job receive this many messages more, and wait for the next.
    fn receive(&self, messages: usize) {
        for _ in 0..messages {
            self.allow.send(()).unwrap();
            self.took.recv().unwrap();
        }
        self.allow.send(()).unwrap();
    }
}

fn post(address: &Address<u32>, messages: usize) {
    for _ in 0..messages {
        address.post(0).unwrap();
    }
}

#[test]
fn a_mailbox_beyond_the_mark_is_named_once_and_listed_until_it_is_empty() {
    let _watch = watch();
    collect_reports();
    let runtime = marked();
    let slow = Slow::start(&runtime, "a slow receiver");
    let named = || reports("weald::mailbox", "`a slow receiver`");
    for messages in [MARK, MARK + 1] {
        slow.post_at_once(messages);
        let long = runtime.long_mailboxes().remove(0);
        assert_eq!(long.messages, messages);
        assert_eq!(long.job.name.as_deref(), Some("a slow receiver"));
        slow.receive(messages - 1);
        until(|| runtime.long_mailboxes().is_empty());
    }
    until(|| !named().is_empty());
    let named = named();
    assert_eq!(named.len(), 1);
    assert_eq!(named[0].level, tracing::Level::WARN);
    assert!(named[0].text.contains("messages=2000 "), "{named:?}");
    drop(slow.allow);
    post(&slow.address, 1);
    runtime.block_on(slow.job).unwrap();
}

#[test]
fn a_mailbox_below_the_mark_is_not_named() {
    let _watch = watch();
    collect_reports();
    let runtime = marked();
    let slow = Slow::start(&runtime, "a receiver that keeps up");
    slow.post_at_once(MARK - 1);
    assert!(runtime.long_mailboxes().is_empty());
    drop(slow.allow);
    runtime.block_on(slow.job).unwrap();
    assert!(reports("weald::mailbox", "`a receiver that keeps up`").is_empty());
}

/// The figures have it all the same.
#[test]
fn many_messages_below_the_mark_are_in_the_metrics() {
    let _watch = watch();
    collect_reports();
    let runtime = marked();
    let slow = Slow::start(&runtime, "a slow receiver below the mark");
    let found = Instant::now();
    slow.post_at_once(MARK - 1);
    until(|| runtime.metrics().longest_mailbox == MARK - 1);
    until(|| runtime.metrics().oldest_message > Some(Duration::from_millis(150)));
    let metrics = runtime.metrics();
    assert_eq!(metrics.long_mailboxes, 0);
    assert!(metrics.oldest_message <= Some(found.elapsed()));
    slow.receive(MARK - 2);
    until(|| runtime.metrics().oldest_message.is_none());
    assert_eq!(runtime.metrics().longest_mailbox, 0);
    // It is still named when it grows beyond the mark.
    assert!(reports("weald::mailbox", "`a slow receiver below the mark`").is_empty());
    slow.post_at_once(MARK);
    until(|| runtime.metrics().long_mailboxes == 1);
    until(|| !reports("weald::mailbox", "`a slow receiver below the mark`").is_empty());
    drop(slow.allow);
    runtime.block_on(slow.job).unwrap();
}

/// With a mark, too, which notes the same number only once.
#[test]
fn messages_below_the_mark_that_each_receive_passes_are_in_the_metrics() {
    let _watch = watch();
    let runtime = marked();
    let (job, address) = runtime.block_on(async {
        let receives = |mut mailbox: Mailbox<u32>| async move {
            post(&mailbox.address(), MARK / 2 + 100);
            for answer in 1..=3 {
                let mut mark = mailbox.mark();
                mailbox
                    .receive_since(&mut mark, |number| *number == answer)
                    .await;
            }
        };
        Spawn::new().spawn_with_mailbox(receives).unwrap()
    });
    for answer in 1..=3 {
        until(|| runtime.waits().jobs.len() == 1);
        until(|| runtime.metrics().longest_mailbox == MARK / 2 + 100);
        address.post(answer).unwrap();
    }
    runtime.block_on(job).unwrap();
}

#[test]
fn messages_that_a_selective_receive_passes_over_are_counted() {
    let _watch = watch();
    collect_reports();
    let runtime = marked();
    let (job, address) = runtime.block_on(async {
        let receives = |mut mailbox: Mailbox<u32>| async move {
            mailbox.receive_if(|number| *number == 1).await;
            let left = mailbox.len();
            (left, mailbox.is_empty())
        };
        let picky = Spawn::new().name("a picky receiver");
        picky.spawn_with_mailbox(receives).unwrap()
    });
    for posted in 1..=MARK {
        post(&address, 1);
        if posted % 100 == 0 {
            until(|| runtime.waits().jobs.len() == 1);
        }
    }
    until(|| !runtime.long_mailboxes().is_empty());
    assert_eq!(runtime.long_mailboxes()[0].messages, MARK);
    until(|| !reports("weald::mailbox", "`a picky receiver`").is_empty());
    assert_eq!(reports("weald::mailbox", "`a picky receiver`").len(), 1);
    address.post(1).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), (MARK, false));
}

#[test]
fn messages_that_wait_before_a_mark_are_counted() {
    let _watch = watch();
    collect_reports();
    let runtime = marked();
    let (job, address) = runtime.block_on(async {
        let receives = |mut mailbox: Mailbox<u32>| async move {
            // One receive after the other, each of which refuses one message.
            let mut mark = Mark::oldest();
            for _ in 0..MARK {
                let refuses = mailbox.receive_since(&mut mark, |number| *number == 1);
                let _dropped_at_once = timeout(Duration::ZERO, refuses).await;
                post(&mailbox.address(), 1);
            }
            mailbox
                .receive_since(&mut mark, |number| *number == 1)
                .await;
            mailbox.len()
        };
        let picky = Spawn::new().name("a receiver with a mark");
        picky.spawn_with_mailbox(receives).unwrap()
    });
    until(|| !runtime.long_mailboxes().is_empty());
    assert_eq!(runtime.long_mailboxes()[0].messages, MARK);
    until(|| !reports("weald::mailbox", "`a receiver with a mark`").is_empty());
    address.post(1).unwrap();
    assert_eq!(runtime.block_on(job).unwrap(), MARK);
}

#[test]
fn messages_that_wait_before_a_mark_are_listed_by_each_receive_that_waits() {
    let _watch = watch();
    let runtime = marked();
    let (job, address) = runtime.block_on(async {
        let receives = |mut mailbox: Mailbox<u32>| async move {
            post(&mailbox.address(), MARK);
            for answer in 1..=3 {
                let mut mark = mailbox.mark();
                mailbox
                    .receive_since(&mut mark, |number| *number == answer)
                    .await;
            }
            mailbox.len()
        };
        Spawn::new().spawn_with_mailbox(receives).unwrap()
    });
    for answer in 1..=3 {
        until(|| runtime.waits().jobs.len() == 1 && !runtime.long_mailboxes().is_empty());
        assert_eq!(runtime.long_mailboxes()[0].messages, MARK);
        address.post(answer).unwrap();
    }
    assert_eq!(runtime.block_on(job).unwrap(), MARK);
}
