//! The body of a request, as a service reads it: hyper's body, plus a record of when its reader waits.
//!
//! The record tells a slow client, which has a time limit, from a slow service, which has none.

use std::{
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use crate::{activity::Activity, in_flight::RequestGuard, reading::OwnReading};

/// The body of a request. It is read from the client only as the service reads it, apart from one buffer.
///
/// Dropping it before its end is not an error. The connection then closes after the response, unless the rest
/// of the body has already arrived.
#[derive(Debug)]
pub struct RequestBody {
    incoming: Incoming,
    peer: Option<SocketAddr>,
    /// None if the body is empty. Dropped after `incoming`.
    reading: Option<OwnReading>,
}

impl RequestBody {
    pub(crate) fn new(
        incoming: Incoming,
        activity: &Activity,
        in_flight: &RequestGuard,
    ) -> RequestBody {
        RequestBody {
            incoming,
            peer: activity.peer(),
            reading: in_flight.reading().cloned().map(OwnReading),
        }
    }

    /// The address of the client, if it has one. A layer around a router can pass it on, for example as an
    /// extension:
    ///
    /// ```
    /// use axum::{Extension, Router, routing::get};
    /// use std::net::SocketAddr;
    /// use tower::ServiceExt;
    /// use weald_http::RequestBody;
    ///
    /// async fn greet(Extension(peer): Extension<SocketAddr>) -> String {
    ///     format!("hello, {peer}")
    /// }
    ///
    /// # fn example(listener: weald_net::TcpListener) -> impl std::any::Any {
    /// let router: Router = Router::new().route("/", get(greet));
    /// let service = router.map_request(|mut request: http::Request<RequestBody>| {
    ///     if let Some(peer) = request.body().peer() {
    ///         request.extensions_mut().insert(peer);
    ///     }
    ///     request
    /// });
    /// weald_http::serve(listener, service)
    /// # }
    /// ```
    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}

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
        if let Some(OwnReading(reading)) = &self.reading {
            reading.leave();
        }
    }
}
