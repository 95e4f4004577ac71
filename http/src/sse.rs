//! Keeps an idle stream of server-sent events alive.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use weald_kernel::{Sleep, sleep};

/// A comment, which clients ignore.
const COMMENT: &[u8] = b":\n\n";

pin_project! {
    /// A body of server-sent events that sends a comment whenever no event was sent for some time. So neither
    /// side, nor a proxy between them, takes the connection for dead, and the server notices a client that is
    /// gone. A comment is sent between two frames, so each frame must consist of whole events, as axum's do.
    ///
    /// With axum: `Sse::new(stream).into_response().map(|body| Body::new(KeepAlive::new(body, every)))`.
    #[derive(Debug)]
    pub struct KeepAlive<B> {
        #[pin]
        body: B,
        every: Duration,
        timer: Option<Sleep>,
    }
}

impl<B> KeepAlive<B> {
    /// Sends the events of `body`, and a comment whenever no event was sent for the duration `every`.
    pub fn new(body: B, every: Duration) -> KeepAlive<B> {
        KeepAlive {
            body,
            every,
            timer: None,
        }
    }
}

impl<B: Body<Data = Bytes>> Body for KeepAlive<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        if let Poll::Ready(frame) = this.body.poll_frame(cx) {
            *this.timer = None;
            return Poll::Ready(frame);
        }
        let timer = this.timer.get_or_insert_with(|| sleep(*this.every));
        if Pin::new(timer).poll(cx).is_pending() {
            return Poll::Pending;
        }
        *this.timer = None;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(COMMENT)))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    // Comments add to the size that `body` reports.
    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
