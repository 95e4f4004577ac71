//! The job of a connection that was accepted: it gets a clone of the service, and then it serves.
//!
//! The clone is user code, so it is made here and not where connections are accepted: if it blocks, it is reported by
//! the name of this connection, and delays no other one while another instance is left. If none is left, a connection
//! waits for one as long as its client may take to send the head of a request.
//!
//! When clones have blocked or computed a moment ago, the next ones run in quarantine. Only a connection that has an
//! instance waits there: nobody polls it meanwhile, so no limit and no order would end it. The others wait on a worker.

use std::{
    future::Future,
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

use weald_kernel::Sleep;
use weald_net::Transport;

use crate::{
    admitted::Admitted,
    connection::Connection,
    handler::Serve,
    limits::LOOK,
    originals::{Lent, Originals, Turn},
    phase::Phase,
    unserved::Unserved,
    wire::{Departure, Wire},
};

/// The job of one connection.
pub(crate) struct Accepted<T: Transport, S: Serve>(State<T, S>);

enum State<T: Transport, S: Serve> {
    /// Until it has its clone.
    Opening(Opening<T, S>),
    Serving(Connection<T, S>),
    /// While it changes from one to the other.
    Between,
}

/// A connection without a service.
pub(crate) struct Opening<T: Transport, S: Serve> {
    wire: Arc<Wire<T>>,
    // These before the entry, which ends the connection for the server.
    /// The instance that it clones.
    lent: Option<Lent<S>>,
    turn: Option<Turn<S>>,
    originals: Arc<Originals<S>>,
    admitted: Admitted<S>,
    watch: Option<Watch>,
}

/// What happens to a connection that waits for an instance of the service.
struct Watch {
    since: Instant,
    next_look: Sleep,
}

// As the connection.
impl<T: Transport, S: Serve> Unpin for Accepted<T, S> {}

impl<T: Transport, S: Serve> Accepted<T, S> {
    pub(crate) fn new(
        wire: Wire<T>,
        admitted: Admitted<S>,
        originals: Arc<Originals<S>>,
    ) -> Accepted<T, S> {
        Accepted(State::Opening(Opening {
            wire: Arc::new(wire),
            admitted,
            originals,
            lent: None,
            turn: None,
            watch: None,
        }))
    }
}

impl<T: Transport, S: Serve> Opening<T, S> {
    /// Ready when the connection has its clone, or will get none. Breaks when the connection is over.
    fn poll_clone(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<(), Result<S, Unserved>>> {
        if self.lent.is_none() {
            match self.originals.poll_take(&mut self.turn, cx) {
                Poll::Ready(lent) => {
                    self.lent = Some(lent);
                    self.admitted.entry.opens();
                }
                // First the waker and then the look, so that an order is seen or wakes this job.
                Poll::Pending => self.wire.activity.set_waker(cx.waker().clone()),
            }
        }
        if self.must_go() {
            return Poll::Ready(ControlFlow::Break(()));
        }
        if self.lent.is_none() {
            return self.poll_watch(cx);
        }
        ready!(weald_kernel::poll_place(cx));
        let service = self.lent.take().and_then(Lent::make_clone);
        Poll::Ready(ControlFlow::Continue(service.ok_or(Unserved::Panicked)))
    }

    /// Whether an order ends the connection. As one with a clone, it does not leave a request that has arrived; if it
    /// waits, another one must make room in its place.
    fn must_go(&self) -> bool {
        let activity = &self.wire.activity;
        if activity.must_stop() || !activity.is_draining() {
            return activity.must_stop();
        }
        if !self.wire.has_arrived() {
            return true;
        }
        if activity.is_waiting() && activity.phase() != Phase::Head {
            activity.received();
            self.admitted.entry.stays();
        }
        false
    }

    /// Ready when the connection has waited for too long, or its client is gone.
    fn poll_watch(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<(), Result<S, Unserved>>> {
        let most = self.admitted.limits.header;
        loop {
            let watch = self.watch.get_or_insert_with(|| Watch {
                since: weald_kernel::now(),
                next_look: weald_kernel::sleep(LOOK.min(most)),
            });
            ready!(Pin::new(&mut watch.next_look).poll(cx));
            let left = most.saturating_sub(weald_kernel::now() - watch.since);
            watch.next_look = weald_kernel::sleep(LOOK.min(left));
            if self.wire.departure(self.admitted.limits.half_closed) != Departure::No {
                return Poll::Ready(ControlFlow::Break(()));
            }
            if left.is_zero() {
                return Poll::Ready(match self.wire.has_arrived() {
                    true => ControlFlow::Continue(Err(Unserved::TooLate)),
                    false => ControlFlow::Break(()),
                });
            }
        }
    }

    fn into_connection(self, service: Result<S, Unserved>) -> Connection<T, S> {
        let Opening {
            wire,
            admitted,
            originals,
            turn,
            ..
        } = self;
        // If the server has ended, these have the last instances. While the connection is opening, a destructor that
        // blocks is none of a request's, and keeps nobody from making room.
        let _dropped = weald_kernel::catch_panic(|| drop((turn, originals)));
        wire.activity.end_opening();
        admitted.entry.became_idle();
        Connection::new(wire, service, admitted)
    }
}

impl<T: Transport, S: Serve> Future for Accepted<T, S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        if let State::Opening(opening) = &mut this.0 {
            let ControlFlow::Continue(service) = ready!(opening.poll_clone(cx)) else {
                return Poll::Ready(());
            };
            if let State::Opening(opening) = std::mem::replace(&mut this.0, State::Between) {
                this.0 = State::Serving(opening.into_connection(service));
            }
        }
        match &mut this.0 {
            State::Serving(connection) => Pin::new(connection).poll(cx),
            State::Opening(_) | State::Between => unreachable!("it serves"),
        }
    }
}
