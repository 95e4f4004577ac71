//! Ending the program where nothing may continue. Called where a count or a borrow is beyond repair.

use std::{
    fmt,
    io::{self, Write},
};

/// Writes `line` and ends the program. Not by `eprintln`: if the line cannot be written, that panics, and unwinds the
/// very frames that nothing may leave.
#[cold]
pub(crate) fn abort(line: fmt::Arguments<'_>) -> ! {
    let _written = io::stderr().write_fmt(line);
    std::process::abort()
}
