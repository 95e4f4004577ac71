//! One connection: a job that reads requests, gets responses from the service, and ends on its own or by order.
//!
//! A connection that is idle between two requests soon gives up hyper's state and buffers; in a crowd it does so at
//! once. It is then only a socket until the next byte arrives, and costs a few hundred bytes. A new connection starts
//! in this state.

mod ending;
mod limit;
mod streaming;

use std::{
    future::Future,
    mem::MaybeUninit,
    ops::ControlFlow,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hyper::server::conn::http1::UpgradeableConnection;
use weald_net::Transport;

use crate::{
    activity::Activity,
    admitted::Admitted,
    closing::{Closing, Lingers},
    crowd::{self, Member},
    date, description,
    event_body::Placed,
    handler::{Handler, Serve},
    leaving::Remains,
    limits::Limits,
    originals::Originals,
    phase::Phase,
    refusal,
    registry::{ConnectionPermit, Entry},
    service_slot::ServiceSlot,
    tracked_io::TrackedIo,
    unserved::Unserved,
    watchdog::{PhaseId, Watchdog},
    wire::{self, Wire},
};

/// How long a connection may be quiet before it gives up its buffers. Short, so that the next connection can
/// reuse them: few allocators return memory to the system. To allocate them again costs half a microsecond.
const SHED_AFTER: Duration = Duration::from_millis(250);
/// The size of the read that ends a connection's idleness.
const FIRST_READ: usize = 4096;

/// The job of one connection.
pub(crate) struct Connection<T: Transport, S: Serve> {
    stage: Stage<T, S>,
    // The last reference, if the connection ends while it is idle.
    wire: Arc<Wire<T>>,
    remains: Remains<S>,
    activity: Arc<Activity>,
    limits: Arc<Limits>,
    watchdog: Watchdog,
    /// The waker that was last passed to `activity`.
    waker: Option<Waker>,
    entry: Entry,
    originals: Weak<Originals<S>>,
    /// What the client had left unread at the last look that found its direction ended.
    left: Option<u64>,
    /// Whether it has told the registry that it continues although it was ordered to drain.
    has_stayed: bool,
    _member: Member,
}

type Hyper<T, S> = UpgradeableConnection<TrackedIo<T>, Handler<S>>;

enum Stage<T: Transport, S: Serve> {
    /// Only a socket, and the service for the next request.
    Idle {
        service: S,
        permit: ConnectionPermit,
        /// The start of a request that waits for its turn. Empty if there is none.
        first: Box<[u8]>,
    },
    /// Hyper reads requests, calls the service and writes responses.
    Serving(Pin<Box<Hyper<T, S>>>),
    /// The connection itself writes a stream of events.
    Streaming(Streaming<S>),
    /// No more is read, and what was written is sent.
    Closing(Closing),
    /// The connection is over, or is changing its stage.
    Over,
}

/// What a connection has that streams; see `streaming`.
struct Streaming<S: Serve> {
    /// None once all of it was given.
    body: Option<Placed<S::ResponseBody>>,
    service: S,
    permit: ConnectionPermit,
    /// What the client has sent behind its request.
    behind: Box<[u8]>,
}

// The service is only moved, never pinned, and hyper's connection has a `Box` of its own.
impl<T: Transport, S: Serve> Unpin for Connection<T, S> {}

impl<T: Transport, S: Serve> Connection<T, S> {
    /// Without a service the client gets a refusal.
    pub(crate) fn new(
        wire: Arc<Wire<T>>,
        service: Result<S, Unserved>,
        Admitted {
            limits,
            entry,
            permit,
            originals,
        }: Admitted<S>,
    ) -> Connection<T, S> {
        let activity = wire.activity.clone();
        let outlet: Weak<Wire<T>> = Arc::downgrade(&wire);
        activity.set_outlet(outlet);
        let stage = match service {
            Ok(service) => Stage::Idle {
                service,
                permit,
                first: Box::default(),
            },
            Err(unserved) => {
                wire.hold(&refusal::answer(unserved.status(&activity)));
                Stage::Closing(Closing::new(permit, Lingers::Yes))
            }
        };
        Connection {
            stage,
            wire,
            remains: Remains::default(),
            activity,
            limits,
            watchdog: Watchdog::default(),
            waker: None,
            entry,
            originals,
            left: None,
            has_stayed: false,
            _member: Member::new(),
        }
    }

    /// Waits for the first bytes of a request. Breaks when the connection is over, and continues when its stage
    /// has changed.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        if let Stage::Idle { first, .. } = &mut self.stage
            && !first.is_empty()
        {
            let first = std::mem::take(first);
            self.serve(first.into());
            return Poll::Ready(ControlFlow::Continue(()));
        }
        let stream = &self.wire.stream;
        let mut first: Box<[u8]> = Box::default();
        let mut buffer = [const { MaybeUninit::uninit() }; FIRST_READ];
        let take = |bytes: &[u8]| first = bytes.into();
        let mut read = stream.poll_read_with(cx, &mut buffer, take);
        if matches!(read, Poll::Ready(Ok(1..))) && wire::is_blank(&first) {
            // It stays idle, and reads on after others.
            cx.waker().wake_by_ref();
            read = Poll::Pending;
        }
        match read {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(ControlFlow::Break(())),
            Poll::Ready(Ok(_)) if self.must_wait_idle(&first, cx) => {
                self.keep_first(first);
                Poll::Pending
            }
            Poll::Ready(Ok(_)) => {
                self.serve(first.into());
                Poll::Ready(ControlFlow::Continue(()))
            }
            // Only now: a request that has already arrived is answered.
            Poll::Pending if self.activity.is_draining() => match self.wire.arrived::<FIRST_READ>()
            {
                Some(first) if !wire::is_blank(&first) => {
                    self.serve(first);
                    Poll::Ready(ControlFlow::Continue(()))
                }
                _ => Poll::Ready(ControlFlow::Break(())),
            },
            Poll::Pending => {
                let limit = match self.activity.has_served() {
                    true => self.limits.idle,
                    false => self.limits.header,
                };
                let current = self.phase_id(Phase::Quiet);
                let over = self.watchdog.watch(current, limit, cx);
                over.map(|()| ControlFlow::Break(()))
            }
        }
    }

    /// Whether the request that begins with `first` waits in quarantine without buffers: in a crowd there would be too
    /// many.
    fn must_wait_idle(&self, first: &[u8], cx: &mut Context<'_>) -> bool {
        let describe = || {
            if let Some(request) = description::request_line(first) {
                self.activity.foresee(request);
            }
        };
        crowd::is_crowded() && weald_kernel::poll_place_after(cx, describe).is_pending()
    }

    /// Keeps the start of a request until the job has its turn.
    fn keep_first(&mut self, request: Box<[u8]>) {
        if let Stage::Idle { first, .. } = &mut self.stage {
            *first = request;
        }
    }

    /// Gives the socket to hyper, with the bytes that were already read.
    fn serve(&mut self, first: Bytes) {
        let Stage::Idle {
            service, permit, ..
        } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            unreachable!("only an idle connection starts to serve");
        };
        self.activity.set_idle_order(u64::MAX);
        // Hyper still has to find a request in these bytes, even if one was foreseen.
        self.activity.forget_foreseen();
        self.activity.received();
        self.watchdog.forget();
        let io = TrackedIo {
            wire: self.wire.clone(),
            first,
            permit,
        };
        let handler = Handler {
            service: ServiceSlot::new(service),
            activity: self.activity.clone(),
        };
        let builder = self.limits.builder();
        let hyper = builder.serve_connection(io, handler).with_upgrades();
        self.stage = Stage::Serving(Box::pin(hyper));
    }

    /// Takes the socket back from hyper, unless a request is in progress.
    fn shed(&mut self) {
        if !self.activity.is_between_requests() {
            return;
        }
        let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a serving connection sheds");
        };
        // Hyper's connection can be moved out of its pin: it is `Unpin`.
        let hyper = *Pin::into_inner(hyper);
        let Some(parts) = hyper.into_parts() else {
            return;
        };
        let first = left_by_hyper(parts.read_buf, parts.io.first);
        let service = parts.service.service.into_inner();
        let service = service.expect("no request is in progress");
        self.fall_idle(service, parts.io.permit, first);
    }

    /// From now on the connection is only a socket, unless the start of another request arrived with the last one.
    fn fall_idle(&mut self, service: S, permit: ConnectionPermit, first: Bytes) {
        self.stage = Stage::Idle {
            service,
            permit,
            first: Box::default(),
        };
        self.wire.shed();
        self.activity.forget_request();
        self.entry.became_idle();
        self.limits.freed.note();
        self.watchdog.forget();
        if !wire::is_blank(&first) {
            self.serve(first);
        }
    }

    /// Takes the socket back from hyper, if it must not be polled now. Returns whether the stage has changed.
    fn leaves_hyper(&mut self, is_draining: bool) -> bool {
        // In a drain hyper would no longer read a request that may have arrived. In a crowd the request may have to
        // wait, and only a connection that was served before there was one still has buffers.
        let must_shed = is_draining || crowd::is_crowded();
        let sheds = must_shed && self.activity.is_between_requests();
        if sheds {
            self.shed();
        } else if !date::can_be_written() {
            self.refuse_undated();
            return true;
        }
        sheds
    }

    /// Lets hyper serve, and enforces the limits. Breaks when the connection is over, and continues when its
    /// stage has changed.
    fn poll_serving(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        let is_draining = self.activity.is_draining();
        if self.leaves_hyper(is_draining) {
            return Poll::Ready(ControlFlow::Continue(()));
        }
        let Stage::Serving(hyper) = &mut self.stage else {
            return Poll::Ready(ControlFlow::Continue(()));
        };
        // Not before the service has answered what has arrived: the handler makes that answer the last one, unless it
        // is one after which the connection leaves HTTP.
        if is_draining && self.activity.phase() != Phase::Head && self.activity.has_answered() {
            hyper.as_mut().graceful_shutdown();
        }
        let dropped_body = self.activity.dropped_body();
        self.wire.set_holds(true);
        let polled = weald_kernel::catch_panic(|| hyper.as_mut().poll(cx));
        self.wire.set_holds(false);
        let Some(polled) = polled else {
            // Of user code that hyper called. What the client has not got of this answer is lost, and earlier ones are
            // not.
            self.abandon();
            return Poll::Ready(ControlFlow::Continue(()));
        };
        date::note_polled();
        if let Poll::Ready(ended) = polled {
            self.close(ended);
            return Poll::Ready(ControlFlow::Continue(()));
        }
        if let Poll::Ready(Err(error)) = self.wire.poll_send(cx) {
            tracing::debug!(%error, "an HTTP connection could not be written to");
            return Poll::Ready(ControlFlow::Break(()));
        }
        let was_dropped = self.activity.end_dropped_body(dropped_body);
        let has_room = self.activity.must_poll_again();
        if was_dropped || has_room {
            cx.waker().wake_by_ref();
        }
        let may_stay = self.watchdog.is_armed_within(SHED_AFTER) && !crowd::is_crowded();
        if may_stay && self.activity.is_at_rest() {
            // In the most common case the answer was sent, and the rest of this function would do nothing.
            return Poll::Pending;
        }
        let phase = self.activity.phase();
        if self.activity.is_draining() && phase == Phase::Head {
            // No work has started for this request: the client can safely retry it elsewhere.
            self.abandon();
            return Poll::Ready(ControlFlow::Continue(()));
        }
        if phase == Phase::Quiet && crowd::is_crowded() && self.activity.is_between_requests() {
            self.shed();
            return Poll::Ready(ControlFlow::Continue(()));
        }
        if phase == Phase::InFlight {
            return match self.take_stream() {
                true => Poll::Ready(ControlFlow::Continue(())),
                false => self.poll_in_flight(cx),
            };
        }
        let limit = self.serving_limit(phase);
        let current = self.phase_id(phase);
        if self.watchdog.watch(current, limit, cx).is_pending() {
            return Poll::Pending;
        }
        match phase {
            Phase::Quiet if self.activity.is_between_requests() => {
                self.shed();
                Poll::Ready(ControlFlow::Continue(()))
            }
            Phase::Body if self.activity.has_answered() => Poll::Ready(ControlFlow::Break(())),
            Phase::Head | Phase::Body => {
                self.refuse();
                Poll::Ready(ControlFlow::Continue(()))
            }
            _ => Poll::Ready(ControlFlow::Break(())),
        }
    }

    fn record_waker(&mut self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if !self.waker.as_ref().is_some_and(is_known) {
            self.waker = Some(waker.clone());
            self.activity.set_waker(waker.clone());
            self.watchdog.has_another_waker();
        }
    }

    fn phase_id(&self, phase: Phase) -> PhaseId {
        PhaseId {
            phase,
            generation: self.activity.generation(phase),
        }
    }
}

/// What hyper has read and not used: after some requests in a row it yields, so it may have read some bytes and left
/// others.
fn left_by_hyper(read: Bytes, first: Bytes) -> Bytes {
    match (read.is_empty(), first.is_empty()) {
        (_, true) => read,
        (true, false) => first,
        (false, false) => [read, first].concat().into(),
    }
}

impl<T: Transport, S: Serve> Future for Connection<T, S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.record_waker(cx.waker());
        this.watchdog.look(cx);
        loop {
            if this.activity.must_stop() {
                return Poll::Ready(());
            }
            let polled = match &this.stage {
                Stage::Idle { .. } => this.poll_idle(cx),
                Stage::Serving(_) => this.poll_serving(cx),
                Stage::Streaming(_) => this.poll_streaming(cx),
                Stage::Closing(_) => this.poll_closing(cx),
                Stage::Over => return Poll::Ready(()),
            };
            match polled {
                Poll::Ready(ControlFlow::Break(())) => return Poll::Ready(()),
                Poll::Ready(ControlFlow::Continue(())) => {}
                Poll::Pending => {
                    if this.activity.is_draining() && !std::mem::replace(&mut this.has_stayed, true)
                    {
                        this.entry.stays();
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}
