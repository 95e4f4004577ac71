//! Records the compiler, its optimisation and the commit that the program is built from, for `src/build_info.rs`.

use std::path::Path;
use std::process::Command;

/// The first line that a command prints; empty if the command is absent or fails.
fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let Ok(output) = output else {
        return String::new();
    };
    if !output.status.success() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().unwrap_or_default().trim().to_owned()
}

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    println!(
        "cargo::rustc-env=WEALD_RUSTC={}",
        first_line(&rustc, &["--version"])
    );
    // Cargo sets it for every build script.
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=WEALD_OPT_LEVEL={level}");
    let commit = first_line("git", &["rev-parse", "--short", "HEAD"]);
    println!("cargo::rustc-env=WEALD_COMMIT={commit}");
    println!("cargo::rerun-if-changed=build.rs");
    // Git knows where they are, even in a further work tree. A watched path that does not exist would rebuild the crate
    // every time.
    for name in ["HEAD", "logs/HEAD"] {
        let watched = first_line("git", &["rev-parse", "--git-path", name]);
        if Path::new(&watched).exists() {
            println!("cargo::rerun-if-changed={watched}");
        }
    }
}
