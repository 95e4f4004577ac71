//! The HTTP server, one file for each behaviour.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/blocker.rs"]
mod blocker;
#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

mod server {
    mod axum_router;
    mod bad_requests;
    mod by_hand;
    mod clones;
    mod closing;
    mod computing;
    mod drain;
    mod event_streams;
    mod events;
    mod eviction;
    mod exhaustion;
    mod failures;
    mod gone_clients;
    mod kept_bodies;
    mod left_bodies;
    mod listeners;
    mod many;
    mod mistaken;
    mod names;
    mod old_clients;
    mod panics;
    mod peers;
    mod probe;
    mod rates;
    mod requests;
    mod slow;
    mod slow_bodies;
    mod streams;
    mod unix;
    mod upgrades;
    mod writes;

    use std::{
        convert::Infallible,
        future::{Future, IntoFuture},
        net::SocketAddr,
        time::Duration,
    };

    use bytes::Bytes;
    use http::{Request, Response};
    use http_body_util::Full;
    use weald_http::{Drained, RequestBody, ServeError, Server};
    use weald_kernel::{JoinHandle, Runtime, spawn};
    use weald_net::{TcpListener, TcpStream};
    use weald_sync::oneshot;

    type Ended = JoinHandle<Result<Drained, ServeError>>;

    /// A running server, which shuts down when `end` is sent or dropped.
    struct Running {
        address: SocketAddr,
        end: oneshot::Sender<()>,
        ended: Ended,
    }

    const HELLO: &str = "GET / HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Answers every request, and reads no body.
    async fn hello(_request: Request<RequestBody>) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(Response::new(Full::new("hello.".into())))
    }

    fn listener() -> TcpListener {
        TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    /// Serves `service`, with the settings from `set`. Reports name the caller's line, and the reports of each are
    /// limited.
    #[track_caller]
    fn start<S: weald_http::Serve>(
        service: S,
        set: impl FnOnce(
            Server<TcpListener, S, std::future::Pending<()>>,
        ) -> Server<TcpListener, S, std::future::Pending<()>>,
    ) -> Running {
        let listener = listener();
        let address = listener.local_addr().unwrap();
        let (end, mut ending) = oneshot::channel();
        let until = async move {
            let _sent_or_dropped = ending.receive().await;
        };
        let server = set(weald_http::serve(listener, service)).until(until);
        let ended = spawn(server.into_future());
        Running {
            address,
            end,
            ended,
        }
    }

    impl Running {
        async fn end(self) -> Drained {
            let _already_ended = self.end.send(());
            self.ended.await.unwrap().unwrap()
        }
    }

    /// A client that writes and reads text.
    struct Client {
        stream: TcpStream,
        read: Vec<u8>,
    }

    impl Client {
        async fn connect(address: SocketAddr) -> Client {
            let stream = TcpStream::connect(address).await.unwrap();
            let read = Vec::new();
            Client { stream, read }
        }

        async fn send(&self, text: &str) {
            self.stream.write_all(text.as_bytes()).await.unwrap();
        }

        /// Reads until `text` arrives. Returns everything before it.
        async fn until(&mut self, text: &str) -> String {
            loop {
                let all = String::from_utf8_lossy(&self.read).into_owned();
                if let Some(at) = all.find(text) {
                    self.read.drain(..at + text.len());
                    return all[..at].to_owned();
                }
                assert!(
                    self.more().await,
                    "the end came before {text:?}, after {all:?}"
                );
            }
        }

        /// Reads the bytes that are available. Returns false at the end.
        async fn more(&mut self) -> bool {
            let mut buffer = [0; 4096];
            let count = self.stream.read(&mut buffer).await.unwrap_or(0);
            self.read.extend_from_slice(&buffer[..count]);
            count > 0
        }

        /// Reads everything up to the end.
        async fn rest(mut self) -> String {
            while self.more().await {}
            String::from_utf8_lossy(&self.read).into_owned()
        }
    }

    /// Tries with ever longer limits. For what a client must do within a limit and a busy machine may keep it from: a
    /// server that takes no heed of it fails with each.
    async fn with_some_limit<F: Future<Output = Result<(), String>>>(test: impl Fn(Duration) -> F) {
        let mut limit = Duration::from_millis(100);
        while let Err(failure) = test(limit).await {
            assert!(limit < Duration::from_secs(5), "{failure}");
            limit *= 4;
        }
    }

    fn run(workers: usize, test: impl Future<Output = ()>) {
        let _watch = crate::tools::watch();
        let runtime: Runtime = crate::tools::runtime(workers);
        runtime.block_on(test);
    }
}
