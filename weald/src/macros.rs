//! What `#[weald::main]` and `#[weald::test]` call. Not meant to be called otherwise.

use std::process::{ExitCode, Termination};

use crate::{Runtime, Seeds};

/// Runs `body` to its end on a runtime of its own.
///
/// # Panics
/// If there can be no such runtime, and if `body` panics.
pub fn with_workers<F: Future>(workers: usize, body: F) -> F::Output {
    match Runtime::builder().workers(workers).build() {
        Ok(runtime) => runtime.block_on(body),
        Err(error) => panic!("There is no runtime: {error}."),
    }
}

/// Runs `body` on the test runtime with each seed below `seeds`.
///
/// # Panics
/// If a run panics, cannot continue, or returns an error. Its seed is printed.
pub fn with_seeds<T: Termination>(seeds: u64, body: impl AsyncFn() -> T) {
    Seeds::new(seeds).run(async |_| {
        let code = body().await.report();
        assert!(code == ExitCode::SUCCESS, "The test returned an error.");
    });
}
