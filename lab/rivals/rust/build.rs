//! Passes the program the version of the compiler whose std it is built with; it has no other source.

use std::process::Command;

fn main() {
    let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(compiler).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    let version = text.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=COMPILER_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
