//! `mailbox`: one process sends itself messages and then receives them all.

use std::hint::black_box;
use std::time::Instant;

use async_channel::unbounded;
use common::{per, print_metrics, rss_bytes};

/// One message; `T` says whether the text is shared or owned.
struct Message<T> {
    text: T,
    number: u64,
    length: u64,
    share: f64,
}

pub(crate) async fn run<T: AsRef<str>>(k: usize, mut text: impl FnMut() -> T) {
    let (me, mailbox) = unbounded();
    let rss_before = rss_bytes();
    let clock = Instant::now();
    for number in 0..k as u64 {
        let message = Message {
            text: text(),
            number,
            length: number + 1,
            share: number as f64 * 0.5,
        };
        assert!(me.try_send(message).is_ok(), "the mailbox is open");
    }
    let sending = clock.elapsed();
    let grown = rss_bytes().saturating_sub(rss_before);

    let clock = Instant::now();
    for _ in 0..k {
        let message = mailbox.recv().await.expect("as many messages were sent");
        black_box((
            message.text.as_ref(),
            message.number,
            message.length,
            message.share,
        ));
    }
    let receiving = clock.elapsed();
    print_metrics(&[
        ("ns_per_send", per(sending, k as f64)),
        ("ns_per_receive", per(receiving, k as f64)),
        ("bytes_per_message", grown as f64 / k as f64),
    ]);
}
