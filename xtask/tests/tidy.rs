//! The repository keeps its own rules: `cargo test` fails on every finding of `cargo xtask tidy`.

use xtask::checkout::Checkout;

#[test]
fn the_repository_is_tidy() {
    let findings = xtask::tidy::tidy(Checkout::here().root()).expect("the repository can be read");
    let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} findings\n{}",
        lines.len(),
        lines.join("\n")
    );
}
