//! An HTTP server for Weald: any tower service on hyper, without another runtime.
//!
#![doc = include_str!("page.md")]

// To follow a request, read `server` (accepts), `entrance` (spawns), `accepted` (one job per connection), `connection`
// (what the job does), `handler` (calls the service). Separate files make the server behave under load and at shutdown:
// `activity` (what a connection is doing), `watchdog` (deadlines, by one timer for each connection), `reading` (a slow
// client or a slow service?), `rate` (the least rate), `registry` (all connections; at the limit, the one that has been
// idle longest is closed), `crowd` (too many to keep buffers), `refusal` (bad requests), `piece` (large bodies in
// pieces), `wire` (what is written and not yet sent: answers to requests that came together leave together), `closing`
// (how a connection ends: a reset must not destroy an unread answer), `date` (a clock before 1970),
// `description` (names in reports).
//
// A stream of events: hyper writes its head, and then the connection takes the body (`event_body`, `event_slot`) and
// writes the chunks itself (`connection/streaming`).
//
// After the handler: the answer goes from `handler` through `in_flight` (a request's life) and `response_body` (paced
// by `piece`) to `wire`; a connection ends in `connection/ending`, and then in `closing`; its service goes in
// `leaving`.
//
// If the route of a request is suspect, the connection leaves its worker before it clones and calls the service
// (`kernel/src/api/place.rs`, `poll_place`).

// Primitives: hyper's traits, listeners, limits, reports, bodies.
mod accept_failures;
mod date;
mod ended;
mod event_slot;
mod flags;
mod freed;
mod known_routes;
mod limits;
mod listen;
mod originals;
mod phase;
mod piece;
mod rate;
mod reading;
mod request_note;
mod route;
pub mod rt;
mod sse;

// What the server knows about its connections.
mod activity;
mod crowd;
mod description;
mod registry;
mod watchdog;

// One connection, from its socket to the service.
mod admitted;
mod closing;
mod connection;
mod event_body;
mod handler;
mod in_flight;
mod leaving;
mod refusal;
mod request_body;
mod response_body;
mod service_slot;
mod tracked_io;
mod unserved;
mod wire;

// The server.
mod accepted;
mod entrance;
mod server;

pub use ended::{Drained, ServeError, Step, Unfinished};
pub use handler::Serve;
pub use listen::Listen;
pub use rate::MinRate;
pub use request_body::RequestBody;
pub use server::{Server, serve};
pub use sse::KeepAlive;
