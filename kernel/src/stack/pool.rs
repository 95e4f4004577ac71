//! The pool of stacks: a cache for each thread, a depot for all threads, address space from the system.
//!
//! Taking a stack and giving it back touch only the thread's cache: a list of slots, last in, first out, so that
//! the next stack is the one with warm pages. Batches move between a cache and the depot.
//!
//! Slots are cut from mappings of 64 MiB or more that reserve no memory. Where the system has guard markers
//! (MADV_GUARD_INSTALL, Linux 6.13), a guard is a marker in the page table, and a million stacks need a handful of
//! mappings; on older systems each guard is a mapping of its own, and a process may have some 32,000.

#![allow(unsafe_code)]

use std::{
    cell::RefCell,
    ffi::c_void,
    iter,
    ptr::{self, NonNull},
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect};

use crate::stack::{LARGEST, PAGE, SMALLEST, Stack, StackError, switch};
use crate::sys::lock;

const CLASSES: usize = (LARGEST.trailing_zeros() - SMALLEST.trailing_zeros() + 1) as usize;
/// The smallest mapping of address space.
const REGION: usize = 64 << 20;
/// How many stacks move between a cache and the depot together.
const BATCH: usize = 64;
/// How many guards may be mappings: the system's default limit, with room for the process's other mappings.
const MAPPED_GUARDS: usize = 32_000;
/// MADV_GUARD_INSTALL of Linux 6.13, which rustix does not have yet.
const GUARD_INSTALL: i32 = 102;

/// One thread's free stacks, by class. They go to the depot when the thread ends.
struct Cache([Vec<Stack>; CLASSES]);

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
    }
}

impl Cache {
    fn flush(&mut self) {
        for (at, cached) in self.0.iter_mut().enumerate() {
            if !cached.is_empty() {
                give_to_depot(at, cached.drain(..));
            }
        }
    }
}

/// The free stacks of all threads, and the uncut rest of each class's newest region.
struct Depot {
    free: [Vec<Stack>; CLASSES],
    rest: [Option<Rest>; CLASSES],
}

struct Rest {
    start: NonNull<u8>,
    slots: usize,
}

// SAFETY: an address; slots are cut from it only under the depot's lock.
unsafe impl Send for Rest {}

static DEPOT: Mutex<Depot> = Mutex::new(Depot {
    free: [const { Vec::new() }; CLASSES],
    rest: [const { None }; CLASSES],
});

/// How many slots have been cut.
static CUT: AtomicUsize = AtomicUsize::new(0);
/// Set when the system turns out to have no guard markers.
static GUARDS_ARE_MAPPINGS: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache([const { Vec::new() }; CLASSES])) };
}

fn index(class: u32) -> usize {
    (class - SMALLEST.trailing_zeros()) as usize
}

/// A stack of `class`. Its pages still have their old contents.
#[inline]
pub(crate) fn take(class: u32) -> Result<Stack, StackError> {
    // A thread that is ending no longer has a cache.
    let cached = CACHE.try_with(|cache| cache.borrow_mut().0[index(class)].pop());
    match cached {
        Ok(Some(stack)) => Ok(stack),
        _ => take_from_depot(class),
    }
}

#[cold]
fn take_from_depot(class: u32) -> Result<Stack, StackError> {
    let at = index(class);
    let mut depot = lock(&DEPOT);
    let free = &mut depot.free[at];
    let batch = free.split_off(free.len().saturating_sub(BATCH));
    if batch.is_empty() {
        return cut(&mut depot.rest[at], class);
    }
    drop(depot);
    let mut batch = batch.into_iter();
    let stack = batch.next().expect("the batch is not empty");
    keep(at, batch);
    Ok(stack)
}

/// Puts free stacks into the thread's cache, or into the depot if the thread is ending.
fn keep(at: usize, stacks: impl Iterator<Item = Stack>) {
    let mut stacks = Some(stacks);
    let _ending = CACHE.try_with(|cache| {
        let cached = &mut cache.borrow_mut().0[at];
        cached.extend(stacks.take().into_iter().flatten());
        if cached.len() >= 2 * BATCH {
            // The oldest stacks, which are cold.
            give_to_depot(at, cached.drain(..BATCH));
        }
    });
    if let Some(stacks) = stacks {
        give_to_depot(at, stacks);
    }
}

/// Gives back a stack on which nothing runs any longer.
#[inline]
pub(crate) fn give(stack: Stack) {
    keep(index(stack.class()), iter::once(stack));
}

#[cold]
fn give_to_depot(at: usize, stacks: impl Iterator<Item = Stack>) {
    lock(&DEPOT).free[at].extend(stacks);
}

/// Moves the calling thread's free stacks to the depot.
pub(crate) fn flush() {
    let _ending = CACHE.try_with(|cache| cache.borrow_mut().flush());
}

