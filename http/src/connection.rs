//! One connection: a job that reads requests, has them answered, and ends by its own or by others' wish.
//!
//! Between two requests, after a moment, a connection gives up hyper's state and buffers, and is only a
//! socket until the next byte comes: an idle connection costs some hundred bytes. A new one begins so.

use std::{
    future::Future,
    mem::MaybeUninit,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use hyper::server::conn::http1::{Builder, UpgradeableConnection};
use weald_net::{Stream, Transport};

use crate::{
    activity::{Activity, Phase},
    handler::{Handler, Serve},
    noted::Noted,
    registry::Entry,
    rt::Io,
    server::{HalfClosed, Limits},
    watchdog::{Lasting, Watchdog},
};

/// How long a connection may be quiet before it gives up its buffers. Short, so that those of one connection
/// serve the next: few allocators give back what was once taken. Making them anew costs half a microsecond.
const SHED_AFTER: Duration = Duration::from_millis(250);
/// How much is read of what ends a connection's idleness.
const FIRST_READ: usize = 4096;
/// What a client is told whose request does not come to an end.
const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

pub(crate) struct Connection<T: Transport, S: Serve> {
    stage: Stage<T, S>,
    activity: Arc<Activity>,
    limits: Arc<Limits>,
    watchdog: Watchdog,
    /// The last one that `activity` was given.
    waker: Option<Waker>,
    _entry: Entry,
}

type Hyper<T, S> = UpgradeableConnection<Noted<T>, Handler<S>>;

enum Stage<T: Transport, S: Serve> {
    /// Only a socket, and the service for what may come.
    Idle { stream: Stream<T>, service: S },
    /// Hyper reads, calls and writes.
    Serving(Pin<Box<Hyper<T, S>>>),
    /// In between, or over.
    Over,
}

// The service is moved, and never pinned; hyper's part has a place of its own.
impl<T: Transport, S: Serve> Unpin for Connection<T, S> {}

impl<T: Transport, S: Serve> Connection<T, S> {
    pub(crate) fn new(
        (stream, service): (Stream<T>, S),
        activity: Arc<Activity>,
        limits: Arc<Limits>,
        entry: Entry,
    ) -> Connection<T, S> {
        Connection {
            stage: Stage::Idle { stream, service },
            activity,
            limits,
            watchdog: Watchdog::default(),
            waker: None,
            _entry: entry,
        }
    }

    /// Waits for the first bytes of a request. Ready if the connection is over; else it serves.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let Stage::Idle { stream, .. } = &self.stage else {
            return Poll::Ready(Ended::No);
        };
        if self.activity.is_draining() {
            return Poll::Ready(Ended::Yes);
        }
        let mut first = Bytes::new();
        let mut place = [const { MaybeUninit::uninit() }; FIRST_READ];
        let take = |bytes: &[u8]| first = Bytes::copy_from_slice(bytes);
        match stream.poll_read_with(cx, &mut place, take) {
            Poll::Ready(Ok(0) | Err(_)) => Poll::Ready(Ended::Yes),
            Poll::Ready(Ok(_)) => {
                self.serve(first);
                Poll::Ready(Ended::No)
            }
            Poll::Pending => {
                let limit = match self.activity.has_served() {
                    true => self.limits.idle,
                    false => self.limits.header,
                };
                let present = self.lasting(Phase::Quiet);
                let over = self.watchdog.watch(present, Some(limit), cx);
                over.map(|()| Ended::Yes)
            }
        }
    }

    /// Gives the socket to hyper, with what was read already.
    fn serve(&mut self, first: Bytes) {
        let Stage::Idle { stream, service } = std::mem::replace(&mut self.stage, Stage::Over)
        else {
            unreachable!("only an idle connection begins to serve");
        };
        self.activity.received();
        self.watchdog.reset();
        let noted = Noted {
            io: Io(stream),
            first,
            activity: self.activity.clone(),
        };
        let handler = Handler {
            service,
            activity: self.activity.clone(),
        };
        let mut builder = Builder::new();
        builder
            .half_close(self.limits.half_closed == HalfClosed::Answered)
            .header_read_timeout(None);
        if let Some(most) = self.limits.buffer {
            builder.max_buf_size(most);
        }
        let hyper = builder.serve_connection(noted, handler).with_upgrades();
        self.stage = Stage::Serving(Box::pin(hyper));
    }

    /// Takes the socket back from hyper, if nothing is under way.
    fn shed(&mut self) {
        if !self.activity.is_between_requests() {
            return;
        }
        let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a serving connection sheds");
        };
        // Hyper's connection may be moved: it is `Unpin`.
        let hyper = *Pin::into_inner(hyper);
        let Some(parts) = hyper.into_parts() else {
            return;
        };
        let first = match parts.io.first.is_empty() {
            true => parts.read_buf,
            false => parts.io.first,
        };
        self.stage = Stage::Idle {
            stream: parts.io.io.0,
            service: parts.service.service,
        };
        self.watchdog.reset();
        if !first.is_empty() {
            // The beginning of another request came with the last one.
            self.serve(first);
        }
    }

    fn poll_serving(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        let Stage::Serving(hyper) = &mut self.stage else {
            return Poll::Ready(Ended::No);
        };
        if self.activity.is_draining() {
            hyper.as_mut().graceful_shutdown();
        }
        if let Poll::Ready(ended) = hyper.as_mut().poll(cx) {
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP connection ended with an error");
            }
            return Poll::Ready(Ended::Yes);
        }
        let phase = self.activity.phase();
        if self.activity.is_draining() && phase == Phase::Head {
            // The client may ask somebody else: nothing was begun for it.
            return Poll::Ready(Ended::Yes);
        }
        let limit = match phase {
            Phase::InFlight => None,
            Phase::Head => Some(self.limits.header),
            Phase::Body => Some(self.limits.body),
            Phase::Blocked => Some(self.limits.write),
            Phase::Quiet if self.activity.is_between_requests() => Some(SHED_AFTER),
            Phase::Quiet => Some(self.limits.idle),
        };
        let present = self.lasting(phase);
        if phase == Phase::InFlight && self.activity.has_body() {
            // Another job may begin to wait for the body, and wakes nobody for that.
            self.watchdog.look_within(present, self.limits.body, cx);
            return Poll::Pending;
        }
        if self.watchdog.watch(present, limit, cx).is_pending() {
            return Poll::Pending;
        }
        match phase {
            Phase::Quiet if self.activity.is_between_requests() => {
                self.shed();
                Poll::Ready(Ended::No)
            }
            Phase::Head => {
                self.refuse();
                Poll::Ready(Ended::Yes)
            }
            Phase::Body => {
                if !self.activity.has_answered() {
                    self.refuse();
                }
                Poll::Ready(Ended::Yes)
            }
            _ => Poll::Ready(Ended::Yes),
        }
    }

    /// Tells a client that its request came too slowly, if it listens.
    fn refuse(&mut self) {
        if let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over)
            && let Some(parts) = Pin::into_inner(hyper).into_parts()
        {
            let _deaf = parts.io.io.0.try_write(TIMED_OUT);
        }
    }

    fn note_waker(&mut self, waker: &Waker) {
        let is_known = |known: &Waker| known.will_wake(waker);
        if !self.waker.as_ref().is_some_and(is_known) {
            self.waker = Some(waker.clone());
            self.activity.set_waker(waker.clone());
        }
    }

    fn lasting(&self, phase: Phase) -> Lasting {
        Lasting {
            phase,
            mark: self.activity.mark(phase),
        }
    }
}

/// Whether a connection is over, or has only changed its stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Yes,
    No,
}

impl<T: Transport, S: Serve> Future for Connection<T, S> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.note_waker(cx.waker());
        this.watchdog.look(cx);
        loop {
            if this.activity.must_stop() {
                return Poll::Ready(());
            }
            let polled = match &this.stage {
                Stage::Idle { .. } => this.poll_idle(cx),
                Stage::Serving(_) => this.poll_serving(cx),
                Stage::Over => return Poll::Ready(()),
            };
            match polled {
                Poll::Ready(Ended::Yes) => return Poll::Ready(()),
                Poll::Ready(Ended::No) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
