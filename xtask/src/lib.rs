//! The routines of the repository, as a library that the tests can call.
//!
//! `tidy` checks the rules that no other tool checks; the other routines run commands. Only `main.rs`
//! and the tests of this package call them.

pub mod checkout;
pub mod steps;
pub mod tools;

pub mod limited;

pub mod features;
pub mod loom;
pub mod rendered;
pub mod smoke;
pub mod tidy;

pub mod bench_report;
pub mod book;
pub mod ci;
pub mod header;
pub mod install;
pub mod installed;
pub mod lint;
pub mod package;
pub mod paths;
pub mod platforms;
pub mod sanitizers;
pub mod soak;
pub mod toolchains;
