//! Thread-local values.
//!
//! A thread's locals are in a list that a word at the top of its stack points to, so reaching them needs no look-up
//! of the thread. They are dropped on the thread, after its code has ended and before its join returns.
//!
//! # Safety
//! The list is created when a thread first uses a local, and [`DropAtEnd`] frees it on the same stack; the word
//! points to it exactly in between. Values are boxed, so that they do not move while the list grows.

#![allow(unsafe_code)]

use std::{
    any::Any,
    cell::Cell,
    fmt, ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use weald_kernel::with_fiber_word;

/// The key of a value that each thread has its own copy of, created at its first use. A `static` holds the key:
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::cell::Cell;
/// use weald::thread::LocalKey;
///
/// static COUNT: LocalKey<Cell<u32>> = LocalKey::new(|| Cell::new(0));
///
/// let count = || {
///     COUNT.with(|count| count.set(count.get() + 1));
///     COUNT.with(Cell::get)
/// };
/// let both = [weald::thread::spawn(count), weald::thread::spawn(count)];
/// for thread in both {
///     assert_eq!(thread.join().unwrap(), 1);
/// }
/// # });
/// ```
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

/// A key that is made while the program runs, of a value that each thread has its own copy of. Otherwise as
/// [`LocalKey`].
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::{cell::Cell, sync::Arc};
/// use weald::thread::Key;
///
/// let keys: Vec<_> = (0..3).map(|first| Arc::new(Key::new(move || Cell::new(first)))).collect();
/// let threads: Vec<_> = keys
///     .iter()
///     .map(|key| {
///         let key = key.clone();
///         weald::thread::spawn(move || key.with(|value| value.replace(7) + key.with(Cell::get)))
///     })
///     .collect();
/// for (first, thread) in threads.into_iter().enumerate() {
///     assert_eq!(thread.join().unwrap(), first + 7);
/// }
/// # });
/// ```
///
/// A key that is dropped leaves the values to their threads, which drop them when they end.
pub struct Key<T: 'static> {
    /// No other key of the program ever has it. Odd, unlike the address of a [`LocalKey`].
    number: usize,
    init: Box<dyn Fn() -> T + Send + Sync>,
}

impl<T: 'static> Key<T> {
    /// A key whose values `init` creates, on the thread that uses them.
    pub fn new(init: impl Fn() -> T + Send + Sync + 'static) -> Key<T> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        Key {
            // Relaxed: it is a count, and guards no other memory.
            number: NEXT.fetch_add(2, Ordering::Relaxed),
            init: Box::new(init),
        }
    }

    /// As [`LocalKey::with`].
    ///
    /// # Panics
    /// If the caller has no locals; see [`AccessError`].
    pub fn with<R>(&self, with: impl FnOnce(&T) -> R) -> R {
        match self.try_with(with) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`LocalKey::try_with`].
    ///
    /// # Errors
    /// If the caller is not a thread of this crate, or its locals are being dropped.
    pub fn try_with<R>(&self, with: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = value_of(self.number, &self.init)?;
        // SAFETY: values do not move until the thread's code has ended, and this is its code.
        Ok(with(unsafe { &*value }))
    }
}

impl<T> fmt::Debug for Key<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}

/// The caller is not a thread of this crate, or its locals are being dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "no locals here: the caller is not a thread started by weald::thread, or its locals are being \
             dropped; use locals in a thread's own code, or try_with elsewhere",
        )
    }
}

impl std::error::Error for AccessError {}

/// A thread's locals, in the order of their creation. Each is found by the address of its key, or by the number of a
/// key made at run time.
#[derive(Default)]
struct Locals {
    list: Vec<(usize, Box<dyn Any>)>,
}

/// A thread's word while its locals are being dropped.
const DROPPING: *const () = ptr::without_provenance(1);

impl<T: 'static> LocalKey<T> {
    /// A key whose values `init` creates, on the thread that uses them.
    pub const fn new(init: fn() -> T) -> LocalKey<T> {
        LocalKey { init }
    }

    /// Calls `with` with the thread's value.
    ///
    /// # Panics
    /// If the caller has no locals; see [`AccessError`].
    pub fn with<R>(&'static self, with: impl FnOnce(&T) -> R) -> R {
        match self.try_with(with) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`with`](LocalKey::with).
    ///
    /// # Errors
    /// If the caller is not a thread of this crate, or its locals are being dropped.
    pub fn try_with<R>(&'static self, with: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        // The address is even: the key holds a pointer.
        let value = value_of(ptr::from_ref(self).addr(), self.init)?;
        // SAFETY: values do not move until the thread's code has ended, and this is its code.
        Ok(with(unsafe { &*value }))
    }
}

/// The calling thread's value of the key `key`, created by `init` if there is none.
fn value_of<T: 'static>(key: usize, init: impl FnOnce() -> T) -> Result<*const T, AccessError> {
    let locals = locals().ok_or(AccessError)?;
    // SAFETY: the word points to the list; no reference to the list is kept while other code runs.
    let found = unsafe { &*locals }.list.iter().find(|(of, _)| *of == key);
    if let Some((_, value)) = found {
        return Ok(value.downcast_ref::<T>().expect("a key has one type"));
    }
    // `init` is user code. It may use other locals, which changes the list, or this one: then the value that the
    // inner use has put into the list wins.
    let value = Box::new(init());
    // SAFETY: as above; `init` has returned.
    let list = unsafe { &mut (*locals).list };
    let at = match list.iter().position(|(of, _)| *of == key) {
        Some(at) => at,
        None => {
            list.push((key, value));
            list.len() - 1
        }
    };
    Ok(list[at].1.downcast_ref::<T>().expect("a key has one type"))
}

/// The calling thread's list.
fn locals() -> Option<*mut Locals> {
    with_fiber_word(|word| {
        if word.get().is_null() {
            word.set(Box::into_raw(Box::<Locals>::default()).cast());
        }
        word.get()
    })
    .filter(|word| *word != DROPPING)
    .map(|word| word.cast::<Locals>().cast_mut())
}

/// A guard that drops the running thread's locals, the latest first.
pub(crate) struct DropAtEnd;

impl Drop for DropAtEnd {
    #[inline]
    fn drop(&mut self) {
        let word = |word: &Cell<*const ()>| match word.get().is_null() {
            true => ptr::null(),
            false => word.replace(DROPPING),
        };
        let locals = with_fiber_word(word).unwrap_or(ptr::null());
        if !locals.is_null() {
            // SAFETY: the word pointed to the list until now, and no longer does.
            unsafe { drop_list(locals.cast::<Locals>().cast_mut()) };
        }
    }
}

/// # Safety
/// The list is the caller's.
#[inline(never)]
unsafe fn drop_list(locals: *mut Locals) {
    // SAFETY: the caller's promise.
    let mut locals = unsafe { Box::from_raw(locals) };
    while locals.list.pop().is_some() {}
}
