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

use http::{HeaderMap, Method, Request, Uri, Version, header};
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
/// A stream of HTTP/2 is a job, which has the name from its first poll on, and in which the service is called. Its clone is
/// made in the job of the connection, so it should be cheap. With HTTP/1 the job of the connection has the name, in place
/// of a name of its own, until the next request begins.
///
/// Make one for each server, and pass a clone to hyper for each connection:
///
/// ```
/// # use std::convert::Infallible;
/// # use http_body_util::Full;
/// use hyper::{body::Incoming, server::conn::http2, service::service_fn};
/// use weald_http::rt::{Executor, Io, Named};
///
/// # async fn example(listener: weald_net::TcpListener) -> std::io::Result<()> {
/// let orders = Named::new(service_fn(|_request: http::Request<Incoming>| async {
///     Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::from("none"))))
/// }));
/// loop {
///     let (stream, peer) = listener.accept().await?;
///     let orders = orders.clone().asked_by(peer);
///     let serving = http2::Builder::new(Executor).serve_connection(Io(stream), orders);
///     weald_kernel::spawn(serving).detach();
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

impl<S: Service<Request<B>> + Clone, B> Service<Request<B>> for Named<S> {
    type Response = S::Response;
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
            named: Arc::new(named),
            route,
            told: Told::New,
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
    Answered,
}

pin_project! {
    /// The future of [`Named`].
    pub struct NamedFuture<S: Service<Request<B>>, B> {
        #[pin]
        call: CallState<S, Request<B>, S::Future>,
        named: Arc<NamedRequest>,
        route: Route,
        told: Told,
    }

    impl<S: Service<Request<B>>, B> PinnedDrop for NamedFuture<S, B> {
        // Also of a request that was dropped before its answer, because its client has reset the stream.
        fn drop(this: Pin<&mut Self>) {
            let this = this.project();
            let known_routes = &this.named.client.known_routes;
            match this.named.kind.take_offence() {
                true => known_routes.remove(this.route.kind),
                false if *this.told == Told::Answered => known_routes.add(this.route.kind),
                false => {}
            }
        }
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
            .field("named", &self.named)
            .finish_non_exhaustive()
    }
}

impl<S: Service<Request<B>>, B> Future for NamedFuture<S, B> {
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let (kind, route) = (&this.named.kind, *this.route);
        let known_routes = &this.named.client.known_routes;
        if *this.told == Told::New {
            kind.set_family(route.family);
            kind.set_known(known_routes.contains(route.kind));
            kind.set(route.kind);
            weald_kernel::describe_job(this.named.clone(), kind.clone());
            *this.told = Told::Described;
        }
        if *this.told == Told::Described {
            ready!(weald_kernel::poll_place(cx));
            *this.told = Told::Begun;
        }
        let future = loop {
            match this.call.as_mut().project() {
                CallStateProjection::Asked { asked } => {
                    let (service, request) = asked.take().expect("a panic is not polled again");
                    let future = service.call(request);
                    this.call.set(CallState::Called { future });
                }
                CallStateProjection::Called { future } => break future,
            }
        };
        let output = ready!(future.poll(cx));
        *this.told = Told::Answered;
        // The rest of a stream is the body of the answer, which may compute, too. Work of the kind 0 is that of all
        // jobs that have not yet said what they do.
        if !this.named.is_stream {
            kind.set(0);
        }
        Poll::Ready(output)
    }
}
