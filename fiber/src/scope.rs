//! A scope: threads that may borrow what lives longer than the scope.
//!
//! # Safety
//! **scope**: a scope returns only when every job that was started in it has ended, and everything that such a job held
//! or left behind is gone. Only a result may be left, which its handle keeps; and that handle cannot leave the scope.
//! So whatever a thread borrows for `'scope` outlives the thread. The job is in the scope's list before its handle
//! leaves `spawn`. Its exit hook, which takes it off the list, runs after the captures of its code and an unclaimed
//! result have been dropped.

#![allow(unsafe_code)]

use std::{
    marker::PhantomData,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

use weald_kernel::{JoinError, SpawnError, cancel_point, wait_to_the_end};

use crate::{builder::Builder, handle::JoinHandle, thread::Thread};

/// Starts threads that end before the scope does; see [`scope()`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    jobs: weald_kernel::Scope,
    // Invariant, as in `std`: a thread may not be given a longer or a shorter scope than its own.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// An owned permission to join a thread of a scope. Dropping it lets the thread run on; the scope's end waits for it.
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    handle: JoinHandle<T>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

/// Runs `body`, which may start threads that borrow from outside the scope, and waits until all of them have ended.
///
/// The handle of a thread returns its panic; if the handle is dropped, the panic is reported through `tracing`. If the
/// caller is cancelled, so are the threads, and the scope still waits for them before the cancel unwinds the caller.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(2).build().unwrap();
/// # runtime.block_on(async {
/// let mut numbers = [1, 2, 3, 4];
/// let (left, right) = numbers.split_at_mut(2);
/// weald::thread::scope(|scope| {
///     scope.spawn(|| left.iter_mut().for_each(|n| *n *= 10));
///     scope.spawn(|| right.iter_mut().for_each(|n| *n *= 100));
/// });
/// assert_eq!(numbers, [10, 20, 300, 400]);
/// # });
/// ```
///
/// # Panics
/// If `body` does, once the threads have ended.
#[track_caller]
pub fn scope<'env, F, R>(body: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let scope = Scope {
        jobs: weald_kernel::Scope::default(),
        scope: PhantomData,
        env: PhantomData,
    };
    let ran = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    wait_to_the_end(scope.jobs.all_ended(), || scope.jobs.cancel());
    match ran {
        Ok(result) => {
            cancel_point();
            result
        }
        Err(payload) => resume_unwind(payload),
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a thread in the scope. This is no wait, so a cancel of the caller does not end it: the cancel reaches
    /// the scope's threads when the end of the scope waits for them.
    ///
    /// ```
    /// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
    /// # runtime.block_on(async {
    /// let text = String::from("borrowed");
    /// let length = weald::thread::scope(|scope| scope.spawn(|| text.len()).join().unwrap());
    /// assert_eq!(length, 8);
    /// # });
    /// ```
    ///
    /// # Panics
    /// If no thread can be started; [`Builder::spawn_scoped`] returns that as an error.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, code: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        match Builder::new().spawn_scoped(self, code) {
            Ok(handle) => handle,
            Err(error) => panic!("a thread could not be started: {error}"),
        }
    }

    /// Asks all threads of the scope to end.
    pub fn cancel(&self) {
        self.jobs.cancel();
    }
}

impl Builder {
    /// Starts a thread in `scope`, with these settings.
    ///
    /// ```
    /// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
    /// # runtime.block_on(async {
    /// use weald::thread::{Builder, scope};
    ///
    /// let mut words = vec!["lent"];
    /// scope(|scope| {
    ///     let writer = Builder::new().name("writer").stack_size(64 << 10);
    ///     writer.spawn_scoped(scope, || words.push("out"))?;
    ///     Ok::<(), weald::thread::SpawnError>(())
    /// })?;
    /// assert_eq!(words, ["lent", "out"]);
    /// # Ok::<(), weald::thread::SpawnError>(())
    /// # }).unwrap();
    /// ```
    ///
    /// # Cancelling
    /// As [`Scope::spawn`].
    ///
    /// # Errors
    /// As [`Builder::spawn`].
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        code: F,
    ) -> Result<ScopedJoinHandle<'scope, T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        // SAFETY: scope.
        let handle = unsafe { self.spawn_borrowing(code)? };
        scope.jobs.adopt(handle.job());
        Ok(ScopedJoinHandle {
            handle,
            scope: PhantomData,
        })
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits until the thread has ended, and returns its result.
    ///
    /// # Errors
    /// As [`JoinHandle::join`].
    pub fn join(self) -> Result<T, JoinError> {
        self.handle.join()
    }

    /// As [`JoinHandle::cancel`].
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.handle.is_finished()
    }

    /// The thread, from the outside.
    pub fn thread(&self) -> Thread {
        self.handle.thread()
    }
}
