//! One connection: a job that reads requests, gets responses from the service, and ends on its own or by order.
//!
//! A connection that is idle between two requests soon gives up hyper's state and buffers, and in a crowd at once. It
//! is then only a socket until the next byte arrives, and costs a few hundred bytes. A new connection starts in this
//! state.

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
use weald_net::{Stream, Transport};

use crate::{
    activity::Activity,
    closing::{Closing, LINGER, Lingers},
    crowd::{self, Member},
    description,
    handler::{Handler, Serve},
    limits::Limits,
    phase::Phase,
    refusal,
    registry::{Entry, Place},
    tracked_io::TrackedIo,
    watchdog::{PhaseId, Watchdog},
    wire::Wire,
};

/// How long a connection may be quiet before it gives up its buffers. Short, so that the next connection can
/// reuse them: few allocators return memory to the system. To allocate them again costs half a microsecond.
const SHED_AFTER: Duration = Duration::from_millis(250);
/// The size of the read that ends a connection's idleness.
const FIRST_READ: usize = 4096;
/// The response to a request that does not arrive completely in time.
const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
/// The response of a service that cannot be cloned.
const FAILED: &[u8] =
    b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The job of one connection.
pub(crate) struct Connection<T: Transport, S: Serve> {
    stage: Stage<T, S>,
    wire: Arc<Wire<T>>,
    activity: Arc<Activity>,
    limits: Arc<Limits>,
    watchdog: Watchdog,
    /// The waker that was last passed to `activity`.
    waker: Option<Waker>,
    entry: Entry,
    /// Whether it has said that it goes on although it was ordered to drain.
    has_stayed: bool,
    _member: Member,
}

type Hyper<T, S> = UpgradeableConnection<TrackedIo<T>, Handler<S>>;

enum Stage<T: Transport, S: Serve> {
    /// Only a socket, and the service for the next request.
    Idle {
        service: S,
        place: Place,
        /// The start of a request that waits for its turn. Empty if there is none.
        first: Box<[u8]>,
    },
    /// Hyper reads requests, calls the service and writes responses.
    Serving(Pin<Box<Hyper<T, S>>>),
    /// No more is read, and what was written is sent.
    Closing(Closing),
    /// The connection is over, or is changing its stage.
    Over,
}

// The service is only moved, never pinned, and hyper's connection has a `Box` of its own.
impl<T: Transport, S: Serve> Unpin for Connection<T, S> {}

impl<T: Transport, S: Serve> Connection<T, S> {
    /// Without a service, because it panicked when it was cloned, the client gets a 500.
    pub(crate) fn new(
        (stream, service): (Stream<T>, Option<S>),
        activity: Arc<Activity>,
        limits: Arc<Limits>,
        (entry, place): (Entry, Place),
    ) -> Connection<T, S> {
        let wire = Arc::new(Wire::new(stream, activity.clone()));
        let outlet: Weak<Wire<T>> = Arc::downgrade(&wire);
        activity.set_outlet(outlet);
        let stage = match service {
            Some(service) => Stage::Idle {
                service,
                place,
                first: Box::default(),
            },
            None => {
                wire.hold(FAILED);
                Stage::Closing(Closing::new(place, Lingers::Yes))
            }
        };
        Connection {
            stage,
            wire,
            activity,
            limits,
            watchdog: Watchdog::default(),
            waker: None,
            entry,
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
        match stream.poll_read_with(cx, &mut buffer, take) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(ControlFlow::Break(())),
            Poll::Ready(Ok(_)) if self.must_stand(&first, cx) => {
                self.stand(first);
                Poll::Pending
            }
            Poll::Ready(Ok(_)) => {
                self.serve(first.into());
                Poll::Ready(ControlFlow::Continue(()))
            }
            // Only now: a request that has already arrived is answered.
            Poll::Pending if self.activity.is_draining() => match self.wire.arrived::<FIRST_READ>()
            {
                Some(first) => {
                    self.serve(first);
                    Poll::Ready(ControlFlow::Continue(()))
                }
                None => Poll::Ready(ControlFlow::Break(())),
            },
            Poll::Pending => {
                let limit = match self.activity.has_served() {
                    true => self.limits.idle,
                    false => self.limits.header,
                };
                let current = self.phase_id(Phase::Quiet);
                let over = self.watchdog.watch(current, Some(limit), cx);
                over.map(|()| ControlFlow::Break(()))
            }
        }
    }

    /// Whether the request that begins with `first` waits for its turn in quarantine without buffers: in a crowd they
    /// would be too many.
    fn must_stand(&self, first: &[u8], cx: &mut Context<'_>) -> bool {
        let describe = || {
            if let Some(request) = description::request_line(first) {
                self.activity.foresee(request);
            }
        };
        crowd::is_crowded() && weald_kernel::poll_place_after(cx, describe).is_pending()
    }

    /// Keeps the start of a request until the job has its turn.
    fn stand(&mut self, request: Box<[u8]>) {
        if let Stage::Idle { first, .. } = &mut self.stage {
            *first = request;
        }
    }

