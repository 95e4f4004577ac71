//! Arguments as C passes them: texts, and options that know their own size.
//!
//! # Safety
//! *Valid*: see `face`.

#![allow(unsafe_code)]

use std::{
    ffi::{CStr, c_char},
    mem::MaybeUninit,
    slice,
};

use crate::codes::{Failure, WEALD_ARGUMENT, WEALD_NULL, failure};

/// A text of C, which lives as long as the call.
pub(crate) fn text<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    optional_text(text)?.ok_or_else(|| failure(WEALD_NULL, "the text is null"))
}

/// The same, or null.
pub(crate) fn optional_text<'a>(text: *const c_char) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: *valid*.
    let text = unsafe { CStr::from_ptr(text) };
    let text = text.to_str();
    let text = text.map_err(|_| failure(WEALD_ARGUMENT, "the text is not UTF-8"))?;
    Ok(Some(text))
}

/// Options, whose first field is their size.
///
/// # Safety
/// The first field has type `usize`, and all fields are valid with any bytes.
pub(crate) unsafe trait Options: Copy {
    /// What null stands for.
    const DEFAULT: Self;
}

/// The options that C passes.
pub(crate) fn options<T: Options>(options: *const T) -> Result<T, Failure> {
    if options.is_null() {
        return Ok(T::DEFAULT);
    }
    // SAFETY: *valid*; the first field is there in every version.
    let size = unsafe { options.cast::<usize>().read() };
    if size != size_of::<T>() {
        let expected = size_of::<T>();
        let sentence = format!(
            "the field `size` of the options is {size}, and their size is {expected}; set it to sizeof of their type"
        );
        return Err(failure(WEALD_ARGUMENT, sentence));
    }
    // SAFETY: *valid*, and of this size.
    Ok(unsafe { options.read() })
}

/// The room for values that C passes.
pub(crate) fn room<'a, T>(
    room: *mut T,
    capacity: usize,
) -> Result<&'a mut [MaybeUninit<T>], Failure> {
    match (room.is_null(), capacity) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(failure(WEALD_NULL, "the address for the results is null")),
        (false, _) if capacity < isize::MAX as usize / size_of::<T>() => {
            // SAFETY: *valid*.
            Ok(unsafe { slice::from_raw_parts_mut(room.cast(), capacity) })
        }
        _ => Err(failure(WEALD_ARGUMENT, "no memory has so many results")),
    }
}

/// Writes values into it, as many as it has room for, and counts them all.
pub(crate) fn fill<T>(room: &mut [MaybeUninit<T>], values: impl IntoIterator<Item = T>) -> usize {
    let mut places = room.iter_mut();
    let mut count = 0;
    for value in values {
        count += 1;
        if let Some(place) = places.next() {
            place.write(value);
        }
    }
    count
}
