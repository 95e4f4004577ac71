//! Connects without blocking.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use weald_kernel::{Done, Interest, IoSource};
use weald_sync::{Event, Polled, Source, Waiting, of_source};

use crate::{stream::Stream, transport::Transport};

/// A connection attempt. The first poll starts it; dropping it closes the socket.
pub(crate) struct Connecting<T: Transport, B> {
    start: B,
    source: Option<IoSource<T>>,
    outcome: Option<io::Result<Stream<T>>>,
}

/// A wait for a connection.
pub(crate) type ConnectWait<T, B> = Waiting<<Polled<Connecting<T, B>> as Event>::Branch>;

/// Connects. `start` creates a non-blocking socket and calls `connect(2)` on it.
pub(crate) fn connect<T, B>(start: B) -> ConnectWait<T, B>
where
    T: Transport,
    B: FnMut() -> io::Result<T> + Unpin,
{
    let connecting = Connecting {
        start,
        source: None,
        outcome: None,
    };
    Waiting::new(of_source(connecting).open())
}

impl<T: Transport, B: FnMut() -> io::Result<T> + Unpin> Connecting<T, B> {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stream<T>>> {
        let source = match self.source.take() {
            Some(source) => source,
            // Registered only after `connect(2)`: epoll reports a socket that is not connecting as hung up.
            None => IoSource::new((self.start)()?)?,
        };
        let finish = |socket: &T| match socket.take_socket_error()? {
            Some(error) => Err(error),
            None => Ok(Done::Maybe(())),
        };
        match source.poll_operate(Interest::Write, cx, finish) {
            Poll::Ready(connected) => Poll::Ready(connected.map(|()| Stream { source })),
            Poll::Pending => {
                self.source = Some(source);
                Poll::Pending
            }
        }
    }
}

impl<T, B> Source for Connecting<T, B>
where
    T: Transport,
    B: FnMut() -> io::Result<T> + Unpin,
{
    type Output = io::Result<Stream<T>>;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if this.outcome.is_some() {
            return Poll::Ready(());
        }
        let outcome = this.poll_connected(cx);
        outcome.map(|outcome| this.outcome = Some(outcome))
    }

    fn take(self: Pin<&mut Self>) -> Self::Output {
        let outcome = self.get_mut().outcome.take();
        outcome.expect("`take` is called after `poll_ready` returned `Ready`")
    }
}
