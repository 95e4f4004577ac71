//! The server: accepts connections, spawns a job for each, and ends in good order.
//!
//! Steps:
//! 1. wait for a place, if there are as many connections as may be;
//! 2. accept, or hear that it shall end; when the system has no descriptor left, say so, once, and go on: the
//!    listener pauses;
//! 3. spawn the connection's job;
//! 4. at the end: accept no more, tell all connections to finish, wait for them until the deadline, stop
//!    the rest, and say what they did.

use std::{
    future::{Future, IntoFuture, Pending, pending},
    io,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};

use rustix::io::Errno;
use weald_kernel::spawn;
use weald_net::is_exhausted;
use weald_sync::{Kept, after, of_future, of_source, select};

use crate::{
    activity::Activity,
    connection::Connection,
    ended::{Drained, ServeError},
    handler::Serve,
    listen::Listen,
    registry::Registry,
};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What becomes of a request whose client has ended its direction of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HalfClosed {
    Dropped,
    Answered,
}

/// What a connection may take.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) header: Duration,
    pub(crate) body: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
    pub(crate) buffer: Option<usize>,
    pub(crate) half_closed: HalfClosed,
}

/// Serves HTTP/1 to whoever connects to `listener`: each request is passed to a clone of `service`, which
/// is any tower service, an axum router for one. Await it to serve; without [`until`](Server::until) it
/// serves until it is dropped.
///
/// A job for each connection; a panic of the service ends its connection only. The service's future is
/// dropped when its client is gone. Dropping the server's future closes the listener and lets each
/// connection finish the request that is in flight. A connection that was upgraded belongs to whoever took
/// it, and the server's end does not wait for it.
pub fn serve<L, S>(listener: L, service: S) -> Server<L, S, Pending<()>> {
    Server {
        listener,
        service,
        until: pending(),
        most: most_connections(),
        drain: Duration::from_secs(10),
        limits: Limits {
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            buffer: None,
            half_closed: HalfClosed::Dropped,
        },
    }
}

/// Seven of eight descriptors that the program may have.
fn most_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit.current.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(usize::MAX, |limit| (limit - limit / 8).max(1))
}

/// A server that is about to serve; see [`serve`].
#[must_use = "a server does nothing unless it is awaited"]
pub struct Server<L, S, U> {
    listener: L,
    service: S,
    until: U,
    most: usize,
    drain: Duration,
    limits: Limits,
}

impl<L, S, U> Server<L, S, U> {
    /// Serves until `until` is ready; then accepts no more, lets each connection finish the request that
    /// is in flight, and returns when all have, or after [`drain_for`](Server::drain_for).
    pub fn until<F: Future>(self, until: F) -> Server<L, S, F> {
        Server {
            listener: self.listener,
            service: self.service,
            until,
            most: self.most,
            drain: self.drain,
            limits: self.limits,
        }
    }

    /// How long requests in flight may take after the end was asked for. Default: 10 s.
    pub fn drain_for(mut self, duration: Duration) -> Self {
        self.drain = duration;
        self
    }

    /// How many connections there may be; further ones wait with the system until one ends. Default:
    /// seven of eight descriptors that the program may have.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }

    /// How long a client may take for the head of a request, and before its first. Default: 10 s.
    pub fn header_timeout(mut self, duration: Duration) -> Self {
        self.limits.header = duration;
        self
    }

    /// How long a client may send nothing of a body that the service waits for; at most three times as
    /// long goes unnoticed. It is told (408) if it was not answered yet, and the service's future is dropped.
    /// Default: 30 s.
    ///
    /// The service waits from its poll of the body until more has come, or the body is dropped, or the
    /// service's future is polled without polling the body: a choice or a
    /// [`timeout`](weald_kernel::timeout) that went on to something else ends the wait. Not so for what has
    /// a waker of its own: another job, one of many futures in a `FuturesUnordered`, a wait with the stack
    /// (`.wait()`). When that gives up waiting, it must drop the body, or it is still taken to wait.
    pub fn body_timeout(mut self, duration: Duration) -> Self {
        self.limits.body = duration;
        self
    }

