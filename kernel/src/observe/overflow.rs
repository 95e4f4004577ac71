//! Turns a stack overflow into a message that names who overflowed.
//!
//! Touching a guard page is a SIGSEGV. The handler runs on the signal stack that the standard library gives
//! each thread, sees whether the address lies in the guard of the stack on which the thread runs, says so and
//! aborts; any other fault goes to the handler that was there before. Nothing here allocates or locks: the
//! overflow may have happened inside of both.

#![allow(unsafe_code)]

use std::{
    fmt::{self, Write},
    mem, ptr,
    sync::OnceLock,
};

use crate::{
    scheduler::{stackful::stack_context::StackKind, workers::context},
    stack::PAGE,
};

/// The handlers that were there before, of SIGSEGV and of SIGBUS.
static BEFORE: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

/// Installs the handler, once in a program.
pub(crate) fn install() {
    BEFORE.get_or_init(|| [libc::SIGSEGV, libc::SIGBUS].map(replace));
}

fn replace(signal: i32) -> libc::sigaction {
    // SAFETY: all zero is a valid value: the default action, and no flags.
    let mut ours: libc::sigaction = unsafe { mem::zeroed() };
    ours.sa_sigaction = handle as *const () as usize;
    ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
    // SAFETY: as above.
    let mut before: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: both are valid; the handler keeps to what a handler may do.
    let answer = unsafe { libc::sigaction(signal, &raw const ours, &raw mut before) };
    assert_eq!(answer, 0, "the system takes a handler for signal {signal}");
    before
}

extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system hands a valid record to a handler that asked for it.
    let info_ref = unsafe { &*info };
    // SAFETY: a fault's record has an address.
    let address = unsafe { info_ref.si_addr() }.addr();
    if is_in_our_guard(address) {
        tell();
        // SAFETY: ends the program; may be called in a handler.
        unsafe { libc::abort() };
    }
    pass_on(signal, info, context);
}

fn is_in_our_guard(address: usize) -> bool {
    let stack_context = context::here().stack_context();
    if stack_context.is_null() {
        return false;
    }
    // SAFETY: the strand on which the thread runs lives; its record is not in the guard.
    let limit = unsafe { &*stack_context }.stack().limit().addr().get();
    (limit..limit + PAGE).contains(&address)
}

/// Says which job overflowed.
fn tell() {
    let cx = context::here();
    let mut line = MessageLine::default();
    // SAFETY: as in `is_in_our_guard`.
    let stack_context = unsafe { &*cx.stack_context() };
    let size = stack_context.stack().size();
    let _cut = write!(line, "\nweald: the stack of {} KiB overflowed", size >> 10);
    // A stolen half is a job without a name; the job that forked it waits for it, and so is alive.
    let forked_by = cx.thread_fork().and_then(|fork| fork.root_job());
    if let Some(job) = forked_by.or(cx.job()) {
        let forked = match cx.job() == Some(job) {
            true => "",
            false => "what was forked by ",
        };
        // SAFETY: the thread runs the job, or what that waits for: it is alive.
        let header = unsafe { job.header() };
        let _cut = match header
            .extensions
            .try_name(|name| write!(line, " in {forked}`{name}`"))
        {
            Some(written) => written,
            None => write!(line, " in {forked}an unnamed job"),
        };
        let _cut = write!(line, ", spawned at {}", header.extensions.site());
    }
    let _cut = line.write_str(advice(stack_context.kind));
    line.print();
}

/// What to do about it.
fn advice(kind: StackKind) -> &'static str {
    match kind {
        StackKind::Fiber => {
            ". A deep recursion needs a larger stack: set thread::Builder::stack_size, up to 1 GiB.\n"
        }
        StackKind::Loop => {
            ". A deep recursion needs a larger stack: set Builder::thread_stack of the runtime, or call it on a \
             thread with a thread::Builder::stack_size of its own.\n"
        }
        StackKind::Segment => {
            ". A recursion through forks went on there, and the size is fixed: let what calls itself between two \
             forks be less deep, or call it on a thread with a thread::Builder::stack_size of its own.\n"
        }
    }
}

/// Hands the signal to whoever handled it before.
fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let before = BEFORE
        .get()
        .map(|both| &both[usize::from(signal == libc::SIGBUS)]);
    match before {
        Some(before) if before.sa_flags & libc::SA_SIGINFO != 0 => {
            type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
            let handler = ptr::with_exposed_provenance::<()>(before.sa_sigaction);
            // SAFETY: the flag says that it is such a function.
            let handler = unsafe { mem::transmute::<*const (), Handler>(handler) };
            handler(signal, info, context);
        }
        _ => {
            // The default action: the instruction faults again, and the system ends the program.
            // SAFETY: sets an action that the system knows.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// A line of bounded length.
struct MessageLine {
    text: [u8; 1024],
    len: usize,
}

impl Default for MessageLine {
    fn default() -> MessageLine {
        MessageLine {
            text: [0; 1024],
            len: 0,
        }
    }
}

impl fmt::Write for MessageLine {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = &mut self.text[self.len..];
        let count = text.len().min(room.len());
        room[..count].copy_from_slice(&text.as_bytes()[..count]);
        self.len += count;
        Ok(())
    }
}

impl MessageLine {
    fn print(&self) {
        // SAFETY: the text is valid; writing may be done in a handler. Whether it worked changes nothing.
        let _written = unsafe { libc::write(2, self.text.as_ptr().cast(), self.len) };
    }
}
