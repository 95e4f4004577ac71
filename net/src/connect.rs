//! Making a connection without blocking.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use weald_kernel::{Done, Interest, IoSource};
use weald_sync::{Event, Polled, Source, Waiting, of_source};

use crate::{stream::Stream, transport::Transport};

/// The wait of a `connect`. The connection is begun by the first poll; dropping the wait closes it.
pub(crate) struct Connecting<T: Transport, B> {
    begin: B,
    source: Option<IoSource<T>>,
    outcome: Option<io::Result<Stream<T>>>,
}

/// A wait for a connection.
pub(crate) type ConnectWait<T, B> = Waiting<<Polled<Connecting<T, B>> as Event>::Branch>;

/// A connection that `begin` begins: it makes the socket, which does not block, and calls connect.
pub(crate) fn connect<T, B>(begin: B) -> ConnectWait<T, B>
where
    T: Transport,
    B: FnMut() -> io::Result<T> + Unpin,
{
    let connecting = Connecting {
        begin,
        source: None,
        outcome: None,
    };
    Waiting::new(of_source(connecting).open())
}

impl<T: Transport, B: FnMut() -> io::Result<T> + Unpin> Connecting<T, B> {
    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stream<T>>> {
        let source = match self.source.take() {
            Some(source) => source,
            // Not before connect was called: a socket without a connection is reported as broken.
            None => IoSource::new((self.begin)()?)?,
        };
        let finish = |socket: &T| match socket.noted_error()? {
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
        outcome.expect("a source is taken from when it is ready")
    }
}
