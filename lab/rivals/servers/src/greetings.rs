//! The servers that echo or greet: tokio and smol with a task for each connection, hyper with its own settings, and
//! axum as its manual says.

use std::net;
use std::thread;

use axum::Router;
use axum::routing::get;
use axum::serve::ListenerExt;
use bytes::Bytes;
use common::fail;
use common::programs::dialogue::{GREETING, GREETING_TYPE};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response};
use smol::io::{AsyncReadExt as _, AsyncWriteExt as _};
use smol::{Async, Executor, future};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;

use crate::with_hyper;

/// Turns the listener into one of tokio's, and runs `serve` on a runtime.
pub(crate) fn on_tokio<F: Future<Output = ()>>(
    listener: net::TcpListener,
    workers: usize,
    serve: impl FnOnce(TcpListener) -> F,
) -> ! {
    let mut builder = match workers {
        // It is the cheaper runtime for one worker.
        1 => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    let runtime = builder.worker_threads(workers).enable_all().build();
    let runtime = runtime.unwrap_or_else(|_| fail("The runtime cannot start: give fewer workers."));
    runtime.block_on(async {
        let nonblocking = listener.set_nonblocking(true);
        match nonblocking.and_then(|()| TcpListener::from_std(listener)) {
            Ok(listener) => serve(listener).await,
            Err(_) => fail("The listener cannot be watched."),
        }
    });
    fail("The server has ended.")
}

/// Gives back what comes, until the client is gone.
macro_rules! give_back {
    ($stream:ident) => {{
        $stream.set_nodelay(true)?;
        let mut place = [0; 1024];
        loop {
            match $stream.read(&mut place).await? {
                0 => return std::io::Result::Ok(()),
                count => $stream.write_all(&place[..count]).await?,
            }
        }
    }};
}

pub(crate) async fn with_tokio(listener: TcpListener) {
    while let Ok((mut stream, _)) = listener.accept().await {
        tokio::spawn(async move { give_back!(stream) });
    }
}

pub(crate) async fn on_hyper(listener: TcpListener) {
    with_hyper::accept(listener, |_: &Request<Incoming>| {
        let mut response = Response::new(Full::new(Bytes::from_static(GREETING.as_bytes())));
        let kind = HeaderValue::from_static(GREETING_TYPE);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    })
    .await;
}

pub(crate) async fn with_axum(listener: TcpListener) {
    let hello = || async { ([(CONTENT_TYPE, GREETING_TYPE)], GREETING) };
    serve_routes(listener, Router::new().route("/", get(hello))).await;
}

/// Serves these routes with axum.
pub(crate) async fn serve_routes(listener: TcpListener, router: Router) {
    let listener = listener.tap_io(|stream: &mut TcpStream| {
        // It fails only if the client is gone.
        let _gone = stream.set_nodelay(true);
    });
    // It never ends on its own.
    let _never = axum::serve(listener, router).await;
}

/// An executor with one thread for each worker.
pub(crate) fn on_smol(listener: net::TcpListener, workers: usize) -> ! {
    let executor: &'static Executor<'static> = Box::leak(Box::new(Executor::new()));
    for _ in 1..workers {
        thread::spawn(|| smol::block_on(executor.run(future::pending::<()>())));
    }
    smol::block_on(executor.run(async {
        let Ok(listener) = Async::new(listener) else {
            fail("The listener cannot be watched.");
        };
        while let Ok((stream, _)) = listener.accept().await {
            let mut stream = smol::net::TcpStream::from(stream);
            executor.spawn(async move { give_back!(stream) }).detach();
        }
    }));
    fail("The server has ended.")
}
