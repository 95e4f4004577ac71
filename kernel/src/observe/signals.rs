//! What ends the program by a signal, a stack overflow or an abort: its handlers, and the line that each prints about
//! the unit in which the signal was raised.
//!
//! Nothing here allocates or waits for a lock: the signal may have been raised inside an allocation, or under a lock.

#![allow(unsafe_code)]

pub(crate) mod abort;
pub(crate) mod overflow;

use std::fmt::{self, Write};

use crate::{job::Header, scheduler::workers::context::Context};

/// A line of bounded length: nothing is allocated.
struct SignalLine {
    text: [u8; 1024],
    len: usize,
}

impl Default for SignalLine {
    fn default() -> SignalLine {
        SignalLine {
            text: [0; 1024],
            len: 0,
        }
    }
}

impl fmt::Write for SignalLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.text[self.len..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.len += count;
        Ok(())
    }
}

impl SignalLine {
    fn print(&self) {
        // SAFETY: the text is valid, and `write` is async-signal-safe. A failure changes nothing.
        let _written = unsafe { libc::write(2, self.text.as_ptr().cast(), self.len) };
    }
}

/// Names what the thread runs: its job; or, in a part of a fork, the fork and the job that forked.
fn write_unit(line: &mut SignalLine, cx: &Context) -> fmt::Result {
    let fork = cx.thread_fork();
    // SAFETY: the thread runs the job, which is alive.
    let job = cx.job().map(|job| unsafe { job.header() });
    let Some(job) = job.filter(|job| !job.is_part()) else {
        let Some(fork) = fork else { return Ok(()) };
        write!(line, " in a part of the fork at {}", fork.site())?;
        // SAFETY: the job waits for what it forked, and so is alive.
        let forked_by = fork.root_job().map(|job| unsafe { job.header() });
        let Some(forked_by) = forked_by else {
            return Ok(());
        };
        line.write_str(", forked by ")?;
        return write_job(line, forked_by);
    };
    line.write_str(" in ")?;
    write_job(line, job)
}

fn write_job(line: &mut SignalLine, job: &Header) -> fmt::Result {
    let named = job.extensions.try_with(|extensions| {
        if let Some(unit) = extensions.running_unit {
            return Some(write!(line, "`{unit}`, spawned at {}", unit.site));
        }
        let name = extensions.name.as_deref()?;
        Some(write!(
            line,
            "`{name}`, spawned at {}",
            job.extensions.site()
        ))
    });
    match named.flatten() {
        Some(written) => written,
        None => write!(line, "an unnamed job, spawned at {}", job.extensions.site()),
    }
}
