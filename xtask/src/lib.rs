//! The routines of the repository, as a library so that the tests can call them.
//!
//! `tidy` holds the rules that no compiler checks; `ci`, `soak` and `bench_report` run commands.
//! All of them may be called from `main.rs` and from the tests of this package only.

pub mod checkout;
pub mod steps;
pub mod tools;

pub mod loom;
pub mod smoke;
pub mod tidy;

pub mod bench_report;
pub mod ci;
pub mod lint;
pub mod soak;
pub mod toolchains;
