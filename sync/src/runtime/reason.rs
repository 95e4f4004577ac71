//! What a unit waits for, in one word: the kind, the object, the object's name, and the line of the wait.
//!
//! The word holds only numbers, so a reader on another thread follows no pointer: the object may be gone by
//! then.

use std::{
    collections::HashMap,
    fmt,
    panic::Location,
    sync::{Mutex, OnceLock, PoisonError},
};

use super::sites;
pub use super::user_sites::user_site;

/// The kinds of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// A mailbox's next message.
    Message = 1,
    /// The end of another job; the object is that job.
    End,
    /// A point in time.
    Time,
    /// The children of a scope.
    Children,
    /// A mutex; the holder is known.
    Mutex,
    /// A read-write lock.
    RwLock,
    /// A condition variable.
    Condvar,
    /// A barrier.
    Barrier,
    /// A semaphore.
    Semaphore,
    /// Another unit's initialisation.
    Once,
    /// The members of a wait group.
    WaitGroup,
    /// The other end of a oneshot.
    Oneshot,
    /// Room in a channel, or a receiver.
    Send,
    /// A value from a channel.
    Receive,
    /// The value of an ivar.
    IVar,
    /// Room in an mvar.
    Put,
    /// The value of an mvar.
    Take,
    /// A partner of an exchange.
    Exchange,
    /// A descriptor to become readable.
    Readable,
    /// A descriptor to become writable.
    Writable,
    /// One of several events.
    Select,
    /// A future that gives no more detail.
    Future,
    /// A closure that runs on a blocking thread.
    Blocking,
    /// A blocking thread that is free.
    BlockingThread,
    /// The answer to a call of a process; the object is the process.
    Call,
}

/// Behind the kinds are the four whose waits have a holder once more, as those of [`beside_others`].
const KINDS: [Kind; 29] = [
    Kind::Message,
    Kind::End,
    Kind::Time,
    Kind::Children,
    Kind::Mutex,
    Kind::RwLock,
    Kind::Condvar,
    Kind::Barrier,
    Kind::Semaphore,
    Kind::Once,
    Kind::WaitGroup,
    Kind::Oneshot,
    Kind::Send,
    Kind::Receive,
    Kind::IVar,
    Kind::Put,
    Kind::Take,
    Kind::Exchange,
    Kind::Readable,
    Kind::Writable,
    Kind::Select,
    Kind::Future,
    Kind::Blocking,
    Kind::BlockingThread,
    Kind::Call,
    Kind::End,
    Kind::Mutex,
    Kind::RwLock,
    Kind::Call,
];

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Message => "a message",
            Kind::End => "another job's end",
            Kind::Time => "a point in time",
            Kind::Children => "the children of a scope",
            Kind::Mutex => "a mutex",
            Kind::RwLock => "a read-write lock",
            Kind::Condvar => "a condition variable",
            Kind::Barrier => "a barrier",
            Kind::Semaphore => "a semaphore",
            Kind::Once => "an initialisation",
            Kind::WaitGroup => "a wait group",
            Kind::Oneshot => "a oneshot",
            Kind::Send => "room in a channel",
            Kind::Receive => "a value from a channel",
            Kind::IVar => "an ivar",
            Kind::Put => "room in an mvar",
            Kind::Take => "the value of an mvar",
            Kind::Exchange => "a partner of an exchange",
            Kind::Readable => "a descriptor to become readable",
            Kind::Writable => "a descriptor to become writable",
            Kind::Select => "one of several events",
            Kind::Future => "a future",
            Kind::Blocking => "a closure on a blocking thread",
            Kind::BlockingThread => "a free blocking thread",
            Kind::Call => "the answer to a call",
        })
    }
}

/// An object's name: a number for a text that is kept for ever.
///
/// There are at most 16,383 different names. An object that is given one more stays unnamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name(u16);

#[derive(Default)]
struct Names {
    texts: Vec<&'static str>,
    numbers: HashMap<&'static str, u16>,
}

