//! Things that threads claim for a while and give back, as the fork deques of a runtime. A walk sees those that are
//! claimed, so it takes as long as there are such things, however many there once were.
//!
//! They are in a chain of chunks. A chunk has a word with a bit for each of its places; the thread that sets a bit has
//! claimed the place, until the bit is cleared. The first claimer of a place makes the thing that stays there. Things
//! and chunks are freed with the list only, so a walk may go on with a thing that was given back meanwhile.
//!
//! A walk may miss a thing that is claimed at that moment, and one that is just being made. If a thread must not miss
//! it, both the claimer and that thread pass a full fence: the one after its claim, the other before its walk.

#![allow(unsafe_code)]

use std::{iter, ptr};

use crate::sys::{AtomicPtr, AtomicU64, Ordering};

/// The number of places in a chunk. Models use few, so that a second chunk is needed within a few steps.
#[cfg(not(loom))]
const PLACES: usize = 64;
#[cfg(loom)]
const PLACES: usize = 2;

/// See the head of this file.
pub(crate) struct InUse<T> {
    first: Chunk<T>,
}

struct Chunk<T> {
    /// Which places are claimed; of `PLACES` bits.
    claimed: AtomicU64,
    /// Null where none was claimed yet.
    things: [AtomicPtr<T>; PLACES],
    next: AtomicPtr<Chunk<T>>,
}

impl<T> InUse<T> {
    pub(crate) fn new() -> InUse<T> {
        InUse {
            first: Chunk::new(),
        }
    }

    /// Claims a thing for the caller. If there is none at the free place, `make` makes it; `make` gets the number by
    /// which the thing is given back.
    pub(crate) fn claim(&self, make: impl FnOnce(usize) -> T) -> &T {
        let (mut chunk, mut number) = (&self.first, 0);
        loop {
            if let Some(place) = chunk.claim() {
                return chunk.thing(place, || make(number + place));
            }
            chunk = chunk.next_or_new();
            number += PLACES;
        }
    }

    /// Gives the thing with this number back, which the caller has claimed.
    pub(crate) fn give_back(&self, number: usize) {
        let mut chunks = self.chunks();
        if let Some(chunk) = chunks.nth(number / PLACES) {
            // Release: pairs with the `fetch_or` in `Chunk::claim`. The next claimer finds the thing as this one leaves
            // it.
            chunk
                .claimed
                .fetch_and(!(1 << (number % PLACES)), Ordering::Release);
        }
    }

    /// The things that are claimed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks().flat_map(Chunk::iter)
    }

    /// How many things are claimed, as of about now.
    pub(crate) fn count(&self) -> usize {
        // Relaxed: a number.
        let claimed =
            |chunk: &Chunk<T>| chunk.claimed.load(Ordering::Relaxed).count_ones() as usize;
        self.chunks().map(claimed).sum()
    }

    fn chunks(&self) -> impl Iterator<Item = &Chunk<T>> {
        iter::successors(Some(&self.first), |chunk| chunk.next())
    }
}

impl<T> Chunk<T> {
    fn new() -> Chunk<T> {
        Chunk {
            claimed: AtomicU64::new(0),
            things: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Claims a place, if one is free.
    fn claim(&self) -> Option<usize> {
        loop {
            let claimed = self.claimed.load(Ordering::Relaxed);
            let place = claimed.trailing_ones() as usize;
            if place >= PLACES {
                return None;
            }
            // Acquire: pairs with `give_back`.
            let before = self.claimed.fetch_or(1 << place, Ordering::AcqRel);
            if before & (1 << place) == 0 {
                return Some(place);
            }
        }
    }

    /// The thing at `place`, which the caller has claimed.
    fn thing(&self, place: usize, make: impl FnOnce() -> T) -> &T {
        // Acquire: pairs with the store below, by an earlier claimer.
        let mut thing = self.things[place].load(Ordering::Acquire);
        if thing.is_null() {
            thing = Box::into_raw(Box::new(make()));
            // Release: pairs with the loads of walks. The thing is complete.
            self.things[place].store(thing, Ordering::Release);
        }
        // SAFETY: a thing lives as long as the list.
        unsafe { &*thing }
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        // Acquire: pairs with the `fetch_or` in `claim`.
        let mut claimed = self.claimed.load(Ordering::Acquire);
        iter::from_fn(move || {
            while claimed != 0 {
                let place = claimed.trailing_zeros() as usize;
                claimed &= claimed - 1;
                // Acquire: pairs with the store in `thing`.
                let thing = self.things[place].load(Ordering::Acquire);
                // SAFETY: null, or a thing, which lives as long as the list.
                if let Some(thing) = unsafe { thing.as_ref() } {
                    return Some(thing);
                }
            }
            None
        })
    }

    fn next(&self) -> Option<&Chunk<T>> {
        // Acquire: pairs with the exchange in `next_or_new`. SAFETY: a chunk lives as long as the list.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }

    fn next_or_new(&self) -> &Chunk<T> {
        if let Some(next) = self.next() {
            return next;
        }
        let new = Box::into_raw(Box::new(Chunk::new()));
        let order = (Ordering::AcqRel, Ordering::Acquire);
        let exchanged = self
            .next
            .compare_exchange(ptr::null_mut(), new, order.0, order.1);
        let next = match exchanged {
            Ok(_) => new,
            Err(faster) => {
                // SAFETY: it was allocated above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(new) });
                faster
            }
        };
        // SAFETY: a chunk in the chain lives as long as the list.
        unsafe { &*next }
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        for thing in &self.things {
            let thing = thing.load(Ordering::Acquire);
            if !thing.is_null() {
                // SAFETY: `thing` allocated it, and the list is not in use any longer.
                drop(unsafe { Box::from_raw(thing) });
            }
        }
        let next = self.next.load(Ordering::Acquire);
        if !next.is_null() {
            // SAFETY: as above, by `next_or_new`.
            drop(unsafe { Box::from_raw(next) });
        }
    }
}
