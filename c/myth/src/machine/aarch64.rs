//! The steps on aarch64. From the saved stack pointer up: x19 to x30, d8 to d15.

#![allow(unsafe_code)]

use std::arch::global_asm;

global_asm!(
    ".text",
    ".p2align 4",
    ".globl weald_myth_call",
    ".hidden weald_myth_call",
    ".type weald_myth_call,@function",
    "weald_myth_call:",
    // An exception that leaves the function must find its way to the caller, which ends the program with a sentence.
    ".cfi_startproc",
    "sub sp, sp, #160",
    ".cfi_adjust_cfa_offset 160",
    "stp x19, x20, [sp, #0]",
    ".cfi_rel_offset x19, 0",
    ".cfi_rel_offset x20, 8",
    "stp x21, x22, [sp, #16]",
    ".cfi_rel_offset x21, 16",
    ".cfi_rel_offset x22, 24",
    "stp x23, x24, [sp, #32]",
    ".cfi_rel_offset x23, 32",
    ".cfi_rel_offset x24, 40",
    "stp x25, x26, [sp, #48]",
    ".cfi_rel_offset x25, 48",
    ".cfi_rel_offset x26, 56",
    "stp x27, x28, [sp, #64]",
    ".cfi_rel_offset x27, 64",
    ".cfi_rel_offset x28, 72",
    "stp x29, x30, [sp, #80]",
    ".cfi_rel_offset x29, 80",
    ".cfi_rel_offset x30, 88",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mov x9, sp",
    "str x9, [x2]",
    "mov x9, x0",
    "mov x0, x1",
    "blr x9",
    "2:",
    "ldp x19, x20, [sp, #0]",
    "ldp x21, x22, [sp, #16]",
    "ldp x23, x24, [sp, #32]",
    "ldp x25, x26, [sp, #48]",
    "ldp x27, x28, [sp, #64]",
    "ldp x29, x30, [sp, #80]",
    "ldp d8, d9, [sp, #96]",
    "ldp d10, d11, [sp, #112]",
    "ldp d12, d13, [sp, #128]",
    "ldp d14, d15, [sp, #144]",
    "add sp, sp, #160",
    ".cfi_adjust_cfa_offset -160",
    "ret",
    ".cfi_endproc",
    ".size weald_myth_call, . - weald_myth_call",
    ".p2align 4",
    ".globl weald_myth_leave",
    ".hidden weald_myth_leave",
    ".type weald_myth_leave,@function",
    "weald_myth_leave:",
    "mov sp, x0",
    "mov x0, x1",
    "b 2b",
    ".size weald_myth_leave, . - weald_myth_leave",
    ".p2align 4",
    ".globl weald_myth_switch",
    ".hidden weald_myth_switch",
    ".type weald_myth_switch,@function",
    "weald_myth_switch:",
    "sub sp, sp, #160",
    "stp x19, x20, [sp, #0]",
    "stp x21, x22, [sp, #16]",
    "stp x23, x24, [sp, #32]",
    "stp x25, x26, [sp, #48]",
    "stp x27, x28, [sp, #64]",
    "stp x29, x30, [sp, #80]",
    "stp d8, d9, [sp, #96]",
    "stp d10, d11, [sp, #112]",
    "stp d12, d13, [sp, #128]",
    "stp d14, d15, [sp, #144]",
    "mov x9, sp",
    "str x9, [x0]",
    "mov sp, x1",
    "b 2b",
    ".size weald_myth_switch, . - weald_myth_switch",
);

/// # Safety
/// As [`begin`](super::begin).
pub(super) unsafe fn begin(top: *mut usize, first: extern "C" fn() -> !) -> *mut usize {
    let mut words = [0; 20];
    // The link register.
    words[11] = first as usize;
    // SAFETY: the caller's promise.
    let frame = unsafe { top.sub(20) };
    // SAFETY: as above.
    unsafe { frame.cast::<[usize; 20]>().write(words) };
    frame
}
