//! The units of `stall` that send for long: each sends to sixty processes of its own in turn, without a wait, and
//! begins again when these have received everything.
//!
//! A number of messages and not a time: the receivers may be slower, so a time would not bound the memory.

use std::hint::black_box;
use std::time::Duration;

use weald::process::{self, Inbox, Pid};
use weald::sync::oneshot;

const RECEIVERS: usize = 60;
/// How many messages each receiver gets before the sender waits: together they take several times what a job may take
/// before Weald retakes its worker.
const SHARE: u32 = 20_000;

/// A message to a receiver.
enum SentMessage {
    Value(u32),
    /// The last one of a share: the receiver drops the sender's end.
    LastOfShare(oneshot::Sender<()>),
    Stop,
}

/// Rests for this long and sends, again and again, as long as `goes_on`.
pub(super) async fn send_again(rest: Duration, goes_on: impl Fn() -> bool) {
    let spawned: Result<Vec<_>, _> = (0..RECEIVERS).map(|_| process::spawn(receive)).collect();
    // Without receivers nothing is sent, and no report names the sender.
    let Ok(receivers) = spawned else { return };
    let receivers: Vec<Pid<SentMessage>> = receivers
        .into_iter()
        .map(process::Process::into_pid)
        .collect();
    while goes_on() {
        weald::sleep(rest).await;
        send_shares(&receivers);
        wait_for(&receivers).await;
    }
    for receiver in receivers {
        receiver.send(SentMessage::Stop);
    }
}

fn send_shares(receivers: &[Pid<SentMessage>]) {
    for value in 0..SHARE {
        for receiver in receivers {
            receiver.send(SentMessage::Value(value));
        }
    }
}

/// Waits until all have received everything that was sent to them.
async fn wait_for(receivers: &[Pid<SentMessage>]) {
    let mut ends = Vec::with_capacity(receivers.len());
    for receiver in receivers {
        let (at_end, ended) = oneshot::channel();
        receiver.send(SentMessage::LastOfShare(at_end));
        ends.push(ended);
    }
    for mut ended in ends {
        let _closed = ended.receive().await;
    }
}

async fn receive(mut inbox: Inbox<SentMessage>) {
    loop {
        match inbox.receive().await {
            SentMessage::Value(value) => {
                black_box(value);
            }
            SentMessage::LastOfShare(at_end) => drop(at_end),
            SentMessage::Stop => return,
        }
    }
}
