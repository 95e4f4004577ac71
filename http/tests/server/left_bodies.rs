//! Bodies that a service leaves unread: the answer says whether the connection goes on.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use weald_http::RequestBody;

use super::{Client, HELLO, run, start};

async fn leave(request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
    match request.uri().path() {
        "/some" => {
            let frame = request.into_body().frame().await;
            frame.unwrap().unwrap();
        }
        "/panics" => panic!("the service panics"),
        "/late" => {
            drop(request);
            weald_kernel::yield_now().await;
        }
        _ => {}
    }
    Ok(Response::new(Full::new("left.".into())))
}

const CLOSE: &str = "connection: close";

#[test]
fn an_answer_before_whose_end_the_body_has_not_arrived_says_that_it_is_the_last() {
    run(2, async {
        let server = start(tower::service_fn(leave), |server| server);
        for path in ["/", "/some", "/late", "/panics"] {
            for start in [
                "content-length: 5\r\n\r\nhe",
                "transfer-encoding: chunked\r\n\r\n2\r\nhe\r\n",
            ] {
                let mut client = Client::connect(server.address).await;
                let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{start}");
                client.send(&request).await;
                let head = client.until("\r\n\r\n").await;
                assert!(head.contains(CLOSE), "{request:?}: {head:?}");
                client.rest().await;
            }
        }
        let mut client = Client::connect(server.address).await;
        let expects = "content-length: 5\r\nexpect: 100-continue\r\n\r\n";
        let request = format!("POST / HTTP/1.1\r\nhost: x\r\n{expects}");
        client.send(&request).await;
        let head = client.until("\r\n\r\n").await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains(CLOSE), "{head:?}");
        drop(client);
        server.end().await;
    });
}

#[test]
fn a_connection_whose_body_has_arrived_goes_on() {
    run(2, async {
        let server = start(tower::service_fn(leave), |server| server);
        let mut client = Client::connect(server.address).await;
        for path in ["/", "/some", "/late", "/panics", "/"] {
            let rest = "content-length: 5\r\n\r\nhello";
            let request = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{rest}");
            client.send(&request).await;
            let head = client.until("\r\n\r\n").await;
            assert!(!head.contains(CLOSE), "{request:?}: {head:?}");
            client.send(HELLO).await;
            client.until("HTTP/1.1 200").await;
            client.until("left.").await;
        }
        drop(client);
        assert!(server.end().await.not_stopped.is_empty());
    });
}
