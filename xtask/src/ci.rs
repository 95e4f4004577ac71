//! The routine `cargo xtask ci`: everything that must pass before a change is merged.
//!
//! It needs a C compiler, and rustup or a toolchain that has rustfmt and clippy.

use std::process::ExitCode;

use crate::checkout::{Checkout, run, run_and_keep, run_and_quote, succeeds};
use crate::steps::{Outcome, Tally, Verdict};
use crate::{features, loom, rendered, sanitizers, smoke};

/// Preemptions that each model explores. More of them find rarer races, in `soak`.
const PREEMPTIONS: u32 = 3;

/// Runs every step and prints the count.
pub fn ci(checkout: &Checkout) -> ExitCode {
    let mut tally = Tally::default();
    let cargo = |arguments: &str| passed(run_and_quote(&mut checkout.cargo(arguments)));
    tally.step("format", || {
        need(checkout, RUSTFMT)?;
        cargo("fmt --all --check")
    });
    tally.step("lints", || {
        need(checkout, CLIPPY)?;
        cargo("clippy --workspace -- -D warnings")?;
        // In tests a panic with its place is the wanted error message, and a future may return the
        // handle of what it spawned.
        let allowed = "-A clippy::unwrap_used -A clippy::async_yields_async";
        cargo(&format!(
            "clippy --workspace --all-targets -- -D warnings {allowed}"
        ))
    });
    tally.step("tests", || cargo("test --workspace"));
    // A workload that is added to `lab` changes what they share. They are measured seldom, so nothing else would tell.
    tally.step("rivals", || {
        let place = checkout.target().join("rivals/cargo");
        let place = place.display();
        cargo("fmt --all --check --manifest-path lab/rivals/Cargo.toml")?;
        let manifest = "--locked --manifest-path lab/rivals/Cargo.toml";
        cargo(&format!(
            "check --workspace {manifest} --target-dir {place}"
        ))?;
        // What starts and judges the rivals in other languages.
        cargo(&format!("test -p common {manifest} --target-dir {place}"))
    });
    tally.step("features", || passed(features::check(checkout)));
    tally.step("code for the sanitizers", || {
        passed(sanitizers::check(checkout))
    });
    tally.step("documentation", || passed(documentation(checkout)));
    // Without a build of what was packed, which takes minutes; the workflow has it.
    tally.step("packages", || {
        cargo("package --workspace --no-verify --allow-dirty")
    });
    for (name, modelled) in [
        ("models of the kernel", loom::KERNEL),
        ("models of sync", loom::SYNC),
        ("models of memory", loom::MEMORY),
        ("models of MassiveThreads' face", loom::MYTH),
    ] {
        tally.step(name, || {
            loom::models(checkout, modelled, PREEMPTIONS, run_and_keep)
        });
    }
    tally.step("benchmark, quick", || {
        let output = run_and_keep(
            &mut checkout.cargo("run --release -- bench --quick --json --runs 1 --within 1200"),
        )?;
        passed(smoke::judge(&output))
    });
    println!(
        "Left out: `cargo xtask lint`, `msrv`, `platforms`, `fuzz` and `soak`, which need other programs, toolchains or time."
    );
    tally.finish()
}

/// Builds the documentation without a warning and judges it: first as users read it, without links to what is private;
/// then with the heads of private items.
pub fn documentation(checkout: &Checkout) -> Result<(), String> {
    let documented = |items| {
        let mut doc = checkout.cargo(&format!("doc --workspace --no-deps {items}"));
        run_and_quote(doc.env("RUSTDOCFLAGS", "-D warnings"))
    };
    let place = checkout.target().join("doc");
    // Else pages of what is gone would be judged, too.
    _ = std::fs::remove_dir_all(place.join("weald"));
    documented("")?;
    rendered::judge(&place)?;
    documented("--document-private-items")
}

fn passed(result: Result<(), String>) -> Outcome {
    result.map(|()| Verdict::Passed)
}

/// A part of the toolchain: its cargo subcommand, and its name in rustup.
struct Component {
    command: &'static str,
    name: &'static str,
}

const RUSTFMT: Component = Component {
    command: "fmt",
    name: "rustfmt",
};
const CLIPPY: Component = Component {
    command: "clippy",
    name: "clippy",
};

/// Makes sure that the toolchain has a component, and has rustup add it if not.
fn need(checkout: &Checkout, component: Component) -> Result<(), String> {
    let Component { command, name } = component;
    let is_there = || succeeds(checkout.cargo(&format!("{command} --version")));
    if is_there() {
        return Ok(());
    }
    println!("{name} is missing and is being added to the toolchain.");
    let added = run(&mut checkout.command(&format!("rustup component add {name}")));
    if is_there() {
        return Ok(());
    }
    let why = added
        .err()
        .unwrap_or_else(|| "The toolchain still has none.".to_owned());
    Err(format!(
        "{name} is missing; install it the way your toolchain provides it. {why}"
    ))
}
