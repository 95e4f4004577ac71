//! The lines at which units wait, as numbers: a name and a site together have a number of 15 bits.
//!
//! Numbers below [`FIRST`] are those of names alone; the others are places in a table of the program, each of which
//! belongs to one pair for ever. So a wait that finds its pair reads one word, which no thread writes any more, and
//! takes no lock. A pair that finds no place keeps the number of its name, and is reported without its line.

#![allow(unsafe_code)]

use std::{
    panic::Location,
    ptr,
    sync::atomic::{AtomicPtr, Ordering},
};

/// The first number of a pair.
const FIRST: u16 = 1 << 14;
/// How many pairs a program has room for.
const PLACES: usize = FIRST as usize;
/// How many places a pair may have.
const TRIES: usize = 16;

/// A site.
type Site = &'static Location<'static>;

/// The pairs: in each place the pointer to a site, with its address moved up by the bits of a name's number; or null.
static PAIRS: [AtomicPtr<Location<'static>>; PLACES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];

/// How many bits a name's number has in a pair. Addresses end below 2^47.
const NAME_BITS: u32 = 16;

/// Whether a number is that of a pair.
pub(super) fn is_site(number: u16) -> bool {
    number >= FIRST
}

/// The number of a name's number with a site. Called for each wait.
#[inline(always)]
pub(super) fn number(name: u16, site: Site) -> u16 {
    let pair = pair(name, site);
    let place = first_place(name, site);
    // Relaxed: a pair is a number, and a pointer to what lives for ever.
    match PAIRS[place].load(Ordering::Relaxed) == pair {
        true => number_of(place),
        false => enter(name, place, pair),
    }
}

fn pair(name: u16, site: Site) -> *mut Location<'static> {
    let site = ptr::from_ref(site).cast_mut();
    site.map_addr(|address| address << NAME_BITS | usize::from(name))
}

/// Sites are neighbours in memory, 24 bytes each, so those of one name have each a place of their own, unless they are
/// more than 128 KB apart.
#[inline(always)]
fn first_place(name: u16, site: Site) -> usize {
    let address = ptr::from_ref(site).addr();
    // By the golden ratio, as in Knuth's multiplicative hashing.
    (address >> 3).wrapping_add(usize::from(name).wrapping_mul(0x9e37)) % PLACES
}

#[expect(clippy::cast_possible_truncation, reason = "it is below 2^14")]
fn number_of(place: usize) -> u16 {
    FIRST + place as u16
}

/// Looks for a pair in its other places, and enters it into the first that is free.
#[cold]
fn enter(name: u16, first: usize, pair: *mut Location<'static>) -> u16 {
    for place in (first..first + TRIES).map(|place| place % PLACES) {
        let free = ptr::null_mut();
        let entered =
            PAIRS[place].compare_exchange(free, pair, Ordering::Relaxed, Ordering::Relaxed);
        if entered.is_ok() || entered == Err(pair) {
            return number_of(place);
        }
    }
    name
}

/// The name's number and the site of a number.
pub(super) fn name_and_site(number: u16) -> (u16, Option<Site>) {
    let Some(place) = number.checked_sub(FIRST) else {
        return (number, None);
    };
    // Relaxed: as in `number`. A number that no wait was given may be the place of no pair.
    let pair = PAIRS
        .get(usize::from(place))
        .map(|pair| pair.load(Ordering::Relaxed));
    let Some(pair) = pair.filter(|pair| !pair.is_null()) else {
        return (0, None);
    };
    let site = pair.map_addr(|pair| pair >> NAME_BITS);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "these are the bits of the name"
    )]
    let name = pair.addr() as u16;
    // SAFETY: only `enter` writes a place, and what it writes is a pair: the pointer of a reference that lives for ever,
    // with another address until here.
    (name, Some(unsafe { &*site }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pair with a new site, whose first place is this one.
    fn pair_at(place: usize) -> (u16, Site) {
        let site: Site = Box::leak(Box::new(*Location::caller()));
        // The factor is odd, so the names below 2^14 have every place.
        let name = (0..FIRST).find(|name| first_place(*name, site) == place);
        (name.expect("some name has the place"), site)
    }

    #[test]
    fn pairs_that_want_the_same_place_keep_numbers_of_their_own() {
        let place = PLACES - 3;
        let pairs: Vec<_> = (0..TRIES).map(|_| pair_at(place)).collect();
        for _ in 0..2 {
            let mut numbers: Vec<u16> = pairs
                .iter()
                .map(|(name, site)| number(*name, site))
                .collect();
            for (pair, number) in pairs.iter().zip(&numbers) {
                assert!(is_site(*number));
                let (name, site) = name_and_site(*number);
                let site = site.expect("the pair has its site");
                assert!(name == pair.0 && ptr::eq(site, pair.1));
            }
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), pairs.len());
        }
        let (name, site) = pair_at(place);
        assert_eq!(number(name, site), name, "there is no place left");
    }

    #[test]
    fn a_number_without_a_pair_has_no_site() {
        assert_eq!(name_and_site(7), (7, None));
        assert_eq!(name_and_site(u16::MAX).1, None);
    }
}
