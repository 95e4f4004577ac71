//! `#[weald::main]` and `#[weald::test]` do what their options say.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;
use std::time::Duration;

#[weald::test]
async fn a_test_waits_in_real_time() {
    let before = std::time::Instant::now();
    weald::sleep(Duration::from_millis(1)).await;
    assert!(before.elapsed() >= Duration::from_millis(1));
}

#[weald::test(workers = 2)]
async fn a_test_returns_its_error() -> Result<(), weald::JoinError> {
    let handle = weald::spawn(async { 6 * 7 });
    assert_eq!(handle.await?, 42);
    Ok(())
}

#[weald::test(seed = 7)]
async fn with_a_seed_time_is_virtual() {
    let before = weald::now();
    weald::sleep(Duration::from_secs(86_400)).await;
    assert_eq!(weald::now() - before, Duration::from_secs(86_400));
}

#[weald::test(seeds = 3)]
async fn with_seeds_each_run_is_new() -> Result<(), weald::JoinError> {
    let body = "the name is the user's own";
    assert_eq!(weald::spawn(async { body.len() }).await?, 26);
    Ok(())
}

#[weald::test(seeds = 3)]
#[should_panic(expected = "The test returned an error.")]
async fn with_seeds_an_error_fails_the_test() -> Result<(), weald::JoinError> {
    let cancelled = weald::spawn(std::future::pending::<()>());
    cancelled.cancel();
    cancelled.await
}

#[test]
#[should_panic(expected = "a runtime needs 1 to 1024 workers, not 2000")]
fn a_runtime_that_cannot_be_is_a_sentence() {
    weald::__macros::with_workers(2_000, async {});
}

#[weald::main(workers = 2)]
async fn program() -> Result<usize, weald::JoinError> {
    weald::spawn(async { 7 }).await
}

#[test]
fn a_main_of_any_name_can_be_called() {
    assert!(matches!(program(), Ok(7)));
}

/// The expected texts are those of this version of the compiler; another one may word its part of them in another way.
const RUSTC: &str = "rustc 1.95.";

#[test]
#[cfg_attr(miri, ignore = "it runs the compiler")]
fn what_is_wrong_is_a_sentence_at_the_place_of_the_user() {
    // The compiler that cargo uses, which need not be the one of the path.
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(&rustc).arg("--version").output();
    let version = match &asked {
        Ok(asked) => String::from_utf8_lossy(&asked.stdout),
        Err(error) => format!("not to be run: {error}").into(),
    };
    if !version.starts_with(RUSTC) {
        eprintln!("not compared: the texts are those of {RUSTC}x, and this is {version}");
        return;
    }
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
