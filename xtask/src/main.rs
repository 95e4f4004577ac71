//! The `cargo xtask` program: parses the command line and runs the routine.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::checkout::Checkout;
use xtask::lint::Lint;
use xtask::soak::Part;
use xtask::steps::Skips;

/// The routines of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    routine: Routine,
}

#[derive(Subcommand)]
enum Routine {
    /// Check the rules of the repository that no compiler checks.
    Tidy {
        /// Print the import graph of every crate instead, or that of one crate in full.
        #[arg(long, value_name = "CRATE", num_args = 0..=1, default_missing_value = "")]
        graph: Option<String>,
    },
    /// List the files that use `unsafe`, each with the number of times it does.
    UnsafeFiles,
    /// Run everything that must pass before a change is merged.
    Ci,
    /// Build `weald` with each of its features alone, and count the packages that a small program needs.
    Features,
    /// Build the documentation, and judge what users of `weald` see of it: links, and names in examples.
    Doc,
    /// Run the linters of others: spelling, words, dependencies.
    Lint {
        /// Run these steps only.
        #[arg(long, value_name = "STEP", value_enum, value_delimiter = ',')]
        only: Vec<Lint>,
        /// Fail if a step is skipped because its program or data cannot be had.
        #[arg(long)]
        strict: bool,
    },
    /// Build and test for the other platforms: musl, and aarch64 in an emulator.
    Platforms {
        /// Fail if a platform is skipped because its target or programs cannot be had.
        #[arg(long)]
        strict: bool,
    },
    /// Pack every crate, and build each from what was packed.
    Package,
    /// Check the workspace with the oldest compiler that it supports.
    Msrv,
    /// Run each fuzz target.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
        seconds: u64,
        /// Run these targets only.
        #[arg(long, value_name = "TARGET", value_delimiter = ',')]
        only: Vec<String>,
    },
    /// Run stress tests, deeper loom models, Miri, ThreadSanitizer and AddressSanitizer.
    Soak {
        /// Minutes for all stress tests together.
        #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
        minutes: u64,
        /// Run these parts only.
        #[arg(long, value_name = "PART", value_enum, value_delimiter = ',')]
        only: Vec<Part>,
    },
    /// Count the files and functions on the path of a message, a wait, a stolen fork, a readiness, a callback, a
    /// commit.
    Paths {
        /// Count these stories only.
        #[arg(long, value_name = "STORY", value_delimiter = ',')]
        only: Vec<String>,
        /// Print the functions too, each with its calls for each telling.
        #[arg(long)]
        list: bool,
    },
    /// Measure Weald and its rivals and write `target/report.html`.
    BenchReport,
    /// Build the book into `target/book`.
    Book,
    /// Make the header `weald.h` from the sources of `c/weald`.
    Header,
    /// Install the C libraries, their headers and `pkg-config` files.
    Install {
        /// The folder below which they go, such as `/usr/local`.
        #[arg(long, value_name = "DIR")]
        prefix: std::path::PathBuf,
    },
}

fn main() -> ExitCode {
    let checkout = Checkout::here();
    match Arguments::parse().routine {
        Routine::Tidy { graph: None } => tidy(&checkout),
        Routine::Tidy { graph: Some(name) } => {
            let only = Some(name.as_str()).filter(|name| !name.is_empty());
            print(xtask::tidy::graph(checkout.root(), only))
        }
        Routine::UnsafeFiles => print(xtask::tidy::unsafe_files(checkout.root())),
        Routine::Ci => xtask::ci::ci(&checkout),
        Routine::Features => print(xtask::features::check(&checkout).map(|()| String::new())),
        Routine::Doc => print(xtask::ci::documentation(&checkout).map(|()| String::new())),
        Routine::Lint { only, strict } => xtask::lint::lint(&checkout, &only, skips(strict)),
        Routine::Platforms { strict } => xtask::platforms::platforms(&checkout, skips(strict)),
        Routine::Package => print(xtask::package::package(&checkout).map(|()| String::new())),
        Routine::Msrv => xtask::toolchains::msrv(&checkout),
        Routine::Fuzz { seconds, only } => xtask::toolchains::fuzz(&checkout, seconds, &only),
        Routine::Soak { minutes, only } => xtask::soak::soak(&checkout, minutes, &only),
        Routine::Paths { only, list } => xtask::paths::paths(&checkout, &only, list),
        Routine::BenchReport => xtask::bench_report::bench_report(&checkout),
        Routine::Book => xtask::book::book(&checkout),
        Routine::Header => print(xtask::header::header(&checkout).map(|()| String::new())),
        Routine::Install { prefix } => print(
            xtask::install::install(&checkout, &prefix, xtask::checkout::run)
                .map(|()| String::new()),
        ),
    }
}

fn skips(strict: bool) -> Skips {
    if strict { Skips::None } else { Skips::Any }
}

/// Prints the findings of the checks, one per line, and their count.
fn tidy(checkout: &Checkout) -> ExitCode {
    let findings = match xtask::tidy::tidy(checkout.root()) {
        Ok(findings) => findings,
        Err(sentence) => {
            eprintln!("{sentence}");
            return ExitCode::FAILURE;
        }
    };
    for finding in &findings {
        println!("{finding}");
    }
    let noun = if findings.len() == 1 {
        "finding"
    } else {
        "findings"
    };
    println!("{} {noun}", findings.len());
    if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints a text, or the sentence that says why it is missing.
fn print(text: Result<String, String>) -> ExitCode {
    match text {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
