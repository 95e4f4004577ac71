//! The server: accepts connections, spawns a job for each, and shuts down in an orderly way.
//!
//! Steps:
//! 1. Accept, or notice that the server must end. When no descriptor is left, report that once, until it has been
//!    otherwise for a while, close the connection that is idle longest, and continue: the listener pauses.
//! 2. At the limit of connections, close the one that is idle longest, and wait until there is room.
//! 3. Spawn the connection's job.
//! 4. At the end: let in what the system has queued, accept no more, order all connections to finish, wait for them
//!    until the deadline, stop the rest, and report what they were doing.

use std::{
    future::{Future, IntoFuture, Pending, pending},
    panic::Location,
    pin::{Pin, pin},
    sync::Arc,
    time::{Duration, Instant},
};

use weald_sync::{Kept, after, at, of_future, of_source, select};

use crate::{
    accept_failures::{AcceptFailures, PAUSE, Remedy},
    ended::{Drained, ServeError},
    entrance::Entrance,
    freed::Freed,
    handler::Serve,
    known_routes::KnownRoutes,
    limits::{HalfClosed, Limits},
    listen::Listen,
    originals::Originals,
    rate::MinRate,
    registry::Registry,
};

/// Serves HTTP/1 to clients of `listener`. Each request is passed to a clone of `service`, which is any tower service,
/// for example an axum router (the router itself, without `into_make_service`). Await the server to run it; without
/// [`until`](Server::until) it serves until it is dropped.
///
/// Each connection is a job, which clones the service once for itself and once for each request. A clone that blocks
/// delays only its own connection, because another instance is left. But until the first clone has ended there is no
/// other instance; nor is there one while as many clones block as there are instances, until an idle connection ends.
/// Connections that come meanwhile wait as long as a client may take to send a head, and are then answered with 503,
/// which is reported. When clones block or compute again and again, the next ones are made in quarantine, and one that
/// has to wait for a thread there has no such limit, as a request has none; those that wait for an instance have. The
/// clone for a request counts as a part of it, so one that blocks or computes makes its route suspect.
///
/// If the service panics or fails before it has responded, its client gets a 500, and the connection continues. If it
/// does so later, the connection ends. A client that speaks HTTP/1.0 gets a reset at any end before that of the body,
/// such as one by a time limit, because it would take a normal end for the end of the body; a Unix socket has no reset.
///
/// Reports about a request, for example one that blocks, name its method, path and client, the type of the service, and
/// the call of this function. When requests of one route (as far as their paths tell the route) block or compute for
/// long, further requests of that route run on threads of their own for a while, so that they delay no other request.
///
/// A request is refused before the service sees it if its `Host` is missing, double or malformed, its transfer coding
/// is not `chunked`, or its target is `*` and its method is not OPTIONS. Requests that hyper cannot parse are refused,
/// too; to one that begins HTTP/2 the end of the connection is the answer. If the target is an absolute URI, its
/// authority replaces the `Host`, as RFC 9112 demands.
///
/// The answers to requests that a client sends without waiting leave together, when the service is about to wait for
/// something, or has blocked or computed for too long. A connection that closes while its client may still send, as
/// after a refusal, reads on for up to 30 s, so that the client finds the answer and not a reset; the server does not
/// wait for it.
///
/// The service's future is dropped when its client is gone; after up to four seconds if the client has sent more than
/// its request, or nobody reads the body (not even another job, which may pause for two seconds). While the service
/// waits with its stack (`.wait()`), blocks or computes, its connection stands still, and notices nothing before that
/// ends. Dropping the server's future closes the listener and lets each connection finish the request that is in
/// flight. An upgraded connection belongs to the code that took it over, and the server does not wait for it.
#[track_caller]
pub fn serve<L: Listen, S: Serve>(listener: L, service: S) -> Server<L, S, Pending<()>> {
    Server {
        listener,
        service,
        until: pending(),
        most: most_connections(),
        drain: Duration::from_secs(10),
        site: Location::caller(),
        limits: Limits {
            header: Duration::from_secs(10),
            body: Duration::from_secs(30),
            idle: Duration::from_secs(75),
            write: Duration::from_secs(30),
            body_rate: MinRate::DEFAULT,
            write_rate: MinRate::DEFAULT,
            buffer: None,
            half_closed: HalfClosed::Dropped,
            freed: Freed::new(None),
        },
    }
}

/// Seven eighths of the program's descriptor limit.
fn most_connections() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limit = limit.current.and_then(|limit| usize::try_from(limit).ok());
    limit.map_or(usize::MAX, |limit| (limit - limit / 8).max(1))
}

/// A server that has not started yet; see [`serve`].
#[must_use = "a server does nothing unless it is awaited"]
pub struct Server<L, S, U> {
    listener: L,
    service: S,
    until: U,
    most: usize,
    drain: Duration,
    /// Where it was made.
    site: &'static Location<'static>,
    limits: Limits,
}

