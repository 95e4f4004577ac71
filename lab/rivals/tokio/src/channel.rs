//! `channel`: senders and one receiver of integers.

use std::hint::black_box;

use common::{Kind, bad_usage, per, print_metrics, total_messages};
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver, UnboundedSender};

use crate::team::Team;

/// The sending end of a channel of either kind.
pub(crate) trait Put: Clone + Send + 'static {
    fn put(&self, value: u64) -> impl Future<Output = ()> + Send;
}

/// The receiving end of a channel of either kind.
pub(crate) trait Take: Send + 'static {
    fn take(&mut self) -> impl Future<Output = u64> + Send;
}

impl Put for Sender<u64> {
    async fn put(&self, value: u64) {
        self.send(value)
            .await
            .expect("the receiver waits for all messages");
    }
}

impl Put for UnboundedSender<u64> {
    async fn put(&self, value: u64) {
        self.send(value)
            .expect("the receiver waits for all messages");
    }
}

impl Take for Receiver<u64> {
    async fn take(&mut self) -> u64 {
        self.recv().await.expect("a sender is kept until the end")
    }
}

impl Take for UnboundedReceiver<u64> {
    async fn take(&mut self) -> u64 {
        self.recv().await.expect("a sender is kept until the end")
    }
}

/// Ends the program, because there is nothing to measure.
pub(crate) fn no_rendezvous() -> ! {
    bad_usage("Tokio has no channel without room: give another kind.")
}

pub(crate) async fn run(senders: usize, messages: usize, kind: Kind) {
    match kind {
        Kind::Bounded(capacity) => measure(mpsc::channel(capacity), senders, messages).await,
        Kind::Unbounded => measure(mpsc::unbounded_channel(), senders, messages).await,
        Kind::Rendezvous => no_rendezvous(),
    }
}

async fn measure<P: Put, T: Take>(ends: (P, T), senders: usize, messages: usize) {
    let (sender, mut receiver) = ends;
    let mut team = Team::of(senders + 1);
    team.add(async move {
        for _ in 0..senders * messages {
            black_box(receiver.take().await);
        }
    });
    for _ in 0..senders {
        let sender = sender.clone();
        team.add(async move {
            for value in 0..messages as u64 {
                sender.put(value).await;
            }
        });
    }
    let elapsed = team.run().await;
    print_metrics(&[(
        "ns_per_message",
        per(elapsed, total_messages(senders, messages)),
    )]);
}
