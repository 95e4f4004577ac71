//! Handles: numbers that stand for objects, so that one which was released is told from one that was not.
//!
//! A handle is the number of a slot and how often the slot has been used before. Zero is nobody's handle. A use holds
//! the object beyond its release; so a handle may be released while others use it.
//!
//! Rejected: pointers. A handle that is released twice, or used afterwards, would be undefined behaviour, and a handle
//! of another kind could not be told.

use std::{
    any::Any,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{
            AtomicU32,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use crate::codes::{Failure, WEALD_BUSY, WEALD_HANDLE, WEALD_NO_ROOM, failure};

/// What a handle may stand for.
pub(crate) trait Object: Any + Send + Sync {
    /// What the sentences of errors call it.
    fn name() -> &'static str
    where
        Self: Sized;

    /// Called when its handle is released. Others may still use it.
    fn released(&self) {}
}

/// Slots are in pages that stay where they are, each twice as large as the one before.
const FIRST_PAGE: usize = 64;
const PAGES: usize = 25;

struct Table {
    pages: [OnceLock<Box<[Mutex<Slot>]>>; PAGES],
    /// Slots that were used, and that nobody uses.
    free: Mutex<Vec<u32>>,
    /// From here on no slot was ever used. It grows under the lock of `free`; a use only looks, so that calls of
    /// several threads meet at no lock but those of their slots.
    fresh: AtomicU32,
}

#[derive(Default)]
struct Slot {
    /// The upper half of the handle; odd while the slot is in use.
    uses: u32,
    object: Option<Arc<dyn Object>>,
}

static TABLE: Table = Table {
    pages: [const { OnceLock::new() }; PAGES],
    free: Mutex::new(Vec::new()),
    fresh: AtomicU32::new(0),
};

impl Table {
    fn slot(&self, number: u32) -> Option<&Mutex<Slot>> {
        // The first page has the numbers below 64, the next one those below 64 + 128, and so on.
        let above = usize::try_from(number).ok()? / FIRST_PAGE + 1;
        let page = above.ilog2() as usize;
        let begin = FIRST_PAGE * ((1 << page) - 1);
        let slots = self.pages.get(page)?.get_or_init(|| {
            let size = FIRST_PAGE << page;
            (0..size).map(|_| Mutex::default()).collect()
        });
        slots.get(number as usize - begin)
    }

    fn take_free(&self) -> Result<u32, Failure> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = free.pop() {
            return Ok(number);
        }
        let number = self.fresh.load(Relaxed);
        if self.slot(number).is_none() {
            return Err(failure(
                WEALD_NO_ROOM,
                "there are too many handles; release some",
            ));
        }
        // Pairs with the acquire in `with_slot`: the slot exists.
        self.fresh.store(number + 1, Release);
        Ok(number)
    }
}

/// Gives an object a handle.
pub(crate) fn add<T: Object>(object: T) -> Result<u64, Failure> {
    add_shared(Arc::new(object))
}

/// The same, for an object that others may have.
pub(crate) fn add_shared<T: Object>(object: Arc<T>) -> Result<u64, Failure> {
    let number = TABLE.take_free()?;
    let Some(slot) = TABLE.slot(number) else {
        unreachable!("a free number has a slot");
    };
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    slot.uses = slot.uses.wrapping_add(1);
    slot.object = Some(object);
    Ok(u64::from(slot.uses) << 32 | u64::from(number))
}

/// Calls `act` with the slot of a handle, if it is in use.
fn with_slot<R>(handle: u64, act: impl FnOnce(&mut Slot) -> Option<R>) -> Option<R> {
    #[allow(clippy::cast_possible_truncation, reason = "the two halves")]
    let (uses, number) = ((handle >> 32) as u32, handle as u32);
    // The slots of a handle that was made up need not exist, and are not created.
    if uses % 2 == 0 || number >= TABLE.fresh.load(Acquire) {
        return None;
    }
    let mut slot = TABLE
        .slot(number)?
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    match slot.uses == uses {
        true => act(&mut slot),
        false => None,
    }
}

fn none<T: Object>() -> Failure {
    let name = T::name();
    let sentence =
        format!("no {name} has this handle; it was released, or never was one of a {name}");
    failure(WEALD_HANDLE, sentence)
}

fn is<T: Object>(object: &Arc<dyn Object>) -> bool {
    let object: &dyn Any = &**object;
    object.is::<T>()
}

fn downcast<T: Object>(object: Arc<dyn Object>) -> Option<Arc<T>> {
    let object: Arc<dyn Any + Send + Sync> = object;
    object.downcast().ok()
}

/// The object of a handle.
pub(crate) fn get<T: Object>(handle: u64) -> Result<Arc<T>, Failure> {
    let object = with_slot(handle, |slot| slot.object.clone());
    object.and_then(downcast).ok_or_else(none::<T>)
}

/// The object of a handle, which is released.
pub(crate) fn take<T: Object>(handle: u64) -> Result<Arc<T>, Failure> {
    let object = with_slot(handle, |slot| {
        slot.object.as_ref().filter(|object| is::<T>(object))?;
        free(slot)
    });
    give_back(handle, object.as_ref());
    object.and_then(downcast).ok_or_else(none::<T>)
}

/// The object of a handle, which is released, if no other call uses the object.
pub(crate) fn take_alone<T: Object>(handle: u64) -> Result<T, Failure> {
    let mut alone = Err(none::<T>());
    with_slot(handle, |slot| {
        slot.object.as_ref().filter(|object| is::<T>(object))?;
        alone = match Arc::try_unwrap(downcast(free(slot)?)?) {
            Ok(object) => Ok(object),
            Err(shared) => {
                slot.uses = slot.uses.wrapping_sub(1);
                slot.object = Some(shared);
                Err(failure(
                    WEALD_BUSY,
                    format!("another call uses this {}", T::name()),
                ))
            }
        };
        Some(())
    });
    if alone.is_ok() {
        give_back_number(handle);
    }
    alone
}

/// Releases a handle of any kind.
pub(crate) fn release(handle: u64) -> Result<(), Failure> {
    let object = with_slot(handle, free);
    give_back(handle, object.as_ref());
    let sentence = "no object has this handle; it was released, or is no handle";
    let object = object.ok_or_else(|| failure(WEALD_HANDLE, sentence))?;
    object.released();
    Ok(())
}

/// From now on no handle leads to the slot.
fn free(slot: &mut Slot) -> Option<Arc<dyn Object>> {
    let object = slot.object.take()?;
    slot.uses = slot.uses.wrapping_add(1);
    Some(object)
}

fn give_back(handle: u64, object: Option<&Arc<dyn Object>>) {
    if object.is_some() {
        give_back_number(handle);
    }
}

fn give_back_number(handle: u64) {
    // The last use of its slot: the next one would have a handle that was another object's before.
    if handle >> 32 == u64::from(u32::MAX) {
        return;
    }
    #[allow(clippy::cast_possible_truncation, reason = "the lower half")]
    let number = handle as u32;
    let mut free = TABLE.free.lock().unwrap_or_else(PoisonError::into_inner);
    free.push(number);
}

#[cfg(test)]
mod tests {
    use super::*;

    struct One(u32);
    impl Object for One {
        fn name() -> &'static str {
            "one"
        }
    }
    struct Other;
    impl Object for Other {
        fn name() -> &'static str {
            "other"
        }
    }

    #[test]
    fn a_handle_leads_to_its_object_until_it_is_released() {
        let handles: Vec<u64> = (0..1_000).map(|n| add(One(n)).unwrap()).collect();
        for (n, handle) in (0..).zip(&handles) {
            assert_eq!(get::<One>(*handle).unwrap().0, n);
            assert!(get::<Other>(*handle).is_err() && take::<Other>(*handle).is_err());
        }
        for handle in &handles {
            release(*handle).unwrap();
            assert!(release(*handle).is_err() && get::<One>(*handle).is_err());
        }
        let again = add(One(7)).unwrap();
        assert!(!handles.contains(&again));
        assert!(take::<One>(again).is_ok() && take::<One>(again).is_err());
    }

    #[test]
    fn a_slot_that_is_used_up_is_not_used_again() {
        let handle = add(One(1)).unwrap();
        with_slot(handle, |slot| {
            slot.uses = u32::MAX;
            Some(())
        });
        let last = handle | 0xffff_ffff << 32;
        assert_eq!(get::<One>(last).unwrap().0, 1);
        release(last).unwrap();
        let later: Vec<u64> = (0..1_000).map(|n| add(One(n)).unwrap()).collect();
        let number = |handle: u64| handle & 0xffff_ffff;
        assert!(later.iter().all(|later| number(*later) != number(last)));
        later.into_iter().for_each(|later| release(later).unwrap());
    }

    #[test]
    fn what_is_no_handle_is_nobodys() {
        for handle in [0, 1, u64::MAX, 1 << 32 | 0xffff_ffff, 0xffff_ffff] {
            assert!(get::<One>(handle).is_err() && release(handle).is_err());
        }
    }

    #[test]
    fn an_object_in_use_is_not_taken_alone() {
        let handle = add(One(3)).unwrap();
        let used = get::<One>(handle).unwrap();
        assert!(take_alone::<One>(handle).is_err());
        drop(used);
        assert_eq!(take_alone::<One>(handle).unwrap().0, 3);
        assert!(take_alone::<One>(handle).is_err());
    }
}
