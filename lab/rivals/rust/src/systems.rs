//! The runtimes.

mod on_may;
mod on_smol;
mod on_threads;
mod on_tokio;

pub(crate) use on_may::May;
pub(crate) use on_smol::Smol;
pub(crate) use on_threads::Std;
pub(crate) use on_tokio::{Flavour, Tokio, on_runtime};
