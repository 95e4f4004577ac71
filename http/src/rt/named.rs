//! Requests of a server that hyper drives directly, for example of HTTP/2 or gRPC: each tells reports and the kernel
//! what it is, as those of [`serve`](crate::serve()) do.
//!
//! Hyper spawns a job for each stream of HTTP/2 and knows of it only that it is a future. So the request's future
//! describes the job in which it finds itself when it is first polled.

use std::{
    future::Future,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use http::{HeaderMap, Method, Request, Response, Uri, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::service::Service;
use pin_project_lite::pin_project;
use weald_kernel::{Describe, WorkKind};

use crate::{
    ended::{Step, Unfinished},
    known_routes::KnownRoutes,
    route::{Route, route, route_of_words},
};

/// A service whose requests have names: reports about one name its method, path and client, and the type of `S`. When
/// requests of one route block or compute for too long, others of that route run in quarantine; and when several routes
/// do, so do all requests whose routes are not known to be served without delay.
///
/// A stream of HTTP/2 is a job, which has the name from its first poll on, and in which the service is called. With
/// HTTP/1 the job of the connection has the name, in place of a name of its own, until the next request begins. The
/// body of the answer is a part of the request: one that blocks or computes makes its route suspect.
///
/// The clone for a request is made in the job of the connection, before the request has its name, so it must be cheap:
/// one that blocks holds up all streams of its connection, and is none of its route's.
///
/// Make one for each server, and pass a clone to hyper for each connection:
///
/// ```
/// # use std::convert::Infallible;
/// # use http_body_util::Full;
/// use hyper::{body::Incoming, server::conn::http2, service::service_fn};
/// use weald::http::rt::{Executor, Io, Named};
///
/// # async fn example(listener: weald::net::TcpListener) -> std::io::Result<()> {
/// let orders = Named::new(service_fn(|_request: http::Request<Incoming>| async {
///     Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::from("none"))))
/// }));
/// loop {
///     let (stream, peer) = listener.accept().await?;
///     let orders = orders.clone().asked_by(peer);
///     let serving = http2::Builder::new(Executor).serve_connection(Io(stream), orders);
///     weald::spawn(serving).detach();
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Named<S> {
    service: S,
    client: Arc<NamedClient>,
}

/// Of each connection its own, so that no count of references is changed by the requests of all.
#[derive(Debug, Default)]
struct NamedClient {
    peer: Option<SocketAddr>,
    /// Those of the server.
    known_routes: Arc<KnownRoutes>,
}

impl<S> Named<S> {
    /// A service whose client is not known.
    pub fn new(service: S) -> Named<S> {
        Named {
            service,
            client: Arc::default(),
        }
    }

    /// Sets the address of the client.
    #[must_use]
    pub fn asked_by(mut self, peer: SocketAddr) -> Named<S> {
        let known_routes = self.client.known_routes.clone();
        let peer = Some(peer);
        self.client = Arc::new(NamedClient { peer, known_routes });
        self
    }
}

impl<S, B, R> Service<Request<B>> for Named<S>
where
    S: Service<Request<B>, Response = Response<R>> + Clone,
{
    type Response = Response<NamedBody<R>>;
    type Error = S::Error;
    type Future = NamedFuture<S, B>;

    fn call(&self, request: Request<B>) -> NamedFuture<S, B> {
        let (method, uri) = (request.method().clone(), request.uri());
        // The host is the server's own.
        let target = uri.path_and_query().cloned().map(Uri::from);
        let uri = target.unwrap_or_else(|| uri.clone());
        let route = match is_grpc(request.headers()) {
            true => route_of_words(method.as_str(), uri.path()),
            false => route(method.as_str(), uri.path()),
        };
        let named = NamedRequest {
            request: (method, uri),
            is_stream: request.version() == Version::HTTP_2,
            client: self.client.clone(),
            service: std::any::type_name::<S>(),
            kind: WorkKind::new(),
        };
        NamedFuture {
            call: CallState::Asked {
                asked: Some((self.service.clone(), request)),
            },
            told: Told::New,
            judged: Some(Judged {
                named: Arc::new(named),
                route,
                has_answered: false,
            }),
        }
    }
}

/// Whether it is a call of gRPC.
fn is_grpc(headers: &HeaderMap) -> bool {
    let content = headers.get(header::CONTENT_TYPE);
    content.is_some_and(|content| content.as_bytes().starts_with(b"application/grpc"))
}

/// The description of the job that serves a request.
#[derive(Debug)]
struct NamedRequest {
    request: (Method, Uri),
    /// Whether the job serves this request only.
    is_stream: bool,
    client: Arc<NamedClient>,
    service: &'static str,
    kind: WorkKind,
}

impl Describe for NamedRequest {
    fn name(&self) -> String {
        let request = Unfinished {
            peer: self.client.peer,
            request: Some(self.request.clone()),
            step: Step::Serving,
        };
        format!("{request}, served by {}", self.service)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    New,
    /// The job knows what it does.
    Described,
    /// The service is polled.
    Begun,
}

/// A request until its end, which is that of the answer's body. Its drop judges the route: also of a request that was
/// dropped before its answer, because its client has reset the stream.
#[derive(Debug)]
struct Judged {
    named: Arc<NamedRequest>,
    route: Route,
    has_answered: bool,
}

impl Judged {
    /// The running job does what this request asks for.
    fn describe_job(&self) {
        let (kind, known_routes) = (&self.named.kind, &self.named.client.known_routes);
        kind.set_family(self.route.family);
        kind.set_known(known_routes.contains(self.route.kind));
        kind.set(self.route.kind);
        weald_kernel::describe_job(self.named.clone(), kind.clone());
    }
}

impl Drop for Judged {
    fn drop(&mut self) {
        let (kind, known_routes) = (&self.named.kind, &self.named.client.known_routes);
        match kind.take_offence() {
            true => known_routes.remove(self.route.kind),
            false if self.has_answered => known_routes.add(self.route.kind),
            false => {}
        }
        // The job of a connection goes on. Work of the kind 0 is that of all jobs that have not yet said what they do.
        if !self.named.is_stream {
            kind.set(0);
        }
    }
}

pin_project! {
    /// The future of [`Named`].
    pub struct NamedFuture<S: Service<Request<B>>, B> {
        #[pin]
        call: CallState<S, Request<B>, S::Future>,
        told: Told,
        // Until the answer has it. Dropped after the call, whose destructor may block.
        judged: Option<Judged>,
    }
}

pin_project! {
    /// The body of an answer of [`Named`].
    #[derive(Debug)]
    pub struct NamedBody<R> {
        #[pin]
        body: R,
        // Dropped after the body, whose destructor may block.
        judged: Judged,
    }
}

impl<R: Body> Body for NamedBody<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pin_project! {
    #[project = CallStateProjection]
    enum CallState<S, R, F> {
        // Until the job of the request runs: hyper asks for this future in the job of the connection, where a service
        // that blocks or panics would hold or end all streams.
        Asked { asked: Option<(S, R)> },
        Called { #[pin] future: F },
    }
}

impl<S: Service<Request<B>>, B> std::fmt::Debug for NamedFuture<S, B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedFuture")
            .field("judged", &self.judged)
            .finish_non_exhaustive()
    }
}

impl<S, B, R> Future for NamedFuture<S, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<NamedBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if *this.told == Told::New {
            let judged = this.judged.as_ref();
            judged.expect(NOT_POLLED_AGAIN).describe_job();
            *this.told = Told::Described;
        }
        if *this.told == Told::Described {
            ready!(weald_kernel::poll_place(cx));
            *this.told = Told::Begun;
        }
        let future = loop {
            match this.call.as_mut().project() {
                CallStateProjection::Asked { asked } => {
                    let (service, request) = asked.take().expect(NOT_POLLED_AGAIN);
                    let future = service.call(request);
                    this.call.set(CallState::Called { future });
                }
                CallStateProjection::Called { future } => break future,
            }
        };
        let output = ready!(future.poll(cx));
        let mut judged = this.judged.take().expect(NOT_POLLED_AGAIN);
        judged.has_answered = true;
        Poll::Ready(output.map(|response| response.map(|body| NamedBody { body, judged })))
    }
}

