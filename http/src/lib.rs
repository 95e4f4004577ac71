//! HTTP served by Weald: any tower service on hyper, without another runtime.
//!
//! To follow a request, read `server` (accepts), `connection` (one job for each), `handler` (calls the
//! service). What makes a server behave under load and at its end stands in files of its own: `activity`
//! (what a connection does), `watchdog` (deadlines), `registry` (who is there).
//!
//! ```
//! use std::convert::Infallible;
//! use http_body_util::Full;
//! use weald_net::TcpListener;
//!
//! # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
//! # runtime.block_on(async {
//! let hello = tower::service_fn(|_request| async {
//!     Ok::<_, Infallible>(http::Response::new(Full::new(bytes::Bytes::from("hello"))))
//! });
//! let listener = TcpListener::bind("127.0.0.1:0".parse().expect("an address"))?;
//! let ended = weald_http::serve(listener, hello)
//!     .until(async { /* a signal, say */ })
//!     .await?;
//! assert!(ended.not_stopped.is_empty());
//! # Ok::<(), weald_http::ServeError>(())
//! # }).unwrap();
//! ```
//!
//! Absent: HTTP/2 and TLS.

// The server.
mod server;

mod ended;

mod listen;

mod connection;

mod noted;

mod handler;

mod request_body;

// What it knows of its connections.
mod activity;

mod reading;

mod registry;

mod watchdog;

// Hyper's traits.
pub mod rt;

// For bodies.
mod sse;

pub use ended::{Drained, ServeError, Unfinished};
pub use handler::Serve;
pub use listen::Listen;
pub use request_body::RequestBody;
pub use server::{Server, serve};
pub use sse::KeepAlive;
