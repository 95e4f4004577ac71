//! How long messages wait: in mailboxes whose receivers do not look, and in channels.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/reports.rs"]
mod reports;
#[path = "support/tools.rs"]
mod tools;

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    time::{Duration, Instant},
};

use reports::{collect_reports, flushed, reports};
use tools::{Latch, runtime, until, watch};
use weald_kernel::{Address, JoinHandle, Mailbox, Runtime, Spawn, UnreadMailbox, sleep, yield_now};
use weald_sync::channel;

/// A job that looks into its mailbox only once the latch is open. Then it receives as many messages as said, and waits
/// for the second latch.
fn inattentive(
    runtime: &Runtime,
    name: &'static str,
    (begin, end): (&Latch, &Latch),
    count: usize,
) -> (JoinHandle<()>, Address<u32>) {
    let (begin, end) = (begin.clone(), end.clone());
    let code = move |mut mailbox: Mailbox<u32>| async move {
        begin.await;
        for _ in 0..count {
            poll_fn(|cx| mailbox.poll_receive(cx)).await;
        }
        end.await;
        drop(mailbox);
    };
    let spawned = runtime.block_on(async { Spawn::new().name(name).spawn_with_mailbox(code) });
    spawned.unwrap()
}

fn only_unread(runtime: &Runtime) -> UnreadMailbox {
    let mut unread = runtime.unread_mailboxes();
    assert_eq!(unread.len(), 1, "{unread:?}");
    unread.remove(0)
}

#[test]
fn the_oldest_message_of_a_mailbox_that_nobody_looks_at_has_an_age() {
    let _watch = watch();
    let runtime = runtime(2);
    let (begin, end) = (Latch::default(), Latch::default());
    let (job, address) = inattentive(&runtime, "inattentive", (&begin, &end), 2);
    until(|| begin.waiters() == 1);
    assert!(runtime.unread_mailboxes().is_empty());
    let posted = Instant::now();
    address.post(1).unwrap();
    let first = only_unread(&runtime);
    assert_eq!(first.job.name.as_deref(), Some("inattentive"));
    until(|| only_unread(&runtime).waited > first.waited + Duration::from_millis(5));
    // A later message does not make it younger.
    address.post(2).unwrap();
    let second = only_unread(&runtime);
    assert!(second.waited > Duration::from_millis(5));
    assert!(second.waited <= posted.elapsed());
    until(|| (runtime.metrics().oldest_message).is_some_and(|age| age > second.waited));
    begin.open();
    until(|| end.waiters() == 1);
    // Nor does an earlier one that was received make it older, although no sample came between.
    let posted = Instant::now();
    address.post(3).unwrap();
    assert!(only_unread(&runtime).waited <= posted.elapsed());
    end.open();
    runtime.block_on(job).unwrap();
    assert!(runtime.unread_mailboxes().is_empty());
    until(|| runtime.metrics().oldest_message.is_none());
}

#[test]
fn a_mailbox_that_grows_although_nobody_looks_is_named_once_with_an_estimate_of_its_length() {
    let _watch = watch();
    collect_reports();
    let builder = Runtime::builder().workers(1).mailbox_mark(20 * MARK);
    let runtime = builder.build().unwrap();
    let (begin, end) = (Latch::default(), Latch::default());
    let name = "one that never looks";
    let (job, address) = inattentive(&runtime, name, (&begin, &end), 1);
    until(|| begin.waiters() == 1);
    let post = |messages: usize| (0..messages).for_each(|_| address.post(1).unwrap());
    post(1);
    // A sample must have seen that one.
    assert_eq!(only_unread(&runtime).messages, 0);
    post(10 * MARK);
    let half = only_unread(&runtime).messages;
    assert!((6 * MARK..=14 * MARK).contains(&half), "{half}");
    flushed();
    assert!(reports("weald::mailbox", name).is_empty());
    post(20 * MARK);
    for _ in 0..10 {
        let all = only_unread(&runtime).messages;
        assert!((25 * MARK..=35 * MARK).contains(&all), "{all}");
    }
    let metrics = runtime.metrics();
    assert_eq!(metrics.long_mailboxes, 1);
    assert!(metrics.longest_mailbox >= 25 * MARK);
    until(|| !reports("weald::mailbox", name).is_empty());
    begin.open();
    until(|| end.waiters() == 1);
    // They are gone, and the next ones are others.
    post(1);
    assert_eq!(only_unread(&runtime).messages, 0);
    flushed();
    assert_eq!(reports("weald::mailbox", name).len(), 1);
    end.open();
    runtime.block_on(job).unwrap();
}