impl<L, S, U> Server<L, S, U> {
    /// Serves until `until` is ready. Then the server accepts what the system has queued by then, as far as half of the
    /// time of [`drain_for`](Server::drain_for) allows, closes the listener, lets each connection finish the request
    /// that is in flight or has arrived, and returns when all have, or when that time is over. At the limit of
    /// connections, what is queued is closed with the listener. A socket that other processes accept from, too, has one
    /// queue for all of them, and what this server takes from it at its end and finds without a request is closed: give
    /// it a listener of your own ([`Listen`]) whose [`next_queued`](Listen::next_queued) has none. [`serve`] says what
    /// dropping the server's future does.
    pub fn until<F: Future>(self, until: F) -> Server<L, S, F> {
        Server {
            listener: self.listener,
            service: self.service,
            until,
            most: self.most,
            drain: self.drain,
            site: self.site,
            limits: self.limits,
        }
    }

    /// How long requests in flight may take once the server has begun to shut down. About half of it at most goes to
    /// those that the system has queued. Default: 10 s.
    pub fn drain_for(mut self, duration: Duration) -> Self {
        self.drain = duration;
        self
    }

    /// How many connections there may be at once, upgraded ones included. At the limit, and when the program has no
    /// descriptor left, the connection that has been idle longest is closed for each new one. Its clone of the service
    /// is dropped afterwards, outside of this limit: destructors that block do not keep new clients waiting, and their
    /// number has no bound. While all are busy, one more is accepted and waits, and others wait in the system's queue.
    /// That is reported after a second, and again only after a client has found room sooner. Default: seven eighths of
    /// the program's descriptor limit.
    pub fn max_connections(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }

    /// How long a client may take to send the head of a request, and to start its first request; also how long a new
    /// connection waits for an instance of the service while every clone is still being made. Default: 10 s.
    pub fn header_timeout(mut self, duration: Duration) -> Self {
        self.limits.header = duration;
        self
    }

    /// How long a client may send nothing of a body that the service waits for; the server notices that after three
    /// times as long at the latest. The client gets a 408 if the service has not responded yet, and the service's
    /// future is dropped. Default: 30 s. A client that sends something must also keep to
    /// [`min_body_rate`](Server::min_body_rate), whose default ends a body earlier, when nothing of it has arrived for
    /// 10 s.
    ///
    /// The service waits from its poll of the body until more arrives, or the body is dropped, or the service's
    /// future is polled without polling the body: a choice or a [`timeout`](weald_kernel::timeout) that moved
    /// on to something else ends the wait. This last rule does not hold for readers that have a waker of their
    /// own: another job, a future in a `FuturesUnordered`, a wait with the stack (`.wait()`). When such a reader
    /// gives up, it must drop the body, or it still counts as waiting.
    pub fn body_timeout(mut self, duration: Duration) -> Self {
        self.limits.body = duration;
        self
    }

    /// The least rate at which a client must send a body that the service waits for, on average; see
    /// [`body_timeout`](Server::body_timeout) for what counts as waiting, and for what happens to a client that is too
    /// slow. If something else than the service's own future reads the body, the server notices a slow client up to the
    /// grace period later. Default: 240 bytes a second after 10 s, so a body of a few bytes must arrive within some 10
    /// s.
    pub fn min_body_rate(mut self, rate: MinRate) -> Self {
        self.limits.body_rate = rate;
        self
    }

    /// The least rate at which a client must read a response, on average over the time in which it makes the server
    /// wait because the system's buffers are full. If the client is slower, its connection is closed. A service that
    /// writes slowly, such as one that streams events, does not wait for its client, and is not limited. Default: 240
    /// bytes a second after 10 s.
    pub fn min_write_rate(mut self, rate: MinRate) -> Self {
        self.limits.write_rate = rate;
        self
    }

    /// How long a client may be quiet after a response; the server notices that after twice as long at the
    /// latest. Default: 75 s.
    pub fn idle_timeout(mut self, duration: Duration) -> Self {
        self.limits.idle = duration;
        self
    }

    /// How long a client may read nothing of what was written to it, while the server waits to write more. If it has
    /// read something meanwhile, the server notices after twice as long at the latest. A client that reads must also
    /// keep to [`min_write_rate`](Server::min_write_rate), whose default ends a client that reads nothing after 10 s.
    /// Default: 30 s.
    pub fn write_timeout(mut self, duration: Duration) -> Self {
        self.limits.write = duration;
        self
    }