fn with_names<R>(act: impl FnOnce(&mut Names) -> R) -> R {
    static NAMES: OnceLock<Mutex<Names>> = OnceLock::new();
    let names = NAMES.get_or_init(Mutex::default);
    act(&mut names.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Name {
    /// How many bits a name's number has.
    pub(crate) const BITS: u32 = 14;
    /// No name.
    pub const NONE: Name = Name(0);

    /// The name with this text. Takes a lock and, for a new text, memory that is never freed.
    #[inline]
    pub fn new(text: &str) -> Name {
        with_names(|names| {
            if let Some(&number) = names.numbers.get(text) {
                return Name(number);
            }
            let number = names.texts.len() + 1;
            if number >= 1 << Name::BITS {
                return Name::NONE;
            }
            let number = u16::try_from(number).expect("a name has 14 bits");
            let text: &'static str = Box::leak(text.into());
            names.texts.push(text);
            names.numbers.insert(text, number);
            Name(number)
        })
    }

    /// The text; none for [`Name::NONE`].
    pub fn text(self) -> Option<&'static str> {
        let index = usize::from(self.0).checked_sub(1)?;
        with_names(|names| names.texts.get(index).copied())
    }

    /// The number; zero for [`Name::NONE`].
    #[inline]
    pub(crate) fn number(self) -> u16 {
        self.0
    }

    /// The name with a number from [`Name::number`].
    #[inline]
    pub(crate) fn of_number(number: u16) -> Name {
        Name(number)
    }
}

/// What a unit waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Reason {
    /// What kind of thing it is.
    pub kind: Kind,
    /// The name of the object, if it was given one.
    pub name: Name,
    /// The object's address: it distinguishes objects that exist at the same time. Zero: unspecified.
    pub object: usize,
    /// The line of the wait in the user's code, if it is known.
    pub site: Option<&'static Location<'static>>,
}

impl Reason {
    /// A wait for `object`.
    #[inline]
    pub fn new<T: ?Sized>(kind: Kind, object: &T) -> Reason {
        Reason {
            kind,
            name: Name::NONE,
            object: std::ptr::from_ref(object).cast::<()>().addr(),
            site: None,
        }
    }

    /// A wait for an object that is not specified.
    pub const fn unspecified(kind: Kind) -> Reason {
        Reason {
            kind,
            name: Name::NONE,
            object: 0,
            site: None,
        }
    }

    /// The same with the object's name.
    #[must_use]
    #[inline]
    pub const fn named(self, name: Name) -> Reason {
        Reason { name, ..self }
    }

    /// The same, at a line of user code.
    #[must_use]
    #[inline]
    pub const fn at(self, site: Option<&'static Location<'static>>) -> Reason {
        Reason { site, ..self }
    }

    /// The reason in one word, without its site. It is not zero: kind in 5 bits, name in 15, object in 44. Addresses
    /// end below 2^47 and objects are aligned to eight. (The address of an object that is not is rounded down to
    /// eight.)
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.with_number(self.name.0)
    }

    /// As [`to_word`](Reason::to_word), with the site, if there is one.
    #[inline(always)]
    pub fn to_word_with_site(self) -> u64 {
        let name = self.name.0;
        self.with_number(self.site.map_or(name, |site| sites::number(name, site)))
    }

    /// As [`to_word_with_site`](Reason::to_word_with_site), if that takes only one look into the table of sites.
    #[inline(always)]
    pub fn to_word_with_known_site(self) -> Option<u64> {
        let number = match self.site {
            None => self.name.0,
            Some(site) => sites::known_number(self.name.0, site)?,
        };
        Some(self.with_number(number))
    }

    #[inline(always)]
    const fn with_number(self, number: u16) -> u64 {
        let object = (self.object as u64 >> 3) & ((1 << OBJECT_BITS) - 1);
        (self.kind as u64) << KIND_SHIFT | (number as u64) << OBJECT_BITS | object
    }

    /// The reason that became `word`; none for zero.
    pub fn of_word(word: u64) -> Option<Reason> {
        let kind = usize::try_from(word >> KIND_SHIFT).ok()?.checked_sub(1)?;
        let (name, site) = sites::name_and_site(number_of(word));
        Some(Reason {
            kind: *KINDS.get(kind)?,
            name: Name(name),
            object: usize::try_from((word & ((1 << OBJECT_BITS) - 1)) << 3).ok()?,
            site,
        })
    }
}

const OBJECT_BITS: u32 = 44;
const KIND_SHIFT: u32 = 59;

