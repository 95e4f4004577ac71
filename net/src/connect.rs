//! Connects without blocking.
//!
//! The system queues a TCP connection while the listener's queue is full, but refuses one of a Unix socket, and reports
//! nothing when there is room. Such an attempt is repeated after pauses, each twice as long as the last.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use weald_kernel::{Done, Interest, IoSource, Sleep, sleep};
use weald_sync::{Event, Polled, Source, Waiting, of_source};

use crate::{stream::Stream, transport::Transport};

/// A connection attempt. The first poll starts it; dropping it closes the socket.
pub(crate) struct Connecting<T: Transport, B> {
    start: B,
    /// None: a full queue is an error.
    pauses: Option<Pauses>,
    source: Option<IoSource<T>>,
    outcome: Option<io::Result<Stream<T>>>,
}

/// The pauses while the listener's queue is full.
#[derive(Default)]
pub(crate) struct Pauses {
    current: Option<Sleep>,
    last: Duration,
}

const FIRST_PAUSE: Duration = Duration::from_millis(1);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

impl Pauses {
    fn begin(&mut self) {
        self.last = (2 * self.last).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        self.current = Some(sleep(self.last));
    }

    fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(pause) = &mut self.current {
            ready!(Pin::new(pause).poll(cx));
            self.current = None;
        }
        Poll::Ready(())
    }
}

/// A wait for a connection.
pub(crate) type ConnectWait<T, B> = Waiting<<Polled<Connecting<T, B>> as Event>::Branch>;

/// Connects. `start` creates a non-blocking socket and calls `connect(2)` on it.
/// With `pauses`, it is called again while it fails with `WouldBlock`.
pub(crate) fn connect<T, B>(start: B, pauses: Option<Pauses>) -> ConnectWait<T, B>
where
    T: Transport,
    B: FnMut() -> io::Result<T> + Unpin,
{
    let connecting = Connecting {
        start,
        pauses,
        source: None,
        outcome: None,
    };
    Waiting::new(of_source(connecting).open())
}

impl<T: Transport, B: FnMut() -> io::Result<T> + Unpin> Connecting<T, B> {
    fn poll_start(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let Some(pauses) = &mut self.pauses else {
            return Poll::Ready((self.start)());
        };
        loop {
            ready!(pauses.poll_over(cx));
            match (self.start)() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => pauses.begin(),
                started => return Poll::Ready(started),
            }
        }
    }

    fn poll_connected(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Stream<T>>> {
        let source = match self.source.take() {
            Some(source) => source,
            // Registered only after `connect(2)`: epoll reports a socket that is not connecting as hung up.
            None => IoSource::new(ready!(self.poll_start(cx))?)?,
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
