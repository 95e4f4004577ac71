//! Calls the service once per request, and records when the response has been sent or dropped.
//!
//! Each request gets a clone of the service, which is polled until it is ready, as tower requires. A panic or an error of
//! the service is answered with 500 here, and reported while the request is still in flight, so that the report names
//! it. An error whose cause is the client, who ends in the middle of a body or sends a malformed one, is a 400.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    activity::Activity,
    in_flight::RequestGuard,
    refusal,
    request_body::RequestBody,
    response_body::{self, BoxError, Known, TrackedBody, is_clients},
};

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
    type Error = Infallible;
    type Future = ResponseFuture<S>;

    fn call(&self, mut request: Request<Incoming>) -> ResponseFuture<S> {
        let in_flight = RequestGuard::new(&self.activity, &request);
        let state = match refusal::check(&mut request) {
            Some(status) => CallState::Refused { status },
            None => self.begin(request, &in_flight),
        };
        let in_flight = Some(in_flight);
        ResponseFuture { state, in_flight }
    }
}

impl<S: Serve> Handler<S> {
    /// Passes the request to the service.
    fn begin(
        &self,
        request: Request<Incoming>,
        in_flight: &RequestGuard,
    ) -> CallState<S, S::Future> {
        let request = request.map(|incoming| RequestBody::new(incoming, &self.activity, in_flight));
        // Most services are always ready, and then the request is moved only once. No waker is needed here: the
        // first poll of the future asks a service that was not ready again.
        let cx = &mut Context::from_waker(Waker::noop());
        // Not the closure's result, which would be moved twice more.
        let mut state = CallState::Panicked;
        let _panicked = weald_kernel::catch_panic(|| {
            let mut service = self.service.clone();
            let is_ready = match weald_kernel::poll_place(cx) {
                Poll::Ready(()) => service.poll_ready(cx),
                Poll::Pending => Poll::Pending,
            };
            state = match is_ready {
                Poll::Ready(Ok(())) => CallState::Called {
                    future: service.call(request),
                },
                Poll::Ready(Err(error)) => CallState::Failed {
                    error: error.into(),
                },
                Poll::Pending => CallState::NotReady {
                    service,
                    request: Some(Box::new(request)),
                },
            };
        });
        state
    }
}

pin_project! {
    /// The service's work on one request.
    pub(crate) struct ResponseFuture<S: Service<Request<RequestBody>>> {
        #[pin]
        state: CallState<S, S::Future>,
        in_flight: Option<RequestGuard>,
    }

    impl<S: Service<Request<RequestBody>>> PinnedDrop for ResponseFuture<S> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // While the request is in flight, so that the report of a panic names it.
            let _dropped = weald_kernel::catch_panic(|| this.state.set(CallState::Panicked));
        }
    }
}

pin_project! {
    #[project = CallStateProjection]
    enum CallState<S, F> {
        // Until the service is ready.
        NotReady { service: S, request: Option<Box<Request<RequestBody>>> },
        Called { #[pin] future: F },
        Failed { error: BoxError },
        // The service does not see the request.
        Refused { status: StatusCode },
        Panicked,
    }
}

impl<S, B> Future for ResponseFuture<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>>,
    B: Body,
{
    type Output = Result<Response<TrackedBody<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A panic leaves the future of the service as it is: it is dropped with the state, and not polled again.
        match weald_kernel::catch_panic(|| self.as_mut().poll_service(cx)) {
            Some(polled) => polled.map(Ok),
            None => {
                let mut this = self.project();
                this.state.set(CallState::Panicked);
                Poll::Ready(Ok(respond(
                    without_body(StatusCode::INTERNAL_SERVER_ERROR),
                    this.in_flight,
                )))
            }
        }
    }
}

impl<S, B> ResponseFuture<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>>,
    B: Body,
{
    fn poll_service(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response<TrackedBody<B>>> {
        let mut this = self.project();
        loop {
            match this.state.as_mut().project() {
                CallStateProjection::NotReady { service, request } => {
                    ready!(weald_kernel::poll_place(cx));
                    if let Err(error) = ready!(service.poll_ready(cx)) {
                        let response = failed(&error.into(), this.in_flight.as_ref());
                        return Poll::Ready(respond(response, this.in_flight));
                    }
                    let request = request.take().expect("a service is called once");
                    let future = service.call(*request);
                    this.state.set(CallState::Called { future });
                }
                CallStateProjection::Called { future } => {
                    let polled = future.poll(cx);
                    if let Some(in_flight) = this.in_flight
                        && polled.is_pending()
                    {
                        in_flight.end_poll(cx);
                    }
                    let response = match ready!(polled) {
                        Ok(response) => response.map(Some),
                        Err(error) => failed(&error.into(), this.in_flight.as_ref()),
                    };
                    return Poll::Ready(respond(response, this.in_flight));
                }
                CallStateProjection::Failed { error } => {
                    let response = failed(error, this.in_flight.as_ref());
                    return Poll::Ready(respond(response, this.in_flight));
                }
                CallStateProjection::Refused { status } => {
                    let mut response = without_body(*status);
                    close(&mut response);
                    return Poll::Ready(respond(response, this.in_flight));
                }
                CallStateProjection::Panicked => {
                    let response = without_body(StatusCode::INTERNAL_SERVER_ERROR);
                    return Poll::Ready(respond(response, this.in_flight));
                }
            }
        }
    }
}

/// The response as hyper gets it. The request is in flight until hyper drops the body.
fn respond<B: Body>(
    mut response: Response<Option<B>>,
    in_flight: &mut Option<RequestGuard>,
) -> Response<TrackedBody<B>> {
    let mut known = Known::NOTHING;
    if let Some(in_flight) = in_flight.as_ref() {
        match response_body::prepare(&mut response, in_flight.is_head()) {
            Ok(of_body) => known = of_body,
            Err(error) => response = failed(&error.into(), Some(in_flight)),
        }
        in_flight.answered();
    }
    // Only now: a panic in the above is answered, and its report names the request.
    let in_flight = in_flight.take();
    if in_flight.as_ref().is_some_and(RequestGuard::is_last) {
        // The drain may have been ordered in the very poll that answers, after the connection looked.
        close(&mut response);
    }
    response.map(|body| TrackedBody::new(body, known, in_flight))
}

/// The answer in place of the service's, which failed.
#[cold]
fn failed<B>(error: &BoxError, in_flight: Option<&RequestGuard>) -> Response<Option<B>> {
    let request = in_flight.map(RequestGuard::describe);
    if is_clients(error) {
        let request = request.map(tracing::field::display);
        tracing::debug!(request, %error, "a request did not arrive as it should, and is answered with 400");
        let mut response = without_body(StatusCode::BAD_REQUEST);
        close(&mut response);
        return response;
    }
    weald_kernel::report_failure(|| {
        let request = request.map_or_else(|| "a request".to_owned(), |it| it.to_string());
        format!("a service failed, so the answer to `{request}` is a 500: {error}")
    });
    without_body(StatusCode::INTERNAL_SERVER_ERROR)
}

fn without_body<B>(status: StatusCode) -> Response<Option<B>> {
    let mut response = Response::new(None);
    *response.status_mut() = status;
    response
}

/// Makes the connection close after the response.
fn close<B>(response: &mut Response<B>) {
    let headers = response.headers_mut().entry(header::CONNECTION);
    headers.or_insert(HeaderValue::from_static("close"));
}
