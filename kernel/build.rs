//! Says in one sentence on which platforms the kernel does not run, before the compiler says it in a thousand.

use std::env;

fn main() {
    let target = |key| env::var(key).unwrap_or_default();
    let os = target("CARGO_CFG_TARGET_OS");
    let architecture = target("CARGO_CFG_TARGET_ARCH");
    if let Some(sentence) = refusal(&os, &architecture) {
        println!("cargo::error={sentence}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Why the kernel does not run there, if so.
pub(crate) fn refusal(os: &str, architecture: &str) -> Option<String> {
    if os != "linux" {
        return Some(format!(
            "Weald runs on Linux only, not on {os}: it needs membarrier(2), epoll and /proc."
        ));
    }
    (!["x86_64", "aarch64"].contains(&architecture)).then(|| {
        format!(
            "Weald runs on x86-64 and aarch64 only, not on {architecture}: it switches stacks in assembly."
        )
    })
}
