//! The routine `cargo xtask bench-report`: measures Weald and its rivals and writes one page.

use std::process::ExitCode;

use crate::checkout::{Checkout, run};

/// Measures everything and writes `target/report.html`.
pub fn bench_report(checkout: &Checkout) -> ExitCode {
    let mut bench =
        checkout.cargo("run --release -- bench --full --rivals --report target/report.html");
    match run(&mut bench) {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
