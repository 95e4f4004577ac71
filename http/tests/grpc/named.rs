//! Streams have names, and are judged by their routes, although all of them are jobs of one kind.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::{body::Incoming, service::Service};
use weald_kernel::Runtime;

use super::{Connection, serve};
use crate::{
    blocker::Blocker,
    reports::{collect_reports, reports},
    tools::{until_yielding, watch},
};

/// A service with a name that reports can give.
#[derive(Clone)]
struct Shop(Blocker);

impl Service<Request<Incoming>> for Shop {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        assert_ne!(request.uri().path(), "/shop.Orders/Falls", "no shop");
        let shop = self.clone();
        Box::pin(async move {
            match request.uri().path() {
                "/shop.Orders/Blocks" => shop.0.block(),
                "/shop.Orders/Panics" => panic!("sold out"),
                _ => {}
            }
            Ok(Response::new(Full::new("done.".into())))
        })
    }
}

async fn ask(connection: &Connection<Empty<Bytes>>, method: &str) -> hyper::Result<Bytes> {
    let request = Request::post(format!("http://test/shop.Orders/{method}")).body(Empty::new());
    let mut sender = connection.0.clone();
    let response = sender.send_request(request.unwrap()).await?;
    Ok(response.into_body().collect().await?.to_bytes())
}

#[test]
fn streams_are_named_and_those_of_other_methods_do_not_wait_for_one_that_blocks() {
    let _watch = watch();
    collect_reports();
    let runtime = Runtime::builder().workers(1).spare_threads(8).build();
    runtime.unwrap().block_on(async {
        let blocker = Blocker::default();
        let address = serve(Shop(blocker.clone()));
        let connection = Connection::to(address).await;
        assert!(ask(&connection, "Panics").await.is_err());
        let panics = "`POST /shop.Orders/Panics from 127.0.0.1:";
        until_yielding(|| !reports("weald::panic", panics).is_empty()).await;
        let text = &reports("weald::panic", panics)[0].text;
        assert!(
            text.contains(", served by grpc::grpc::named::Shop`"),
            "{text}"
        );
        assert!(ask(&connection, "Falls").await.is_err());
        // On the same connection.
        assert_eq!(ask(&connection, "Sells").await.unwrap(), "done.");
        let asked: Vec<_> = (0..60)
            .map(|_| {
                let connection = connection.clone();
                weald_kernel::spawn(async move { ask(&connection, "Blocks").await })
            })
            .collect();
        until_yielding(|| blocker.begun() >= 4).await;
        for _ in 0..100 {
            assert_eq!(ask(&connection, "Sells").await.unwrap(), "done.");
        }
        assert!(blocker.begun() < 10, "{} have a thread", blocker.begun());
        let blocks = "`POST /shop.Orders/Blocks from 127.0.0.1:";
        until_yielding(|| !reports("weald::monitor", blocks).is_empty()).await;
        blocker.open();
        for asked in asked {
            assert_eq!(asked.await.unwrap().unwrap(), "done.");
        }
    });
}
