//! A gRPC service and its client, both of tonic, without tonic's own transport.

use std::{
    convert::Infallible,
    future::{Ready, ready},
};

use bytes::{Buf, BufMut, Bytes};
use futures_util::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use http::{Request as HttpRequest, Response as HttpResponse, uri::PathAndQuery};
use hyper::{body::Incoming, service::service_fn};
use tonic::{
    Code, Request, Response, Status, Streaming,
    body::Body,
    client::Grpc as Client,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::Grpc as Server,
};

use weald_kernel::spawn;
use weald_sync::channel;

use super::{Connection, run, serve};

/// Messages are bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Answers with the message that it got.
fn same(request: Request<Bytes>) -> Ready<Result<Response<Bytes>, Status>> {
    ready(Ok(Response::new(request.into_inner())))
}

type Messages = BoxStream<'static, Result<Bytes, Status>>;

/// Answers with as many messages as the message has bytes.
fn each_byte(request: Request<Bytes>) -> Ready<Result<Response<Messages>, Status>> {
    let message = request.into_inner();
    let bytes = (0..message.len()).map(move |at| Ok(message.slice(at..=at)));
    ready(Ok(Response::new(stream::iter(bytes).boxed())))
}

/// Answers each message with itself, as it arrives.
fn each_message(request: Request<Streaming<Bytes>>) -> Ready<Result<Response<Messages>, Status>> {
    ready(Ok(Response::new(request.into_inner().boxed())))
}

async fn route(request: HttpRequest<Incoming>) -> Result<HttpResponse<Body>, Infallible> {
    let mut server = Server::new(Raw);
    Ok(match request.uri().path() {
        "/test/Same" => server.unary(tower::service_fn(same), request).await,
        "/test/EachByte" => {
            let service = tower::service_fn(each_byte);
            server.server_streaming(service, request).await
        }
        "/test/EachMessage" => {
            let service = tower::service_fn(each_message);
            server.streaming(service, request).await
        }
        _ => Status::unimplemented("no such method").into_http(),
    })
}

type TestClient = Client<Connection<Body>>;

/// A client that has its own server.
async fn client() -> TestClient {
    let origin = "http://test".parse().unwrap();
    Client::with_origin(Connection::to(serve(service_fn(route))).await, origin)
}

async fn call_same(client: &mut TestClient, text: String) {
    client.ready().await.unwrap();
    let request = Request::new(Bytes::from(text.clone()));
    let path = PathAndQuery::from_static("/test/Same");
    let response = client.unary(request, path, Raw).await.unwrap();
    assert_eq!(response.into_inner(), text);
}

#[test]
fn a_thousand_unary_calls_after_one_another() {
    for workers in [1, 2] {
        run(workers, async {
            let mut client = client().await;
            for number in 0..1000 {
                call_same(&mut client, format!("call {number}")).await;
            }
        });
    }
}

#[test]
fn a_thousand_unary_calls_at_once() {
    run(2, async {
        let client = client().await;
        let called: Vec<_> = (0..1000)
            .map(|number| {
                let mut client = client.clone();
                spawn(async move { call_same(&mut client, format!("call {number}")).await })
            })
            .collect();
        for called in called {
            called.await.unwrap();
        }
    });
}

#[test]
fn a_server_streams() {
    run(2, async {
        let mut client = client().await;
        let long: Bytes = (0..=255).cycle().take(10_000).collect();
        for _ in 0..10 {
            client.ready().await.unwrap();
            let request = Request::new(long.clone());
            let path = PathAndQuery::from_static("/test/EachByte");
            let response = client.server_streaming(request, path, Raw).await.unwrap();
            let answers: Vec<Bytes> = response.into_inner().try_collect().await.unwrap();
            assert_eq!(answers.concat(), long);
        }
    });
}

/// Each message is sent after the answer to the one before it.
#[test]
fn both_sides_stream_in_turns() {
    run(2, async {
        let mut client = client().await;
        client.ready().await.unwrap();
        let (sender, receiver) = channel::unbounded::<Bytes>();
        let messages = stream::unfold(receiver, |receiver| async {
            let message = receiver.receive().await.ok()?;
            Some((message, receiver))
        });
        let path = PathAndQuery::from_static("/test/EachMessage");
        let request = Request::new(messages);
        let response = client.streaming(request, path, Raw).await.unwrap();
        let mut answers = response.into_inner();
        for number in 0..1000 {
            let message = Bytes::from(format!("message {number}"));
            sender.try_send(message.clone()).unwrap();
            assert_eq!(answers.message().await.unwrap().unwrap(), message);
        }
        drop(sender);
        assert_eq!(answers.message().await.unwrap(), None);
    });
}

#[test]
fn a_method_that_does_not_exist_is_a_status() {
    run(1, async {
        let mut client = client().await;
        client.ready().await.unwrap();
        let path = PathAndQuery::from_static("/test/Other");
        let called = client.unary(Request::new(Bytes::new()), path, Raw).await;
        assert_eq!(called.unwrap_err().code(), Code::Unimplemented);
    });
}
