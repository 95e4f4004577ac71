//! A stream of events after its head: the connection has taken its socket back from hyper, and writes the chunks.
//!
//! A stream may be quiet for hours, and hyper would keep two buffers of 8 KiB for it. So hyper writes the head and what
//! comes with it. When the body has nothing to give and all was sent, the connection takes the body and the socket, and
//! is then as small as an idle one, with its request in flight.
//!
//! - Hyper's ends are kept: an end of the client's direction, or what it sends behind its request, counts as it does
//!   there; at the end of the body the connection is idle again; a body that fails gets no last chunk.
//! - What the client does not take is held, and then the body is not asked for more.

use std::{
    io::{self, IoSlice},
    mem::MaybeUninit,
    ops::ControlFlow,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes};
use http_body::Body;
use weald_net::Transport;

use super::{Connection, FIRST_READ, Stage, Streaming, left_by_hyper};
use crate::{
    event_body::{self, chunk_head},
    handler::Serve,
    limits::HalfClosed,
    phase::Phase,
    wire::Wire,
};

/// How many frames are written before others have their turn.
const AT_ONCE: usize = 16;
/// What tells the client that no chunk follows.
const END: &[u8] = b"0\r\n\r\n";
/// The end of a line.
const LINE: &[u8] = b"\r\n";

/// What became of a stream.
enum Given {
    /// It goes on later.
    Some,
    /// All of it was sent.
    All,
    /// The body has failed.
    Broken,
    /// The socket has failed.
    Gone,
}

impl<T: Transport, S: Serve> Connection<T, S> {
    /// Takes the socket back from hyper, if it serves a stream of events and has sent all that there is.
    pub(super) fn take_stream(&mut self) -> bool {
        if !self.activity.has_sent_all() {
            return false;
        }
        let Some(body) = event_body::take::<S::ResponseBody>(&self.activity.events) else {
            return false;
        };
        let Stage::Serving(hyper) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only hyper shares a stream");
        };
        // Hyper still has its side of the body, which is empty now.
        let Some(parts) = Pin::into_inner(hyper).into_parts() else {
            return true;
        };
        let service = parts.service.service.into_inner();
        self.stage = Stage::Streaming(Streaming {
            body: Some(body),
            service: service.expect("it has answered"),
            permit: parts.io.permit,
            behind: left_by_hyper(parts.read_buf, parts.io.first)[..].into(),
        });
        self.wire.shed();
        self.limits.freed.note();
        true
    }

    /// Writes what there is. Breaks when the connection is over, and continues when its stage has changed.
    pub(super) fn poll_streaming(&mut self, cx: &mut Context<'_>) -> Poll<ControlFlow<()>> {
        if self.has_client_ended(cx) {
            self.break_stream();
            return Poll::Ready(ControlFlow::Continue(()));
        }
        match weald_kernel::catch_panic(|| self.give_events(cx)) {
            Some(Given::Some) => {}
            Some(Given::All) => {
                self.end_stream();
                return Poll::Ready(ControlFlow::Continue(()));
            }
            Some(Given::Broken) => {
                self.break_stream();
                return Poll::Ready(ControlFlow::Continue(()));
            }
            Some(Given::Gone) => return Poll::Ready(ControlFlow::Break(())),
            // Of the data of a frame, which is user code.
            None => {
                self.abandon();
                return Poll::Ready(ControlFlow::Continue(()));
            }
        }
        if self.activity.must_poll_again() {
            cx.waker().wake_by_ref();
        }
        let phase = self.activity.phase();
        if phase == Phase::InFlight {
            return self.poll_in_flight(cx);
        }
        let (current, limit) = (self.phase_id(phase), self.serving_limit(phase));
        let over = self.watchdog.watch(current, limit, cx);
        over.map(|()| ControlFlow::Break(()))
    }

    /// Whether the client has ended its direction, as far as that is looked for. What it sends is kept for later, and
    /// then no more is read.
    fn has_client_ended(&mut self, cx: &mut Context<'_>) -> bool {
        let Stage::Streaming(Streaming { behind, .. }) = &mut self.stage else {
            return false;
        };
        let reads = behind.is_empty() && self.limits.half_closed == HalfClosed::Dropped;
        let mut buffer = [const { MaybeUninit::uninit() }; FIRST_READ];
        let read = match reads {
            true => {
                let take = |bytes: &[u8]| *behind = bytes.into();
                self.wire.stream.poll_read_with(cx, &mut buffer, take)
            }
            false => Poll::Ready(Ok(behind.len().max(1))),
        };
        self.wire.set_listening(read.is_pending());
        match read {
            Poll::Ready(Ok(0)) => {
                self.wire.end();
                true
            }
            Poll::Ready(Err(_)) => true,
            Poll::Ready(Ok(_)) | Poll::Pending => false,
        }
    }

    /// Writes the frames that the body has, as long as the client takes them.
    fn give_events(&mut self, cx: &mut Context<'_>) -> Given {
        for _ in 0..AT_ONCE {
            match self.wire.poll_send(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return gone(&error),
                Poll::Pending => return Given::Some,
            }
            let Stage::Streaming(Streaming { body: place, .. }) = &mut self.stage else {
                return Given::Some;
            };
            let Some(body) = place else {
                return Given::All;
            };
            let is_last = match body.as_mut().poll_frame(cx) {
                Poll::Pending => return Given::Some,
                Poll::Ready(None) => true,
                Poll::Ready(Some(Err(_))) => return Given::Broken,
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        if let Err(error) = send_chunk(&self.wire, data, cx) {
                            return gone(&error);
                        }
                        body.is_end_stream()
                    }
                    // The head has announced no trailers.
                    Err(_trailers) => true,
                },
            };
            if is_last {
                self.wire.hold(END);
                self.activity.held();
                *place = None;
            }
        }
        cx.waker().wake_by_ref();
        Given::Some
    }

    /// All was sent, and the connection is idle again.
    fn end_stream(&mut self) {
        let Stage::Streaming(streaming) = std::mem::replace(&mut self.stage, Stage::Over) else {
            unreachable!("only a stream comes to its end");
        };
        let behind = Bytes::from(streaming.behind);
        self.fall_idle(streaming.service, streaming.permit, behind);
    }
}

/// Writes the data of a frame as a chunk.
fn send_chunk<T: Transport>(
    wire: &Wire<T>,
    mut data: impl Buf,
    cx: &mut Context<'_>,
) -> io::Result<()> {
    let length = data.remaining();
    if length == 0 {
        // A chunk without data would be the last one.
        return Ok(());
    }
    let (head, digits) = chunk_head(length);
    let mut send = |data: &[u8]| {
        let parts = [&head[..digits], data, LINE].map(IoSlice::new);
        wire.send(&parts, cx)
    };
    match data.chunk().len() == length {
        true => send(data.chunk()),
        false => send(&data.copy_to_bytes(length)),
    }
}

fn gone(error: &io::Error) -> Given {
    tracing::debug!(%error, "a stream of events could not be written to");
    Given::Gone
}
