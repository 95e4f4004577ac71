//! Input and output that uses no socket: files, names, offloaded work and signals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../kernel/tests/support/reports.rs"]
mod reports;
#[path = "../../kernel/tests/support/tools.rs"]
mod tools;

mod outside {
    mod blocked;
    mod files;
    mod names;
    mod offloads;
    mod pipes;
    mod signals;
}