/// Without a call, too: while workers run, and when all sleep.
#[test]
fn the_monitor_finds_messages_by_itself() {
    let _watch = watch();
    for is_busy in [true, false] {
        let runtime = runtime(1);
        let stop = Arc::new(AtomicBool::new(!is_busy));
        let stopped = stop.clone();
        let busy = runtime.spawn(async move {
            while !stopped.load(Ordering::SeqCst) {
                yield_now().await;
            }
        });
        let mut jobs = Vec::new();
        let mut names = ["first", "second", "third", "fourth"].into_iter().cycle();
        loop {
            let (begin, end) = (Latch::default(), Latch::default());
            let name = names.next().unwrap();
            let (job, address) = inattentive(&runtime, name, (&begin, &end), 1);
            until(|| begin.waiters() == 1);
            address.post(1).unwrap();
            // Longer than the time between two samples.
            runtime
                .block_on(runtime.spawn(sleep(Duration::from_millis(1_200))))
                .unwrap();
            let waited = only_unread(&runtime).waited;
            begin.open();
            until(|| end.waiters() == 1);
            end.open();
            jobs.push(job);
            if waited > Duration::from_millis(50) {
                break;
            }
        }
        stop.store(true, Ordering::SeqCst);
        runtime.block_on(busy).unwrap();
        for job in jobs {
            runtime.block_on(job).unwrap();
        }
    }
}

const MARK: usize = 2_000;

/// The age that a report tells, rounded down to what it may be at least.
fn age_in(text: &str) -> Option<Duration> {
    let (_, age) = text.split_once("the oldest for at least ")?;
    let (age, _) = age.split_once(':')?;
    let number = age.trim_end_matches(char::is_alphabetic);
    let unit = match &age[number.len()..] {
        "s" => 1.0,
        "ms" => 1e-3,
        "µs" => 1e-6,
        _ => 1e-9,
    };
    let rounded = number.parse::<f64>().unwrap() - 0.05;
    Some(Duration::from_secs_f64(rounded.max(0.0) * unit))
}

/// The age in a report is known if a sample has seen the message, and is that of no message that was received before.
#[test]
fn the_report_of_a_long_mailbox_tells_the_age_of_the_oldest_message() {
    let _watch = watch();
    collect_reports();
    let builder = Runtime::builder().workers(2).mailbox_mark(MARK);
    let runtime = builder.build().unwrap();
    let report_of = |name: &'static str| {
        let quoted = format!("`{name}`");
        until(|| !reports("weald::mailbox", &quoted).is_empty());
        reports("weald::mailbox", &quoted).remove(0).text
    };
    for (name, is_seen) in [("seen", true), ("unseen", false)] {
        let (begin, middle, end) = (Latch::default(), Latch::default(), Latch::default());
        let latches = (begin.clone(), middle.clone(), end.clone());
        let code = move |mut mailbox: Mailbox<usize>| async move {
            let (begin, middle, end) = latches;
            begin.await;
            while mailbox.try_receive().is_some() {}
            middle.await;
            poll_fn(|cx| mailbox.poll_receive(cx)).await;
            end.await;
        };
        let spawned = runtime.block_on(async { Spawn::new().name(name).spawn_with_mailbox(code) });
        let (job, address) = spawned.unwrap();
        // An earlier message, which was seen and then received.
        address.post(0).unwrap();
        let age_of = |name: &str| {
            let unread = runtime.unread_mailboxes().into_iter();
            let mut own = unread.filter(|unread| unread.job.name.as_deref() == Some(name));
            own.next().map(|unread| unread.waited)
        };
        until(|| age_of(name) > Some(Duration::from_millis(200)));
        begin.open();
        until(|| middle.waiters() == 1);
        let posted = Instant::now();
        (0..MARK).for_each(|n| address.post(n).unwrap());
        if is_seen {
            until(|| age_of(name) > Some(Duration::from_millis(20)));
        }
        middle.open();
        let text = report_of(name);
        assert!(text.contains("found 2000 messages"), "{text}");
        let age = age_in(&text);
        assert!(age.is_none_or(|age| age <= posted.elapsed()), "{text}");
        assert!(!is_seen || age > Some(Duration::from_millis(10)), "{text}");
        until(|| end.waiters() == 1);
        end.open();
        runtime.block_on(job).unwrap();
    }
}

