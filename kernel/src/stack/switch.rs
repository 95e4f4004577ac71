//! The switch: suspends one stack and resumes another, in a few instructions.
//!
//! Only the stack pointer is saved elsewhere; everything else is on the stack. Every suspended stack looks like
//! this:
//!
//! ```text
//!   saved stack pointer ─► address to resume at
//!                          rbx
//!                          rbp
//!                          ... the suspended frames
//! ```
//!
//! All other registers are declared as clobbered, so the compiler saves only those that are in use. The resumed
//! code is reached by a jump: a `ret` would be mispredicted each time, because the processor pairs it with a `call`
//! on the other stack, and that costs some 20 ns. One word is passed along.
//!
//! The floating-point control word and the signal mask are not switched: nothing in the kernel changes them.

#![allow(unsafe_code)]

use std::{arch::asm, arch::global_asm, ptr::NonNull};

use crate::stack::{
    Stack,
    sanitizers::{self, Leaving, Onto},
};

/// The saved stack pointer of a suspended stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedSp(usize);

impl SavedSp {
    /// Nothing is suspended.
    pub(crate) const NONE: SavedSp = SavedSp(0);
}

global_asm!(
    ".text",
    ".p2align 4",
    ".globl weald_kernel_stack_begin",
    ".hidden weald_kernel_stack_begin",
    ".type weald_kernel_stack_begin,@function",
    "weald_kernel_stack_begin:",
    // Unwinders end here: there is no caller.
    ".cfi_startproc",
    ".cfi_undefined rip",
    // The first function; the passed word is in rdi, as its argument.
    "pop rcx",
    // Debuggers follow rbp and stop at zero.
    "xor ebp, ebp",
    // In place of a return address; the first function does not return.
    "push rbp",
    "call rcx",
    "ud2",
    ".cfi_endproc",
    ".size weald_kernel_stack_begin, . - weald_kernel_stack_begin",
);

unsafe extern "C" {
    fn weald_kernel_stack_begin();
}

/// Prepares a new stack: resuming it calls `first` on the stack, below `top`. What is above `top` stays untouched.
///
/// # Safety
/// Nothing runs on the stack, and `top` is an address in it, a multiple of 16.
#[inline(always)]
pub(crate) unsafe fn begin(top: NonNull<u8>, first: extern "C" fn(usize) -> !) -> SavedSp {
    let words = top.cast::<usize>();
    // SAFETY: the caller's promise; the words are below the top.
    let first_place = unsafe { words.sub(2) };
    // SAFETY: as above.
    unsafe { first_place.write(first as usize) };
    // SAFETY: as above.
    let address = unsafe { words.sub(3) };
    // SAFETY: as above.
    unsafe { address.write(weald_kernel_stack_begin as *const () as usize) };
    SavedSp(address.addr().get())
}

/// Suspends the running stack, saves its stack pointer in `left`, and resumes the stack `onto` at `to`, passing
/// `word`. Returns when the suspended stack is resumed.
///
/// # Safety
/// `to` was saved by a switch, or by [`begin`], and has not been resumed since; its stack is alive. The thread that
/// resumes `left` may run what is on this stack. `left` is valid until then.
#[inline(always)]
pub(crate) unsafe fn switch(left: *mut SavedSp, to: SavedSp, onto: Onto<'_>, word: usize) {
    let fake_stack = sanitizers::before_switch(onto, Leaving::Suspended);
    // SAFETY: the caller's promise.
    unsafe { jump(left, to, word) };
    sanitizers::after_switch(fake_stack);
}

/// # Safety
/// As [`switch`].
#[inline(always)]
unsafe fn jump(left: *mut SavedSp, to: SavedSp, word: usize) {
    // SAFETY: the registers and the stack's layout are as in the head of this file. rbx and rbp, which the
    // compiler reserves, are saved by hand; all others are declared.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rsi], rsp",
            "mov rsp, rdx",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rdi") word => _,
            inout("rsi") left => _,
            inout("rdx") to.0 => _,
            lateout("r12") _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
}

/// Leaves the running stack for good: nothing on it ever resumes.
///
/// # Safety
/// As [`switch`]; and no frame of the running stack holds anything that needs its destructor.
#[inline(always)]
pub(crate) unsafe fn leave(to: SavedSp, onto: Onto<'_>) -> ! {
    let mut nowhere = SavedSp::NONE;
    let _nothing = sanitizers::before_switch(onto, Leaving::ForGood);
    // SAFETY: the caller's promise; `nowhere` is on the stack that is left.
    unsafe { jump(&raw mut nowhere, to, 0) };
    unreachable!("a stack that was left for good was resumed")
}

/// The first call on a stack that [`begin`] prepared.
#[inline(always)]
pub(crate) fn arrived() {
    sanitizers::after_switch(std::ptr::null_mut());
}

/// Registers a new stack with tools such as valgrind.
pub(super) fn register(stack: &Stack) {
    sanitizers::register(stack);
}
