//! The mutex.
//!
//! A free mutex is taken by the first that asks: one that was handed over would be idle until its new owner runs. A
//! waiter that was passed over eight times has it handed over, so none starves. Before it waits, a thread looks for a
//! microsecond whether the mutex is free, unless somebody waits already: then the mutex is for a waiter.
//!
//! The state has two bits. `WAITERS` is set by a waiter before it enters the queue, and cleared under the queue's lock
//! by an owner that finds the queue empty. An unlock clears `LOCKED` as its last access to the mutex, so whoever takes
//! the mutex then may also free its memory, if nobody waits.

use std::{
    cell::Cell,
    ffi::c_int,
    ptr,
    sync::atomic::{
        AtomicPtr,
        Ordering::{Acquire, Relaxed, Release},
    },
    time::Instant,
};

use weald_kernel::others_work;

use crate::{
    queue::{Node, Queue, Taken},
    sys::{AtomicU32, pause},
    thread::{self, Thread},
    wait::{Ended, wait_in_until},
};

const LOCKED: u32 = 1;
const WAITERS: u32 = 2;

/// How often a thread looks whether the mutex is free before it waits: for about a microsecond. In models each look is
/// a step.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 64 };
/// How often a waiter is passed over before the mutex is handed to it. In models that happens early.
const MOST_PASSED_OVER: u32 = if cfg!(loom) { 1 } else { 8 };
/// What a waiter finds in its note when it owns the mutex.
const HANDED_OVER: u32 = u32::MAX;

/// How a mutex treats a thread that locks it twice: `MYTH_MUTEX_NORMAL` and so on.
const NORMAL: c_int = 0;
const ERROR_CHECK: c_int = 1;
const RECURSIVE: c_int = 2;

/// `myth_mutex_t`. Zero is a free one of the default type, and so is what the initializer of MassiveThreads writes.
#[repr(C)]
pub(crate) struct Mutex {
    /// What MassiveThreads' initializer writes there means nothing here.
    magic: c_int,
    kind: c_int,
    queue: Queue,
    /// Its owner, unless its type is the default.
    owner: AtomicPtr<Thread>,
    /// How often its owner has locked it.
    count: Cell<u32>,
    reserved: u32,
    state: AtomicU32,
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Mutex>() == 40);

/// How often the caller had locked a mutex that it has unlocked for a while.
pub(crate) struct Depth(u32);

impl Mutex {
    /// A free mutex.
    ///
    /// # Errors
    /// `EINVAL` if there is no such type.
    pub(crate) fn new(kind: c_int) -> Result<Mutex, c_int> {
        if !(NORMAL..=RECURSIVE).contains(&kind) {
            return Err(libc::EINVAL);
        }
        Ok(Mutex {
            magic: 0,
            kind,
            queue: Queue::new(),
            owner: AtomicPtr::new(ptr::null_mut()),
            count: Cell::new(0),
            reserved: 0,
            state: AtomicU32::new(0),
        })
    }

    /// Locks it, waiting until `deadline` at the latest. `None`: as long as it takes.
    ///
    /// # Errors
    /// `ETIMEDOUT`; `EDEADLK` if it checks for errors and the caller has it.
    #[inline]
    pub(crate) fn lock(&self, deadline: Option<Instant>) -> Result<(), c_int> {
        if self.kind != NORMAL && self.is_mine() {
            return self.lock_again(libc::EDEADLK);
        }
        if !self.take() {
            self.wait(deadline)?;
        }
        self.note_owner(1);
        Ok(())
    }

    /// Locks it if it is of the default type, is free, and nobody waits. Never panics.
    #[inline(always)]
    pub(crate) fn lock_at_once(&self) -> bool {
        self.kind == NORMAL && self.take()
    }

    /// Unlocks it if it is of the default type, and nobody waits. Never panics.
    #[inline(always)]
    pub(crate) fn unlock_at_once(&self) -> bool {
        self.kind == NORMAL && self.free()
    }

    /// Locks it if it is free.
    ///
    /// # Errors
    /// `EBUSY` if it is not.
    pub(crate) fn try_lock(&self) -> Result<(), c_int> {
        if self.kind != NORMAL && self.is_mine() {
            return self.lock_again(libc::EBUSY);
        }
        if !self.take() && !self.take_before_waiters() {
            return Err(libc::EBUSY);
        }
        self.note_owner(1);
        Ok(())
    }

    /// Unlocks it.
    ///
    /// # Errors
    /// `EPERM` if nobody has it; if it is not of the default type, also if the caller has not.
    #[inline]
    pub(crate) fn unlock(&self) -> Result<(), c_int> {
        if self.kind != NORMAL {
            if !self.is_mine() {
                return Err(libc::EPERM);
            }
            self.count.set(self.count.get() - 1);
            if self.count.get() > 0 {
                return Ok(());
            }
            self.owner.store(ptr::null_mut(), Relaxed);
        }
        self.release()
    }

    /// Unlocks it, however often the caller has locked it, before a wait for a condition.
    ///
    /// # Errors
    /// As [`unlock`](Mutex::unlock).
    #[inline(always)]
    pub(crate) fn unlock_fully(&self) -> Result<Depth, c_int> {
        match self.unlock_at_once() {
            // One of the default type counts nothing.
            true => Ok(Depth(0)),
            false => self.unlock_in_general(),
        }
    }