const NOT_POLLED_AGAIN: &str = "a future that has ended or panicked is not polled again";

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::{Mutex, mpsc},
        thread,
    };

    use bytes::Bytes;
    use http_body_util::Empty;
    use hyper::service::service_fn;
    use weald_kernel::Runtime;

    use super::*;

    /// A body without frames, which blocks until it hears something.
    struct Blocks(Arc<Mutex<mpsc::Receiver<()>>>);

    impl Body for Blocks {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            self: Pin<&mut Self>,
            _cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            self.0.lock().unwrap().recv().unwrap();
            Poll::Ready(None)
        }
    }

    /// The monitor has seen the body when it has given its worker to another thread.
    #[test]
    fn a_body_that_blocks_is_judged_as_a_part_of_its_request() {
        let runtime = Arc::new(Runtime::builder().workers(1).build().unwrap());
        let (end, ended) = mpsc::channel();
        let ended = Arc::new(Mutex::new(ended));
        let named = Named::new(service_fn(move |_request: Request<Empty<Bytes>>| {
            let body = Blocks(ended.clone());
            async move { Ok::<_, Infallible>(Response::new(body)) }
        }));
        let known_routes = named.client.known_routes.clone();
        let route = route("GET", "/blocks").kind;
        known_routes.add(route);
        let job = runtime.spawn(async move {
            let request = Request::get("/blocks").body(Empty::new()).unwrap();
            let mut response = named.call(request).await.unwrap();
            let kind = response.body().judged.named.kind.clone();
            assert_eq!(kind.get(), route);
            let body = response.body_mut();
            let end = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx));
            assert!(end.await.is_none());
            drop(response);
            assert_eq!(kind.get(), 0, "the connection goes on");
        });
        while runtime.metrics().detached == 0 {
            thread::yield_now();
        }
        end.send(()).unwrap();
        runtime.block_on(job).unwrap();
        // It is on probation after the first offence, and goes at the second.
        known_routes.remove(route);
        assert!(!known_routes.contains(route));
    }
}
