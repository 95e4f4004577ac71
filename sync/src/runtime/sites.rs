//! The lines at which units wait, as numbers: a name and a site together have a number of 15 bits.
//!
//! Numbers below [`FIRST`] are those of names alone; the others are places in a table of the program, each of which
//! belongs to one pair for ever. So a wait that finds its pair in its first place reads one word, which no thread
//! writes any more, and takes no lock; in another place it reads some more. A pair that finds no place keeps the number
//! of its name, and is reported without its line.

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
struct Pairs([AtomicPtr<Location<'static>>; PLACES]);

/// The pairs of the program.
static PAIRS: Pairs = Pairs::new();

/// How many bits a name's number has in a pair. Addresses mostly end below 2^47.
const NAME_BITS: u32 = 16;
const _: () = assert!(
    usize::BITS == 64,
    "a pair has an address and a name in one word"
);

/// Whether a number is that of a pair.
#[inline(always)]
pub(super) fn is_site(number: u16) -> bool {
    number >= FIRST
}

/// The number of a name's number with a site. Called for each wait.
#[inline(always)]
pub(super) fn number(name: u16, site: Site) -> u16 {
    PAIRS.number(name, site)
}

/// As [`number`], if the pair is in its first place.
#[inline(always)]
pub(super) fn known_number(name: u16, site: Site) -> Option<u16> {
    let place = first_place(name, site);
    // Relaxed: as in `Pairs::number`.
    let is_there = PAIRS.0[place].load(Ordering::Relaxed) == pair(name, site);
    is_there.then(|| number_of(place))
}

/// The name's number and the site of a number.
pub(super) fn name_and_site(number: u16) -> (u16, Option<Site>) {
    PAIRS.name_and_site(number)
}

/// A pair, unless the address leaves no room for the name, see [`has_room`].
#[inline(always)]
fn pair(name: u16, site: Site) -> *mut Location<'static> {
    let site = ptr::from_ref(site).cast_mut();
    site.map_addr(|address| address << NAME_BITS | usize::from(name))
}

/// Whether the pair of a site has all bits of its address.
fn has_room(site: Site) -> bool {
    ptr::from_ref(site).addr() >> (usize::BITS - NAME_BITS) == 0
}

/// Sites are neighbours in memory, 24 bytes each. So those of one name mostly have a place of their own each, unless
/// they are more than 128 KB apart.
#[inline(always)]
fn first_place(name: u16, site: Site) -> usize {
    /// An odd number near the golden ratio of the places, which sets the sites of neighbouring names far apart.
    const APART: usize = 10_125;
    let address = ptr::from_ref(site).addr();
    (address >> 3).wrapping_add(usize::from(name).wrapping_mul(APART)) % PLACES
}

#[expect(clippy::cast_possible_truncation, reason = "it is below 2^14")]
fn number_of(place: usize) -> u16 {
    FIRST + place as u16
}

impl Pairs {
    const fn new() -> Pairs {
        Pairs([const { AtomicPtr::new(ptr::null_mut()) }; PLACES])
    }

    #[inline(always)]
    fn number(&self, name: u16, site: Site) -> u16 {
        let place = first_place(name, site);
        // Relaxed: it is compared, and not followed.
        match self.0[place].load(Ordering::Relaxed) == pair(name, site) {
            true => number_of(place),
            false => self.enter(name, site),
        }
    }

    /// Looks for a pair in its other places, and enters it into the first that is free.
    #[cold]
    fn enter(&self, name: u16, site: Site) -> u16 {
        if !has_room(site) {
            return name;
        }
        let (first, pair) = (first_place(name, site), pair(name, site));
        let free = ptr::null_mut();
        for place in (first..first + TRIES).map(|place| place % PLACES) {
            // A look first, because a pair that has not got its first place comes here with each wait, and an exchange
            // would take the place's cache line away from others. Relaxed: as in `number`.
            let mut found = self.0[place].load(Ordering::Relaxed);
            if found == free {
                // Release: pairs with the load in `name_and_site`, which follows the pointer.
                let entered = self.0[place].compare_exchange(
                    free,
                    pair,
                    Ordering::Release,
                    Ordering::Relaxed,
                );
                found = entered.err().unwrap_or(pair);
            }
            if found == pair {
                return number_of(place);
            }
        }
        name
    }

    fn name_and_site(&self, number: u16) -> (u16, Option<Site>) {
        let Some(place) = number.checked_sub(FIRST) else {
            return (number, None);
        };
        // Acquire: pairs with the exchange in `enter`. The place may have no pair: of a number that no wait was given,
        // or that came here sooner than its pair.
        let pair = self.0.get(usize::from(place));
        let pair = pair.map(|pair| pair.load(Ordering::Acquire));
        let Some(pair) = pair.filter(|pair| !pair.is_null()) else {
            return (0, None);
        };
        let site = pair.map_addr(|pair| pair >> NAME_BITS);
        #[expect(
            clippy::cast_possible_truncation,
            reason = "these are the bits of the name"
        )]
        let name = pair.addr() as u16;
        // SAFETY: only `enter` writes a place, and what it writes is a pair: the pointer of a reference that lives for
        // ever, whose address lost no bit when it was moved up, and is moved down here.
        (name, Some(unsafe { &*site }))
    }
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
        // A table of its own, since other tests enter pairs, too.
        static PAIRS: Pairs = Pairs::new();
        let place = PLACES - 3;
        let pairs: Vec<_> = (0..TRIES).map(|_| pair_at(place)).collect();
        for _ in 0..2 {
            let mut numbers: Vec<u16> = pairs
                .iter()
                .map(|(name, site)| PAIRS.number(*name, site))
                .collect();
            for (pair, number) in pairs.iter().zip(&numbers) {
                assert!(is_site(*number));
                let (name, site) = PAIRS.name_and_site(*number);
                let site = site.expect("the pair has its site");
                assert!(name == pair.0 && ptr::eq(site, pair.1));
            }
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), pairs.len());
        }
        let (name, site) = pair_at(place);
        assert_eq!(PAIRS.number(name, site), name, "there is no place left");
    }

    #[test]
    fn a_number_without_a_pair_has_no_site() {
        assert_eq!(name_and_site(7), (7, None));
        assert_eq!(name_and_site(u16::MAX).1, None);
    }
}
