//! Calls the service for one request after the other, and notes when a response is done with.
//!
//! The service is cloned for each request, and asked whether it is ready, as tower wants it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
};

use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::{
    activity::{Activity, InFlight},
    request_body::RequestBody,
    server::BoxError,
};

/// What can be served: a tower service of requests. Implemented by whatever fits.
pub trait Serve:
    Service<
        Request<RequestBody>,
        Response = Response<Self::Answered>,
        Error: Into<BoxError>,
        Future: Send,
    > + Clone
    + Send
    + 'static
{
    /// The body of its responses.
    type Answered: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
}

impl<S, B> Serve for S
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Answered = B;
}

/// The service as hyper calls it.
pub(crate) struct Handler<S> {
    pub(crate) service: S,
    pub(crate) activity: Arc<Activity>,
}

impl<S: Serve> hyper::service::Service<Request<Incoming>> for Handler<S> {
    type Response = Response<Tracked<S::Answered>>;
    type Error = BoxError;
    type Future = Answer<S>;

    fn call(&self, request: Request<Incoming>) -> Answer<S> {
        let in_flight = self.activity.begin(&request);
        let request =
            request.map(|incoming| RequestBody::new(incoming, &self.activity, &in_flight));
        let mut service = self.service.clone();
        // Most services are always ready; then the request is moved once. Nobody is woken for those that are
        // not, which are asked again by the first poll.
        let stage = match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => Stage::Called {
                future: service.call(request),
            },
            Poll::Ready(Err(error)) => Stage::Failed {
                error: Some(error.into()),
            },
            Poll::Pending => Stage::Asked {
                service,
                request: Some(Box::new(request)),
            },
        };
        let in_flight = Some(in_flight);
        Answer { stage, in_flight }
    }
}

pin_project! {
    /// The service's work on one request.
    pub(crate) struct Answer<S: Service<Request<RequestBody>>> {
        #[pin]
        stage: Stage<S, S::Future>,
        in_flight: Option<InFlight>,
    }
}

pin_project! {
    #[project = StageParts]
    enum Stage<S, F> {
        // Until the service is ready.
        Asked { service: S, request: Option<Box<Request<RequestBody>>> },
        Called { #[pin] future: F },
        Failed { error: Option<BoxError> },
    }
}

impl<S, B> Future for Answer<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error: Into<BoxError>>,
{
    type Output = Result<Response<Tracked<B>>, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        loop {
            match this.stage.as_mut().project() {
                StageParts::Asked { service, request } => {
                    ready!(service.poll_ready(cx)).map_err(Into::into)?;
                    let request = request.take().expect("a service is called once");
                    let future = service.call(*request);
                    this.stage.set(Stage::Called { future });
                }
                StageParts::Called { future } => {
                    let polled = future.poll(cx);
                    if let Some(in_flight) = this.in_flight {
                        match &polled {
                            Poll::Ready(_) => in_flight.answered(),
                            Poll::Pending => in_flight.end_round(cx),
                        }
                    }
                    let response = ready!(polled).map_err(Into::into)?;
                    let in_flight = this.in_flight.take();
                    let track = |body| Tracked { body, in_flight };
                    return Poll::Ready(Ok(response.map(track)));
                }
                StageParts::Failed { error } => {
                    let error = error.take().expect("a future that is over is not polled");
                    return Poll::Ready(Err(error));
                }
            }
        }
    }
}

pin_project! {
    /// A response's body. Its request is in flight until hyper drops it.
    pub(crate) struct Tracked<B> {
        #[pin]
        body: B,
        in_flight: Option<InFlight>,
    }
}

impl<B: Body> Body for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(cx);
        if let (Poll::Pending, Some(in_flight)) = (&frame, this.in_flight) {
            in_flight.end_round(cx);
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