    /// Answers clients that shut down their direction after a request. A client that is gone is then noticed when it
    /// has reset the connection or, of a Unix socket, closed it, and otherwise only when the server writes to it.
    /// Without this setting, a client that shuts down its direction is taken to be gone, and the service's future is
    /// dropped. If the end comes with the request, as from `printf … | nc -N`, that is often before the future's first
    /// poll.
    pub fn answer_half_closed(mut self) -> Self {
        self.limits.half_closed = HalfClosed::Answered;
        self
    }

    /// Calls `told` when at least a thousand connections have fallen idle since the last call and have given back their
    /// buffers (some ten kilobytes each), and a quarter of a second has passed in which hardly any followed. Most
    /// allocators keep such memory, so this is the moment to make them return it to the system: `mi_collect` of
    /// mimalloc, `malloc_trim` of glibc. `told` runs in a job of its own, on a thread that serves connections; it may
    /// take its time, and a panic of it is reported as that of any job.
    ///
    /// ```
    /// # fn example<S: weald::http::Serve>(listener: weald::net::TcpListener, router: S) -> impl Sized {
    /// weald::http::serve(listener, router).on_buffers_freed(|| {
    ///     // Make the allocator return its pages.
    /// })
    /// # }
    /// ```
    pub fn on_buffers_freed(mut self, told: impl Fn() + Send + Sync + 'static) -> Self {
        self.limits.freed = Freed::new(Some(Arc::new(told)));
        self
    }

    /// How many bytes hyper may buffer for a connection, in each direction; at least 8192. The head of a request
    /// must fit. Default: hyper's, some 400 KiB.
    pub fn max_buffer(mut self, bytes: usize) -> Self {
        self.limits.buffer = Some(bytes.max(8192));
        self
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

/// How long a client waits while all connections are busy before that is reported.
const TOLD_AFTER: Duration = Duration::from_secs(1);

/// Orders all connections to drain when the server ends, or when its future is dropped.
struct DrainOnDrop(Arc<Registry>);

impl Drop for DrainOnDrop {
    fn drop(&mut self) {
        self.0.drain();
    }
}

/// Waits until fewer than `most` permits are held. Reports that a client waits, if it does for long, unless the last
/// one did, too. Returns whether it did.
async fn room(registry: &Registry, most: usize, was_full: bool) -> bool {
    let room = of_future(registry.room_below(most));
    let is_full = select! {
        () = room => false,
        () = after(TOLD_AFTER) => true,
    };
    if is_full {
        if !was_full {
            weald_kernel::report_failure(|| registry.tell_full(most));
        }
        registry.room_below(most).await;
    }
    is_full
}

/// Waits until there is no connection, or for the deadline, if there is one.
async fn until_empty(registry: &Registry, deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => select! {
            () = of_future(registry.empty()) => {}
            () = at(deadline) => {}
        },
        None => registry.empty().await,
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
        site,
        limits,
    } = server;
    let registry = Arc::new(Registry::default());
    let entrance = Entrance {
        limits: Arc::new(limits),
        originals: Originals::new(service),
        registry: registry.clone(),
        known_routes: Arc::new(KnownRoutes::default()),
        site,
    };
    let drain_on_drop = DrainOnDrop(registry.clone());
    // Bound after the guard and so dropped before it: a client whose idle connection was closed by
    // the drain finds the listener closed too.
    let listener = listener;
    let mut until = pin!(Kept::new(until));
    let (mut failures, mut was_full) = (AcceptFailures::default(), false);
    loop {
        let accepted = select! {
            _ = of_source(until.as_mut()) => break,
            accepted = listener.next() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                failures.accepted();
                let has_ended = select! {
                    _ = of_source(until.as_mut()) => true,
                    is_full = of_future(room(&registry, most, was_full)) => {
                        was_full = is_full;
                        false
                    }
                };
                // Also if the end came first: this one was taken out of the queue.
                entrance.admit(stream, peer);
                if has_ended {
                    break;
                }
            }
            Err(error) => match failures.remedy(&error) {
                Remedy::GoOn => {}
                Remedy::Pause => select! {
                    _ = of_source(until.as_mut()) => break,
                    () = after(PAUSE) => {}
                },
                Remedy::MakeRoom => registry.evict(),
                Remedy::End => return Err(error.into()),
            },
        }
    }
    let now = weald_kernel::now();
    // Otherwise the requests of a crowd that goes on coming would all be answered first, and then no connection would
    // have a turn in which it could end.
    let half = now.checked_add(drain / 2);
    entrance.admit_queued(&listener, most, half).await;
    drop(listener);
    drop(drain_on_drop);
    // With one worker, and if the server runs in a job, connections without a request have a turn now, in which they
    // end, also if the queue has used up all of the time.
    weald_kernel::yield_now().await;
    until_empty(&registry, now.checked_add(drain)).await;
    let not_stopped = registry.stop();
    Ok(Drained { not_stopped })
}
