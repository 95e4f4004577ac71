//! The lines at which units wait, as numbers: a name and a site together have a number of 15 bits.
//!
//! Numbers below [`FIRST`] are those of names alone. A program has room for as many pairs; a wait that would need one
//! more keeps the number of its name, and is reported without its line.

use std::{
    cell::Cell,
    collections::HashMap,
    panic::Location,
    ptr,
    sync::{Mutex, OnceLock, PoisonError},
};

/// The first number of a pair.
const FIRST: u16 = 1 << 14;
/// How many pairs a thread remembers.
const KNOWN: usize = 32;

/// A pair of a name's number and a site.
type SitedName = (u16, &'static Location<'static>);

#[derive(Default)]
struct Pairs {
    list: Vec<SitedName>,
    /// By the name's number and the site's address.
    numbers: HashMap<(u16, usize), u16>,
}

/// A pair that the thread has met, as the address of its site, its name and its number.
#[derive(Clone, Copy)]
struct KnownPair {
    site: usize,
    name: u16,
    number: u16,
}

thread_local! {
    /// By the site's address.
    static KNOWN_PAIRS: [Cell<KnownPair>; KNOWN] = const {
        [const { Cell::new(KnownPair { site: 0, name: 0, number: 0 }) }; KNOWN]
    };
}

fn with_pairs<R>(act: impl FnOnce(&mut Pairs) -> R) -> R {
    static PAIRS: OnceLock<Mutex<Pairs>> = OnceLock::new();
    let pairs = PAIRS.get_or_init(Mutex::default);
    act(&mut pairs.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Whether a number is that of a pair.
pub(super) fn is_site(number: u16) -> bool {
    number >= FIRST
}

/// The number of a name's number with a site.
pub(super) fn number(name: u16, site: &'static Location<'static>) -> u16 {
    let address = ptr::from_ref(site).addr();
    KNOWN_PAIRS.with(|known| {
        let known = &known[(address >> 3) % KNOWN];
        let last = known.get();
        if last.site == address && last.name == name {
            return last.number;
        }
        let number = enter(name, site);
        known.set(KnownPair {
            site: address,
            name,
            number,
        });
        number
    })
}

#[cold]
fn enter(name: u16, site: &'static Location<'static>) -> u16 {
    with_pairs(|pairs| {
        let key = (name, ptr::from_ref(site).addr());
        if let Some(&number) = pairs.numbers.get(&key) {
            return number;
        }
        let Some(number) = u16::try_from(pairs.list.len())
            .ok()
            .filter(|number| *number < FIRST)
        else {
            return name;
        };
        pairs.list.push((name, site));
        pairs.numbers.insert(key, FIRST + number);
        FIRST + number
    })
}

/// The name's number and the site of a number.
pub(super) fn name_and_site(number: u16) -> (u16, Option<&'static Location<'static>>) {
    let Some(index) = number.checked_sub(FIRST) else {
        return (number, None);
    };
    match with_pairs(|pairs| pairs.list.get(usize::from(index)).copied()) {
        Some((name, site)) => (name, Some(site)),
        None => (0, None),
    }
}
