//! Calls the service once per request, and records when the response has been sent or dropped.
//!
//! Each request gets a clone of the service, which is polled until it is ready, as tower requires.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use http::{HeaderValue, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    activity::{Activity, RequestGuard},
    request_body::RequestBody,
};

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A tower service that a server can serve. Implemented for every type that fits.
pub trait Serve:
    Service<
        Request<RequestBody>,
        Response = Response<Self::ResponseBody>,
        Error: Into<BoxError>,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
    /// The body of its responses.
    type ResponseBody: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> Serve for S
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type ResponseBody = B;
}

/// The service as hyper calls it.
pub(crate) struct Handler<S> {
    pub(crate) service: S,
    pub(crate) activity: Arc<Activity>,
}

impl<S: Serve> hyper::service::Service<Request<Incoming>> for Handler<S> {
    type Response = Response<TrackedBody<S::ResponseBody>>;
    type Error = BoxError;
    type Future = ResponseFuture<S>;

    fn call(&self, request: Request<Incoming>) -> ResponseFuture<S> {
        let in_flight = self.activity.begin_request(&request);
        let request =
            request.map(|incoming| RequestBody::new(incoming, &self.activity, &in_flight));
        let mut service = self.service.clone();
        // Most services are always ready, and then the request is moved only once. No waker is needed here: the
        // first poll of the future asks a service again that was not ready.
        let state = match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => CallState::Called {
                future: service.call(request),
            },
            Poll::Ready(Err(error)) => CallState::Failed {
                error: Some(error.into()),
            },
            Poll::Pending => CallState::NotReady {
                service,
                request: Some(Box::new(request)),
            },
        };
        let in_flight = Some(in_flight);
        ResponseFuture { state, in_flight }
    }
}

pin_project! {
    /// The service's work on one request.
    pub(crate) struct ResponseFuture<S: Service<Request<RequestBody>>> {
        #[pin]
        state: CallState<S, S::Future>,
        in_flight: Option<RequestGuard>,
    }
}

pin_project! {
    #[project = CallStateProjection]
    enum CallState<S, F> {
        // Until the service is ready.
        NotReady { service: S, request: Option<Box<Request<RequestBody>>> },
        Called { #[pin] future: F },
        Failed { error: Option<BoxError> },
    }
}

impl<S, B> Future for ResponseFuture<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>>,
{
    type Output = Result<Response<TrackedBody<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                CallStateProjection::NotReady { service, request } => {
                    ready!(service.poll_ready(cx)).map_err(Into::into)?;
                    let request = request.take().expect("a service is called once");
                    let future = service.call(*request);
                    this.state.set(CallState::Called { future });
                }
                CallStateProjection::Called { future } => {
                    let polled = future.poll(cx);
                    if let Some(in_flight) = this.in_flight {
                        match &polled {
                            Poll::Ready(_) => in_flight.answered(),
                            Poll::Pending => in_flight.end_poll(cx),
                        }
                    }
                    let mut response = ready!(polled).map_err(Into::into)?;
                    let in_flight = this.in_flight.take();
                    if in_flight.as_ref().is_some_and(RequestGuard::is_last) {
                        // The drain may have been ordered in the very poll that answers, after the connection looked.
                        let headers = response.headers_mut().entry(header::CONNECTION);
                        headers.or_insert(HeaderValue::from_static("close"));
                    }
                    let track = |body| TrackedBody { body, in_flight };
                    return Poll::Ready(Ok(response.map(track)));
                }
                CallStateProjection::Failed { error } => {
                    let error = error
                        .take()
                        .expect("a future is not polled after it is done");
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

pin_project! {
    /// A response's body. Its request is in flight until hyper drops it.
    pub(crate) struct TrackedBody<B> {
        #[pin]
        body: B,
        in_flight: Option<RequestGuard>,
    }
}

impl<B: Body> Body for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(cx);
        if let (Poll::Pending, Some(in_flight)) = (&frame, this.in_flight) {
            in_flight.end_poll(cx);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
