//! Ctrl-C during a bench: stops whatever is running, with everything it has started, and ends the program
//! with a sentence and the exit code that a shell reports for a death by signal.

use std::io::{IsTerminal, Write};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weald_lab::descendants;
use weald_lab::error::Error;
use weald_lab::report;

use crate::output::complain;

/// Starts a thread that sleeps until a signal arrives.
pub(crate) fn listen() -> Result<(), Error> {
    let cannot = Error::file("listen to", "signals");
    let mut signals = match Signals::new([SIGINT, SIGTERM]) {
        Ok(signals) => signals,
        Err(error) => return Err(cannot(error)),
    };
    let waits = move || {
        if let Some(signal) = signals.forever().next() {
            end(signal);
        }
    };
    match std::thread::Builder::new()
        .name("signals".into())
        .spawn(waits)
    {
        Ok(_detached) => Ok(()),
        Err(error) => Err(cannot(error)),
    }
}

fn end(signal: i32) -> ! {
    descendants::stop_all();
    let _complete = report::writing();
    // Clears the progress line by hand: the thread that draws it may be blocked, and this one must not be.
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _unseen = err.write_all(b"\r\x1b[2K");
    }
    complain(
        "Interrupted. What was running has been stopped; the rows printed so far, and the page, are complete.",
    );
    std::process::exit(128 + signal)
}
