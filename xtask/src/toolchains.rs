//! The routines that need another toolchain: the oldest compiler and fuzzing.
//!
//! Each is skipped with a sentence where its toolchain is missing.

use std::fs;
use std::process::{Command, ExitCode};

use crate::checkout::{Checkout, run, run_and_keep};
use crate::steps::{Outcome, Tally, Verdict};
use crate::tools::FUZZ;

/// Where the fuzz targets are, a workspace of its own.
const TARGETS: &str = "fuzz";

/// Checks the workspace with the oldest compiler that it promises to support.
pub fn msrv(checkout: &Checkout) -> ExitCode {
    let mut tally = Tally::default();
    tally.step("oldest compiler", || {
        let path = checkout.root().join("Cargo.toml");
        let manifest =
            fs::read_to_string(&path).map_err(|e| format!("{}: {e}.", path.display()))?;
        let version = rust_version(&manifest).ok_or("Cargo.toml has no `rust-version`.")?;
        if !checkout.has_toolchain(&version) {
            return missing(&format!("Rust {version}"), &version);
        }
        let check = checkout.cargo(&format!("+{version} check --workspace --locked"));
        run(&mut checkout.build_apart(check, "msrv", ""))?;
        Ok(Verdict::Passed)
    });
    tally.finish()
}

/// Runs the fuzz targets that `only` names, or all if it names none, each for `seconds`.
pub fn fuzz(checkout: &Checkout, seconds: u64, only: &[String]) -> ExitCode {
    let mut tally = Tally::default();
    let targets = match targets(checkout) {
        Ok(targets) => targets,
        Err(verdict) => {
            tally.step("fuzz targets", || verdict);
            return tally.finish();
        }
    };
    let is_chosen = |name: &String| only.is_empty() || only.contains(name);
    let chosen: Vec<String> = targets.into_iter().filter(is_chosen).collect();
    if !chosen.is_empty() {
        tally.step("build", || {
            run(&mut build(checkout, &chosen)?)?;
            Ok(Verdict::Passed)
        });
    }
    for name in &chosen {
        tally.step(name, || {
            run(&mut run_target(checkout, name, seconds)?)?;
            Ok(Verdict::Passed)
        });
    }
    tally.finish()
}

/// The names of the fuzz targets, or why none can run.
fn targets(checkout: &Checkout) -> Result<Vec<String>, Outcome> {
    if !checkout.root().join(TARGETS).join("Cargo.toml").exists() {
        return Err(Ok(Verdict::Skipped(
            "There are no fuzz targets.".to_owned(),
        )));
    }
    if !checkout.has_toolchain("nightly") {
        return Err(missing("Fuzzing", "nightly"));
    }
    let mut list = FUZZ
        .command(checkout)
        .map_err(|why| Ok(Verdict::Skipped(why)))?;
    let names = run_and_keep(list.arg("list")).map_err(Err)?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

/// How a target is built: in several parts at a time. cargo-fuzz would compile each crate in one part.
const PARTS: &str = "--codegen-units=16";

/// The build of all targets, or of the one that alone is to run.
fn build(checkout: &Checkout, chosen: &[String]) -> Result<Command, String> {
    let mut command = FUZZ.command(checkout)?;
    command.env("RUSTUP_TOOLCHAIN", "nightly");
    command.args(["build", PARTS]);
    if let [name] = chosen {
        command.arg(name);
    }
    Ok(command)
}

/// The run of one target, from its seeds and with its dictionary if it has them.
fn run_target(checkout: &Checkout, name: &str, seconds: u64) -> Result<Command, String> {
    let path = |kind: &str| format!("{TARGETS}/{kind}/{name}");
    let exists = |path: &str| checkout.root().join(path).exists();
    fs::create_dir_all(checkout.root().join(path("corpus")))
        .map_err(|e| format!("{}: {e}.", path("corpus")))?;
    let mut command = FUZZ.command(checkout)?;
    command.env("RUSTUP_TOOLCHAIN", "nightly");
    command.args(["run", PARTS, name, &path("corpus")]);
    command.args(Some(path("seeds")).filter(|path| exists(path)));
    command.args(["--".to_owned(), format!("-max_total_time={seconds}")]);
    let dictionary = path("dictionaries") + ".dict";
    if exists(&dictionary) {
        command.arg(format!("-dict={dictionary}"));
    }
    Ok(command)
}

fn missing(what: &str, toolchain: &str) -> Outcome {
    let sentence = format!("{what} needs a toolchain: `rustup toolchain install {toolchain}`.");
    Ok(Verdict::Skipped(sentence))
}

/// The oldest compiler that the workspace supports.
fn rust_version(manifest: &str) -> Option<String> {
    let manifest: toml::Table = manifest.parse().ok()?;
    let package = manifest.get("workspace")?.get("package")?;
    Some(package.get("rust-version")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_compiler_is_that_of_the_workspace() {
        let version = rust_version("[workspace.package]\nrust-version = \"1.88\"\n");
        assert_eq!(version.as_deref(), Some("1.88"));
        assert_eq!(rust_version("[package]\nrust-version = \"1.88\"\n"), None);
    }
}
