//! Hyper's runtime traits, for programs that drive hyper directly: executor, timer, and streams.
//!
//! With them hyper's HTTP/2 and gRPC (tonic without its feature `transport`) run on Weald. The server does not speak
//! HTTP/2 itself:
//!
//! ```
//! use std::convert::Infallible;
//! use bytes::Bytes;
//! use http_body_util::{BodyExt, Full};
//! use hyper::{client::conn::http2 as client, server::conn::http2 as server, service::service_fn};
//! use weald::http::rt::{Executor, Io, Timer};
//! use weald::net::{TcpListener, TcpStream};
//!
//! # let runtime = weald::Runtime::builder().workers(1).build()?;
//! # runtime.block_on(async {
//! let listener = TcpListener::bind("127.0.0.1:0".parse()?)?;
//! let address = listener.local_addr()?;
//! weald::spawn(async move {
//!     while let Ok((stream, _peer)) = listener.accept().await {
//!         let hello = service_fn(|_request| async {
//!             Ok::<_, Infallible>(http::Response::new(Full::new(Bytes::from("hello"))))
//!         });
//!         let connection = server::Builder::new(Executor).timer(Timer).serve_connection(Io(stream), hello);
//!         weald::spawn(connection).detach();
//!     }
//! })
//! .detach();
//!
//! let stream = Io(TcpStream::connect(address).await?);
//! let (mut sender, connection) = client::Builder::new(Executor).timer(Timer).handshake(stream).await?;
//! weald::spawn(connection).detach();
//! let request = http::Request::get("http://here/").body(Full::new(Bytes::new()))?;
//! let response = sender.send_request(request).await?;
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    future::Future,
    io::{self, IoSlice},
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Read, ReadBufCursor, Write};
use weald_kernel::Spawn;
use weald_net::{Stream, Transport};

mod futures;
mod named;

pub use futures::Futures;
pub use named::{Named, NamedBody, NamedFuture};

/// The most bytes read at once.
const MAX_READ: usize = 16 << 10;

/// Spawns hyper's background work, such as the streams of HTTP/2, as jobs of the current runtime. Reports name the job
/// from which it was spawned: give the job that serves a connection a name
/// ([`Spawn::name`](weald_kernel::Spawn::name)). The requests of a server have names of their own if its service is
/// [`Named`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Executor;

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, future: F) {
        let work = match weald_kernel::current_name() {
            Some(parent) => {
                let name = parent.name.as_deref().unwrap_or("a connection");
                let work = Spawn::new().name(format!("hyper's work for {name}"));
                work.site(parent.site)
            }
            None => Spawn::new(),
        };
        work.spawn(future).detach();
    }
}

/// The clock and the timers of the current runtime, virtual time included.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer;

/// A sleep of [`Timer`].
struct HyperSleep(weald_kernel::Sleep);

impl Future for HyperSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl hyper::rt::Sleep for HyperSleep {}

impl hyper::rt::Timer for Timer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HyperSleep(weald_kernel::sleep(duration)))
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HyperSleep(weald_kernel::sleep_until(deadline)))
    }

    fn now(&self) -> Instant {
        weald_kernel::now()
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn hyper::rt::Sleep>>, deadline: Instant) {
        match sleep.as_mut().downcast_mut_pin::<HyperSleep>() {
            Some(mut ours) => ours.0 = weald_kernel::sleep_until(deadline),
            None => *sleep = self.sleep_until(deadline),
        }
    }
}

/// Adapts a stream of Weald to hyper's `Read` and `Write`.
#[derive(Debug)]
pub struct Io<T: Transport>(pub Stream<T>);

/// Reads into hyper's buffer. Calls `seen` with the bytes, and returns their number.
pub(crate) fn read_into<T: Transport>(
    stream: &Stream<T>,
    cx: &mut Context<'_>,
    mut buffer: ReadBufCursor<'_>,
    mut seen: impl FnMut(&[u8]),
) -> Poll<io::Result<usize>> {
    // Through a buffer on the stack, because writing directly into hyper's takes unsafe code. Only the bytes
    // that arrived are copied.
    let mut stack_buffer = [const { MaybeUninit::uninit() }; MAX_READ];
    let room = buffer.remaining().min(MAX_READ);
    let take = |bytes: &[u8]| {
        seen(bytes);
        buffer.put_slice(bytes);
    };
    stream.poll_read_with(cx, &mut stack_buffer[..room], take)
}

impl<T: Transport> Read for Io<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        read_into(&self.0, cx, buffer, |_bytes| ()).map_ok(|_count| ())
    }
}

impl<T: Transport> Write for Io<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_write_vectored(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.shutdown(std::net::Shutdown::Write) {
            // A peer that is already gone is no error.
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }
}
