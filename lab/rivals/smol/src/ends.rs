//! The two ends of a channel of async-channel or flume: what `channel` and `select` are written
//! against.

use common::{Kind, bad_usage};

/// The sending end.
pub(crate) trait Put: Clone + Send + 'static {
    fn put(&self, value: u64) -> impl Future<Output = ()> + Send;
}

/// The receiving end.
pub(crate) trait Take: Send + Sync + 'static {
    fn take(&self) -> impl Future<Output = u64> + Send;
}

impl Put for async_channel::Sender<u64> {
    async fn put(&self, value: u64) {
        self.send(value)
            .await
            .expect("the receiver waits for all messages");
    }
}

impl Take for async_channel::Receiver<u64> {
    async fn take(&self) -> u64 {
        self.recv().await.expect("a sender is kept until the end")
    }
}

impl Put for flume::Sender<u64> {
    async fn put(&self, value: u64) {
        self.send_async(value)
            .await
            .expect("the receiver waits for all messages");
    }
}

impl Take for flume::Receiver<u64> {
    async fn take(&self) -> u64 {
        self.recv_async()
            .await
            .expect("a sender is kept until the end")
    }
}

/// A channel of async-channel.
pub(crate) fn of_async_channel(
    kind: Kind,
) -> (async_channel::Sender<u64>, async_channel::Receiver<u64>) {
    match kind {
        Kind::Bounded(capacity) => async_channel::bounded(capacity),
        Kind::Unbounded => async_channel::unbounded(),
        Kind::Rendezvous => {
            bad_usage("async-channel has no channel without room: give another kind.")
        }
    }
}

/// A channel of flume.
pub(crate) fn of_flume(kind: Kind) -> (flume::Sender<u64>, flume::Receiver<u64>) {
    match kind {
        Kind::Bounded(capacity) => flume::bounded(capacity),
        Kind::Unbounded => flume::unbounded(),
        Kind::Rendezvous => flume::bounded(0),
    }
}
