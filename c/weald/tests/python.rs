//! The module of Python in `examples/python` works with the shared library. Where python3 is missing, this says so.

// With musl there is no shared library.
#![cfg(not(target_feature = "crt-static"))]

use std::{env, path::Path, process::Command};

#[test]
fn the_tests_of_the_module_pass() {
    if env::var_os("WEALD_C_CHECK").is_some() {
        // Python itself is not clean under the tools that watch the programs in C.
        return;
    }
    if env::var_os("WEALD_C_EMULATOR").is_some() {
        eprintln!("left out: this machine's Python cannot load the library of another platform.");
        return;
    }
    let version = Command::new("python3").arg("--version").output();
    if !version.is_ok_and(|version| version.status.success()) {
        eprintln!("left out: there is no python3.");
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/python");
    if !folder.exists() {
        eprintln!("left out: this is a package, without the repository's examples.");
        return;
    }
    let test = env::current_exe().unwrap();
    let library = test.parent().unwrap().join("libweald_c.so");
    let output = Command::new("python3")
        .args(["-B", "-m", "unittest", "-q", "test_weald"])
        .current_dir(folder)
        .env("WEALD_LIBRARY", library)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
}
