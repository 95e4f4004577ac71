//! Spawning a fiber: blocking-style code on a stack of its own.

#![allow(unsafe_code)]

use std::panic::Location;

use crate::{
    api::{
        admission::SpawnError,
        join::JoinHandle,
        spawn::{self, Spawn},
    },
    scheduler::{
        stackful::fiber::Migration,
        workers::{context, current, trim},
    },
    stack::{self, Claim, StackError},
};

impl Spawn {
    /// Spawns a fiber on the current runtime. It runs `code` on a stack of its own of `stack` bytes, rounded up to a
    /// power of two, and to at least 16 KiB; see [`DEFAULT_STACK`](crate::DEFAULT_STACK). Other jobs run while the
    /// fiber is in [`wait()`](crate::Wait::wait).
    ///
    /// Any worker may start the fiber. After its first wait it is pinned to its OS thread.
    ///
    /// # Errors
    /// If the runtime is shutting down, or if there is no stack: the size is above 1 GiB, or the system refuses the
    /// address space, or (before Linux 6.13) it refuses the guard page. The stack is kept for the fiber from here on,
    /// so that it starts whatever the system refuses later. Or if the system refuses memory for the job. `code` is
    /// dropped.
    #[track_caller]
    pub fn spawn_fiber<F, T>(self, stack: usize, code: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: `'static` data outlives the fiber.
        unsafe { self.spawn_fiber_unchecked(stack, code) }
    }

    /// As [`spawn_fiber`](Spawn::spawn_fiber), for code that borrows.
    ///
    /// # Safety
    /// Everything that `code` and its result borrow must live until the job has ended.
    ///
    /// # Errors
    /// As [`spawn_fiber`](Spawn::spawn_fiber).
    #[track_caller]
    pub unsafe fn spawn_fiber_unchecked<F, T>(
        self,
        stack: usize,
        code: F,
    ) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        let claim = claim(stack)?;
        spawn::fiber(self, code, (claim, Migration::Never), Location::caller())
    }

    /// As [`spawn_fiber`](Spawn::spawn_fiber), for a fiber that may resume on another OS thread after each wait, so
    /// that idle workers can steal it.
    ///
    /// # Safety
    /// Across a wait `code` must keep nothing that depends on the OS thread: no borrow of a thread-local, no guard of a
    /// `std` lock, no `Rc` that a thread-local holds too. The same is true of every function that it calls.
    ///
    /// # Errors
    /// As [`spawn_fiber`](Spawn::spawn_fiber).
    #[track_caller]
    pub unsafe fn spawn_migrating_fiber<F, T>(
        self,
        stack: usize,
        code: F,
    ) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let claim = claim(stack)?;
        spawn::fiber(self, code, (claim, Migration::Freely), Location::caller())
    }
}

/// A claim to a stack of `bytes`.
#[inline]
fn claim(bytes: usize) -> Result<Claim, StackError> {
    stack::claim(bytes).or_else(|refused| claim_again(bytes, refused))
}

/// The system refuses a stack. Free stacks in the caches of other threads may do.
#[cold]
fn claim_again(bytes: usize, refused: StackError) -> Result<Claim, StackError> {
    if let StackError::TooLarge { .. } = refused {
        return Err(refused);
    }
    current::with_current(trim::flush_caches);
    context::again().flush_stack();
    stack::flush();
    stack::claim(bytes)
}

impl From<StackError> for SpawnError {
    fn from(error: StackError) -> SpawnError {
        SpawnError::NoStack(error)
    }
}
