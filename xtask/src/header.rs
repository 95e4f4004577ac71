//! The routine `cargo xtask header`: makes `weald.h` from the sources of `c/weald`.
//!
//! cbindgen makes it, a program as those of `cargo xtask lint`. So that a check needs neither it nor time, the last
//! line of the header has a digest of the others and of what they were made from (`tidy/header.rs`).

use std::fs;

use crate::checkout::{Checkout, run};
use crate::tidy::{self, CRATE, HEADER};
use crate::tools::CBINDGEN;

/// Makes the header.
///
/// # Errors
/// A sentence that names the step that failed.
pub fn header(checkout: &Checkout) -> Result<(), String> {
    let made = checkout.target().join("weald.h");
    let mut command = CBINDGEN.command(checkout)?;
    command.args(["--quiet", "--config", "c/weald/cbindgen.toml", "--output"]);
    run(command.arg(&made).arg(CRATE))?;
    let text = fs::read_to_string(&made)
        .map_err(|error| format!("Cannot read {}: {error}.", made.display()))?;
    let place = checkout.root().join(HEADER);
    let last_line = tidy::header_last_line(checkout.root(), &text)?;
    fs::write(&place, text + &last_line)
        .map_err(|error| format!("Cannot write {}: {error}.", place.display()))
}
