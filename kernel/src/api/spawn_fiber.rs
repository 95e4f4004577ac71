//! Spawning a fiber: code in direct style, on a stack of its own.

#![allow(unsafe_code)]

use std::panic::Location;

use crate::{
    api::{
        join::JoinHandle,
        spawn::{self, Spawn, SpawnError},
    },
    scheduler::stackful::fiber::{Fiber, Migration},
    stack::{self, StackError},
};

impl Spawn {
    /// Spawns a fiber on the current runtime: `code`, in direct style, on a stack of its own of `stack` bytes
    /// (rounded up to a power of two between 16 KiB and 1 GiB; see [`DEFAULT_STACK`]). Other units go on while
    /// it waits with [`wait()`](crate::Wait::wait).
    ///
    /// Before it starts, it may be taken by any worker; once it has waited, it stays on its OS thread.
    ///
    /// # Errors
    /// If the runtime shuts down, or if the system has no room for its guard page.
    #[track_caller]
    pub fn spawn_fiber<F, T>(self, stack: usize, code: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: what is `'static` outlives the fiber.
        unsafe { self.spawn_fiber_unchecked(stack, code) }
    }

    /// As [`spawn_fiber`](Spawn::spawn_fiber), for code that borrows.
    ///
    /// # Safety
    /// What `code` and its result borrow lives until the job has ended.
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
        stack::pool::admit()?;
        spawn::fiber(
            self,
            Fiber::new(code, stack, Migration::Never),
            Location::caller(),
        )
    }

    /// As [`spawn_fiber`](Spawn::spawn_fiber), for a fiber that may go on with another OS thread after each of
    /// its waits. On a runtime with such fibers thieves find more to take.
    ///
    /// # Safety
    /// Over a wait the code keeps nothing that depends on the OS thread: no borrow of a thread-local, no guard
    /// of a `std` lock, no `Rc` that a thread-local holds too; neither does any function that it calls.
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
        stack::pool::admit()?;
        spawn::fiber(
            self,
            Fiber::new(code, stack, Migration::Freely),
            Location::caller(),
        )
    }
}

impl From<StackError> for SpawnError {
    fn from(error: StackError) -> SpawnError {
        SpawnError::NoStack(error)
    }
}
