//! Ctrl-C during a bench: what is running is stopped, with all that it has started, and the program ends
//! with a sentence and the exit code that a shell gives to whoever dies of a signal.

use std::io::{IsTerminal, Write};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use weald_lab::descendants;
use weald_lab::error::Error;

use crate::output::complain;

/// Listens from now on, on a thread that sleeps until then.
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
    // The line of the progress, by hand: whoever draws it may be held up, and this must not be.
    let mut err = std::io::stderr();
    if err.is_terminal() {
        let _unseen = err.write_all(b"\r\x1b[2K");
    }
    complain("Interrupted. What was running is stopped; the rows that were printed are complete.");
    std::process::exit(128 + signal)
}
