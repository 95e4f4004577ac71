//! Weald's servers, which another process measures; the other half of `workload::network`.
//!
//! Invariant: the calling thread is not a worker. It waits for the end of its input and then ends the server.

use std::future::{Ready, ready};
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response};
use http_body_util::Full;
use tower_service::Service;
use weald::Runtime;
use weald::net::{TcpListener, TcpStream};

use crate::error::Error;
use crate::params::Params;
use crate::programs::dialogue::{Dialogue, GREETING, GREETING_TYPE};

/// How long a server may take to end.
const STOP: Duration = Duration::from_secs(2);

/// How the program makes its allocator return memory, if it can.
static RETURN_MEMORY: OnceLock<fn()> = OnceLock::new();

/// Makes the servers call `collect` when many connections have given back their buffers. The first call counts.
pub fn return_memory_with(collect: fn()) {
    let _is_first = RETURN_MEMORY.set(collect);
}

/// The dialogue whose server has this name.
#[must_use]
pub fn find(name: &str) -> Option<Dialogue> {
    let all = [Dialogue::Echo, Dialogue::Hello];
    all.into_iter().find(|dialogue| dialogue.server() == name)
}

/// Serves until stdin ends.
pub fn run(dialogue: Dialogue, params: &Params) -> Result<(), Error> {
    let runtime = Runtime::builder().workers(params.count("workers")?).build();
    let runtime =
        runtime.map_err(|error| Error::workload(format!("Cannot start the runtime: {error}.")))?;
    let failed = |error: io::Error| Error::workload(format!("The server cannot serve: {error}."));
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = runtime.block_on(async move { TcpListener::bind(address) });
    let listener = listener.map_err(failed)?;
    println!("port {}", listener.local_addr().map_err(failed)?.port());
    match dialogue {
        Dialogue::Echo => runtime.spawn(echo(listener)).detach(),
        Dialogue::Hello => runtime.spawn(hello(listener)).detach(),
    }
    let mut rest = Vec::new();
    let ended = io::stdin().read_to_end(&mut rest);
    runtime.shutdown(STOP);
    ended.map(|_count| ()).map_err(failed)
}

async fn echo(listener: TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => weald::spawn(give_back(stream)).detach(),
            Err(error) => return eprintln!("The server cannot accept: {error}."),
        }
    }
}

/// Sends back whatever arrives, until the client goes.
async fn give_back(stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut place = [0; 1024];
    loop {
        match stream.read(&mut place).await? {
            0 => return Ok(()),
            count => stream.write_all(&place[..count]).await?,
        }
    }
}

async fn hello(listener: TcpListener) {
    let return_memory = || {
        if let Some(collect) = RETURN_MEMORY.get() {
            collect();
        }
    };
    let server = weald::http::serve(listener, Hello).on_buffers_freed(return_memory);
    if let Err(error) = server.await {
        eprintln!("The server cannot serve: {error}.");
    }
}

/// Greets every client, whatever it asks for.
#[derive(Clone, Copy)]
struct Hello;

impl<B> Service<Request<B>> for Hello {
    type Response = Response<Full<Bytes>>;
    type Error = std::convert::Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _request: Request<B>) -> Self::Future {
        let mut response = Response::new(Full::new(Bytes::from_static(GREETING.as_bytes())));
        let kind = HeaderValue::from_static(GREETING_TYPE);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        ready(Ok(response))
    }
}
