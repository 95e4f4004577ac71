//! Values that each thread has its own of.
//!
//! A thread's locals lie in a list that hangs on a word at the top of its stack, so reaching them costs no look-up
//! of the thread. They are dropped on the thread, when its code has ended and before anybody who joins it is told.
//!
//! # Safety
//! The list is made when a thread first uses a local, and freed by [`DropAtEnd`] on the same stack; the word
//! names it exactly in between. Values are boxed, so that they stay where they are while the list grows.

#![allow(unsafe_code)]

use std::{any::Any, cell::Cell, fmt, ptr};

use weald_kernel::with_fiber_word;

/// A value of which each thread has its own, made when it is first used. A `static` holds the key:
///
/// ```
/// # let runtime = weald_kernel::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use std::cell::Cell;
/// use weald_fiber::LocalKey;
///
/// static COUNT: LocalKey<Cell<u32>> = LocalKey::new(|| Cell::new(0));
///
/// let count = || {
///     COUNT.with(|count| count.set(count.get() + 1));
///     COUNT.with(Cell::get)
/// };
/// let both = [weald_fiber::spawn(count), weald_fiber::spawn(count)];
/// for thread in both {
///     assert_eq!(thread.join().unwrap(), 1);
/// }
/// # });
/// ```
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

/// The calling code runs on no thread of this crate, or on one whose locals are gone already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "there are no locals here: this is no thread made by weald::thread, or its locals are being \
             dropped; use them in a thread's own code, or try_with elsewhere",
        )
    }
}

impl std::error::Error for AccessError {}

/// A thread's locals, by the addresses of their keys, in the order in which they were made.
#[derive(Default)]
struct Locals {
    list: Vec<(usize, Box<dyn Any>)>,
}

/// In a thread's word while its locals are being dropped.
const GOING: *const () = ptr::without_provenance(1);

impl<T: 'static> LocalKey<T> {
    /// A key whose values are made by `init`, on the thread that uses them.
    pub const fn new(init: fn() -> T) -> LocalKey<T> {
        LocalKey { init }
    }

    /// Calls `with` with the thread's value.
    ///
    /// # Panics
    /// If there is none to be had; see [`AccessError`].
    pub fn with<R>(&'static self, with: impl FnOnce(&T) -> R) -> R {
        match self.try_with(with) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// As [`with`](LocalKey::with).
    ///
    /// # Errors
    /// If the calling code runs on no thread of this crate, or while its locals are being dropped.
    pub fn try_with<R>(&'static self, with: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = self.value()?;
        // SAFETY: values stay where they are until the thread's code has ended, and this is its code.
        Ok(with(unsafe { &*value }))
    }

    fn value(&'static self) -> Result<*const T, AccessError> {
        let key = ptr::from_ref(self).addr();
        let locals = locals().ok_or(AccessError)?;
        // SAFETY: the word names the list; no reference to it is kept while other code runs.
        let found = unsafe { &*locals }.list.iter().find(|(of, _)| *of == key);
        if let Some((_, value)) = found {
            return Ok(value.downcast_ref::<T>().expect("a key has one type"));
        }
        // User code, which may use other locals, and so change the list; or this one, whose value then stays.
        let value = Box::new((self.init)());
        // SAFETY: as above.
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
}

/// The calling thread's list.
fn locals() -> Option<*mut Locals> {
    with_fiber_word(|word| {
        if word.get().is_null() {
            word.set(Box::into_raw(Box::<Locals>::default()).cast());
        }
        word.get()
    })
    .filter(|word| *word != GOING)
    .map(|word| word.cast::<Locals>().cast_mut())
}

/// Drops the running thread's locals when it is dropped, the latest first.
pub(crate) struct DropAtEnd;

impl Drop for DropAtEnd {
    fn drop(&mut self) {
        let word = |word: &Cell<*const ()>| match word.get().is_null() {
            true => ptr::null(),
            false => word.replace(GOING),
        };
        let locals = with_fiber_word(word).unwrap_or(ptr::null());
        if locals.is_null() {
            return;
        }
        // SAFETY: the word named the list until now, and names it no more.
        let mut locals = unsafe { Box::from_raw(locals.cast::<Locals>().cast_mut()) };
        while locals.list.pop().is_some() {}
    }
}
