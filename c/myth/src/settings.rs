//! The settings of the runtime: what the program sets, else the environment, else the defaults.
//!
//! | variable | what it sets | default |
//! |---|---|---|
//! | `MYTH_NUM_WORKERS` | how many threads run at once; zero or less: the default. `MYTH_WORKER_NUM` is its old name | the cores that the program may use |
//! | `MYTH_DEF_STKSIZE` | the stack of a thread, in bytes | 131072 |
//! | `MYTH_DEF_GUARDSIZE` | kept, and without effect: each stack has a guard page | 4096 |
//! | `MYTH_CHILD_FIRST` | whether a new thread runs before its creator goes on | 1 |
//! | `MYTH_BIND_WORKERS` | whether each worker stays on one core | 0 |
//! | `MYTH_CPU_LIST` | the cores for that ([`crate::bind`]) | those that the program may use |
//!
//! MassiveThreads binds its workers by default. Ours sleep when they have nothing to do, and the system then finds a
//! free core for whatever else runs.

use std::{
    env,
    ffi::{c_int, c_void},
    ptr,
    sync::{Mutex, PoisonError},
};

use weald_kernel::{DEFAULT_STACK, available_workers};

/// `myth_globalattr_t`, field by field as in MassiveThreads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct GlobalAttributes {
    pub(crate) stack_size: usize,
    pub(crate) guard_size: usize,
    pub(crate) workers: c_int,
    pub(crate) bind_workers: c_int,
    pub(crate) child_first: c_int,
    initialized: c_int,
}

/// `myth_thread_attr_t`, field by field as in MassiveThreads.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct ThreadAttributes {
    pub(crate) stack_address: *mut c_void,
    pub(crate) stack_size: usize,
    pub(crate) guard_size: usize,
    pub(crate) detach_state: c_int,
    pub(crate) child_first: c_int,
    custom_data_size: usize,
    custom_data: *mut c_void,
}

const _: () = assert!(size_of::<GlobalAttributes>() == 32);
const _: () = assert!(size_of::<ThreadAttributes>() == 48);

/// The settings of the next runtime.
static NEXT: Mutex<Option<GlobalAttributes>> = Mutex::new(None);

impl GlobalAttributes {
    /// From the environment.
    pub(crate) fn new() -> GlobalAttributes {
        GlobalAttributes {
            stack_size: positive("MYTH_DEF_STKSIZE").unwrap_or(DEFAULT_STACK),
            guard_size: positive("MYTH_DEF_GUARDSIZE").unwrap_or(4096),
            workers: workers(),
            bind_workers: number("MYTH_BIND_WORKERS").unwrap_or(0),
            child_first: number("MYTH_CHILD_FIRST").unwrap_or(1),
            initialized: 1,
        }
    }
}

impl ThreadAttributes {
    /// Those of the next runtime.
    pub(crate) fn new() -> ThreadAttributes {
        let global = with_next(|next| *next);
        ThreadAttributes {
            stack_address: ptr::null_mut(),
            stack_size: global.stack_size,
            guard_size: global.guard_size,
            detach_state: 0,
            child_first: global.child_first,
            custom_data_size: 0,
            custom_data: ptr::null_mut(),
        }
    }
}

/// Reads or changes the settings of the next runtime.
pub(crate) fn with_next<R>(act: impl FnOnce(&mut GlobalAttributes) -> R) -> R {
    let mut next = NEXT.lock().unwrap_or_else(PoisonError::into_inner);
    act(next.get_or_insert_with(GlobalAttributes::new))
}

/// How many workers `asked` means.
pub(crate) fn worker_count(asked: c_int) -> usize {
    match usize::try_from(asked) {
        Ok(0) | Err(_) => available_workers(),
        Ok(asked) => asked,
    }
}

fn workers() -> c_int {
    let asked = number("MYTH_NUM_WORKERS").or_else(|| number("MYTH_WORKER_NUM"));
    let count = worker_count(asked.unwrap_or(0));
    c_int::try_from(count).unwrap_or(c_int::MAX)
}

/// The number at the beginning of a variable, as `atoi` reads it. None if the variable is not set.
fn number(name: &str) -> Option<c_int> {
    let value = env::var(name).ok()?;
    Some(leading_number(&value))
}

fn positive(name: &str) -> Option<usize> {
    let number = number(name)?;
    usize::try_from(number).ok().filter(|&number| number > 0)
}

fn leading_number(text: &str) -> c_int {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.split(|c: char| !c.is_ascii_digit()).next();
    sign * digits.unwrap_or("").parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_c_reads_it() {
        for (text, number) in [
            ("12", 12),
            (" 7x", 7),
            ("-3", -3),
            ("+4", 4),
            ("", 0),
            ("x", 0),
        ] {
            assert_eq!(leading_number(text), number, "{text:?}");
        }
    }
}
