//! A reference to a static in four bytes (a relative pointer): its distance from a static of this crate.
//!
//! The statics of one program image lie within 2 GiB of each other, so the distance fits. A static of another image,
//! such as a dynamic library, may be farther away: it gets a number in a table that only grows.
//!
//! Invariant: an even word is a distance, an odd one is twice a number in the table, plus one.

#![allow(unsafe_code)]

use std::{collections::HashMap, marker::PhantomData, ptr, sync::OnceLock};

use crate::sys::{Mutex, lock};

/// A `&'static T` in four bytes.
pub(super) struct Near<T: 'static> {
    word: i32,
    to: PhantomData<&'static T>,
}

impl<T> PartialEq for Near<T> {
    /// Whether both are the same static.
    #[inline]
    fn eq(&self, other: &Near<T>) -> bool {
        self.word == other.word
    }
}

impl<T> Clone for Near<T> {
    fn clone(&self) -> Near<T> {
        *self
    }
}
impl<T> Copy for Near<T> {}

/// The distances are counted from here.
static ANCHOR: u64 = 0;

fn anchor() -> usize {
    (&raw const ANCHOR).addr()
}

impl<T: Sync> Near<T> {
    #[inline]
    pub(super) fn new(to: &'static T) -> Near<T> {
        const { assert!(align_of::<T>() > 1, "a distance is even") };
        let address = ptr::from_ref(to).expose_provenance();
        let word = match i32::try_from(address.wrapping_sub(anchor()).cast_signed()) {
            Ok(distance) => distance,
            Err(_) => far::enter(address),
        };
        Near {
            word,
            to: PhantomData,
        }
    }

    #[inline]
    pub(super) fn get(self) -> &'static T {
        let address = match self.word & 1 {
            0 => anchor().wrapping_add_signed(self.word as isize),
            _ => far::address(self.word),
        };
        // SAFETY: the word was made from the address of a `&'static T`, whose provenance is exposed.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }
}

/// The table of statics that are far away.
mod far {
    use super::{HashMap, Mutex, OnceLock, lock};

    #[derive(Default)]
    struct FarStatics {
        addresses: Vec<usize>,
        words: HashMap<usize, i32>,
    }

    fn table() -> &'static Mutex<FarStatics> {
        static TABLE: OnceLock<Mutex<FarStatics>> = OnceLock::new();
        TABLE.get_or_init(|| Mutex::new(FarStatics::default()))
    }

    #[cold]
    pub(super) fn enter(address: usize) -> i32 {
        let table = &mut *lock(table());
        *table.words.entry(address).or_insert_with(|| {
            let number = i32::try_from(table.addresses.len()).expect("statics are fewer than 2^31");
            table.addresses.push(address);
            number << 1 | 1
        })
    }

    #[cold]
    pub(super) fn address(word: i32) -> usize {
        lock(table()).addresses[(word >> 1).cast_unsigned() as usize]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::Location;

    use super::*;

    #[test]
    fn a_static_of_this_image_is_found_by_its_distance() {
        let here = Location::caller();
        let near = Near::new(here);
        assert_eq!(near.word & 1, 0);
        assert!(ptr::eq(near.get(), here));
    }

    #[test]
    fn a_static_that_is_far_away_is_found_in_the_table() {
        // Memory that is mapped elsewhere, and never given back.
        let far: &'static [u64] = vec![7; 1 << 20].leak();
        for item in [&far[0], &far[9], &far[0]] {
            let word = far::enter(ptr::from_ref(item).expose_provenance());
            let near = Near::<u64> {
                word,
                to: PhantomData,
            };
            assert!(ptr::eq(near.get(), item));
        }
        assert!(ptr::eq(Near::new(&far[3]).get(), &raw const far[3]));
    }
}
