//! Starting a thread: its name, its stack, and what runs around its code.

#![allow(unsafe_code)]

use std::borrow::Cow;

use weald_kernel::{DEFAULT_STACK, Spawn, SpawnError, WorkKind};

use crate::{exit, handle::JoinHandle, local};

/// Starts a thread on the current runtime: the one that runs the caller, else the default one. The thread begins
/// when its caller waits or another worker is free.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let sum = weald::thread::spawn(|| (1..=10).sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 55);
/// # });
/// ```
///
/// # Panics
/// If no thread can be started; [`Builder::spawn`] returns that as an error.
#[track_caller]
pub fn spawn<F, T>(code: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    match Builder::new().spawn(code) {
        Ok(handle) => handle,
        Err(error) => panic!("a thread could not be started: {error}"),
    }
}

/// Settings for a thread that has not started yet.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// use weald::thread::{Builder, current};
///
/// let named = Builder::new().name("reader").stack_size(256 << 10).spawn(|| current().name())?;
/// assert_eq!(named.join().unwrap().as_deref(), Some("reader"));
/// # Ok::<(), weald::thread::SpawnError>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until a thread is started with them"]
pub struct Builder {
    spawn: Spawn,
    stack: usize,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder::new()
    }
}

impl Builder {
    /// No name, and a stack of [`DEFAULT_STACK`].
    #[inline]
    pub fn new() -> Builder {
        Builder {
            spawn: Spawn::new(),
            stack: DEFAULT_STACK,
        }
    }

    /// The name by which reports, and [`Thread::name`](crate::Thread::name), call the thread.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Builder {
        self.spawn = self.spawn.name(name);
        self
    }

    /// What the thread does, for the monitor: threads from one place that do different things are of different kinds,
    /// and do not share the fate of one that blocks. A library that starts what others pass to it sets it.
    ///
    /// ```
    /// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
    /// # runtime.block_on(async {
    /// let kind = weald::WorkKind::new();
    /// kind.set(7);
    /// let thread = weald::thread::Builder::new().kind(kind).spawn(|| 1)?;
    /// assert_eq!(thread.join().unwrap(), 1);
    /// # Ok::<(), weald::thread::SpawnError>(())
    /// # }).unwrap();
    /// ```
    pub fn kind(mut self, kind: WorkKind) -> Builder {
        self.spawn = self.spawn.kind(kind);
        self
    }

    /// The size of the stack in bytes, rounded up to a power of two. Less than 16 KiB counts as 16 KiB; with more than
    /// 1 GiB, no thread is started. The size is address space: the stack takes memory page by page as it grows. The
    /// lowest page is a guard: an overflow ends the program with a message that names the thread.
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.stack = bytes;
        self
    }

    /// Starts a thread.
    ///
    /// # Errors
    /// If the runtime is shutting down, or no stack can be had ([`SpawnError::NoStack`]): the size is beyond 1 GiB, or
    /// the system refuses address space, or a further guard page. Then `code` is dropped. A thread whose start was
    /// accepted has its stack.
    #[track_caller]
    pub fn spawn<F, T>(self, code: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let job = self.spawn.spawn_fiber(self.stack, move || run(code))?;
        Ok(JoinHandle::new(job))
    }

    /// Starts a thread that may resume on another OS thread after each of its waits, so that workers share the
    /// load more evenly.
    ///
    /// # Safety
    /// `code`, and whatever it calls, keeps nothing across a wait that depends on the OS thread: no borrow of a
    /// `thread_local!`, no guard of a `std` lock, no `Rc` that a thread-local also holds.
    ///
    /// A compiler also keeps the *address* of a thread-local, from an access before a wait to one behind it in the same
    /// function. Functions of Weald that are inlined, such as `Pid::send` or the poll of a receive, access
    /// thread-locals, and then change those of another OS thread, while that thread does. So one function, with what is
    /// inlined into it, has no wait together with other calls of Weald or polls by hand, in any order if it has a loop:
    /// what sends, or polls, is in functions of its own, which are `#[inline(never)]`. `wait()` itself, and what it
    /// polls, is safe: a wait inside the poll of another wait resumes on its own OS thread.
    ///
    /// In a library crate that is built without link-time optimization, as by cargo's default, rustc was seen to keep
    /// such an address (x86-64, rustc 1.95). In a program's own crate, and with link-time optimization, it was not, and
    /// nothing promises that.
    ///
    /// # Errors
    /// As [`Builder::spawn`].
    #[track_caller]
    pub unsafe fn spawn_migrating<F, T>(self, code: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        // SAFETY: the caller's promise.
        let job = unsafe {
            self.spawn
                .spawn_migrating_fiber(self.stack, move || run(code))?
        };
        Ok(JoinHandle::new(job))
    }

    /// # Safety
    /// Everything that `code` and its result borrow lives until the job has ended.
    #[track_caller]
    pub(crate) unsafe fn spawn_borrowing<F, T>(self, code: F) -> Result<JoinHandle<T>, SpawnError>
    where
        F: FnOnce() -> T + Send,
        T: Send,
    {
        // SAFETY: the caller's promise.
        let job = unsafe {
            self.spawn
                .spawn_fiber_unchecked(self.stack, move || run_borrowing(code))?
        };
        Ok(JoinHandle::new(job))
    }
}

/// The whole run of a thread on its stack: its code, then the destructors of its locals.
fn run<F: FnOnce() -> T, T: 'static>(code: F) -> T {
    let _locals = local::DropAtEnd;
    exit::catch(code)
}

/// As [`run`], without exits: a result that may borrow has no `TypeId` to compare with the exit's value.
fn run_borrowing<F: FnOnce() -> T, T>(code: F) -> T {
    let _locals = local::DropAtEnd;
    code()
}
