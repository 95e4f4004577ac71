//! What concerns all functions: texts of errors, handles, returned bytes.

#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    ffi::{CStr, CString, c_char, c_void},
};

use crate::{
    codes::{self, Code},
    guard::guard,
    handles,
    message::{Bytes, Message},
};

/// What a handle of any kind is: a number. Zero is nobody's. A handle belongs to the program, and not to a thread: any
/// thread and any unit may use it and release it, unless its kind says otherwise.
pub type Handle = u64;
/// No time limit. Every negative limit means the same.
pub const WEALD_FOREVER: i64 = -1;
/// A time limit of nothing: the call tries, and does not wait.
pub const WEALD_AT_ONCE: i64 = 0;

/// A function of the program that returns nothing.
pub type TaskFunction = Option<unsafe extern "C-unwind" fn(context: *mut c_void)>;
/// The function of a thread. What it returns is the result of the thread.
pub type ThreadFunction = Option<unsafe extern "C-unwind" fn(context: *mut c_void) -> *mut c_void>;
/// The function of a process. What it returns is the code with which the process ends.
pub type ProcessFunction = Option<unsafe extern "C-unwind" fn(context: *mut c_void) -> i32>;
/// A function that is called for parts of a range, each from `begin` to before `end`.
pub type RangeFunction =
    Option<unsafe extern "C-unwind" fn(context: *mut c_void, begin: usize, end: usize)>;

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn weald_library_version() -> *const c_char {
    const VERSION: &CStr = {
        let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
        match CStr::from_bytes_with_nul(text.as_bytes()) {
            Ok(text) => text,
            Err(_) => panic!("a version has no zero byte"),
        }
    };
    VERSION.as_ptr()
}

/// The text of a code. It stays valid.
#[unsafe(no_mangle)]
pub extern "C" fn weald_code_text(code: Code) -> *const c_char {
    codes::text(code).as_ptr()
}

/// The sentence of the last error on the calling OS thread, which says more than its code. Empty if there was none.
/// Read it before anything else happens in the unit: it is valid until the next call of this library on this OS thread,
/// and a call that waits lets other units run there.
#[unsafe(no_mangle)]
pub extern "C" fn weald_last_error() -> *const c_char {
    thread_local! {
        /// What was returned, which a later error leaves as it is.
        static SHOWN: RefCell<CString> = RefCell::default();
    }
    let sentence = codes::with_last(CStr::to_owned).unwrap_or_default();
    let shown = SHOWN.try_with(|shown| {
        let mut shown = shown.borrow_mut();
        *shown = sentence;
        shown.as_ptr()
    });
    shown.unwrap_or(c"".as_ptr())
}

/// Releases a handle of any kind. Calls that use its object at this moment go on. A thread, a process or a callback
/// that was released runs on, and nobody can join or cancel it by this handle; a channel is closed; a runtime is shut
/// down: its units are cancelled, with a time limit of 5 s, and in the background if the last to use the runtime is a
/// unit; an edit that was not committed is lost; a forest on disk is closed when nobody uses it or its trees any
/// longer. WEALD_HANDLE if it was released before.
#[unsafe(no_mangle)]
pub extern "C" fn weald_release(handle: Handle) -> Code {
    guard(|| handles::release(handle))
}

/// Frees bytes that a function returned, and sets `data` to null. Bytes whose `data` is null are left as they are, so a
/// second call does no harm; nor does null.
#[unsafe(no_mangle)]
pub extern "C" fn weald_bytes_free(bytes: Option<&mut Bytes>) {
    if let Some(bytes) = bytes {
        Message::take_back(bytes);
    }
}
