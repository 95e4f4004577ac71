//! Calls the service once per request, and records when the response has been sent or dropped.
//!
//! Each request gets a clone of the service, which is polled until it is ready, as tower requires. If its route is
//! suspect, the clone is made when the connection has its place in quarantine. A panic or an error
//! of the service is answered with 500 here, and reported while the request is still in flight, so that the report
//! names it. If the client is the cause of an error, because it ends in the middle of a body or sends a malformed one,
//! the answer is a 400.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use http::{
    HeaderValue, Request, Response, StatusCode,
    header::{self, Entry},
};
use http_body::Body;
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    activity::Activity,
    event_body::{self, HyperBody},
    in_flight::{RequestGuard, says_close},
    refusal,
    request_body::RequestBody,
    response_body::{self, BoxError, Known, TrackedBody, is_clients},
    service_slot::{ServiceSlot, TakenService},
};

/// A tower service that a server can serve. Implemented for every type that fits.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be served",
    label = "not a tower service of HTTP requests that is `Clone` and `Send`",
    note = "an axum router is served as it is, without `into_make_service`; its state is set by `with_state` first"
)]
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

#[diagnostic::do_not_recommend]
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
    pub(crate) service: ServiceSlot<S>,
    pub(crate) activity: Arc<Activity>,
}

impl<S: Serve> hyper::service::Service<Request<Incoming>> for Handler<S> {
    type Response = Response<HyperBody<S::ResponseBody>>;
    type Error = Infallible;
    type Future = ResponseFuture<S, S::ResponseBody>;

