//! HTTP/2 over Weald's sockets: hyper's client and server, and tonic's on top of them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/blocker.rs"]
mod blocker;
#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

mod grpc {
    mod http2;
    mod named;
    mod tonic_calls;

    use std::{
        future::Future,
        net::SocketAddr,
        pin::Pin,
        task::{Context, Poll},
    };

    use http::{Request, Response};
    use http_body::Body;
    use hyper::{
        body::Incoming, client::conn::http2 as client, server::conn::http2 as server,
        service::Service,
    };
    use weald_http::rt::{Executor, Io, Named, Timer};
    use weald_kernel::spawn;
    use weald_net::{TcpListener, TcpStream};

    type BoxError = Box<dyn std::error::Error + Send + Sync>;

    /// Serves one connection after another with `service`, each in a job of its own.
    fn serve<S, B>(service: S) -> SocketAddr
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error: Into<BoxError>, Future: Send>
            + Clone
            + Send
            + 'static,
        B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let service = Named::new(service);
        spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let mut builder = server::Builder::new(Executor);
                builder.timer(Timer);
                let service = service.clone().asked_by(peer);
                spawn(builder.serve_connection(Io(stream), service)).detach();
            }
        })
        .detach();
        address
    }

    /// One HTTP/2 connection, as a service that tonic's client can use.
    struct Connection<B>(client::SendRequest<B>);

    impl<B> Clone for Connection<B> {
        fn clone(&self) -> Connection<B> {
            Connection(self.0.clone())
        }
    }

    impl<B> Connection<B>
    where
        B: Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
    {
        async fn to(address: SocketAddr) -> Connection<B> {
            let stream = TcpStream::connect(address).await.unwrap();
            let mut builder = client::Builder::new(Executor);
            builder.timer(Timer);
            let (sender, connection) = builder.handshake(Io(stream)).await.unwrap();
            spawn(connection).detach();
            Connection(sender)
        }
    }

    impl<B: Body + Send + 'static> tower::Service<Request<B>> for Connection<B> {
        type Response = Response<Incoming>;
        type Error = hyper::Error;
        type Future = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<hyper::Result<()>> {
            self.0.poll_ready(cx)
        }

        fn call(&mut self, request: Request<B>) -> Self::Future {
            Box::pin(self.0.send_request(request))
        }
    }

    fn run(workers: usize, test: impl Future<Output = ()>) {
        let _watch = crate::tools::watch();
        crate::tools::runtime(workers).block_on(test);
    }
}