    /// How long a client may be quiet after a response; at most twice as long goes unnoticed. Default:
    /// 75 s.
    pub fn idle_timeout(mut self, duration: Duration) -> Self {
        self.limits.idle = duration;
        self
    }

    /// How long a client may read nothing of what is written to it. Default: 30 s.
    pub fn write_timeout(mut self, duration: Duration) -> Self {
        self.limits.write = duration;
        self
    }

    /// Answers clients that end their direction after a request. A client that is gone is then noticed
    /// only when something is written to it. Without this, whoever ends its direction is taken for gone, and
    /// the service's future is dropped.
    pub fn answer_half_closed(mut self) -> Self {
        self.limits.half_closed = HalfClosed::Answered;
        self
    }

    /// How many bytes hyper may buffer for a connection, in each direction; at least 8192. A request's
    /// head must fit. Default: hyper's, some 400 KiB.
    pub fn max_buffer(mut self, bytes: usize) -> Self {
        self.limits.buffer = Some(bytes.max(8192));
        self
    }
}

/// What an error of `accept` says.
enum Failure {
    /// That connection failed; others may not.
    Connection,
    /// The system lacks something that may come back.
    Exhausted,
    Listener,
}

fn classify(error: &io::Error) -> Failure {
    if is_exhausted(error) {
        return Failure::Exhausted;
    }
    match Errno::from_io_error(error) {
        Some(Errno::BADF | Errno::INVAL | Errno::NOTSOCK | Errno::OPNOTSUPP) => Failure::Listener,
        // Those of the connection itself, and of its network.
        Some(_) => Failure::Connection,
        // The runtime has stopped.
        None => Failure::Listener,
    }
}

impl<L, S, U> IntoFuture for Server<L, S, U>
where
    L: Listen,
    S: Serve,
    U: Future<Output: Send> + Send + 'static,
{
    type Output = Result<Drained, ServeError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(run(self))
    }
}

/// Tells the connections when the server goes, in whichever way.
struct Ending(Arc<Registry>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.drain();
    }
}

async fn run<L, S, U>(server: Server<L, S, U>) -> Result<Drained, ServeError>
where
    L: Listen,
    S: Serve,
    U: Future,
{
    let Server {
        listener,
        service,
        until,
        most,
        drain,
        limits,
    } = server;
    let limits = Arc::new(limits);
    let registry = Arc::new(Registry::default());
    let ending = Ending(registry.clone());
    let mut until = pin!(Kept::new(until));
    let mut was_exhausted = false;
    loop {
        select! {
            _ = of_source(until.as_mut()) => break,
            () = of_future(registry.fewer_than(most)) => {}
        }
        let accepted = select! {
            _ = of_source(until.as_mut()) => break,
            accepted = listener.next() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                was_exhausted = false;
                let activity = Activity::new(peer);
                let entry = registry.enter(&activity);
                let (service, limits) = (service.clone(), limits.clone());
                spawn(Connection::new((stream, service), activity, limits, entry)).detach();
            }
            Err(error) => match classify(&error) {
                Failure::Connection => {
                    tracing::debug!(%error, "a connection failed before it was accepted");
                }
                Failure::Listener => return Err(error.into()),
                Failure::Exhausted => {
                    if !std::mem::replace(&mut was_exhausted, true) {
                        tracing::warn!(
                            %error,
                            "no connection can be accepted; the server pauses until there are \
                             descriptors and memory again"
                        );
                    }
                }
            },
        }
    }
    drop(listener);
    drop(ending);
    select! {
        () = of_future(registry.fewer_than(1)) => {}
        () = after(drain) => {}
    }
    let not_stopped = registry.stop();
    Ok(Drained { not_stopped })
}
