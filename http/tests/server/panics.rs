//! A service that panics ends its own connection, and no other.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use weald_http::RequestBody;

use super::{Client, run, start};

async fn fragile(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_ne!(
        request.uri().path(),
        "/panic",
        "the request asks for a panic"
    );
    Ok(Response::new(Full::new("alive.".into())))
}

#[test]
fn a_panic_ends_one_connection() {
    run(2, async {
        let server = start(tower::service_fn(fragile), |server| server);
        let mut other = Client::connect(server.address).await;
        let client = Client::connect(server.address).await;
        client.send("GET /panic HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert_eq!(client.rest().await, "");
        other.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        other.until("alive.").await;
        drop(other);
        assert!(server.end().await.not_stopped.is_empty());
    });
}
