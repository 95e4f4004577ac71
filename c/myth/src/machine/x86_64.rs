//! The steps on x86-64. Below the return address: rbp, rbx, r12, r13, r14, r15.

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
    "push rbp",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbp, 0",
    "push rbx",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset rbx, 0",
    "push r12",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r12, 0",
    "push r13",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r13, 0",
    "push r14",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r14, 0",
    "push r15",
    ".cfi_adjust_cfa_offset 8",
    ".cfi_rel_offset r15, 0",
    "mov [rdx], rsp",
    // The stack pointer is a multiple of 16 before a call.
    "sub rsp, 8",
    ".cfi_adjust_cfa_offset 8",
    "mov rax, rdi",
    "mov rdi, rsi",
    "call rax",
    "add rsp, 8",
    ".cfi_adjust_cfa_offset -8",
    "2:",
    "pop r15",
    ".cfi_adjust_cfa_offset -8",
    "pop r14",
    ".cfi_adjust_cfa_offset -8",
    "pop r13",
    ".cfi_adjust_cfa_offset -8",
    "pop r12",
    ".cfi_adjust_cfa_offset -8",
    "pop rbx",
    ".cfi_adjust_cfa_offset -8",
    "pop rbp",
    ".cfi_adjust_cfa_offset -8",
    "ret",
    ".cfi_endproc",
    ".size weald_myth_call, . - weald_myth_call",
    ".p2align 4",
    ".globl weald_myth_leave",
    ".hidden weald_myth_leave",
    ".type weald_myth_leave,@function",
    "weald_myth_leave:",
    "mov rax, rsi",
    "mov rsp, rdi",
    "jmp 2b",
    ".size weald_myth_leave, . - weald_myth_leave",
    ".p2align 4",
    ".globl weald_myth_switch",
    ".hidden weald_myth_switch",
    ".type weald_myth_switch,@function",
    "weald_myth_switch:",
    "push rbp",
    "push rbx",
    "push r12",
    "push r13",
    "push r14",
    "push r15",
    "mov [rdi], rsp",
    "mov rsp, rsi",
    "jmp 2b",
    ".size weald_myth_switch, . - weald_myth_switch",
);

/// # Safety
/// As [`begin`](super::begin).
pub(super) unsafe fn begin(top: *mut usize, first: extern "C" fn() -> !) -> *mut usize {
    // A word in place of the return address of `first`, its own address, and six registers.
    // SAFETY: the caller's promise.
    let frame = unsafe { top.sub(8) };
    let words = [0, 0, 0, 0, 0, 0, first as usize, 0];
    // SAFETY: as above.
    unsafe { frame.cast::<[usize; 8]>().write(words) };
    frame
}
