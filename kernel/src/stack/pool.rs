//! The pool of stacks: a cache for each thread in front of the depot, and claims to stacks that are taken later.
//!
//! Taking a stack and giving it back touch only the thread's cache: a list of slots, last in, first out, so that
//! the next stack is the one with warm pages. Batches move between a cache and the depot.
//!
//! A claim keeps a slot of the depot free for its holder: a fiber claims its stack when it is spawned, so that a
//! refusal shows there, and takes the stack when it starts. Most fibers start after others have ended, on a stack that
//! is warm in the cache of the thread. Then the claim is not used up, and the thread keeps it for the next fiber that
//! it spawns. So claims are a counter of the thread, and only about one claim in 64 locks the depot.

#![allow(unsafe_code)]

use std::{
    cell::{Cell, RefCell},
    iter, ptr,
    sync::Mutex,
};

use crate::stack::{
    Stack, StackError,
    depot::{Bound, CLASSES, Depot, index},
};
use crate::sys::lock;

/// How many stacks, or claims, move between a thread and the depot together.
const BATCH: usize = 64;
/// The class of the largest stacks, of 16 MiB, that threads cache, and for which they keep claims. Other threads cannot
/// use what a thread keeps, which would matter where the system allows only a few large stacks.
const LARGEST_CACHED: u32 = 24;

/// One thread's free stacks, by class. They go to the depot when the thread ends.
struct Cache([Vec<Stack>; CLASSES]);

impl Drop for Cache {
    fn drop(&mut self) {
        self.flush();
        (0..CLASSES).for_each(|at| spare_claims(at).set(ENDED));
    }
}

impl Cache {
    /// Gives the thread's free stacks and its spare claims to the depot.
    fn flush(&mut self) {
        for (at, cached) in self.0.iter_mut().enumerate() {
            let class = class_at(at);
            let claims = spare_claims(at).replace(0);
            if claims > 0 || !cached.is_empty() {
                let mut depot = lock(&DEPOT);
                depot.give(class, cached.drain(..));
                depot.unclaim(class, claims as usize);
            }
        }
    }
}

static DEPOT: Mutex<Depot> = Mutex::new(Depot::new());

/// Stands for the number of spare claims when the thread is ending, and keeps none.
const ENDED: u32 = u32::MAX;
/// A thread gives a batch of claims back, half of them, when it would have more than this to spare.
const SPARE_MAX: u32 = 128;
const _: () = assert!(BATCH * 2 == SPARE_MAX as usize);

thread_local! {
    static CACHE: RefCell<Cache> = const { RefCell::new(Cache([const { Vec::new() }; CLASSES])) };
    /// How many claims of each class the thread has to spare, or [`ENDED`]. If there are any, the thread has a cache,
    /// whose destructor gives them back.
    static SPARE_CLAIMS: [Cell<u32>; CLASSES] = const { [const { Cell::new(0) }; CLASSES] };
}

/// How many claims to stacks of the class with this index the thread has to spare.
#[inline(always)]
fn spare_claims(at: usize) -> &'static Cell<u32> {
    // SAFETY: the cells have no destructor and live as long as their thread. The reference cannot leave the thread,
    // because a cell is not `Sync`, and no caller keeps it over a switch of stacks.
    SPARE_CLAIMS.with(|spare| unsafe { &*ptr::from_ref(&spare[at]) })
}

/// The right to take one stack. The depot keeps a slot for it.
#[derive(Debug)]
#[must_use = "a claim that is dropped is given back"]
pub(crate) struct Claim {
    class: u32,
}

impl Claim {
    /// The class of the stack.
    #[inline(always)]
    pub(crate) fn class(&self) -> u32 {
        self.class
    }

    /// The caller has a stack from elsewhere, and forgets the claim.
    #[inline(always)]
    pub(crate) fn spare(&self) {
        unclaim(self.class);
    }
}

impl Drop for Claim {
    /// Gives the claim back: to the thread, for its next fiber.
    #[inline]
    fn drop(&mut self) {
        unclaim(self.class);
    }
}

/// A claim to a stack with room for `bytes`.
///
/// # Errors
/// If there is no such stack, or the system refuses a further one.
// Inlined, so that the class of a constant size is a constant.
#[inline(always)]
pub(crate) fn claim(bytes: usize) -> Result<Claim, StackError> {
    let class = Stack::class_for(bytes)?;
    if !claim_spare(class) {
        claim_from_depot(class, Bound::MappedGuards)?;
    }
    Ok(Claim { class })
}