    fn call(&self, mut request: Request<Incoming>) -> ResponseFuture<S, S::ResponseBody> {
        let in_flight = RequestGuard::new(&self.activity, &request);
        let state = match refusal::check(&mut request) {
            Some(status) => CallState::Refused { status },
            None => self.begin(request, &in_flight),
        };
        ResponseFuture {
            state,
            in_flight: Some(in_flight),
            answer: None,
        }
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
        // Most services are always ready, and then the request is moved only once. No waker is needed here: a
        // service that was not ready is asked again by the first poll of the future.
        let cx = &mut Context::from_waker(Waker::noop());
        // This is not the closure's result, because that would be moved twice more.
        let mut state = CallState::Panicked;
        let _panicked = weald_kernel::catch_panic(|| {
            let recall = || self.activity.recall_route();
            if weald_kernel::poll_place_after(cx, recall).is_pending() {
                state = CallState::Moves {
                    taken: self.service.take(),
                    request: Some(Box::new(request)),
                };
                return;
            }
            let mut service = self.service.make_clone();
            state = match service.poll_ready(cx) {
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
    pub(crate) struct ResponseFuture<S: Service<Request<RequestBody>>, B> {
        #[pin]
        state: CallState<S, S::Future>,
        in_flight: Option<RequestGuard>,
        // The service's, while hyper looks at what is left of the request's body.
        answer: Option<Box<Response<Option<B>>>>,
    }

    impl<S: Service<Request<RequestBody>>, B> PinnedDrop for ResponseFuture<S, B> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            // While the request is in flight, so that the report of a panic names it.
            drop_safely(this.state.as_mut());
            let _dropped = weald_kernel::catch_panic(|| *this.answer = None);
        }
    }
}

pin_project! {
    #[project = CallStateProjection]
    enum CallState<S, F> {
        // Until the connection has its place.
        Moves { taken: TakenService<S>, request: Option<Box<Request<RequestBody>>> },
        // Until the service is ready.
        NotReady { service: S, request: Option<Box<Request<RequestBody>>> },
        Called { #[pin] future: F },
        Failed { error: BoxError },
        // The service does not see the request.
        Refused { status: StatusCode },
        Panicked,
    }
}

/// A panic of a destructor is reported.
fn drop_safely<S, F>(mut state: Pin<&mut CallState<S, F>>) {
    let _dropped = weald_kernel::catch_panic(|| state.set(CallState::Panicked));
}

impl<S, B> Future for ResponseFuture<S, B>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>> + Clone,
    B: Body<Data: Send> + Send + 'static,
{
    type Output = Result<Response<HyperBody<B>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // A panic leaves the future of the service as it is: it is dropped with the state, and not polled again.
        match weald_kernel::catch_panic(|| self.as_mut().poll_service(cx)) {
            Some(polled) => polled.map(Ok),
            None => {
                drop_safely(self.as_mut().project().state);
                let response = without_body(StatusCode::INTERNAL_SERVER_ERROR);
                self.respond(response, cx).map(Ok)
            }
        }
    }
}

impl<S, B> ResponseFuture<S, B>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>> + Clone,
    B: Body<Data: Send> + Send + 'static,
{
    /// Responds, unless the service has left some of the request's body. Then hyper first looks whether the rest has
    /// arrived: if not, the connection will close, and the head says so.
    fn respond(
        self: Pin<&mut Self>,
        response: Response<Option<B>>,
        cx: &Context<'_>,
    ) -> Poll<Response<HyperBody<B>>> {
        let this = self.project();
        if (this.in_flight.as_ref()).is_some_and(RequestGuard::awaits_body) {
            // The body may be in there: only its drop tells that the service has left some of it.
            drop_safely(this.state);
        }
        if (this.in_flight.as_ref()).is_some_and(RequestGuard::has_left_some) {
            *this.answer = Some(Box::new(response));
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(respond(response, this.in_flight))
    }

    fn poll_service(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Response<HyperBody<B>>> {
        let mut this = self.as_mut().project();
        if let Some(answer) = this.answer.take() {
            return Poll::Ready(respond(*answer, this.in_flight));
        }
        loop {
            match this.state.as_mut().project() {
                CallStateProjection::Moves { taken, request } => {
                    ready!(weald_kernel::poll_place(cx));
                    let (service, request) = (taken.make_clone(), request.take());
                    this.state.set(CallState::NotReady { service, request });
                }
                CallStateProjection::NotReady { service, request } => {
                    ready!(weald_kernel::poll_place(cx));
                    if let Err(error) = ready!(service.poll_ready(cx)) {
                        let response = failed(&error.into(), this.in_flight.as_ref());
                        return self.respond(response, cx);
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
                    return self.respond(response, cx);
                }
                CallStateProjection::Failed { error } => {
                    let response = failed(error, this.in_flight.as_ref());
                    return self.respond(response, cx);
                }
                CallStateProjection::Refused { status } => {
                    let mut response = without_body(*status);
                    close(&mut response);
                    return self.respond(response, cx);
                }
                CallStateProjection::Panicked => {
                    let response = without_body(StatusCode::INTERNAL_SERVER_ERROR);
                    return self.respond(response, cx);
                }
            }
        }
    }
}

/// The response as hyper gets it. The request is in flight until hyper drops the body.
fn respond<B: Body<Data: Send> + Send + 'static>(
    mut response: Response<Option<B>>,
    in_flight: &mut Option<RequestGuard>,
) -> Response<HyperBody<B>> {
    let mut known = Known::NOTHING;
    let mut leaves_http = false;
    if let Some(in_flight) = in_flight.as_ref() {
        match response_body::prepare(&mut response, in_flight) {
            Ok(of_body) => known = of_body,
            Err(error) => response = failed(&error.into(), Some(in_flight)),
        }
        drop_extensions(&mut response);
        if !known.tells_length() {
            in_flight.has_no_length();
        }
        leaves_http = in_flight.asked().is_granted_by(response.status());
        in_flight.answered();
    }
    // Only now: a panic in the above is answered, and its report names the request.
    let in_flight = in_flight.take();
    // What becomes another protocol or a tunnel does not close: that belongs to the service now.
    if !leaves_http && in_flight.as_ref().is_some_and(RequestGuard::is_last) {
        // The drain may have been ordered during this poll, after the connection looked.
        close(&mut response);
    }
    // After that, so that one which says that the connection closes stays with hyper, which closes it.
    let stream_of = in_flight.as_ref().filter(|_| !known.tells_length());
    let stream_of = stream_of.filter(|in_flight| event_body::is_stream(&response, in_flight));
    let stream_of = stream_of.map(|in_flight| in_flight.activity().clone());
    response.map(|body| {
        let body = TrackedBody::new(body, known, in_flight);
        match stream_of {
            None => HyperBody::Own { body },
            Some(activity) => HyperBody::events(body, activity),
        }
    })
}

/// Hyper would drop the values of the service while it writes the head, and their destructors may panic. It uses only
/// one of the extensions itself.
fn drop_extensions<B>(response: &mut Response<B>) {
    if response.extensions().is_empty() {
        return;
    }
    let mut all = std::mem::take(response.extensions_mut());
    let reason: Option<hyper::ext::ReasonPhrase> = all.remove();
    let _dropped = weald_kernel::catch_panic(|| drop(all));
    if let Some(reason) = reason {
        response.extensions_mut().insert(reason);
    }
}

/// The answer in place of the service's, which failed.
#[cold]
fn failed<B>(error: &BoxError, in_flight: Option<&RequestGuard>) -> Response<Option<B>> {
    let request = in_flight.map(RequestGuard::describe);
    if is_clients(error, in_flight) {
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

/// Makes the connection close after the response, whatever else the service says of the connection.
fn close<B>(response: &mut Response<B>) {
    let value = HeaderValue::from_static("close");
    match response.headers_mut().entry(header::CONNECTION) {
        Entry::Vacant(entry) => _ = entry.insert(value),
        Entry::Occupied(entry) if entry.iter().any(says_close) => {}
        Entry::Occupied(mut entry) => entry.append(value),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::{Empty, StreamBody};

    use super::*;

    /// What the head says of the connection holds: nothing that came behind a stream is answered after a `close`.
    #[test]
    fn a_stream_that_closes_its_connection_stays_with_hyper() {
        for is_draining in [false, true] {
            let activity = Activity::new(None, "a service", Arc::default());
            let in_flight = RequestGuard::new(&activity, &Request::new(Empty::<Bytes>::new()));
            if is_draining {
                activity.order_drain();
            }
            let frames = stream::pending::<Result<Frame<Bytes>, Infallible>>();
            let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
            let response = response.body(Some(StreamBody::new(frames))).unwrap();
            let response = respond(response, &mut Some(in_flight));
            let closes = response.headers().contains_key(header::CONNECTION);
            let is_hypers = matches!(response.body(), HyperBody::Own { .. });
            assert_eq!((closes, is_hypers), (is_draining, is_draining));
        }
    }

    #[test]
    fn a_connection_that_is_to_close_says_so_beside_what_the_service_says() {
        for (said, says) in [
            (None, vec!["close"]),
            (Some("keep-alive"), vec!["keep-alive", "close"]),
            (Some("keep-alive, Close"), vec!["keep-alive, Close"]),
            (Some("enclose"), vec!["enclose", "close"]),
        ] {
            let mut response = Response::new(());
            if let Some(said) = said {
                let said = HeaderValue::from_static(said);
                response.headers_mut().insert(header::CONNECTION, said);
            }
            close(&mut response);
            let all = response.headers().get_all(header::CONNECTION);
            assert_eq!(all.iter().collect::<Vec<_>>(), says);
        }
    }
}
