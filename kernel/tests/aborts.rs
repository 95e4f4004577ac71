//! Where nothing may continue the program ends, even when its last words cannot be written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs::File,
    future::pending,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

use weald_kernel::{Runtime, wait_to_the_end};

const CHILD: &str = "WEALD_TEST_ABORTS";
const ABORTED: i32 = 6;

/// Tells that its frame was left.
struct Lends;

impl Drop for Lends {
    fn drop(&mut self) {
        println!("the frame is left");
    }
}

/// The test below runs this as a program of its own. Its wait must outlive what the frame lent out, and never ends.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    Runtime::test(1).block_on(async {
        let _lends = Lends;
        wait_to_the_end(pending::<()>(), || ());
    });
}

#[test]
fn no_frame_is_left_that_has_lent_something_out_although_stderr_is_full() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .stderr(Stdio::from(full))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&child.stdout);
    assert_eq!(
        child.status.signal(),
        Some(ABORTED),
        "{}: {stdout}",
        child.status
    );
    assert!(!stdout.contains("the frame is left"), "{stdout}");
}