/// What a receiver found is no longer what waits once it looks again, even if it does not wait.
#[test]
fn a_long_mailbox_is_listed_until_its_receiver_looks_again() {
    let _watch = watch();
    let runtime = Runtime::builder()
        .workers(1)
        .mailbox_mark(MARK)
        .build()
        .unwrap();
    let (allow, allowed) = mpsc::channel::<()>();
    let (takes, took) = mpsc::channel::<()>();
    let code = |mut mailbox: Mailbox<u32>| async move {
        while mailbox.try_receive().is_some() || allowed.recv().is_ok() {
            if mailbox.is_empty() {
                takes.send(()).unwrap();
                allowed.recv().unwrap();
            }
        }
    };
    let begin = Latch::default();
    let begins = begin.clone();
    let code = |mailbox| async move {
        begins.await;
        code(mailbox).await;
    };
    let (job, address) = runtime
        .block_on(async { Spawn::new().spawn_with_mailbox(code) })
        .unwrap();
    for n in 0..2_000 {
        address.post(n).unwrap();
    }
    begin.open();
    took.recv().unwrap();
    until(|| runtime.metrics().long_mailboxes == 0);
    assert!(runtime.long_mailboxes().is_empty());
    drop((allow, address));
    let _panicked = runtime.block_on(job);
}

#[test]
fn a_channel_beyond_the_mark_is_named_once_and_counted() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder()
        .workers(1)
        .mailbox_mark(MARK)
        .build()
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let busy = runtime.spawn(async move {
        while !stopped.load(Ordering::SeqCst) {
            yield_now().await;
        }
    });
    let (sender, receiver) = channel::unbounded();
    sender.set_name("a growing channel");
    (0..MARK - 1).for_each(|n| sender.try_send(n).unwrap());
    assert_eq!(runtime.metrics().long_channels, 0);
    assert!(runtime.metrics().longest_channel >= MARK - 1);
    sender.try_send(0).unwrap();
    let long = runtime.long_channels().remove(0);
    assert_eq!((long.name, long.values), (Some("a growing channel"), MARK));
    until(|| runtime.long_channels()[0].waited > long.waited);
    let metrics = runtime.metrics();
    assert_eq!((metrics.long_channels, metrics.longest_channel), (1, MARK));
    assert!(metrics.oldest_value > Some(long.waited));
    let named = || reports("weald::channel", "`a growing channel`");
    until(|| !named().is_empty());
    assert_eq!(named()[0].level, tracing::Level::WARN);
    assert!(named()[0].text.contains("values=2000 "), "{:?}", named());
    assert!(!named()[0].text.contains("for at least 0"), "{:?}", named());
    // Two samples later.
    let second = runtime.long_channels()[0].waited;
    sender.try_send(1).unwrap();
    until(|| runtime.long_channels()[0].waited > second + Duration::from_secs(2));
    assert_eq!(named().len(), 1);
    drop(receiver);
    until(|| runtime.metrics().long_channels == 0);
    stop.store(true, Ordering::SeqCst);
    runtime.block_on(busy).unwrap();
}
