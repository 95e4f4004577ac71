//! The body of a stream of events: hyper has it until its head is sent and it has nothing to give, and then the
//! connection takes it, because a stream may be quiet for hours and hyper's buffers would wait with it.
//!
//! - Any other body is hyper's alone, and costs nothing here.
//! - Hyper and the connection share an [`EventBody`]. The connection finds it in its activity, which does not know its
//!   type. Whoever polls it last drops it: hyper, if the stream ends before the connection takes it, or the connection.
//! - Only the connection's job uses it, so its lock is never contended.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::{HeaderMap, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use crate::{
    activity::Activity,
    event_slot::EventSlot,
    in_flight::{Asked, RequestGuard},
    piece::Piece,
    response_body::{BoxError, TrackedBody},
};

const EVENTS: &[u8] = b"text/event-stream";

/// The body of a response, once it is in a place of its own.
pub(crate) type Placed<B> = Pin<Box<TrackedBody<B>>>;

/// A body that hyper shares with the connection.
struct EventBody<B: Body>(Mutex<Shared<B>>);

struct Shared<B: Body> {
    body: Option<Placed<B>>,
    /// Whether it had nothing to give when hyper asked last.
    is_waiting: bool,
}

/// Whether this is the answer to a request that a stream of events may follow: one in chunks, with nothing of the
/// request's left to read, on a connection that goes on afterwards.
pub(crate) fn is_stream<B>(response: &Response<B>, in_flight: &RequestGuard) -> bool {
    let headers = response.headers();
    let kind = headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
    kind.is_some_and(|kind| kind.starts_with(EVENTS))
        && response.status() == StatusCode::OK
        && in_flight.asked() == Asked::Other
        && in_flight.may_stream()
        && !changes_framing(headers)
}

/// Whether a service says more of how its body is sent than a stream of events needs.
fn changes_framing(headers: &HeaderMap) -> bool {
    let all = [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::TRAILER,
        header::UPGRADE,
    ];
    all.iter().any(|name| headers.contains_key(name))
}

/// The body of the stream that hyper serves, if it has sent all that there was. From now on hyper's is empty.
pub(crate) fn take<B: Body<Data: Send> + Send + 'static>(slot: &EventSlot) -> Option<Placed<B>> {
    let shared = slot.get()?.downcast::<EventBody<B>>().ok()?;
    let mut shared = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
    let taken = match shared.is_waiting {
        true => shared.body.take(),
        false => None,
    };
    drop(shared);
    if taken.is_some() {
        slot.put(None);
    }
    taken
}

pin_project! {
    /// A response's body as hyper gets it.
    #[project = HyperBodyProjection]
    pub(crate) enum HyperBody<B: Body> {
        Own { #[pin] body: TrackedBody<B> },
        Events { events: EventsOfHyper<B> },
    }
}

/// Hyper's side of a stream.
pub(crate) struct EventsOfHyper<B: Body> {
    shared: Arc<EventBody<B>>,
    activity: Arc<Activity>,
}

impl<B: Body + Send + 'static> HyperBody<B>
where
    B::Data: Send,
{
    /// A stream of events, which the connection may take.
    pub(crate) fn events(body: TrackedBody<B>, activity: Arc<Activity>) -> HyperBody<B> {
        let shared = Arc::new(EventBody(Mutex::new(Shared {
            body: Some(Box::pin(body)),
            is_waiting: false,
        })));
        activity.events.put(Some(shared.clone()));
        HyperBody::Events {
            events: EventsOfHyper { shared, activity },
        }
    }
}

/// The next frame of a body.
type NextFrame<D> = Option<Result<Frame<Piece<D>>, BoxError>>;

impl<B: Body<Error: Into<BoxError>>> EventsOfHyper<B> {
    fn poll(&self, cx: &mut Context<'_>) -> Poll<NextFrame<B::Data>> {
        let mut shared = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(body) = &mut shared.body else {
            return Poll::Ready(None);
        };
        let polled = body.as_mut().poll_frame(cx);
        shared.is_waiting = polled.is_pending();
        polled
    }
}

impl<B: Body> Drop for EventsOfHyper<B> {
    fn drop(&mut self) {
        let mut shared = self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        let body = shared.body.take();
        drop(shared);
        if body.is_some() {
            self.activity.events.put(None);
        }
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for HyperBody<B> {
    type Data = Piece<B::Data>;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<NextFrame<B::Data>> {
        match self.project() {
            HyperBodyProjection::Own { body } => body.poll_frame(cx),
            HyperBodyProjection::Events { events } => events.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            HyperBody::Own { body } => body.is_end_stream(),
            HyperBody::Events { events } => {
                let shared = &events.shared.0;
                let shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                shared.body.as_ref().is_none_or(|body| body.is_end_stream())
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            HyperBody::Own { body } => body.size_hint(),
            // It has no length, or it would not be a stream.
            HyperBody::Events { .. } => SizeHint::default(),
        }
    }
}

/// What a chunk begins with: the length of its data, in hexadecimal digits.
pub(crate) fn chunk_head(length: usize) -> ([u8; 18], usize) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut head = [0; 18];
    let digits = (usize::BITS - length.leading_zeros()).div_ceil(4).max(1) as usize;
    for (at, place) in head[..digits].iter_mut().enumerate() {
        *place = DIGITS[length >> (4 * (digits - 1 - at)) & 15];
    }
    head[digits..digits + 2].copy_from_slice(b"\r\n");
    (head, digits + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_begins_with_its_length() {
        for length in [1, 9, 10, 15, 16, 255, 256, 4_095, 65_536, usize::MAX] {
            let (head, count) = chunk_head(length);
            assert_eq!(head[..count], *format!("{length:x}\r\n").as_bytes());
        }
    }
}
