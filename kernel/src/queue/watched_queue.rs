//! A queue of pointers that one thread fills and empties, and that any thread may observe.
//!
//! It grows as a `VecDeque` does. The owner pays for the observers only when it grows: an observer holds the lock that
//! the owner takes to replace the buffer, so no buffer is freed while it is read. What an observer sees may be a moment
//! old, and a pointer may have left the queue since.
//!
//! # Safety
//! **owner**: only the owner's thread moves the ends and replaces the buffer. The callers of the `unsafe` functions
//! promise to be on it. So `slots` and `capacity` describe the buffer whenever the owner reads them.

#![allow(unsafe_code)]

use std::{
    ptr,
    sync::atomic::{AtomicPtr, AtomicUsize, Ordering},
};

use crate::sys::{Mutex, lock};

const FIRST_CAPACITY: usize = 16;

/// The queue.
pub(crate) struct WatchedQueue<T> {
    /// The slots of the buffer; null at first.
    slots: AtomicPtr<AtomicPtr<T>>,
    /// How many there are: a power of two, or zero at first.
    capacity: AtomicUsize,
    /// How many pointers were ever taken, and ever put. They wrap.
    head: AtomicUsize,
    tail: AtomicUsize,
    buffer: Mutex<Box<[AtomicPtr<T>]>>,
}

impl<T> WatchedQueue<T> {
    pub(crate) fn new() -> WatchedQueue<T> {
        WatchedQueue {
            slots: AtomicPtr::new(ptr::null_mut()),
            capacity: AtomicUsize::new(0),
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            buffer: Mutex::new(Box::default()),
        }
    }

