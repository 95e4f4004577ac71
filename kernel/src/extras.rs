//! What only some jobs have: a name, wakers of others who wait for them, things that end with them.
//!
//! A job's extras word holds its spawn site until the first of these is needed, and a boxed
//! [`Extras`] from then on; so a plain parked job pays one word for all of it.

#![allow(unsafe_code)]

use std::{panic::Location, ptr, sync::Arc, task::Waker, thread::Thread};

use crate::local::Home;
use crate::sys::{AtomicPtr, Mutex, MutexGuard, Ordering, lock};

/// Marks a word that still is a spawn site. Both kinds of pointee are aligned to more than 1.
const SITE: usize = 1;

/// The word.
pub(crate) struct ExtrasWord(AtomicPtr<()>);

struct Extras {
    site: &'static Location<'static>,
    parts: Mutex<Parts>,
}

/// The parts, each by who uses it.
#[derive(Default)]
pub(crate) struct Parts {
    /// Set at spawn; read by reports.
    pub(crate) name: Option<Box<str>>,
    /// Who awaits the job's end; guarded by the state's `JOINER` bit.
    pub(crate) joiner: Option<Waker>,
    /// Who receives from the job's inbox, if not the job itself; guarded by `RECEIVER`.
    pub(crate) receiver: Option<Waker>,
    /// The job's thread while it is blocked in `wait()`; guarded by `BLOCKED`.
    pub(crate) blocked: Option<Thread>,
    /// Whether `wait()` has unwound the job for its cancel; it does so once.
    pub(crate) unwound: bool,
    /// The one thread that a local job may run on. Set at spawn.
    pub(crate) home: Option<Arc<Home>>,
    /// What ends with the job, in the order of attachment.
    pub(crate) ends: Vec<(u64, End)>,
    /// The number of the next end.
    pub(crate) next_end: u64,
}

/// Something that is done when the job has ended.
pub(crate) type End = Box<dyn FnOnce() + Send>;

impl ExtrasWord {
    pub(crate) fn new(site: &'static Location<'static>) -> ExtrasWord {
        let site = ptr::from_ref(site).cast_mut().cast::<()>();
        ExtrasWord(AtomicPtr::new(site.map_addr(|a| a | SITE)))
    }

    /// Where the job was spawned.
    pub(crate) fn site(&self) -> &'static Location<'static> {
        // Acquire: pairs with the exchange in `parts`.
        let word = self.0.load(Ordering::Acquire);
        match as_site(word) {
            Some(site) => site,
            None => extras(word).site,
        }
    }

    /// The parts, if the job has any.
    pub(crate) fn existing(&self) -> Option<MutexGuard<'_, Parts>> {
        let word = self.0.load(Ordering::Acquire);
        as_site(word).is_none().then(|| lock(&extras(word).parts))
    }

    /// The parts, made now if the job had none.
    pub(crate) fn parts(&self) -> MutexGuard<'_, Parts> {
        let word = self.0.load(Ordering::Acquire);
        let Some(site) = as_site(word) else {
            return lock(&extras(word).parts);
        };
        let made = Box::into_raw(Box::new(Extras {
            site,
            parts: Mutex::default(),
        }));
        // AcqRel: publishes the box, or acquires the one that another thread published first.
        let won = self
            .0
            .compare_exchange(word, made.cast(), Ordering::AcqRel, Ordering::Acquire);
        match won {
            Ok(_) => lock(&extras(made.cast()).parts),
            Err(other) => {
                // SAFETY: the box was made above and never published.
                drop(unsafe { Box::from_raw(made) });
                lock(&extras(other).parts)
            }
        }
    }
}

impl Drop for ExtrasWord {
    fn drop(&mut self) {
        let word = self.0.load(Ordering::Acquire);
        if as_site(word).is_none() {
            // SAFETY: an untagged word is a box that `parts` published; this is its only owner.
            drop(unsafe { Box::from_raw(word.cast::<Extras>()) });
        }
    }
}

fn as_site(word: *mut ()) -> Option<&'static Location<'static>> {
    let site = word.map_addr(|a| a & !SITE).cast::<Location<'static>>();
    // SAFETY: a tagged word is the address of a location that lives for ever.
    (word.addr() & SITE != 0).then(|| unsafe { &*site })
}

fn extras<'a>(word: *mut ()) -> &'a Extras {
    // SAFETY: an untagged word is a box that lives as long as the word, which every caller borrows.
    unsafe { &*word.cast::<Extras>() }
}
