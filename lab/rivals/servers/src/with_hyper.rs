//! Hyper on tokio, with its own settings.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// A task for each connection, which handles requests with this function.
pub(crate) async fn accept(
    listener: TcpListener,
    handle: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>> + Copy + Send + Sync + 'static,
) {
    while let Ok((stream, _)) = listener.accept().await {
        // It fails only if the client is gone.
        let _gone = stream.set_nodelay(true);
        tokio::spawn(async move {
            let handler =
                service_fn(move |request| async move { Ok::<_, Infallible>(handle(&request)) });
            let connection = TokioIo::new(stream);
            // A client that resets its connection is gone.
            let _ended = http1::Builder::new()
                .serve_connection(connection, handler)
                .await;
        });
    }
}
