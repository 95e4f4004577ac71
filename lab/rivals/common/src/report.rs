//! How a rival ends: metrics on stdout with exit code 0, or one sentence on stderr with exit code 1
//! or 2.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, exit};
use std::time::Duration;

/// Prints one line per metric and ends the program, without waiting for processes that are still alive.
pub fn print_metrics(metrics: &[(&str, f64)]) -> ! {
    let mut lines = String::new();
    for (name, value) in metrics {
        writeln!(lines, "{name} {value:.3}").expect("a String takes any text");
    }
    match std::io::stdout().write_all(lines.as_bytes()) {
        Ok(()) => exit(0),
        Err(_) => fail("The metrics cannot be written: give the program a stdout."),
    }
}

/// Prints these metrics, or why there are none, and ends the program.
pub fn print(metrics: Result<Vec<(&str, f64)>, String>) -> ! {
    match metrics {
        Ok(metrics) => print_metrics(&metrics),
        Err(sentence) => fail(&sentence),
    }
}

/// Ends the program because the rival cannot do what was asked.
pub fn fail(sentence: &str) -> ! {
    eprintln!("{sentence}");
    exit(1)
}

/// Ends the program because it was called wrongly.
pub fn bad_usage(sentence: &str) -> ! {
    eprintln!("{sentence}");
    exit(2)
}

/// Nanoseconds of `duration` per unit of `units`.
pub fn per(duration: Duration, units: f64) -> f64 {
    duration.as_secs_f64() * 1e9 / units
}

/// Has another program print its version, and ends this one.
pub fn tell_version(program: &[String]) -> ! {
    let Some((name, arguments)) = program.split_first() else {
        bad_usage("No program is named: give its command before --version.");
    };
    match Command::new(name).args(arguments).arg("--version").status() {
        Ok(status) if status.success() => exit(0),
        _ => fail("The program does not report its version: see the message above."),
    }
}

/// What `--version` prints: the named packages with their versions from the workspace's lock file, so
/// that it cannot be stale, and the allocator if it is not the default one.
pub fn locked_versions(names: &[&str]) -> String {
    let mut versions: Vec<String> = names.iter().map(|name| locked_version(name)).collect();
    if cfg!(feature = "mimalloc") {
        versions.push(locked_version("mimalloc"));
    }
    versions.join(" with ")
}

fn locked_version(name: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let header = format!("name = \"{name}\"\nversion = \"");
    let version = lock
        .split_once(&header)
        .and_then(|(_, rest)| rest.split_once('"'));
    let version = version.map_or("of unknown version", |(version, _)| version);
    format!("{name} {version}")
}