/// Makes a claim with one that the thread has to spare; false if there is none.
// Not inlined: code that may change threads must not keep the address of a thread-local.
#[inline(never)]
fn claim_spare(class: u32) -> bool {
    let spare = spare_claims(index(class));
    // Neither none, nor ENDED.
    let has_one = spare.get().wrapping_sub(1) < SPARE_MAX;
    if has_one {
        spare.set(spare.get() - 1);
    }
    has_one
}

/// Gives a claim back: to the thread, for its next fiber.
#[inline(always)]
fn unclaim(class: u32) {
    let spare = spare_claims(index(class));
    match spare.get().wrapping_sub(1) < SPARE_MAX - 1 {
        true => spare.set(spare.get() + 1),
        false => unclaim_slowly(class),
    }
}

/// Whether the calling thread keeps claims to stacks of `class`. If so, it has a cache, whose destructor gives them
/// back.
fn keeps_claims(class: u32) -> bool {
    class <= LARGEST_CACHED && CACHE.try_with(|_| ()).is_ok()
}

/// For a thread that has no claim to spare.
#[cold]
#[inline(never)]
fn claim_from_depot(class: u32, bound: Bound) -> Result<(), StackError> {
    let keeps = keeps_claims(class);
    let mut depot = lock(&DEPOT);
    if keeps && depot.is_exhausted(class) {
        // Before the depot grows: the thread's own free stacks.
        let _ending =
            CACHE.try_with(|cache| depot.give(class, cache.borrow_mut().0[index(class)].drain(..)));
    }
    let claims = depot.claim(class, if keeps { BATCH } else { 0 }, bound)?;
    drop(depot);
    if keeps {
        let spare = u32::try_from(claims - 1).expect("at most a batch");
        spare_claims(index(class)).set(spare);
    }
    Ok(())
}

/// Gives a claim back, by a thread that has none or many to spare, or that is ending.
#[cold]
#[inline(never)]
fn unclaim_slowly(class: u32) {
    if !keeps_claims(class) {
        return lock(&DEPOT).unclaim(class, 1);
    }
    let spare = spare_claims(index(class));
    if spare.get() == SPARE_MAX {
        lock(&DEPOT).unclaim(class, BATCH);
        spare.set(SPARE_MAX - SPARE_MAX / 2);
    }
    spare.set(spare.get() + 1);
}

/// The class with this index.
fn class_at(at: usize) -> u32 {
    Stack::class_of(crate::stack::SMALLEST << at)
}

/// A stack of `class` that nobody has claimed. Its pages still have their old contents.
///
/// # Errors
/// If the system refuses a further stack.
#[inline]
pub(crate) fn take(class: u32) -> Result<Stack, StackError> {
    match take_cached(class) {
        Some(stack) => Ok(stack),
        None => {
            if !claim_spare(class) {
                claim_from_depot(class, Bound::Nothing)?;
            }
            take_from_depot(class).inspect_err(|_| unclaim(class))
        }
    }
}

/// The stack of `claim`, which the caller must forget then. Its pages still have their old contents.
///
/// # Errors
/// If the system has no memory left for the marker of the stack's guard. The claim lasts.
#[inline]
pub(crate) fn take_claimed(claim: &Claim) -> Result<Stack, StackError> {
    match take_cached(claim.class) {
        Some(stack) => {
            unclaim(claim.class);
            Ok(stack)
        }
        None => take_from_depot(claim.class),
    }
}

/// A stack from the thread's cache.
#[inline]
fn take_cached(class: u32) -> Option<Stack> {
    // A thread that is ending no longer has a cache.
    let cached = CACHE.try_with(|cache| cache.borrow_mut().0[index(class)].pop());
    cached.unwrap_or_default()
}

/// Takes the slot of a claim, which ends.
#[cold]
fn take_from_depot(class: u32) -> Result<Stack, StackError> {
    let more = if class <= LARGEST_CACHED {
        BATCH - 1
    } else {
        0
    };
    let (stack, others) = lock(&DEPOT).take(class, more)?;
    keep(class, others.into_iter());
    Ok(stack)
}

/// Puts free stacks into the thread's cache, or into the depot if the thread is ending.
fn keep(class: u32, stacks: impl Iterator<Item = Stack>) {
    let mut stacks = Some(stacks);
    if class <= LARGEST_CACHED {
        let _ending = CACHE.try_with(|cache| {
            let cached = &mut cache.borrow_mut().0[index(class)];
            cached.extend(stacks.take().into_iter().flatten());
            if cached.len() >= 2 * BATCH {
                // The oldest stacks, which are cold.
                give_to_depot(class, cached.drain(..BATCH));
            }
        });
    }
    if let Some(stacks) = stacks {
        give_to_depot(class, stacks);
    }
}

