//! The switch on aarch64.
//!
//! A suspended stack, whose pointer is always a multiple of 16:
//!
//! ```text
//!   saved stack pointer ─► x19
//!                          x29, the frame pointer
//!                          address to resume at
//!                          (nothing)
//!                          ... the suspended frames
//! ```
//!
//! x19 and x29, which the compiler reserves, are saved by hand. All other registers are declared as clobbered,
//! including the vector registers whose lower halves a called function keeps, so the compiler saves only those that are
//! in use.

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
    ".cfi_undefined x30",
    // The first function, and the zero at which debuggers that follow frame pointers stop. The passed word is in x0, as
    // the function's argument.
    "ldp x9, x29, [sp], #32",
    // The first function does not return.
    "blr x9",
    "brk #1",
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
    let block = top.cast::<[usize; 4]>();
    // SAFETY: the caller's promise; the block is below the top.
    let block = unsafe { block.sub(1) };
    let resumed_at = weald_kernel_stack_begin as *const () as usize;
    // SAFETY: as above.
    unsafe { block.write([first as usize, 0, resumed_at, 0]) };
    SavedSp(block.addr().get())
}

/// # Safety
/// As [`switch`](super::switch).
#[inline(always)]
pub(super) unsafe fn jump(left: *mut SavedSp, to: SavedSp, word: usize) {
    // SAFETY: the registers and the stack's layout are as in the head of this file.
    unsafe {
        asm!(
            "stp x19, x29, [sp, #-32]!",
            "adr x9, 2f",
            "str x9, [sp, #16]",
            "mov x9, sp",
            "str x9, [x1]",
            "mov sp, x2",
            "ldr x9, [sp, #16]",
            "br x9",
            "2:",
            "ldp x19, x29, [sp], #32",
            inout("x0") word => _,
            inout("x1") left => _,
            inout("x2") to.0 => _,
            lateout("x20") _,
            lateout("x21") _,
            lateout("x22") _,
            lateout("x23") _,
            lateout("x24") _,
            lateout("x25") _,
            lateout("x26") _,
            lateout("x27") _,
            lateout("x28") _,
            lateout("v8") _,
            lateout("v9") _,
            lateout("v10") _,
            lateout("v11") _,
            lateout("v12") _,
            lateout("v13") _,
            lateout("v14") _,
            lateout("v15") _,
            clobber_abi("C"),
        );
    }
}
