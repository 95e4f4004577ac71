//! Text to stdout and stderr. A reader that has gone away is not an error: it ends the program.

use std::io::{self, ErrorKind, Write};

use weald_lab::error::Error;

/// How many bytes are printed at once.
const ENOUGH: usize = 64 * 1024;

/// Prints a result on stdout and flushes it, so that a pipe sees every row as soon as it is finished.
pub(crate) fn print(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(closed_or_failed)
}

/// Many lines on their way to stdout.
#[derive(Default)]
pub(crate) struct Lines(String);

impl Lines {
    /// Adds a line.
    pub(crate) fn put(&mut self, line: impl AsRef<str>) -> Result<(), Error> {
        self.0.push_str(line.as_ref());
        self.0.push('\n');
        match self.0.len() < ENOUGH {
            true => Ok(()),
            false => print(&std::mem::take(&mut self.0)),
        }
    }

    /// Prints what is left.
    pub(crate) fn end(self) -> Result<(), Error> {
        print(&self.0)
    }
}

/// What a failed write to stdout means.
pub(crate) fn closed_or_failed(error: io::Error) -> Error {
    match error.kind() {
        ErrorKind::BrokenPipe => Error::Closed,
        _ => Error::file("write to", "stdout")(error),
    }
}

/// Prints a sentence on stderr. A failure to print is ignored: there is nowhere left to report it.
pub(crate) fn complain(sentence: &str) {
    let _unheard = writeln!(io::stderr().lock(), "weald: {sentence}");
}
