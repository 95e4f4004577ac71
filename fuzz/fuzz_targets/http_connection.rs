//! Arbitrary bytes as a client of the HTTP server: each connection is answered or closed, in virtual time, and
//! the server then shuts down with no connection left over.
//!
//! The first three bytes are settings. The rest is what the client sends, in pieces.

#![no_main]
#![allow(unsafe_code)]

use std::{
    convert::Infallible, ffi::c_char, future::IntoFuture, io, net::SocketAddr, time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use libfuzzer_sys::fuzz_target;
use weald_http::{Listen, RequestBody};
use weald_kernel::{Runtime, sleep, spawn};
use weald_net::{Stream, UnixStream};
use weald_sync::{Event, channel, oneshot};

/// AddressSanitizer must keep frames on the real stacks, between which the kernel switches.
#[unsafe(no_mangle)]
extern "C" fn __asan_default_options() -> *const c_char {
    c"detect_stack_use_after_return=0".as_ptr()
}

/// Longer than all time limits of the server together, in virtual time.
const LONG: Duration = Duration::from_secs(3600);

/// The flags in the first byte of an input.
const ANSWER_HALF_CLOSED: u8 = 1;
const READ_BODIES: u8 = 2;
const SMALL_BUFFER: u8 = 4;
const SHUT_DOWN_AFTERWARDS: u8 = 8;

/// A listener whose connections come from a channel.
struct Connections(channel::Receiver<UnixStream>);

impl Listen for Connections {
    type Transport = std::os::unix::net::UnixStream;

    fn next(
        &self,
    ) -> impl Event<Output = io::Result<(Stream<Self::Transport>, Option<SocketAddr>)>, Branch: Send>
    + Send {
        self.0.receive().wrap(|received| {
            received
                .map_err(io::Error::other)
                .map(|stream| (stream, None))
        })
    }
}

fuzz_target!(|input: &[u8]| {
    let [flags, piece, pause, sent @ ..] = input else {
        return;
    };
    Runtime::test(1).block_on(converse(
        *flags,
        usize::from(*piece) + 1,
        // Up to two seconds, so that a connection may give up its buffers in between.
        Duration::from_millis(8 * u64::from(*pause)),
        sent,
    ));
});

/// Sends `sent` to a server in pieces of `piece` bytes, `pause` apart, and checks what comes back.
async fn converse(flags: u8, piece: usize, pause: Duration, sent: &[u8]) {
    let (connect, connections) = channel::unbounded();
    let (end, mut ended) = oneshot::channel::<()>();
    let reads_bodies = flags & READ_BODIES != 0;
    let most = sent.len();
    let service =
        tower::service_fn(move |request: Request<RequestBody>| answer(request, reads_bodies, most));
    let mut server = weald_http::serve(Connections(connections), service);
    if flags & ANSWER_HALF_CLOSED != 0 {
        server = server.answer_half_closed();
    }
    if flags & SMALL_BUFFER != 0 {
        server = server.max_buffer(0);
    }
    let until = async move {
        let _sent_or_dropped = ended.receive().await;
    };
    let server = spawn(server.until(until).into_future());

    let (client, stream) = UnixStream::pair().expect("a pair of sockets");
    connect.try_send(stream).expect("the server accepts");
    for piece in sent.chunks(piece) {
        // Fails once the server has closed the connection.
        if client.write_all(piece).await.is_err() {
            break;
        }
        sleep(pause).await;
    }
    if flags & SHUT_DOWN_AFTERWARDS != 0 {
        let _already_closed = client.shutdown(std::net::Shutdown::Write);
    }
    let received = read_to_end(&client).await;
    assert!(
        received.is_empty() || received.starts_with(b"HTTP/1."),
        "{:?}",
        String::from_utf8_lossy(&received)
    );

    end.send(()).expect("the server runs");
    let drained = server.await.expect("the server does not panic");
    let drained = drained.expect("the listener does not fail");
    assert!(drained.not_stopped.is_empty(), "{drained:?}");
}

/// Answers with the length of the body, if it reads it.
async fn answer(
    request: Request<RequestBody>,
    reads_bodies: bool,
    most: usize,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut text = String::from("unread");
    if reads_bodies && let Ok(body) = request.into_body().collect().await {
        let length = body.to_bytes().len();
        assert!(length <= most, "a body of {length} bytes out of {most}");
        text = length.to_string();
    }
    Ok(Response::new(Full::new(text.into())))
}

/// Everything up to the end, or to a reset. Panics if neither comes.
async fn read_to_end(client: &UnixStream) -> Vec<u8> {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = client.read(&mut buffer).within(LONG).await;
        match read.expect("the server answers or closes the connection") {
            Ok(0) | Err(_) => return received,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
        }
    }
}
