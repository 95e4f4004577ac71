//! The body of a request, as a service reads it: hyper's body, plus a record of when its reader waits.
//!
//! The record tells a slow client, which has a time limit, from a slow service, which has none.

use std::{
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{activity::Activity, in_flight::RequestGuard, reading::OwnReading};

/// The body of a request. It is read from the client only as the service reads it, apart from one buffer.
///
/// The connection's job reads it, and polls the service. So a service that waits for it with its stack (`wait()`) would
/// wait for ever, as one that waits for it in a closure of [`blocking`](weald_kernel::blocking()). It panics in place
/// of that: await the body, or read it in a closure of [`offload`](weald_kernel::offload()) or in a job of its own.
///
/// Dropping it before its end is not an error. The connection then closes after the response, unless the rest
/// of the body has already arrived. If it was dropped before the response, the response says so.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Incoming,
    peer: Option<SocketAddr>,
    /// None if the body is empty. Dropped after `incoming`.
    reading: Option<OwnReading>,
    /// The connection that reads it. None if the body is empty.
    activity: Option<Arc<Activity>>,
}

impl RequestBody {
    pub(crate) fn new(
        incoming: Incoming,
        activity: &Arc<Activity>,
        in_flight: &RequestGuard,
    ) -> RequestBody {
        let reading = in_flight.reading().cloned().map(OwnReading);
        RequestBody {
            incoming,
            peer: activity.peer(),
            activity: reading.is_some().then(|| activity.clone()),
            reading,
        }
    }

    /// The address of the client, if it has one. A layer around a router can pass it on, for example as an
    /// extension:
    ///
    /// ```
    /// use axum::{Extension, Router, routing::get};
    /// use std::net::SocketAddr;
    /// use tower::ServiceExt;
    /// use weald::http::RequestBody;
    ///
    /// async fn greet(Extension(peer): Extension<SocketAddr>) -> String {
    ///     format!("hello, {peer}")
    /// }
    ///
    /// # fn example(listener: weald::net::TcpListener) -> impl std::any::Any {
    /// let router: Router = Router::new().route("/", get(greet));
    /// let service = router.map_request(|mut request: http::Request<RequestBody>| {
    ///     if let Some(peer) = request.body().peer() {
    ///         request.extensions_mut().insert(peer);
    ///     }
    ///     request
    /// });
    /// weald::http::serve(listener, service)
    /// # }
    /// ```
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}

/// The message of a panic.
const HANGS: &str = "the body of a request cannot be waited for with the stack of the job that serves it, because that job reads \
                     it from the client: await it, or read it in a closure of `offload` or in a job of its own";

impl Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = self.get_mut();
        let Some(OwnReading(reading)) = &this.reading else {
            return Pin::new(&mut this.incoming).poll_frame(cx);
        };
        let is_held_up = |activity: &Arc<Activity>| activity.is_held_up_here();
        assert!(
            reading.has_ended() || !this.activity.as_ref().is_some_and(is_held_up),
            "{HANGS}"
        );
        let waker = reading.ask(cx.waker());
        let mut cx = Context::from_waker(&waker);
        let frame = Pin::new(&mut this.incoming).poll_frame(&mut cx);
        match &frame {
            Poll::Ready(frame) => {
                // After an error, more of the body may be on its way.
                let is_end = match frame {
                    Some(Ok(_)) => this.incoming.is_end_stream(),
                    Some(Err(_)) => false,
                    None => true,
                };
                if let Some(Err(_)) = frame {
                    reading.fail();
                }
                let frame = frame.as_ref().and_then(|frame| frame.as_ref().ok());
                reading.has_more(frame.and_then(Frame::data_ref).map_or(0, Bytes::len));
                if is_end {
                    reading.end();
                }
            }
            Poll::Pending => reading.begin_wait(),
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        let Some(OwnReading(reading)) = &self.reading else {
            return;
        };
        // If the body is malformed, hyper may have told only this end of it, and the answer must say that the
        // connection closes. What has arrived is at most one frame.
        let cx = &mut Context::from_waker(Waker::noop());
        while !reading.has_ended() && !reading.has_failed() {
            match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_))) => reading.fail(),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        reading.leave();
    }
}