/// Returns the pages of the depot's free stacks to the system, and an upper bound of their size to the caller: pages
/// that were never touched count too.
pub(crate) fn trim() -> usize {
    flush();
    let mut bytes = 0;
    for stack in lock(&DEPOT).free.iter().flatten() {
        let usable = stack.size() - PAGE;
        // SAFETY: the guard is a page of the slot.
        let start = unsafe { stack.limit().byte_add(PAGE) };
        // SAFETY: the pages are mapped, private and anonymous, and unused: their stack is free, and the depot locked.
        let dropped = unsafe {
            madvise(
                start.as_ptr().cast::<c_void>(),
                usable,
                Advice::LinuxDontNeed,
            )
        };
        dropped.expect("a mapped range can be given back");
        bytes += usable;
    }
    bytes
}

/// Cuts a new slot.
fn cut(rest: &mut Option<Rest>, class: u32) -> Result<Stack, StackError> {
    let size = 1_usize << class;
    let (start, slots) = match rest.take() {
        Some(rest) => (rest.start, rest.slots),
        None => reserve(size)?,
    };
    let stack = Stack::new(start, class);
    let guarded = guard(start);
    if slots > 1 || guarded.is_err() {
        // SAFETY: if `next` is used, at least one more slot follows this one.
        let next = unsafe { start.byte_add(size) };
        *rest = Some(match guarded {
            Ok(()) => Rest {
                start: next,
                slots: slots - 1,
            },
            Err(_) => Rest { start, slots },
        });
    }
    guarded?;
    CUT.fetch_add(1, Ordering::Relaxed);
    switch::register(&stack);
    Ok(stack)
}

/// Fails if guards are mappings and the system allows no further one, unless a free stack is left.
pub(crate) fn admit() -> Result<(), StackError> {
    let stacks = CUT.load(Ordering::Relaxed);
    match GUARDS_ARE_MAPPINGS.load(Ordering::Relaxed) && stacks >= MAPPED_GUARDS {
        true if lock(&DEPOT).free.iter().all(Vec::is_empty) => {
            Err(StackError::TooManyStacks { stacks })
        }
        _ => Ok(()),
    }
}

/// Address space for slots of `size`, aligned to `size`, and the number of slots.
fn reserve(size: usize) -> Result<(NonNull<u8>, usize), StackError> {
    let bytes = REGION.max(size);
    let refused = StackError::NoAddressSpace { bytes: size };
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
    // SAFETY: a new anonymous mapping at an address of the system's choice touches nothing else.
    let mapped = unsafe { mmap_anonymous(ptr::null_mut(), bytes + size, protection, flags) };
    let mapped = mapped.map_err(|_| refused)?;
    let skip = mapped.addr().next_multiple_of(size) - mapped.addr();
    // SAFETY: less than one slot is skipped, and one more than the region was mapped.
    let start = unsafe { mapped.byte_add(skip) };
    // A huge page would commit 2 MiB at the first touch of a stack. A system without huge pages refuses.
    // SAFETY: the range was mapped above; the advice changes no contents.
    let _ = unsafe { madvise(start, bytes, Advice::LinuxNoHugepage) };
    let start = NonNull::new(start.cast()).ok_or(refused)?;
    Ok((start, bytes / size))
}

/// Makes the page at `start` a guard.
fn guard(start: NonNull<u8>) -> Result<(), StackError> {
    let page = start.as_ptr().cast::<c_void>();
    if !GUARDS_ARE_MAPPINGS.load(Ordering::Relaxed) {
        // SAFETY: the page belongs to a slot that is not in use yet.
        if unsafe { libc::madvise(page, PAGE, GUARD_INSTALL) } == 0 {
            return Ok(());
        }
        GUARDS_ARE_MAPPINGS.store(true, Ordering::Relaxed);
    }
    // SAFETY: as above.
    unsafe { mprotect(page, PAGE, MprotectFlags::empty()) }.map_err(|_| StackError::TooManyStacks {
        stacks: CUT.load(Ordering::Relaxed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_distinct_aligned_and_come_back() {
        let class = Stack::class_of(32 << 10);
        let stacks: Vec<_> = (0..3 * BATCH).map(|_| take(class).unwrap()).collect();
        let mut limits: Vec<_> = stacks
            .iter()
            .map(|stack| stack.limit().addr().get())
            .collect();
        limits.sort_unstable();
        assert!(limits.windows(2).all(|pair| pair[1] - pair[0] >= 32 << 10));
        assert!(
            stacks
                .iter()
                .all(|stack| stack.top().addr().get() % 64 == 0)
        );
        let cut = CUT.load(Ordering::Relaxed);
        stacks.into_iter().for_each(give);
        let again: Vec<_> = (0..3 * BATCH).map(|_| take(class).unwrap()).collect();
        assert_eq!(CUT.load(Ordering::Relaxed), cut, "stacks are reused");
        again.into_iter().for_each(give);
    }
}