    /// Gives the socket to hyper, with the bytes that were already read.
    fn serve(&mut self, first: Bytes) {
        let Stage::Idle { service, place, .. } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            unreachable!("only an idle connection starts to serve");
        };
        self.activity.set_idle_order(u64::MAX);
        // Hyper has yet to find a request in these bytes, whether or not one was foreseen.
        self.activity.forget_foreseen();
        self.activity.received();
        self.watchdog.forget();
        let io = TrackedIo {
            wire: self.wire.clone(),
            first,
            place,
        };
        let handler = Handler {
            service,
            activity: self.activity.clone(),
        };
        let hyper = self
            .limits
            .builder()
            .serve_connection(io, handler)
            .with_upgrades();
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
        // After some requests in a row hyper gives way, so there may be bytes that it has read and others that it has not.
        let first = match (parts.read_buf.is_empty(), parts.io.first.is_empty()) {
            (_, true) => parts.read_buf,
            (true, false) => parts.io.first,
            (false, false) => [parts.read_buf, parts.io.first].concat().into(),
        };
        self.stage = Stage::Idle {
            service: parts.service.service,
            place: parts.io.place,
            first: Box::default(),
        };
        self.wire.shed();
        self.activity.forget_request();
        self.entry.became_idle();
        self.limits.freed.note();
        self.watchdog.forget();
        if !first.is_empty() {
            // The start of another request arrived with the last one.
            self.serve(first);
        }
    }

    /// Lets hyper serve, and enforces the limits. Breaks when the connection is over, and continues when its
    /// stage has changed.
    fn poll_serving(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        let Stage::Serving(hyper) = &mut self.stage else {
            return Poll::Ready(ControlFlow::Continue(()));
        };
        if self.activity.is_draining() {
            if self.activity.is_between_requests() {
                // A request may have arrived that hyper would not read any longer.
                self.shed();
                return Poll::Ready(ControlFlow::Continue(()));
            }
            // Not before hyper has read what has arrived: it would close without an answer. The handler makes that one
            // the last.
            if self.activity.phase() != Phase::Head {
                hyper.as_mut().graceful_shutdown();
            }
        }
        let dropped_body = self.activity.dropped_body();
        self.wire.set_holds(true);
        let polled = hyper.as_mut().poll(cx);
        self.wire.set_holds(false);
        if let Poll::Ready(ended) = polled {
            self.close(ended);
            return Poll::Ready(ControlFlow::Continue(()));
        }
        if let Poll::Ready(Err(error)) = self.wire.poll_send(cx) {
            tracing::debug!(%error, "an HTTP connection could not be written to");
            return Poll::Ready(ControlFlow::Break(()));
        }
        if self.activity.end_dropped_body(dropped_body) | self.activity.must_poll_again() {
            cx.waker().wake_by_ref();
        }
        let may_stay = self.watchdog.is_armed_within(SHED_AFTER) && !crowd::is_crowded();
        if may_stay && self.activity.is_at_rest() {
            // The most common case: the answer was sent. The rest of this function would do nothing.
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
        let limit = self.serving_limit(phase);
        let current = self.phase_id(phase);
        if phase == Phase::InFlight && self.activity.has_body() {
            // Another job may start to wait for the body, and that does not wake this job.
            let within = self.limits.body_rate.first_limit().min(self.limits.body);
            self.watchdog.look_within(current, within, cx);
            return Poll::Pending;
        }
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

    /// How long `phase` may last, in which the connection is.
    fn serving_limit(&self, phase: Phase) -> Option<Duration> {
        let (limits, activity) = (&self.limits, &self.activity);
        match phase {
            Phase::InFlight => None,
            Phase::Head => Some(limits.header),
            Phase::Body => Some(limits.body.min(activity.body_left(limits.body_rate))),
            Phase::Blocked => Some(limits.write.min(activity.write_left(limits.write_rate))),
            Phase::Quiet if activity.is_between_requests() => Some(SHED_AFTER),
            Phase::Quiet => Some(limits.idle),
            Phase::Lingering => unreachable!("hyper serves"),
        }
    }

    /// Responds with 408.
    fn refuse(&mut self) {
        self.abandon();
        if let Stage::Closing(_) = &self.stage {
            self.wire.hold(TIMED_OUT);
        }
    }

    /// Ends without a response to the request that has begun to arrive. Its client may be about to send the rest.
    fn abandon(&mut self) {
        if let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over)
            && let Some(parts) = Pin::into_inner(hyper).into_parts()
        {
            self.stage = Stage::Closing(Closing::new(parts.io.place, Lingers::Yes));
        }
    }

    /// Hyper has ended.
    fn close(&mut self, ended: hyper::Result<()>) {
        let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a serving connection ends");
        };
        let closing = match Pin::into_inner(hyper).into_parts() {
            None => Closing::of_upgraded(),
            Some(parts) => {
                let is_refused = ended.as_ref().is_err_and(hyper::Error::is_parse);
                if is_refused && refusal::has_unknown_version(&parts.read_buf) {
                    let [refusal, better] = refusal::UNKNOWN_VERSION;
                    self.wire.replace_held(refusal, better);
                }
                let has_more = !parts.read_buf.is_empty() || !parts.io.first.is_empty();
                let lingers = match is_refused || has_more || self.activity.awaits_body() {
                    true => Lingers::Yes,
                    false => Lingers::IfUnread,
                };
                Closing::new(parts.io.place, lingers)
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection ended with an error");
        }
        self.stage = Stage::Closing(closing);
    }

    /// Sends what is left, and waits until the client has noticed the end.
    fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        let Stage::Closing(closing) = &mut self.stage else {
            return Poll::Ready(ControlFlow::Continue(()));
        };
        if closing.poll(&self.wire, &self.entry, cx).is_ready() {
            return Poll::Ready(ControlFlow::Break(()));
        }
        let phase = self.activity.phase();
        let limit = match phase {
            Phase::Lingering => LINGER,
            _ => self
                .limits
                .write
                .min(self.activity.write_left(self.limits.write_rate)),
        };
        let current = self.phase_id(phase);
        let over = self.watchdog.watch(current, Some(limit), cx);
        over.map(|()| ControlFlow::Break(()))
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

impl<T: Transport, S: Serve> Drop for Connection<T, S> {
    fn drop(&mut self) {
        self.wire.leave();
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
