//! Semaphores: numbers of permits, which any unit takes and gives back.

#![allow(unsafe_code)]

use std::{
    mem::MaybeUninit,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

use weald::sync::Semaphore;

use crate::{
    codes::{Code, WEALD_ARGUMENT, failure},
    guard::{check_cancel, guard, needed},
    handles::{self, Object},
    waits::{duration, timed_out, wait},
};

/// A number of permits. Whoever waits gets them in turn: one that wants many holds up those behind it. Any thread and
/// any unit may use it, and may release what another one has acquired.
pub type SemaphoreHandle = u64;

struct SemaphoreObject {
    semaphore: Semaphore,
    /// At least as many as the semaphore has now, so that it never has too many. Only a count: it orders nothing.
    most: AtomicU32,
}

impl Object for SemaphoreObject {
    fn name() -> &'static str {
        "semaphore"
    }
}

/// Creates a semaphore with `permits` permits.
#[unsafe(no_mangle)]
pub extern "C" fn weald_semaphore_create(
    permits: u32,
    semaphore: Option<&mut MaybeUninit<SemaphoreHandle>>,
) -> Code {
    guard(|| {
        let semaphore = needed(semaphore)?;
        semaphore.write(handles::add(SemaphoreObject {
            semaphore: Semaphore::new(permits),
            most: AtomicU32::new(permits),
        })?);
        Ok(())
    })
}

/// Takes `count` permits at once, and waits until there are as many. WEALD_ARGUMENT if `count` is zero.
#[unsafe(no_mangle)]
pub extern "C" fn weald_semaphore_acquire(
    semaphore: SemaphoreHandle,
    count: u32,
    limit_ns: i64,
) -> Code {
    guard(|| {
        let object = handles::get::<SemaphoreObject>(semaphore)?;
        if count == 0 {
            return Err(failure(WEALD_ARGUMENT, "no permit is asked for"));
        }
        check_cancel();
        let semaphore = &object.semaphore;
        let permit = match (semaphore.try_acquire_many(count), duration(limit_ns)) {
            (Ok(permit), _) => Ok(permit),
            (Err(_), None) => wait(semaphore.acquire_many(count)),
            (Err(_), Some(limit)) => {
                wait(semaphore.acquire_many(count).within(limit)).map_err(|_| timed_out())?
            }
        };
        permit.expect("nobody closes it").forget();
        object.most.fetch_sub(count, Relaxed);
        Ok(())
    })
}

/// Adds `count` permits, which need not have been acquired before. Never waits. WEALD_ARGUMENT if there would be more
/// than 2^32 - 1.
#[unsafe(no_mangle)]
pub extern "C" fn weald_semaphore_release(semaphore: SemaphoreHandle, count: u32) -> Code {
    guard(|| {
        let object = handles::get::<SemaphoreObject>(semaphore)?;
        let add = |most: u32| most.checked_add(count);
        let added = object.most.fetch_update(Relaxed, Relaxed, add);
        added
            .map_err(|_most| failure(WEALD_ARGUMENT, "a semaphore has at most 2^32 - 1 permits"))?;
        object.semaphore.release(count);
        Ok(())
    })
}