    /// How many there are: exact for the owner, else a moment old.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        // Acquire: pairs with `pop`, so that the end, which is read after it, is not before the beginning.
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Relaxed).wrapping_sub(head)
    }

    /// The slot for position `at`, while the buffer is not empty.
    #[inline(always)]
    fn slot(&self, at: usize) -> &AtomicPtr<T> {
        let mask = self.capacity.load(Ordering::Relaxed).wrapping_sub(1);
        let slots = self.slots.load(Ordering::Relaxed);
        // SAFETY: owner: the index is below the capacity of the buffer that is there, which is not empty.
        let slot = unsafe { slots.add(at & mask) };
        // SAFETY: owner: the buffer is alive.
        unsafe { &*slot }
    }

    /// Puts `item` at the end.
    ///
    /// # Safety
    /// The caller is the owner.
    #[inline(always)]
    pub(crate) unsafe fn push(&self, item: *mut T) {
        if self.len() == self.capacity.load(Ordering::Relaxed) {
            self.grow();
        }
        let tail = self.tail.load(Ordering::Relaxed);
        self.slot(tail).store(item, Ordering::Relaxed);
        // Release: pairs with `snapshot`, which reads the slot after the end.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// Takes the first.
    ///
    /// # Safety
    /// The caller is the owner.
    #[inline(always)]
    pub(crate) unsafe fn pop(&self) -> Option<*mut T> {
        if self.len() == 0 {
            return None;
        }
        let head = self.head.load(Ordering::Relaxed);
        let item = self.slot(head).load(Ordering::Relaxed);
        // Release: pairs with `len` and `snapshot`.
        self.head.store(head.wrapping_add(1), Ordering::Release);
        Some(item)
    }

    /// Takes the first, which the caller has seen.
    ///
    /// # Safety
    /// The caller is the owner, and the queue is not empty.
    #[inline(always)]
    pub(crate) unsafe fn drop_first(&self) {
        debug_assert!(self.len() > 0, "there is a first");
        let head = self.head.load(Ordering::Relaxed);
        // Release: as in `pop`.
        self.head.store(head.wrapping_add(1), Ordering::Release);
    }

    /// Takes the first, which the caller has seen, and puts `item` at the end.
    ///
    /// # Safety
    /// The caller is the owner, and the queue is not empty.
    #[inline(always)]
    pub(crate) unsafe fn rotate(&self, item: *mut T) {
        debug_assert!(self.len() > 0, "there is a first");
        let head = self.head.load(Ordering::Relaxed);
        // Release: as in `pop`. The queue has room now.
        self.head.store(head.wrapping_add(1), Ordering::Release);
        let tail = self.tail.load(Ordering::Relaxed);
        self.slot(tail).store(item, Ordering::Relaxed);
        // Release: as in `push`.
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// The first, which stays.
    ///
    /// # Safety
    /// The caller is the owner.
    #[inline(always)]
    pub(crate) unsafe fn first(&self) -> Option<*mut T> {
        if self.len() == 0 {
            return None;
        }
        let head = self.head.load(Ordering::Relaxed);
        Some(self.slot(head).load(Ordering::Relaxed))
    }

    /// Doubles the buffer.
    #[cold]
    #[inline(never)]
    fn grow(&self) {
        let mut buffer = lock(&self.buffer);
        let capacity = (2 * buffer.len()).max(FIRST_CAPACITY);
        let larger: Box<[AtomicPtr<T>]> = (0..capacity).map(|_| AtomicPtr::default()).collect();
        let head = self.head.load(Ordering::Relaxed);
        for at in (0..self.len()).map(|offset| head.wrapping_add(offset)) {
            let item = buffer[at & (buffer.len() - 1)].load(Ordering::Relaxed);
            larger[at & (capacity - 1)].store(item, Ordering::Relaxed);
        }
        *buffer = larger;
        let slots = buffer.as_mut_ptr();
        self.slots.store(slots, Ordering::Relaxed);
        self.capacity.store(capacity, Ordering::Relaxed);
    }

    /// The pointers that are in the queue, or were a moment ago. Any thread.
    pub(crate) fn snapshot(&self) -> Vec<*mut T> {
        let buffer = lock(&self.buffer);
        // Acquire: pairs with `pop`, and with `push`.
        let head = self.head.load(Ordering::Acquire);
        let tail = self.tail.load(Ordering::Acquire);
        // The ends were read one after the other, so they may be further apart than they ever were.
        let len = tail.wrapping_sub(head).min(buffer.len());
        (0..len)
            .map(|offset| head.wrapping_add(offset) & (buffer.len() - 1))
            .map(|index| buffer[index].load(Ordering::Relaxed))
            .filter(|item| !item.is_null())
            .collect()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Miri is some thousand times slower.
    const PUTS: usize = if cfg!(miri) { 100 } else { 20_000 };

    fn item(n: usize) -> *mut u8 {
        ptr::without_provenance_mut(n)
    }

    #[test]
    fn it_is_a_queue_that_grows() {
        let (queue, mut model) = (WatchedQueue::new(), VecDeque::new());
        for n in 1..PUTS.min(1000) {
            // SAFETY: one thread.
            unsafe { queue.push(item(n)) };
            model.push_back(item(n));
            if n % 3 == 0 {
                // SAFETY: as above.
                assert_eq!(unsafe { queue.pop() }, model.pop_front());
            }
            if n % 5 == 0 && !model.is_empty() {
                // SAFETY: as above; it is not empty.
                unsafe { queue.rotate(item(PUTS + n)) };
                model.pop_front();
                model.push_back(item(PUTS + n));
            }
            assert_eq!(queue.len(), model.len());
            assert!(queue.snapshot().iter().eq(&model));
        }
        while let Some(first) = model.pop_front() {
            // SAFETY: as above.
            assert_eq!(unsafe { queue.pop() }, Some(first));
        }
        // SAFETY: as above.
        assert!(unsafe { queue.pop() }.is_none() && queue.snapshot().is_empty());
    }

    #[test]
    fn observers_see_what_was_put() {
        let queue = WatchedQueue::<u8>::new();
        std::thread::scope(|scope| {
            let observer = scope.spawn(|| {
                let mut highest = 0;
                while highest < PUTS {
                    for seen in queue.snapshot() {
                        assert!((1..=PUTS).contains(&seen.addr()));
                        highest = highest.max(seen.addr());
                    }
                }
            });
            for n in 1..=PUTS {
                // SAFETY: only this thread puts and takes.
                unsafe { queue.push(item(n)) };
                if n % 7 == 0 && n < PUTS {
                    // SAFETY: as above.
                    unsafe { queue.pop() };
                }
            }
            observer.join().unwrap();
        });
    }
}
