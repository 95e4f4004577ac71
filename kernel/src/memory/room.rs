//! Lists that are used under a lock and never allocate while it is held.
//!
//! A list's memory comes from the program's global allocator, which may itself send a message or spawn a job, and so
//! come back to the blocks on the same thread. So while a thread holds one of the memory's locks, or a borrow of its
//! cache, it neither allocates nor frees: a list grows outside of the lock, and what it grew out of is freed outside.

use std::{
    alloc::{Layout, handle_alloc_error},
    mem,
    sync::{Mutex, MutexGuard},
};

use crate::sys::lock;

/// The smallest room that a list gets.
const LEAST: usize = 16;

/// Locks `mutex`, and calls `act` when the `list` in it has room for `more` items. Aborts as Rust's own lists do when
/// there is no memory for that.
pub(super) fn with_room<T, I, R>(
    mutex: &Mutex<T>,
    more: usize,
    list: impl Fn(&mut T) -> &mut Vec<I>,
    act: impl FnOnce(&mut T) -> R,
) -> R {
    try_with_room(mutex, more, list, act).unwrap_or_else(|| handle_alloc_error(Layout::new::<I>()))
}

/// As [`with_room`], for a caller that can do without. None if there is no memory; then `act` was not called.
pub(super) fn try_with_room<T, I, R>(
    mutex: &Mutex<T>,
    more: usize,
    list: impl Fn(&mut T) -> &mut Vec<I>,
    act: impl FnOnce(&mut T) -> R,
) -> Option<R> {
    // Declared before the guard, so that it is freed after the guard.
    let mut room = Vec::new();
    loop {
        let mut guard = lock(mutex);
        let items = list(&mut guard);
        let wanted = items.len() + more;
        if items.capacity() < wanted && room.capacity() >= wanted {
            room.append(items);
            mem::swap(items, &mut room);
        }
        if items.capacity() >= wanted {
            return Some(act(&mut guard));
        }
        drop(guard);
        room = Vec::new();
        room.try_reserve_exact((2 * wanted).max(LEAST)).ok()?;
    }
}

/// Locks `mutex` when `list`, which it does not guard, has room for as many more items as `more` says of what it
/// guards.
pub(super) fn lock_with_room<'a, T, I>(
    mutex: &'a Mutex<T>,
    list: &mut Vec<I>,
    more: impl Fn(&T) -> usize,
) -> MutexGuard<'a, T> {
    loop {
        let guard = lock(mutex);
        let more = more(&guard);
        if list.capacity() - list.len() >= more {
            return guard;
        }
        drop(guard);
        list.reserve(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_keeps_its_items_while_it_grows() {
        let list = Mutex::new(Vec::new());
        for n in 0..1_000 {
            let capacity = with_room(
                &list,
                1,
                |list| list,
                |list| {
                    let before = list.capacity();
                    list.push(n);
                    (before, list.capacity())
                },
            );
            assert_eq!(capacity.0, capacity.1, "it has grown under the lock");
        }
        assert!(lock(&list).iter().copied().eq(0..1_000));
    }
}