/// Gives back a stack on which nothing runs any longer.
#[inline]
pub(crate) fn give(stack: Stack) {
    keep(stack.class(), iter::once(stack));
}

#[cold]
fn give_to_depot(class: u32, stacks: impl Iterator<Item = Stack>) {
    lock(&DEPOT).give(class, stacks);
}

/// Moves the calling thread's free stacks, and its spare claims, to the depot.
pub(crate) fn flush() {
    let _ending = CACHE.try_with(|cache| cache.borrow_mut().flush());
}

/// Returns the pages of the depot's free stacks to the system, and an upper bound of their size to the caller: pages
/// that were never touched count too.
pub(crate) fn trim() -> usize {
    flush();
    lock(&DEPOT).trim()
}

#[cfg(test)]
mod tests {
    use std::{mem, thread};

    use super::*;

    /// A class that no other test of this program uses.
    fn rare_class(shift: u32) -> u32 {
        Stack::class_of(256 << 10) + shift
    }

    fn taken(claim: Claim) -> Stack {
        let stack = take_claimed(&claim).unwrap();
        mem::forget(claim);
        stack
    }

    #[test]
    fn stacks_are_distinct_aligned_and_come_back() {
        let class = Stack::class_of(32 << 10);
        let stacks: Vec<_> = (0..3 * BATCH).map(|_| take(class).unwrap()).collect();
        let sorted = |stacks: &[Stack]| {
            let limits = stacks.iter().map(|stack| stack.limit().addr().get());
            let mut limits: Vec<_> = limits.collect();
            limits.sort_unstable();
            limits
        };
        let limits = sorted(&stacks);
        assert!(limits.windows(2).all(|pair| pair[1] - pair[0] >= 32 << 10));
        assert!(
            stacks
                .iter()
                .all(|stack| stack.top().addr().get() % 64 == 0)
        );
        stacks.into_iter().for_each(give);
        let again: Vec<_> = (0..3 * BATCH).map(|_| take(class).unwrap()).collect();
        assert_eq!(sorted(&again), limits, "stacks are reused");
        again.into_iter().for_each(give);
    }

    #[test]
    fn claims_that_threads_keep_come_back_when_the_threads_end() {
        let class = rare_class(0);
        let rounds = move || {
            // More than a thread keeps.
            let claims = (0..5 * BATCH).map(|_| claim(1 << class).unwrap());
            let claims: Vec<_> = claims.collect();
            let stacks: Vec<_> = claims.into_iter().map(taken).collect();
            stacks.into_iter().for_each(give);
            let unused = (0..3 * BATCH).map(|_| claim(1 << class).unwrap());
            drop(unused.collect::<Vec<_>>());
        };
        let balance = || lock(&DEPOT).balance(class);
        thread::spawn(rounds).join().unwrap();
        let (slots, unclaimed) = balance();
        assert_eq!(slots, unclaimed, "every claim came back");
        for _ in 0..10 {
            thread::spawn(rounds).join().unwrap();
        }
        assert_eq!(balance(), (slots, unclaimed), "the depot did not grow");
    }

    #[test]
    fn what_a_thread_drops_while_it_ends_goes_to_the_depot() {
        struct Held(Option<(Claim, Stack)>);
        impl Drop for Held {
            fn drop(&mut self) {
                let (claimed, stack) = self.0.take().unwrap();
                give(stack);
                drop(claimed);
                drop(claim(1 << rare_class(1)).unwrap());
            }
        }
        thread_local! {
            static HELD: RefCell<Held> = const { RefCell::new(Held(None)) };
        }
        let class = rare_class(1);
        let ends = move || {
            // Before the cache, so that it is dropped after it.
            HELD.with(|held| {
                let mut held = held.borrow_mut();
                held.0 = Some((claim(1 << class).unwrap(), take(class).unwrap()));
            });
        };
        thread::spawn(ends).join().unwrap();
        let (slots, unclaimed) = lock(&DEPOT).balance(class);
        assert_eq!(slots, unclaimed);
        assert!(slots > 0);
    }

    #[test]
    fn a_large_stack_that_one_thread_gives_back_is_there_for_another() {
        let class = Stack::class_of(64 << 20);
        let stack = take(class).unwrap();
        give(stack);
        let before = lock(&DEPOT).balance(class);
        assert!(before.1 > 0);
        let other = thread::spawn(move || give(taken(claim(1 << class).unwrap())));
        other.join().unwrap();
        assert_eq!(lock(&DEPOT).balance(class), before);
    }
}
