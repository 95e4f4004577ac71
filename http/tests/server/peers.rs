//! A service can learn the address of its client.

use axum::{Extension, Router, routing::get};
use http::Request;
use std::net::SocketAddr;
use tower::ServiceExt;
use weald_http::RequestBody;

use super::{Client, HELLO, run, start};

#[test]
fn a_handler_gets_the_address_of_its_client() {
    run(2, async {
        let handler = |Extension(peer): Extension<SocketAddr>| async move { format!("{peer}.") };
        let router: Router = Router::new().route("/", get(handler));
        let service = router.map_request(|mut request: Request<RequestBody>| {
            if let Some(peer) = request.body().peer() {
                request.extensions_mut().insert(peer);
            }
            request
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        client.send(HELLO).await;
        let own = client.stream.local_addr().unwrap();
        client.until(&format!("\r\n\r\n{own}.")).await;
        drop(client);
        server.end().await;
    });
}
