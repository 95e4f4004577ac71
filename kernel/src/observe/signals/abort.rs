//! Names the unit that aborts the program.
//!
//! `abort` raises SIGABRT on the calling thread. The handler prints a line, gives the signal its default action again,
//! and raises it once more, so that the program ends as it would without Weald, with the stack of the abort in its core
//! dump. It is installed only where the signal has its default action: a program's own handler stays. A signal from
//! another process, such as a supervisor's, concerns no unit, and neither does an abort on a thread that runs none:
//! then nothing is printed. As in [`overflow`](super::overflow), nothing here allocates or waits for a lock.

#![allow(unsafe_code)]

use std::{
    fmt::Write,
    mem, process, ptr,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{
    observe::signals::{SignalLine, write_unit},
    scheduler::workers::context,
};

/// Whether a line says already why the program aborts. Relaxed: it is read by the thread that has set it, and a line
/// too many does no harm.
static IS_EXPLAINED: AtomicBool = AtomicBool::new(false);

/// The caller has printed why it is about to abort the program.
pub(crate) fn note_explained() {
    IS_EXPLAINED.store(true, Ordering::Relaxed);
}

/// Installs the handler, once per program, if the signal has its default action.
pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: all zeroes is a valid value: the default action and no flags.
        let mut before: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: null asks for the action and sets none; the other pointer is valid.
        let answer = unsafe { libc::sigaction(libc::SIGABRT, ptr::null(), &raw mut before) };
        if answer == 0 && before.sa_sigaction == libc::SIG_DFL {
            set(
                handle as *const () as usize,
                libc::SA_SIGINFO | libc::SA_ONSTACK,
            );
        }
    });
}

/// Sets the action of SIGABRT. The system refuses none of those that are set here.
fn set(action: usize, flags: i32) {
    // SAFETY: as in `install`.
    let mut ours: libc::sigaction = unsafe { mem::zeroed() };
    ours.sa_sigaction = action;
    ours.sa_flags = flags;
    // SAFETY: the pointer is valid, and the handler is async-signal-safe.
    let _answer = unsafe { libc::sigaction(libc::SIGABRT, &raw const ours, ptr::null_mut()) };
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: with `SA_SIGINFO` the system passes a valid record.
    if is_own(unsafe { &*info }) && !IS_EXPLAINED.load(Ordering::Relaxed) {
        print_unit();
    }
    set(libc::SIG_DFL, 0);
    // The signal is blocked until this returns, and ends the program then.
    // SAFETY: `raise` is async-signal-safe.
    let _pending = unsafe { libc::raise(signal) };
}

/// Whether a thread of this program has raised the signal, on itself.
fn is_own(info: &libc::siginfo_t) -> bool {
    // SAFETY: a record with this code has the number of the sender.
    info.si_code == libc::SI_TKILL && unsafe { info.si_pid() }.cast_unsigned() == process::id()
}

/// Prints which unit aborts, if the thread runs one.
fn print_unit() {
    let cx = context::here();
    if cx.job().is_none() && cx.thread_fork().is_none() {
        return;
    }
    let mut line = SignalLine::default();
    let _cut = line.write_str("\nweald: the program was aborted");
    let _cut = write_unit(&mut line, cx);
    let _cut = line.write_str(".\n");
    line.print();
}
