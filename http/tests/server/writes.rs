//! Answers to requests that arrive together leave in one write, unless the service stands still.

use std::{
    convert::Infallible,
    io::{ErrorKind, Read},
    net::TcpStream,
    sync::{Arc, Mutex, mpsc},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use weald_http::RequestBody;
use weald_kernel::{Wait, blocking};
use weald_sync::oneshot;

use super::{Client, HELLO, run, start};

type Body = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Result<Response<Body>, Infallible>;

/// What the service knows of its client: the client's own socket.
type Peer = Arc<Mutex<Option<TcpStream>>>;

fn answer(text: &str) -> Answer {
    let body = Full::new(Bytes::copy_from_slice(text.as_bytes()));
    Ok(Response::new(body.boxed_unsync()))
}

/// What has arrived at the client. The client's socket never blocks.
fn arrived(peer: &Peer) -> String {
    let mut buffer = vec![0; 64 << 10];
    let peer = peer.lock().unwrap();
    match peer.as_ref().unwrap().read(&mut buffer) {
        Ok(count) => String::from_utf8_lossy(&buffer[..count]).into_owned(),
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            String::new()
        }
    }
}

async fn connect(address: std::net::SocketAddr, peer: &Peer) -> Client {
    let client = Client::connect(address).await;
    let socket = rustix::io::fcntl_dupfd_cloexec(&client.stream, 0).unwrap();
    *peer.lock().unwrap() = Some(TcpStream::from(socket));
    client
}

fn ask(path: &str) -> String {
    HELLO.replace(" / ", &format!(" {path} "))
}

#[test]
fn answers_to_requests_that_arrive_together_arrive_together() {
    let _watch = crate::tools::watch();
    // On a busy machine a connection may look stuck, and then what it holds is sent.
    let runtime = weald_kernel::Runtime::builder()
        .workers(2)
        .stuck_after(std::time::Duration::from_secs(3_600))
        .build()
        .unwrap();
    runtime.block_on(async {
        let peer = Peer::default();
        let served = peer.clone();
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            // Nothing has left while the requests before this one were answered.
            let early = arrived(&served);
            let answer = answer(&format!("{}.{early}", request.uri().path()));
            std::future::ready(answer)
        });
        let server = start(service, |server| server);
        let client = connect(server.address, &peer).await;
        for round in 0..3 {
            let paths: Vec<String> = (0..10).map(|number| format!("/{round}/{number}")).collect();
            let requests: String = paths.iter().map(|path| ask(path)).collect();
            client.send(&requests).await;
            client.stream.readable().await.unwrap();
            // One read, because it was one write.
            let answers = arrived(&peer);
            let bodies: Vec<&str> = answers
                .split("HTTP/1.1 200 OK\r\n")
                .skip(1)
                .map(|answer| answer.rsplit("\r\n").next().unwrap())
                .collect();
            let wanted: Vec<String> = paths.iter().map(|path| format!("{path}.")).collect();
            assert_eq!(bodies, wanted, "{answers}");
        }
        drop(client);
        *peer.lock().unwrap() = None;
        server.end().await;
    });
}

/// Each of these requests follows two others, whose answers the client has while the third one is worked on.
#[test]
fn a_request_that_takes_long_holds_no_earlier_answer_back() {
    run(2, async {
        let (release, released) = mpsc::channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let waits: Arc<Mutex<Option<oneshot::Receiver<()>>>> = Arc::default();
        let waiting = waits.clone();
        let service = tower::service_fn(move |request: Request<RequestBody>| {
            let (released, waiting) = (released.clone(), waiting.clone());
            async move {
                let wait = waiting.lock().unwrap().take();
                match request.uri().path() {
                    "/awaits" => _ = wait.unwrap().receive().await,
                    "/waits" => _ = wait.unwrap().receive().wait(),
                    "/blocking" => _ = blocking(|| released.lock().unwrap().recv()),
                    "/blocks" => _ = released.lock().unwrap().recv(),
                    _ => *waiting.lock().unwrap() = wait,
                }
                answer(&format!("{}.", request.uri().path()))
            }
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        for path in ["/awaits", "/waits", "/blocking", "/blocks"] {
            let (end, ending) = oneshot::channel();
            *waits.lock().unwrap() = Some(ending);
            let requests = [ask("/first"), ask("/second"), ask(path), ask("/last")];
            client.send(&requests.concat()).await;
            client.until("/first.").await;
            client.until("/second.").await;
            match path {
                "/awaits" | "/waits" => end.send(()).unwrap(),
                _ => release.send(()).unwrap(),
            }
            client.until(&format!("{path}.")).await;
            client.until("/last.").await;
        }
        drop(client);
        server.end().await;
    });
}

/// Larger answers are not held, and come in order with those that are.
#[test]
fn answers_of_all_sizes_come_in_order() {
    run(2, async {
        let service = tower::service_fn(|request: Request<RequestBody>| async move {
            let path = request.uri().path();
            let length: usize = path[1..].parse().unwrap();
            answer(&format!("{path}{}.", "x".repeat(length)))
        });
        let server = start(service, |server| server);
        let mut client = Client::connect(server.address).await;
        let sizes = [0, 10_000, 5_000, 5_000, 100_000, 1, 300_000, 0, 16_384, 3];
        let requests: String = sizes.iter().map(|size| ask(&format!("/{size}"))).collect();
        client.send(&requests).await;
        for size in sizes {
            client.until("\r\n\r\n").await;
            let body = client.until(".").await;
            assert_eq!(body.len(), format!("/{size}").len() + size);
        }
        drop(client);
        server.end().await;
    });
}
