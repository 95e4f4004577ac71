//! Turns a stack overflow into a message that names the job.
//!
//! Touching a guard page raises SIGSEGV. The handler runs on the thread's [signal stack](crate::stack::signal_stack).
//! If the address is in the guard page of the thread's current stack, the handler prints the message and aborts; it
//! forwards any other fault to the handler that was installed before. Nothing here allocates or waits for a lock: the
//! overflow may have happened inside an allocation, or under a lock.

#![allow(unsafe_code)]

use std::{fmt::Write, mem, ptr, sync::OnceLock};

use crate::{
    observe::signals::{SignalLine, abort, write_unit},
    scheduler::{stackful::stack_context::StackKind, workers::context},
    stack::PAGE,
};

/// The previous handlers of SIGSEGV and SIGBUS.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Installs the handlers, once per program.
pub(crate) fn install() {
    BEFORE.get_or_init(|| [libc::SIGSEGV, libc::SIGBUS].map(replace));
}

fn replace(signal: i32) -> libc::sigaction {
    // SAFETY: all zeroes is a valid value: the default action and no flags.
    let mut ours: libc::sigaction = unsafe { mem::zeroed() };
    ours.sa_sigaction = handle as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: as above.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: both pointers are valid, and the handler is async-signal-safe.
    let answer = unsafe { libc::sigaction(signal, &raw const ours, &raw mut before) };
    assert_eq!(
        answer, 0,
        "the system refused a handler for signal {signal}"
    );
    before
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: with `SA_SIGINFO` the system passes a valid record.
    let info_ref = unsafe { &*info };
    // SAFETY: the record of a fault has an address.
    let address = unsafe { info_ref.si_addr() }.addr();
    if is_in_our_guard(address) {
        print_overflow();
        abort::note_explained();
        // SAFETY: `abort` is async-signal-safe.
        unsafe { libc::abort() };
    }
    forward(signal, info, context);
}

fn is_in_our_guard(address: usize) -> bool {
    let stack_context = context::here().stack_context();
    if stack_context.is_null() {
        return false;
    }
    // SAFETY: the context of the stack on which the thread runs is alive, and not in the guard page.
    let limit = unsafe { &*stack_context }.stack().limit().addr().get();
    (limit..limit + PAGE).contains(&address)
}

/// Prints which job overflowed its stack.
fn print_overflow() {
    let cx = context::here();
    let mut line = SignalLine::default();
    // SAFETY: as in `is_in_our_guard`.
    let stack_context = unsafe { &*cx.stack_context() };
    let size = stack_context.stack().size();
    let _cut = write!(line, "\nweald: the stack of {} KiB overflowed", size >> 10);
    if !stack_context.jobless.get().is_null() {
        let _cut = line.write_str(" in a thread that runs in the middle of another one:");
    }
    let _cut = write_unit(&mut line, cx);
    let _cut = line.write_str(advice(stack_context.kind));
    line.print();
}

/// What the user can do about the overflow.
fn advice(kind: StackKind) -> &'static str {
    match kind {
        StackKind::Fiber => {
            ". A deep recursion needs a larger stack: set thread::Builder::stack_size, up to 1 GiB.\n"
        }
        StackKind::Loop => {
            ". A deep recursion needs a larger stack: set Builder::thread_stack of the runtime, or run the recursion \
             on a thread with its own thread::Builder::stack_size.\n"
        }
        StackKind::Segment => {
            ". A recursion through forks continued on this stack, whose size is fixed: make the recursion between \
             two forks less deep, or run it on a thread with its own thread::Builder::stack_size.\n"
        }
    }
}

/// Forwards the signal to the previous handler.
fn forward(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE
        .get()
        .map(|both| &both[usize::from(signal == libc::SIGBUS)]);
    match before {
        Some(before) if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            let handler = ptr::with_exposed_provenance::<()>(before.sa_sigaction);
            // SAFETY: with `SA_SIGINFO` the handler is a function of this type.
            let handler = unsafe { mem::transmute::<*const (), Handler>(handler) };
            handler(signal, info, context);
        }
        _ => {
            // The default action: the instruction faults again, and the system ends the program.
            // SAFETY: `SIG_DFL` is a valid action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}