    #[inline(never)]
    fn unlock_in_general(&self) -> Result<Depth, c_int> {
        let depth = self.count.get();
        if self.kind != NORMAL && self.is_mine() {
            self.count.set(1);
        }
        self.unlock().map(|()| Depth(depth))
    }

    /// Locks it as often as before [`unlock_fully`](Mutex::unlock_fully).
    ///
    /// # Errors
    /// None that a program can cause.
    #[inline(always)]
    pub(crate) fn lock_fully(&self, depth: Depth) -> Result<(), c_int> {
        match self.lock_at_once() {
            true => Ok(()),
            false => self.lock_in_general(depth),
        }
    }

    #[inline(never)]
    fn lock_in_general(&self, Depth(depth): Depth) -> Result<(), c_int> {
        self.lock(None)?;
        self.note_owner(depth);
        Ok(())
    }

    /// Whether somebody has it.
    pub(crate) fn is_locked(&self) -> bool {
        self.state.load(Relaxed) & LOCKED != 0
    }

    fn is_mine(&self) -> bool {
        ptr::eq(self.owner.load(Relaxed), thread::settled())
    }

    fn note_owner(&self, count: u32) {
        if self.kind != NORMAL {
            self.owner.store(thread::settled().cast_mut(), Relaxed);
            self.count.set(count);
        }
    }

    fn lock_again(&self, refusal: c_int) -> Result<(), c_int> {
        if self.kind == ERROR_CHECK {
            return Err(refusal);
        }
        let count = self.count.get().checked_add(1).ok_or(libc::EAGAIN)?;
        self.count.set(count);
        Ok(())
    }

    /// Takes it, if it is free and nobody waits.
    #[inline(always)]
    fn take(&self) -> bool {
        // Pairs with the releases in `free` and `release_to_waiters`.
        self.state
            .compare_exchange(0, LOCKED, Acquire, Relaxed)
            .is_ok()
    }

    /// Takes it, if it is free, although others wait.
    fn take_before_waiters(&self) -> bool {
        self.state.fetch_or(LOCKED, Acquire) & LOCKED == 0
    }

    /// Takes it, if its owner may run on another worker, frees it within about a microsecond, and nobody waits. A wait
    /// and its wake take longer than what most owners do with it.
    pub(crate) fn take_soon(&self, deadline: Option<Instant>) -> bool {
        if !is_worth_a_look() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return false;
        }
        for _ in 0..LOOKS {
            match self.state.load(Relaxed) {
                0 if self.take() => return true,
                0 | LOCKED => pause(),
                _has_waiters => return false,
            }
        }
        false
    }

    /// Frees it, if somebody has it and nobody waits.
    #[inline(always)]
    fn free(&self) -> bool {
        // Pairs with the acquire in `take`.
        self.state
            .compare_exchange(LOCKED, 0, Release, Relaxed)
            .is_ok()
    }

    #[cold]
    fn wait(&self, deadline: Option<Instant>) -> Result<(), c_int> {
        if self.take_soon(deadline) {
            return Ok(());
        }
        let node = Node::new(0);
        loop {
            let passed_over = node.note.get();
            let mut taken = false;
            let ended = wait_in_until(&self.queue, &node, deadline, |node| {
                let mut queue = self.queue.lock();
                self.state.fetch_or(WAITERS, Relaxed);
                taken = self.take_before_waiters();
                match passed_over {
                    _ if taken => {}
                    0 => queue.push(node),
                    _ => queue.push_first(node),
                }
                !taken
            });
            if taken || (ended == Ended::Woken && node.note.get() == HANDED_OVER) {
                return Ok(());
            }
            if ended == Ended::TimedOut {
                return Err(libc::ETIMEDOUT);
            }
            node.note.set(passed_over + 1);
        }
    }

    fn release(&self) -> Result<(), c_int> {
        if self.free() {
            return Ok(());
        }
        if !self.is_locked() {
            return Err(libc::EPERM);
        }
        self.release_to_waiters();
        Ok(())
    }

    #[cold]
    fn release_to_waiters(&self) {
        loop {
            let mut queue = self.queue.lock();
            let next = queue.pop().unwrap_or(Taken::NONE);
            if queue.is_empty() {
                self.state.fetch_and(!WAITERS, Relaxed);
            }
            drop(queue);
            match next.noted() {
                Some(passed_over) if passed_over >= MOST_PASSED_OVER => {
                    next.note(HANDED_OVER);
                    return;
                }
                // It is woken when it is dropped, after the mutex is free.
                Some(_) => {
                    self.state.fetch_and(!LOCKED, Release);
                    return;
                }
                None => {}
            }
            // It fails if a waiter has come since the queue was empty. The mutex is still ours then: had we freed it,
            // others could have taken it, woken the waiter, and freed its memory before we look at it again.
            if self.free() {
                return;
            }
        }
    }
}

/// Whether an owner may run while the caller looks. Models have no workers.
fn is_worth_a_look() -> bool {
    cfg!(all(loom, test)) || others_work()
}
