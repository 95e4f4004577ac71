//! How a connection ends: with or without the answer to its last request, and with what becomes of its service.

use std::{
    ops::ControlFlow,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use weald_net::Transport;

use super::{Connection, Hyper, Stage, Streaming};
use crate::{
    closing::{self, Closing, Lingers},
    handler::Serve,
    leaving::{LeavingService, Remains},
    phase::Phase,
    refusal,
    registry::ConnectionPermit,
};

impl<T: Transport, S: Serve> Connection<T, S> {
    /// Responds with 408.
    pub(super) fn refuse(&mut self) {
        self.abandon();
        self.wire.hold(&refusal::answer(refusal::TIMED_OUT));
    }

    /// Responds with 503, because hyper cannot date an answer here; see [`date`](crate::date). An answer that has begun
    /// breaks off.
    #[cold]
    pub(super) fn refuse_undated(&mut self) {
        let must_answer = match self.activity.phase() {
            Phase::Head => true,
            Phase::Quiet => self.wire.has_arrived(),
            _ => !self.activity.has_answered(),
        };
        self.abandon();
        if must_answer {
            self.wire.hold(&refusal::answer(refusal::UNAVAILABLE));
        }
    }

    /// Ends without a response to the request that has begun to arrive, or without the rest of one. The client may be
    /// about to send the rest of its request.
    pub(super) fn abandon(&mut self) {
        let permit = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Serving(hyper) => self.end_hyper(hyper),
            Stage::Streaming(streaming) => Some(self.leave_stream(streaming)),
            _ => unreachable!("only a serving connection abandons a request"),
        };
        if !self.activity.must_reset() {
            let permit = permit.unwrap_or_else(|| self.entry.permit());
            self.stage = Stage::Closing(Closing::new(permit, Lingers::Yes));
        }
    }

    /// Drops what user code has given hyper, while its request is in flight, and gives the service back. Returns the
    /// permit, unless somebody has taken the socket over, or a destructor has panicked.
    fn end_hyper(&self, hyper: Pin<Box<Hyper<T, S>>>) -> Option<ConnectionPermit> {
        self.wire.forget_refused();
        let parts = weald_kernel::catch_panic(|| Pin::into_inner(hyper).into_parts()).flatten()?;
        self.leave(parts.service.service.into_inner());
        Some(parts.io.permit)
    }

    /// Drops the body of a stream, while its request is in flight, and gives the service back.
    fn leave_stream(&self, streaming: Streaming<S>) -> ConnectionPermit {
        drop(streaming.body);
        self.leave(Some(streaming.service));
        streaming.permit
    }

    /// A stream ends before its last chunk: its client is gone, or its body has failed.
    pub(super) fn break_stream(&mut self) {
        let Stage::Streaming(streaming) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a stream breaks off");
        };
        let lingers = match streaming.behind.is_empty() {
            true => Lingers::IfUnread,
            false => Lingers::Yes,
        };
        let permit = self.leave_stream(streaming);
        self.stage = Stage::Closing(Closing::new(permit, lingers));
    }

    /// Hyper has ended.
    pub(super) fn close(&mut self, ended: hyper::Result<()>) {
        let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a serving connection ends");
        };
        self.wire.forget_refused();
        if ended.is_err() && self.activity.must_reset() {
            return;
        }
        let closing = match Pin::into_inner(hyper).into_parts() {
            None if Arc::strong_count(&self.wire) > 1 => Closing::of_upgraded(),
            // A request asked for another protocol, and nobody has taken the connection over.
            None => Closing::new(self.entry.permit(), Lingers::Yes),
            Some(parts) => {
                let is_refused = ended.as_ref().is_err_and(hyper::Error::is_parse);
                if is_refused && refusal::has_unknown_version(&parts.read_buf) {
                    let [refusal, better] = refusal::UNKNOWN_VERSION;
                    self.wire.replace_held(refusal, better);
                }
                self.leave(parts.service.service.into_inner());
                let has_more = !parts.read_buf.is_empty() || !parts.io.first.is_empty();
                let lingers = match is_refused || has_more || self.activity.awaits_body() {
                    true => Lingers::Yes,
                    false => Lingers::IfUnread,
                };
                Closing::new(parts.io.permit, lingers)
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "an HTTP connection ended with an error");
        }
        self.stage = Stage::Closing(closing);
    }

    /// Sends what is left, and waits until the client has noticed the end.
    pub(super) fn poll_closing(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        let Stage::Closing(closing) = &mut self.stage else {
            return Poll::Ready(ControlFlow::Continue(()));
        };
        if closing.poll(&self.wire, &self.entry, cx).is_ready() {
            return Poll::Ready(ControlFlow::Break(()));
        }
        let phase = self.activity.phase();
        let limit = self.closing_limit(phase);
        let current = self.phase_id(phase);
        let over = self.watchdog.watch(current, limit, cx);
        over.map(|()| ControlFlow::Break(()))
    }

    /// The connection still holds its permit.
    fn leave(&self, service: Option<S>) {
        self.entry.ends();
        drop(self.leaving(service));
    }

    fn leaving(&self, service: Option<S>) -> LeavingService<S> {
        LeavingService::new(service, &self.activity, &self.originals)
    }
}

impl<T: Transport, S: Serve> Drop for Connection<T, S> {
    fn drop(&mut self) {
        // First what is the service's, so that a report of its destructor names the request.
        let last = std::mem::replace(&mut self.stage, Stage::Over);
        match last {
            Stage::Idle {
                service, permit, ..
            } => {
                self.remains = Remains::new(permit, self.leaving(Some(service)));
            }
            Stage::Serving(hyper) => drop(self.end_hyper(hyper)),
            Stage::Streaming(streaming) => drop(self.leave_stream(streaming)),
            Stage::Closing(_) | Stage::Over => {}
        }
        if self.activity.must_reset() {
            closing::reset_at_close(&self.wire);
        }
        self.wire.leave();
    }
}
