//! Hyper's HTTP/2 client and server, without anything on top.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};

use super::{Connection, run, serve};

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.unwrap().to_bytes();
    Ok(Response::new(Full::new(body)))
}

async fn ask(connection: &mut Connection<Full<Bytes>>, text: String) {
    let request = Request::post("http://test/echo");
    let request = request.body(Full::new(Bytes::from(text.clone())));
    let response = connection.0.send_request(request.unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, text);
}

#[test]
fn a_thousand_requests_after_one_another() {
    for workers in [1, 2] {
        run(workers, async {
            let mut connection = Connection::to(serve(service_fn(echo))).await;
            for number in 0..1000 {
                ask(&mut connection, format!("request {number}")).await;
            }
        });
    }
}

#[test]
fn a_thousand_requests_at_once() {
    run(2, async {
        let connection = Connection::to(serve(service_fn(echo))).await;
        let asked: Vec<_> = (0..1000)
            .map(|number| {
                let mut connection = connection.clone();
                weald_kernel::spawn(async move {
                    ask(&mut connection, format!("request {number}")).await;
                })
            })
            .collect();
        for asked in asked {
            asked.await.unwrap();
        }
    });
}
