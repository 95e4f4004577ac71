//! Tells tools that watch memory, AddressSanitizer and valgrind, about our stacks.
//!
//! AddressSanitizer must know at each switch which stack is left, whether for good, and which one comes. Its
//! calls are found by weak symbols, which are null in a program without it: that costs a load and a branch
//! (sanitizer/common_interface_defs.h, "Fiber annotation interface"). Valgrind is told of each stack once, by a
//! sequence of instructions that it recognises and that does nothing elsewhere (valgrind.h,
//! VALGRIND_STACK_REGISTER).
//!
//! AddressSanitizer also marks the gaps of each frame, from its beginning to its return, and a new frame takes for
//! granted that it finds no marks. The frames that are on a stack when it is left for good never return, so their
//! marks are taken off right after that switch; else whoever has the stack next would trip over them.

#![allow(unsafe_code)]

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
    /// Whether the switch that is under way leaves its stack for good.
    static FOR_GOOD: Cell<bool> = const { Cell::new(false) };
    /// Where the thread's own stack lies, as the sanitizer knows it.
    static OWN: Cell<(*const c_void, usize)> = const { Cell::new((ptr::null(), 0)) };
}

/// The address of a function that may not be there.
macro_rules! weak {
    ($name:literal) => {{
        let address: *const c_void;
        // SAFETY: loads the address of a weak symbol, which is null where it is not defined.
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

/// Which stack a switch goes to.
#[derive(Clone, Copy)]
pub(crate) enum Onto<'a> {
    /// One of ours.
    Ours(&'a Stack),
    /// The one that the system gave the thread.
    ThreadStack,
}

/// Whether the stack that is left is ever gone on with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is.
    Standing,
    /// It is not.
    ForGood,
}

/// What the sanitizer keeps of a stack that stands.
pub(super) type Note = *mut c_void;

/// Called right before a switch.
#[inline(always)]
pub(super) fn before_switch(onto: Onto<'_>, leaving: Leaving) -> Note {
    match weak!("__sanitizer_start_switch_fiber") {
        None => ptr::null_mut(),
        Some(start) => tell_start(start, onto, leaving),
    }
}

#[cold]
#[inline(never)]
fn tell_start(start: NonNull<c_void>, onto: Onto<'_>, leaving: Leaving) -> Note {
    // SAFETY: the sanitizer's function of that name is one.
    let start = unsafe { mem::transmute::<NonNull<c_void>, Start>(start) };
    let (bottom, size) = match onto {
        Onto::Ours(stack) => (stack.limit().as_ptr().cast_const().cast(), stack.size()),
        Onto::ThreadStack => OWN.get(),
    };
    FOR_GOOD.set(leaving == Leaving::ForGood);
    let mut kept = ptr::null_mut();
    let keep = match leaving {
        Leaving::Standing => &raw mut kept,
        Leaving::ForGood => ptr::null_mut(),
    };
    // SAFETY: as its documentation asks for, right before the switch.
    unsafe { start(keep, bottom, size) };
    kept
}

/// Called on a stack that has just been come to; `note` is what was kept when it was left, null if it is new.
#[inline(always)]
pub(super) fn after_switch(note: Note) {
    if let Some(finish) = weak!("__sanitizer_finish_switch_fiber") {
        tell_finish(finish, note);
    }
}

#[cold]
#[inline(never)]
fn tell_finish(finish: NonNull<c_void>, note: Note) {
    // SAFETY: the sanitizer's function of that name is one.
    let finish = unsafe { mem::transmute::<NonNull<c_void>, Finish>(finish) };
    let (mut bottom, mut size) = (ptr::null(), 0);
    // SAFETY: as its documentation asks for, right after the switch.
    unsafe { finish(note, &raw mut bottom, &raw mut size) };
    if FOR_GOOD.take() {
        clear(bottom, size);
    }
    // The first switch of a thread comes from its own stack.
    if OWN.get().0.is_null() {
        OWN.set((bottom, size));
    }
}

/// Takes off what the frames of a stack have marked; none of them is ever gone on with.
fn clear(bottom: *const c_void, size: usize) {
    if let Some(unpoison) = weak!("__asan_unpoison_memory_region") {
        // SAFETY: the sanitizer's function of that name is one.
        let unpoison = unsafe { mem::transmute::<NonNull<c_void>, Unpoison>(unpoison) };
        // SAFETY: a stack of ours, that was just left for good and that nobody else can have before this thread
        // gives it back.
        unsafe { unpoison(bottom, size) };
    }
}

/// Tells valgrind of a new stack.
pub(super) fn announce(stack: &Stack) {
    let start = stack.limit().addr().get();
    let request = [STACK_REGISTER, start, start + stack.size() - 1, 0, 0, 0];
    // SAFETY: the four rotations together turn rdi by 128 bits, that is not at all, and the exchange of a
    // register with itself does nothing. Valgrind puts its answer into rdx and reads six words at rax.
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