/// The number of a name, or of a name and a site.
#[inline(always)]
fn number_of(word: u64) -> u16 {
    let number = (word >> OBJECT_BITS) & ((1 << (KIND_SHIFT - OBJECT_BITS)) - 1);
    u16::try_from(number).expect("it has 15 bits")
}

/// The word of a reason, with the line of the wait. Zero, and a word that has a site, stay as they are. It costs a look
/// into a table.
#[inline(always)]
pub fn word_at(word: u64, site: &'static Location<'static>) -> u64 {
    let number = number_of(word);
    match word == 0 || sites::is_site(number) {
        true => word,
        false => with_site(word, site),
    }
}

#[inline(never)]
fn with_site(word: u64, site: &'static Location<'static>) -> u64 {
    let number = number_of(word);
    let with_site = sites::number(number, site);
    word & !(u64::from(u16::MAX >> 1) << OBJECT_BITS) | u64::from(with_site) << OBJECT_BITS
}

/// The word of a wait that is perhaps not the only one of its unit: others may go on, or have a time limit. It names
/// the same reason. Only words of waits that can have a holder differ.
#[inline(always)]
pub const fn beside_others(word: u64) -> u64 {
    let kind = match word >> KIND_SHIFT {
        END => 26,
        MUTEX => 27,
        RW_LOCK => 28,
        CALL => 29,
        kind => kind,
    };
    word & ((1 << KIND_SHIFT) - 1) | kind << KIND_SHIFT
}

const END: u64 = Kind::End as u64;
const MUTEX: u64 = Kind::Mutex as u64;
const RW_LOCK: u64 = Kind::RwLock as u64;
const CALL: u64 = Kind::Call as u64;

/// Whether the word came from [`beside_others`], and is that of a wait that can have a holder.
pub const fn is_beside_others(word: u64) -> bool {
    word >> KIND_SHIFT > CALL
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.text() {
            Some(name) => write!(f, "{} (`{name}`)", self.kind)?,
            None => self.kind.fmt(f)?,
        }
        match self.site {
            Some(site) => write!(f, " at {site}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} at {:#x}", self.object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_survives_its_word() {
        let object = 7_u64;
        for kind in KINDS {
            for name in [Name::NONE, Name::new("one"), Name::new("two")] {
                let reason = Reason::new(kind, &object).named(name);
                assert_eq!(Reason::of_word(reason.to_word()), Some(reason));
            }
        }
        assert_eq!(Reason::of_word(0), None);
        assert_eq!(Reason::of_word(u64::MAX), None);
    }

    #[test]
    fn a_wait_beside_others_names_the_same_reason() {
        let object = 7_u64;
        for kind in KINDS {
            let reason = Reason::new(kind, &object).named(Name::new("one"));
            let beside = beside_others(reason.to_word());
            assert_eq!(Reason::of_word(beside), Some(reason));
            assert_eq!(beside_others(beside), beside);
            let holders = [Kind::End, Kind::Mutex, Kind::RwLock, Kind::Call];
            let has_holder = holders.contains(&kind);
            assert_eq!(is_beside_others(beside), has_holder);
            assert!(!is_beside_others(reason.to_word()));
        }
    }

    #[test]
    fn a_word_keeps_the_name_and_the_line_of_the_wait() {
        let object = 7_u64;
        let (here, there) = (Location::caller(), line());
        for name in [Name::NONE, Name::new("one")] {
            let reason = Reason::new(Kind::Future, &object).named(name);
            for site in [here, there, here] {
                let word = word_at(reason.to_word(), site);
                assert_eq!(Reason::of_word(word), Some(reason.at(Some(site))));
                // The first line stays.
                assert_eq!(word_at(word, there), word);
            }
        }
        assert_eq!(word_at(0, here), 0);
    }

    #[track_caller]
    fn line() -> &'static Location<'static> {
        Location::caller()
    }

    #[test]
    fn a_name_is_its_text() {
        assert_eq!(Name::new("accounts").text(), Some("accounts"));
        assert_eq!(Name::new("accounts"), Name::new("accounts"));
        assert_ne!(Name::new("accounts"), Name::new("orders"));
        assert_eq!(Name::NONE.text(), None);
    }
}
