//! The board as browsers and programs see it, through real sockets.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "web/api.rs"]
mod api;
#[path = "web/changes.rs"]
mod changes;
#[path = "web/client.rs"]
mod client;
#[path = "web/described.rs"]
mod described;
#[path = "web/described_fuzz.rs"]
mod described_fuzz;
#[path = "web/exchange.rs"]
mod exchange;
#[path = "web/limits.rs"]
mod limits;
#[path = "web/live.rs"]
mod live;
#[path = "web/measures.rs"]
mod measures;
#[path = "web/moderating.rs"]
mod moderating;
#[path = "web/names.rs"]
mod names;
#[path = "web/pages.rs"]
mod pages;
#[path = "web/past.rs"]
mod past;
#[path = "web/safety.rs"]
mod safety;
