//! Annotations of our stacks for the tools that watch memory: AddressSanitizer, valgrind and ThreadSanitizer.
//!
//! AddressSanitizer must know at each switch which stack is left, whether for good, and which one is resumed. Its
//! functions are weak symbols, which are null in a program without it: that costs a load and a branch
//! (sanitizer/common_interface_defs.h, "Fiber annotation interface"). Each stack is registered with valgrind once,
//! by a sequence of instructions that valgrind recognises and that does nothing elsewhere (valgrind.h,
//! VALGRIND_STACK_REGISTER).
//!
//! AddressSanitizer also poisons the gaps of each frame, from its start to its return, and a new frame expects
//! unpoisoned memory. Frames on a stack that is left for good never return, so the stack is unpoisoned right after that
//! switch. Otherwise its next user would get false reports.

#![allow(unsafe_code)]

#[cfg(weald_thread_sanitizer)]
mod thread_sanitizer;

/// Without ThreadSanitizer there is nobody to tell of a switch.
#[cfg(not(weald_thread_sanitizer))]
mod thread_sanitizer {
    #[inline(always)]
    pub(super) fn before_switch(_: super::Onto<'_>, _: super::Leaving) {}

    #[inline(always)]
    pub(super) fn after_switch() {}
}

use std::{
    arch::asm,
    cell::Cell,
    ffi::c_void,
    mem,
    ptr::{self, NonNull},
};

use crate::stack::Stack;

/// Valgrind's number for "register this stack".
const STACK_REGISTER: usize = 0x1501;

type Start = unsafe extern "C" fn(*mut *mut c_void, *const c_void, usize);
type Finish = unsafe extern "C" fn(*mut c_void, *mut *const c_void, *mut usize);
type Unpoison = unsafe extern "C" fn(*const c_void, usize);

thread_local! {
    /// Whether the switch in progress leaves its stack for good.
    static FOR_GOOD: Cell<bool> = const { Cell::new(false) };
    /// The bounds of the thread's own stack, as the sanitizer knows them.
    static OWN: Cell<(*const c_void, usize)> = const { Cell::new((ptr::null(), 0)) };
}

/// The address of a function that may not exist.
macro_rules! weak {
    ($name:literal) => {{
        let address: *const c_void;
        #[cfg(target_arch = "aarch64")]
        // SAFETY: loads the address of a weak symbol, which is null where it is not defined.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("adrp {0}, :got:", $name),
                concat!("ldr {0}, [{0}, :got_lo12:", $name, "]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        unsafe {
            asm!(
                concat!(".weak ", $name),
                concat!("mov {}, qword ptr [rip + ", $name, "@GOTPCREL]"),
                out(reg) address,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        NonNull::new(address.cast_mut())
    }};
}

/// The stack that a switch resumes.
#[derive(Clone, Copy)]
pub(crate) enum Onto<'a> {
    /// One of ours.
    Ours(&'a Stack),
    /// The stack that the system gave the thread.
    ThreadStack,
}

/// Whether the stack that is left ever resumes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It does.
    Suspended,
    /// It does not.
    ForGood,
}

/// What the sanitizer keeps for a suspended stack.
pub(super) type FakeStack = *mut c_void;

/// Called right before a switch.
#[inline(always)]
pub(super) fn before_switch(onto: Onto<'_>, leaving: Leaving) -> FakeStack {
    let fake_stack = match weak!("__sanitizer_start_switch_fiber") {
        None => ptr::null_mut(),
        Some(start) => start_switch(start, onto, leaving),
    };
    thread_sanitizer::before_switch(onto, leaving);
    fake_stack
}

#[cold]
#[inline(never)]
fn start_switch(start: NonNull<c_void>, onto: Onto<'_>, leaving: Leaving) -> FakeStack {
    // SAFETY: the sanitizer's function of that name has this type.
    let start = unsafe { mem::transmute::<NonNull<c_void>, Start>(start) };
    let (bottom, size) = match onto {
        Onto::Ours(stack) => (stack.limit().as_ptr().cast_const().cast(), stack.size()),
        Onto::ThreadStack => OWN.get(),
    };
    FOR_GOOD.set(leaving == Leaving::ForGood);
    let mut kept = ptr::null_mut();
    let keep = match leaving {
        Leaving::Suspended => &raw mut kept,
        Leaving::ForGood => ptr::null_mut(),
    };
    // SAFETY: as the documentation requires, right before the switch.
    unsafe { start(keep, bottom, size) };
    kept
}

/// Called right after a switch, on the resumed stack, with what [`before_switch`] returned there; null on a new stack.
#[inline(always)]
pub(super) fn after_switch(fake_stack: FakeStack) {
    thread_sanitizer::after_switch();
    if let Some(finish) = weak!("__sanitizer_finish_switch_fiber") {
        finish_switch(finish, fake_stack);
    }
}

#[cold]
#[inline(never)]
fn finish_switch(finish: NonNull<c_void>, fake_stack: FakeStack) {
    // SAFETY: the sanitizer's function of that name has this type.
    let finish = unsafe { mem::transmute::<NonNull<c_void>, Finish>(finish) };
    let (mut bottom, mut size) = (ptr::null(), 0);
    // SAFETY: as the documentation requires, right after the switch.
    unsafe { finish(fake_stack, &raw mut bottom, &raw mut size) };
    if FOR_GOOD.take() {
        unpoison(bottom, size);
    }
    // The first switch of a thread comes from its own stack.
    if OWN.get().0.is_null() {
        OWN.set((bottom, size));
    }
}

/// Unpoisons a stack whose frames never resume.
fn unpoison(bottom: *const c_void, size: usize) {
    if let Some(unpoison) = weak!("__asan_unpoison_memory_region") {
        // SAFETY: the sanitizer's function of that name has this type.
        let unpoison = unsafe { mem::transmute::<NonNull<c_void>, Unpoison>(unpoison) };
        // SAFETY: the range is a stack of ours that was just left for good, and no other thread can have it before
        // this thread gives it back.
        unsafe { unpoison(bottom, size) };
    }
}

/// Registers a new stack with valgrind.
pub(super) fn register(stack: &Stack) {
    let start = stack.limit().addr().get();
    let request = [STACK_REGISTER, start, start + stack.size() - 1, 0, 0, 0];
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the four rotations together rotate x12 by 128 bits, which changes nothing, and a register or itself is
    // itself. Valgrind puts its result into x3 and reads six words at x4.
    unsafe {
        asm!(
            "ror x12, x12, #3",
            "ror x12, x12, #13",
            "ror x12, x12, #51",
            "ror x12, x12, #61",
            "orr x10, x10, x10",
            inout("x3") 0_usize => _,
            in("x4") request.as_ptr(),
            inout("x12") 0_usize => _,
        );
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the four rotations together rotate rdi by 128 bits, which changes nothing, and exchanging a register
    // with itself does nothing. Valgrind puts its result into rdx and reads six words at rax.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            inout("rdi") 0_usize => _,
            in("rax") request.as_ptr(),
            inout("rdx") 0_usize => _,
        );
    }
}
