//! Hyper on tokio: a task for each connection, with hyper's own settings.

use std::convert::Infallible;
use std::net;

use bytes::Bytes;
use common::fail;
use common::programs::dialogue::{Dialogue, GREETING, GREETING_TYPE};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

pub(crate) fn serve(dialogue: Dialogue, listener: net::TcpListener, workers: usize) -> ! {
    if dialogue != Dialogue::Hello {
        fail("Hyper speaks HTTP only: measure tokio.");
    }
    crate::on_tokio(listener, workers, accept)
}

async fn accept(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        // It fails only if the client is gone.
        let _gone = stream.set_nodelay(true);
        tokio::spawn(async move {
            let served =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(hello));
            // A client that resets its connection is gone.
            let _ended = served.await;
        });
    }
}

async fn hello(_request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(GREETING.as_bytes())));
    let kind = HeaderValue::from_static(GREETING_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Ok(response)
}
