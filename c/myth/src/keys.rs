//! What threads keep under keys that are made while the program runs.
//!
//! A key is a number. If it is deleted and made again, values that were kept under it before count as none. When a
//! thread ends that has ever kept a value, the destructors of all keys up to the highest that it has room for are
//! called, also for NULL, as in MassiveThreads: runtimes such as that of SML# count on it. Each is called once.

#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    ffi::{c_int, c_void},
    mem, ptr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

/// How many keys there are.
const KEYS: usize = 1024;
/// How many keys a thread gets room for at once.
const ROOM: usize = 16;

/// A function that is given a thread's value when the thread ends.
pub(crate) type Destructor = unsafe extern "C-unwind" fn(*mut c_void);

/// How often each key was made and deleted: odd while it is in use. Changed under the lock of the destructors.
static USES: [AtomicU32; KEYS] = [const { AtomicU32::new(0) }; KEYS];
static DESTRUCTORS: Mutex<[Option<Destructor>; KEYS]> = Mutex::new([None; KEYS]);

fn destructors() -> MutexGuard<'static, [Option<Destructor>; KEYS]> {
    // Nothing panics while the lock is held.
    DESTRUCTORS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The key's place, and which use it is in. None: there is no such key.
fn use_of(key: c_int) -> Option<(usize, u32)> {
    let place = usize::try_from(key).ok()?;
    let uses = USES.get(place)?.load(Acquire);
    (uses % 2 == 1).then_some((place, uses))
}

/// Makes a key.
///
/// # Errors
/// `EAGAIN` if all are in use.
pub(crate) fn create(destructor: Option<Destructor>) -> Result<c_int, c_int> {
    let mut destructors = destructors();
    for (number, (uses, kept)) in (0..).zip(USES.iter().zip(&mut *destructors)) {
        if uses.load(Relaxed) % 2 == 0 {
            *kept = destructor;
            uses.fetch_add(1, Release);
            return Ok(number);
        }
    }
    Err(libc::EAGAIN)
}

/// Deletes a key. No destructor is called for it any longer.
///
/// # Errors
/// `EINVAL` if there is no such key.
pub(crate) fn delete(key: c_int) -> Result<(), c_int> {
    let mut destructors = destructors();
    let (place, _) = use_of(key).ok_or(libc::EINVAL)?;
    destructors[place] = None;
    USES[place].fetch_add(1, Release);
    Ok(())
}

/// What one thread keeps: a value for each key, with the key's use when it was set.
pub(crate) struct Values(RefCell<Vec<(u32, *mut c_void)>>);

impl Values {
    pub(crate) const fn new() -> Values {
        Values(RefCell::new(Vec::new()))
    }

    /// Keeps `value` under `key`.
    ///
    /// # Errors
    /// `EINVAL` if there is no such key.
    pub(crate) fn set(&self, key: c_int, value: *mut c_void) -> Result<(), c_int> {
        let (place, uses) = use_of(key).ok_or(libc::EINVAL)?;
        let mut values = self.0.borrow_mut();
        if place >= values.len() {
            let room = (place + 1).next_multiple_of(ROOM);
            values.resize(room, (0, ptr::null_mut()));
        }
        values[place] = (uses, value);
        Ok(())
    }

    /// The value under `key`, or null.
    pub(crate) fn get(&self, key: c_int) -> *mut c_void {
        let Some((place, uses)) = use_of(key) else {
            return ptr::null_mut();
        };
        match self.0.borrow().get(place) {
            Some(&(set_in, value)) if set_in == uses => value,
            _ => ptr::null_mut(),
        }
    }

    pub(crate) fn are_used(&self) -> bool {
        !self.0.borrow().is_empty()
    }

    /// Calls the destructors. They may use keys, and wait.
    pub(crate) fn end(&self) {
        let room = self.0.borrow().len();
        for key in 0..room {
            // Copied: a destructor may make or delete keys.
            let destructor = destructors()[key];
            let (Some(destructor), Ok(number)) = (destructor, c_int::try_from(key)) else {
                continue;
            };
            let value = self.get(number);
            self.0.borrow_mut()[key] = (0, ptr::null_mut());
            // SAFETY: the program's promise to `myth_key_create`.
            unsafe { destructor(value) };
        }
        drop(mem::take(&mut *self.0.borrow_mut()));
    }
}
