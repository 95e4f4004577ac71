//! Telling a panic hook from a destructor in a program that was stripped, so that no function has a name.
//!
//! While a hook runs, the functions of the standard library that called it are on the stack, and at no other time.
//! Without names they are known by where they begin, which the unwinder finds in tables that `strip` keeps. To learn
//! where they begin, the first runtime of a stripped program panics three times, each time in another way, and catches
//! the panic. Its hook notes the functions on the stack, and so do a destructor that runs while the panic unwinds, and
//! the same code without a panic. What only the hooks have found is the way to a hook.
//!
//! In a program with names nothing is learned: a debugger would stop at these panics, and names need no learning.

#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    collections::BTreeSet,
    ffi::{c_int, c_void},
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    ops::ControlFlow,
    panic::{AssertUnwindSafe, catch_unwind, panic_any},
    sync::OnceLock,
};

/// Where the functions begin that are on the stack while a hook runs.
static IN_HOOKS: OnceLock<BTreeSet<usize>> = OnceLock::new();

thread_local! {
    /// What was noted so far, while the calling thread learns.
    static NOTED: RefCell<Option<FunctionsSeen>> = const { RefCell::new(None) };
}

/// Where functions begin that were on the stack.
#[derive(Default)]
struct FunctionsSeen {
    in_hooks: BTreeSet<usize>,
    elsewhere: BTreeSet<usize>,
}

/// Whether the caller runs in a panic hook. None if nothing was learned.
pub(crate) fn is_in_hook() -> Option<bool> {
    let known = IN_HOOKS.get()?;
    let mut is_found = false;
    for_each_function(&mut |start| {
        is_found = known.contains(&start);
        match is_found {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    Some(is_found)
}

/// Called by the hook: whether the panic is one of those below, to which nothing else must happen.
pub(crate) fn note_if_learning() -> bool {
    note(|noted| &mut noted.in_hooks)
}

/// Learns, unless functions have names, or a panic would end the program. The hook must call [`note_if_learning`].
pub(crate) fn learn() {
    if cfg!(panic = "unwind") && !has_symbols().unwrap_or(false) {
        learn_by_panics();
    }
}

fn learn_by_panics() {
    let ways: [fn(); 3] = [
        || panic!("Weald looks at the stack of a hook"),
        || {
            panic!(
                "Weald looks at the stack of hook {}",
                std::hint::black_box(2)
            )
        },
        || panic_any(3),
    ];
    NOTED.set(Some(FunctionsSeen::default()));
    caught(|| ());
    ways.into_iter().for_each(caught);
    let Some(FunctionsSeen {
        in_hooks,
        elsewhere,
    }) = NOTED.take()
    else {
        return;
    };
    let only_in_hooks = &in_hooks - &elsewhere;
    if !only_in_hooks.is_empty() {
        // A second runtime does not come here.
        let _first = IN_HOOKS.set(only_in_hooks);
    }
}

/// Notes what is on the stack when it is dropped.
struct NotesAtDrop;

impl Drop for NotesAtDrop {
    fn drop(&mut self) {
        note(|noted| &mut noted.elsewhere);
    }
}

fn caught(code: fn()) {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let _notes = NotesAtDrop;
        code();
    }));
    // Its payload is one of those above.
    drop(caught);
}

/// False if the thread does not learn.
fn note(place: fn(&mut FunctionsSeen) -> &mut BTreeSet<usize>) -> bool {
    let noted = NOTED.try_with(|noted| {
        let mut noted = noted.try_borrow_mut().ok()?;
        let starts = place(noted.as_mut()?);
        for_each_function(&mut |start| {
            starts.insert(start);
            ControlFlow::Continue(())
        });
        Some(())
    });
    matches!(noted, Ok(Some(())))
}

/// What the unwinder knows of a frame.
#[repr(C)]
struct FrameContext {
    _private: [u8; 0],
}

type EachFunction<'a> = &'a mut dyn FnMut(usize) -> ControlFlow<()>;

// The unwinder, with which every program that unwinds is linked.
unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut FrameContext, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut FrameContext) -> usize;
    fn _Unwind_FindEnclosingFunction(code: *mut c_void) -> *mut c_void;
}

/// Calls `visit` with the address at which each function on the stack begins, the innermost first.
fn for_each_function(mut visit: EachFunction<'_>) {
    extern "C" fn visit_frame(frame: *mut FrameContext, visit: *mut c_void) -> c_int {
        const GO_ON: c_int = 0;
        const STOP: c_int = 5;
        // SAFETY: the argument of the call below, which lives until it returns.
        let visit = unsafe { &mut *visit.cast::<EachFunction<'_>>() };
        // SAFETY: the unwinder passes a frame that it is at.
        let returns_to = unsafe { _Unwind_GetIP(frame) };
        // A function that never returns may end with the call.
        let in_call = std::ptr::without_provenance_mut(returns_to.saturating_sub(1));
        // SAFETY: it only compares the address.
        let start = unsafe { _Unwind_FindEnclosingFunction(in_call) };
        let flow = match start.is_null() {
            true => ControlFlow::Continue(()),
            false => visit(start.addr()),
        };
        match flow {
            ControlFlow::Continue(()) => GO_ON,
            ControlFlow::Break(()) => STOP,
        }
    }
    let visit = std::ptr::from_mut(&mut visit).cast();
    // SAFETY: `visit_frame` takes the argument for what it is, and does not unwind.
    unsafe { _Unwind_Backtrace(visit_frame, visit) };
}

/// Whether the program's file has a table of symbols, from which names are taken.
fn has_symbols() -> io::Result<bool> {
    const HEADER: usize = 64;
    const KIND_SYMBOLS: [u8; 4] = 2_u32.to_ne_bytes();
    let mut file = File::open("/proc/self/exe")?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header)?;
    let number = |at: usize, length: usize| {
        let mut bytes = [0; 8];
        bytes[..length].copy_from_slice(&header[at..at + length]);
        u64::from_le_bytes(bytes)
    };
    let (table_at, size, count) = (number(0x28, 8), number(0x3a, 2), number(0x3c, 2));
    file.seek(SeekFrom::Start(table_at))?;
    let mut table = Vec::new();
    file.take(size * count).read_to_end(&mut table)?;
    let size = usize::try_from(size).unwrap_or(0).max(1);
    let mut sections = table.chunks(size);
    Ok(sections.any(|section| section.get(4..8) == Some(&KIND_SYMBOLS)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_test_program_has_symbols() {
        assert!(has_symbols().unwrap());
    }
}
