//! What is no socket: files, names and signals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

mod outside {
    mod files;
    mod names;
    mod offloads;
    mod signals;
}
