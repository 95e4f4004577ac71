//! The switch: leaves one stack and goes on with another, in a few instructions.
//!
//! What is saved is the stack pointer; everything else lies on the stack. A stack that was left looks so,
//! whatever it was left by:
//!
//! ```text
//!   place ─► address to go on at
//!            rbx
//!            rbp
//!            ... the frames of whoever left
//! ```
//!
//! All other registers count as overwritten, so the compiler saves those that are in use, and only those.
//! The code that goes on is reached by a jump: a `ret` would be mispredicted each time, since the processor
//! pairs it with a `call` of the other stack, and that costs some 20 ns. One word is handed over.
//!
//! The floating-point control word and the signal mask are not switched: nobody here changes them.

#![allow(unsafe_code)]

#[cfg(not(target_arch = "x86_64"))]
compile_error!("Weald switches stacks on x86-64 only so far");

use std::{arch::asm, arch::global_asm, ptr::NonNull};

use crate::stack::{
    Stack,
    watchers::{self, Leaving, Onto},
};

/// Where a stack was left: its stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedSp(usize);

impl SavedSp {
    /// No place: nothing was left there.
    pub(crate) const NONE: SavedSp = SavedSp(0);
}

global_asm!(
    ".text",
    ".p2align 4",
    ".globl weald_kernel_stack_begin",
    ".hidden weald_kernel_stack_begin",
    ".type weald_kernel_stack_begin,@function",
    "weald_kernel_stack_begin:",
    // Unwinders end here: nobody called.
    ".cfi_startproc",
    ".cfi_undefined rip",
    // The first function; the word handed over is in rdi, its argument.
    "pop rcx",
    // Debuggers follow rbp and stop at zero.
    "xor ebp, ebp",
    // The place of a return address; the first function does not return.
    "push rbp",
    "call rcx",
    "ud2",
    ".cfi_endproc",
    ".size weald_kernel_stack_begin, . - weald_kernel_stack_begin",
);

unsafe extern "C" {
    fn weald_kernel_stack_begin();
}

/// A place from which `first` begins on `stack`, below `top`: what lies above stays untouched.
///
/// # Safety
/// Nothing runs on the stack, and `top` lies in it, a multiple of 16.
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

/// Leaves the running stack, notes the place in `left`, and goes on at `to`, which lies on the stack `onto` and
/// gets `word`. Returns once somebody goes on at `left`.
///
/// # Safety
/// `to` is a place that was left, or begun, and that nobody has gone on at since; its stack lives. The
/// thread that goes on at `left` may run what is on this stack. `left` is valid until then.
#[inline(always)]
pub(crate) unsafe fn switch(left: *mut SavedSp, to: SavedSp, onto: Onto<'_>, word: usize) {
    let note = watchers::before_switch(onto, Leaving::Standing);
    // SAFETY: the caller's promise.
    unsafe { jump(left, to, word) };
    watchers::after_switch(note);
}

/// # Safety
/// As [`switch`].
#[inline(always)]
unsafe fn jump(left: *mut SavedSp, to: SavedSp, word: usize) {
    // SAFETY: the registers and the stack's lay-out are those of the head of this file. rbx and rbp, which
    // the compiler keeps to itself, are saved by hand; all others are declared.
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

/// Leaves the running stack for good: nothing on it is ever gone on with.
///
/// # Safety
/// As [`switch`]; and no frame of the running stack holds anything that needs its destructor.
pub(crate) unsafe fn leave(to: SavedSp, onto: Onto<'_>) -> ! {
    let mut nowhere = SavedSp::NONE;
    let _nothing = watchers::before_switch(onto, Leaving::ForGood);
    // SAFETY: the caller's promise; `nowhere` lies on the stack that is left.
    unsafe { jump(&raw mut nowhere, to, 0) };
    unreachable!("somebody went on with a stack that was left for good")
}

/// The first thing to do on a stack that [`begin`] began.
#[inline(always)]
pub(crate) fn arrived() {
    watchers::after_switch(std::ptr::null_mut());
}

/// Tells tools such as valgrind that `stack` is one.
pub(super) fn announce(stack: &Stack) {
    watchers::announce(stack);
}
