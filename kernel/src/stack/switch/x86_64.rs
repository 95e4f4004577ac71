//! The switch on x86-64.
//!
//! A suspended stack:
//!
//! ```text
//!   saved stack pointer ─► address to resume at
//!                          rbx
//!                          rbp
//!                          ... the suspended frames
//! ```
//!
//! rbx and rbp, which the compiler reserves, are saved by hand; all other registers are declared as clobbered, so the
//! compiler saves only those that are in use. The resumed code is reached by a jump: a `ret` would be mispredicted each
//! time, because the processor pairs it with a `call` on the other stack, and that costs some 20 ns.

#![allow(unsafe_code)]

use std::{arch::asm, arch::global_asm, ptr::NonNull};

use super::SavedSp;

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
    "push rbp",
    // The return address of the first function, which does not return. A `call` would have the processor expect its
    // `ret`: then that of each function around the switch would be mispredicted.
    "lea rax, [rip + 2f]",
    "push rax",
    "jmp rcx",
    "2:",
    "ud2",
    ".cfi_endproc",
    ".size weald_kernel_stack_begin, . - weald_kernel_stack_begin",
);

unsafe extern "C" {
    fn weald_kernel_stack_begin();
}

/// # Safety
/// As [`begin`](super::begin).
#[inline(always)]
pub(super) unsafe fn begin(top: NonNull<u8>, first: extern "C" fn(usize) -> !) -> SavedSp {
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

/// # Safety
/// As [`switch`](super::switch).
#[inline(always)]
pub(super) unsafe fn jump(left: *mut SavedSp, to: SavedSp, word: usize) {
    // SAFETY: the registers and the stack's layout are as in the head of this file.
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
