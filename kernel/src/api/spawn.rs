//! Spawning: from a future to a job in a queue and a handle to its output.
//!
//! A runtime that is shutting down refuses: [`spawn`] then returns a handle without a job, the others an error.

#![allow(unsafe_code)]

mod options;

use std::{borrow::Cow, panic::Location, sync::Arc};

use crate::{
    api::{
        admission::{SpawnError, admit, room_or_panic},
        join::JoinHandle,
        mailbox::{Address, Mailbox},
        spawn::options::SpawnOptions,
    },
    job::{
        self, JobRef, NoMemory, Room, Spec, exit_hooks, flag, runnable::Runnable,
        transition::Inbox, work_kind::WorkKind,
    },
    report::Describe,
    scheduler::{
        stackful::{
            fiber::{Fiber, FiberTable, Migration},
            foreign_runtime,
            pinned::PinnedQueue,
        },
        threads::visits,
        workers::{
            cancel, context,
            current::with_current,
            ready::{ready, ready_last},
            shared::{self, Shared},
        },
    },
    stack::Claim,
};

/// Spawns a job on the current runtime: the one that runs the caller, else the default one.
///
/// The job runs concurrently with its spawner. Dropping the handle detaches the job. If the runtime is shutting down,
/// the job is refused, and joining it returns [`Cancelled`](crate::JoinError::Cancelled).
///
/// # Panics
/// If the system refuses memory for the job.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let answer = weald::spawn(async { 6 * 7 });
/// assert_eq!(answer.await.expect("it does not panic"), 42);
/// # });
/// ```
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let site = Location::caller();
    with_current(|shared| on(shared, future, site))
}

/// Spawns a job that is pinned to the calling thread, so its future need not be `Send`. On a worker's thread the job
/// runs to its end; inside `block_on` it is cancelled when `block_on` returns.
///
/// # Errors
/// If the calling thread runs no jobs of the current runtime, if the runtime is shutting down, or if the system refuses
/// memory for the job. Inside a job, `block_on` of another runtime makes that runtime current, which has no thread for
/// pinned jobs there.
#[track_caller]
pub fn spawn_local<F>(future: F) -> Result<JoinHandle<F::Output>, SpawnError>
where
    F: Future + 'static,
    F::Output: Send + 'static,
{
    Spawn::new().spawn_local(future)
}

/// Spawns a child of the running job: when the running job ends, in any way, the child is cancelled. Outside of a
/// job this is [`spawn`].
#[track_caller]
pub fn spawn_child<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let handle = spawn(future);
    if let (Some(child), Some(parent)) = (handle.job(), context::with(|cx| cx.job_ref())) {
        cancel_with(child.clone(), parent);
    }
    handle
}

/// Attaches exit hooks so that `child` is cancelled when `parent` ends.
fn cancel_with(child: JobRef, parent: JobRef) {
    let ended = child.clone();
    let attached = exit_hooks::attach(parent, Box::new(move || cancel::cancel(&child)));
    // A child that ends first removes its hook from the parent's list. The handle for that keeps only the parent's
    // header alive.
    let _kept = exit_hooks::attach(
        ended,
        Box::new(move || {
            let _had_run = !attached.remove();
        }),
    );
}

/// The settings of one spawn.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
/// # runtime.block_on(async {
/// let job = weald::Spawn::new().name("reader").spawn(async { 1 });
/// assert_eq!(job.name().unwrap().name.as_deref(), Some("reader"));
/// # });
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "settings do nothing until something is spawned with them"]
pub struct Spawn {
    /// Boxed, so that a spawn without them moves and checks one word.
    options: Option<Box<SpawnOptions>>,
    site: Option<&'static Location<'static>>,
}

impl Spawn {
    /// The default settings: an unnamed job.
    #[inline]
    pub fn new() -> Spawn {
        Spawn::default()
    }

    /// The job's name in reports.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Spawn {
        self.options.get_or_insert_default().name = Some(name.into());
        self
    }

    /// For a job that does different things over time. Each report asks `description` for the job's name, on the
    /// reporting thread, a moment after the event; it costs nothing while nothing is reported. When the job has ended,
    /// the description must not own the job's handles or wakers, because it lives as long as they do.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering}};
    ///
    /// #[derive(Debug, Default)]
    /// struct Round(AtomicU32);
    ///
    /// impl weald::Describe for Round {
    ///     fn name(&self) -> String {
    ///         format!("round {}", self.0.load(Ordering::Relaxed))
    ///     }
    /// }
    ///
    /// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
    /// # runtime.block_on(async {
    /// let round = Arc::new(Round::default());
    /// let job = weald::Spawn::new().described_by(round.clone()).spawn(async {});
    /// round.0.store(7, Ordering::Relaxed);
    /// assert_eq!(job.name().unwrap().name.as_deref(), Some("round 7"));
    /// # });
    /// ```
    pub fn described_by(mut self, description: Arc<dyn Describe>) -> Spawn {
        self.options.get_or_insert_default().description = Some(description);
        self
    }

    /// What kind of work the job does, for a job that does different things over time. Before each of them the job sets
    /// the kind through a clone of `kind`, and then awaits [`poll_place`](crate::poll_place).
    ///
    /// ```
    /// use std::future::poll_fn;
    /// use weald::{Spawn, WorkKind, poll_place};
    ///
    /// # let runtime = weald::Runtime::builder().workers(1).build().unwrap();
    /// # runtime.block_on(async {
    /// let kind = WorkKind::new();
    /// let job = Spawn::new().kind(kind.clone()).spawn(async move {
    ///     for route in [1, 2] {
    ///         kind.set(route);
    ///         poll_fn(poll_place).await;
    ///         // Serves a request of this route.
    ///     }
    /// });
    /// # job.await.unwrap();
    /// # });
    /// ```
    pub fn kind(mut self, kind: WorkKind) -> Spawn {
        self.options.get_or_insert_default().kind = Some(kind);
        self
    }

    /// The source line that reports give as the job's spawn site, instead of the call of `spawn`. For libraries that
    /// spawn on behalf of their callers.
    pub fn site(mut self, site: &'static Location<'static>) -> Spawn {
        self.site = Some(site);
        self
    }

    /// Spawns on the current runtime, as [`spawn`].
    ///
    /// # Panics
    /// As [`spawn`].
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let site = self.site.unwrap_or(Location::caller());
        with_current(|shared| {
            if shared.is_closing() {
                return JoinHandle::refused();
            }
            let spec = plain_spec(shared, site, 1);
            finish(self.named(job::new(room_or_panic(), spec, |_| future)))
        })
    }

    /// Spawns a job that is pinned to the calling thread, as [`spawn_local`].
    ///
    /// # Errors
    /// As [`spawn_local`].
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> Result<JoinHandle<F::Output>, SpawnError>
    where
        F: Future + 'static,
        F::Output: Send + 'static,
    {
        let site = self.site.unwrap_or(Location::caller());
        let (shared, pinned) = current_queue()?;
        let spec = Spec {
            pinned: Some(pinned.clone()),
            ..plain_spec(&shared, site, 1)
        };
        let room = Room::new()?;
        visits::pin_spawned(&shared, &pinned);
        let runnable = job::new(room, spec, |_| future);
        Ok(finish(self.named(runnable)))
    }

    /// Spawns a job with a mailbox for messages `M`. `make` gets the mailbox and returns the job's future. The job
    /// counts against the process limit.
    ///
    /// # Errors
    /// If the limit is reached, if the runtime is shutting down, or if the system refuses memory for the job.
    #[track_caller]
    #[inline]
    pub fn spawn_with_mailbox<M, F, Fut>(
        self,
        make: F,
    ) -> Result<(JoinHandle<Fut::Output>, Address<M>), SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Mailbox<M>) -> Fut,
        Fut: Future + Send + 'static,
        Fut::Output: Send + 'static,
    {
        let site = self.site.unwrap_or(Location::caller());
        with_current(|shared| {
            let room = Room::new()?;
            admit(shared)?;
            let spec = Spec {
                inbox: Inbox::Open,
                flags: flag::COUNTED,
                ..plain_spec(shared, site, 3)
            };
            Ok(self.finish_with_mailbox(room, spec, make))
        })
    }

    /// As [`Spawn::spawn_with_mailbox`], for a job that is pinned to the calling thread, as [`spawn_local`].
    ///
    /// # Errors
    /// As [`Spawn::spawn_with_mailbox`] and [`spawn_local`].
    #[track_caller]
    pub fn spawn_local_with_mailbox<M, F, Fut>(
        self,
        make: F,
    ) -> Result<(JoinHandle<Fut::Output>, Address<M>), SpawnError>
    where
        M: Send + 'static,
        F: FnOnce(Mailbox<M>) -> Fut,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let site = self.site.unwrap_or(Location::caller());
        let (shared, pinned) = current_queue()?;
        let room = Room::new()?;
        admit(&shared)?;
        visits::pin_spawned(&shared, &pinned);
        let spec = Spec {
            inbox: Inbox::Open,
            flags: flag::COUNTED,
            pinned: Some(pinned),
            ..plain_spec(&shared, site, 3)
        };
        Ok(self.finish_with_mailbox(room, spec, make))
    }

    #[inline]
    fn finish_with_mailbox<M, F, Fut>(
        self,
        room: Room<Fut>,
        spec: Spec,
        make: F,
    ) -> (JoinHandle<Fut::Output>, Address<M>)
    where
        M: Send + 'static,
        F: FnOnce(Mailbox<M>) -> Fut,
        Fut: Future + 'static,
        Fut::Output: Send + 'static,
    {
        let mut rest = None;
        let runnable = self.named(job::new(room, spec, |job| {
            // SAFETY: the spec asked for three references. All are claimed before `make` runs, so that a panic in
            // `make` drops them.
            let [mailbox, address, handle] = std::array::from_fn(|_| unsafe { job.claim_ref() });
            let future = make(Mailbox::new(mailbox));
            rest = Some((address, handle));
            future
        }));
        let (address, handle) = rest.expect("`job::new` ran its closure");
        ready_last(runnable);
        // SAFETY: this is the job's only handle, and `Fut::Output` is its output.
        (unsafe { JoinHandle::new(handle) }, Address::new(address))
    }

    #[inline(always)]
    fn named(self, runnable: Runnable) -> Runnable {
        if let Some(options) = self.options {
            options.give_to(&runnable);
        }
        runnable
    }
}

/// The spec of a plain job whose creator claims `refs` references.
#[inline]
fn plain_spec(shared: &Shared, site: &'static Location<'static>, refs: u32) -> Spec {
    Spec {
        runtime: shared.id(),
        site,
        inbox: Inbox::None,
        pinned: None,
        flags: 0,
        refs,
    }
}

/// Queues a job, and returns its handle, which gets the last claimable reference.
#[inline]
fn finish<T>(runnable: Runnable) -> JoinHandle<T> {
    // SAFETY: this is the last of the references that the spec asked for.
    let job = unsafe { runnable.claim_ref() };
    ready_last(runnable);
    // SAFETY: this is the job's only handle; callers pass a future whose output is `T`.
    unsafe { JoinHandle::new(job) }
}

/// Spawns on `shared`, from any thread.
pub(crate) fn on<F>(
    shared: &Shared,
    future: F,
    site: &'static Location<'static>,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if shared.is_closing() {
        return JoinHandle::refused();
    }
    finish(job::new(
        room_or_panic(),
        plain_spec(shared, site, 1),
        |_| future,
    ))
}

/// Spawns a job that runs parts of the fork at `site`, also while `shared` shuts down: they are there already.
pub(crate) fn forked<F>(
    shared: &Shared,
    future: F,
    site: &'static Location<'static>,
    bits: u8,
) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    if shared.is_stopped() {
        return JoinHandle::refused();
    }
    match Room::new() {
        Ok(room) => {
            let runnable = job::new(room, plain_spec(shared, site, 1), |_| future);
            runnable.header().set_body_bit(bits);
            finish(runnable)
        }
        // The forking job runs all parts itself.
        Err(NoMemory { .. }) => JoinHandle::refused(),
    }
}

/// Spawns a fiber on the current runtime, which runs `code` on the stack of its claim.
pub(crate) fn fiber<F: FnOnce() -> T, T>(
    spawn: Spawn,
    code: F,
    (claim, migration): (Claim, Migration),
    site: &'static Location<'static>,
) -> Result<JoinHandle<T>, SpawnError> {
    let runtime = with_current(|shared| (!shared.is_closing()).then(|| shared.id()));
    let spec = Spec {
        runtime: runtime.ok_or(SpawnError::ShuttingDown)?,
        site,
        inbox: Inbox::None,
        pinned: None,
        flags: flag::FIBER,
        refs: 1,
    };
    let (table, room) = (FiberTable::<F, T>::TABLE, Room::new()?);
    // Built in its place: a copy of a fiber that was just built waits until all parts of it are written.
    let make = |_: &Runnable| Fiber::new(code, claim, migration);
    // SAFETY: the table of a job that is such a fiber.
    let runnable = spawn.named(unsafe { job::new_with(table, room, spec, make) });
    // SAFETY: this is the one reference that the spec asked for.
    let job = unsafe { runnable.claim_ref() };
    // Into the next slot, where a joiner finds the fiber. The job that was there goes where any worker can take it.
    ready(runnable);
    // SAFETY: this is the job's only handle, and its output is the future's.
    Ok(unsafe { JoinHandle::new(job) })
}

/// The runtime and the pinned queue of the calling thread.
fn current_queue() -> Result<(Arc<Shared>, Arc<PinnedQueue>), SpawnError> {
    context::with(|cx| {
        // A job of a foreign runtime cannot be pinned to this thread, which belongs to another one.
        let foreign = foreign_runtime::entered(cx);
        let (Some(shared), Some(pinned), None) = (cx.shared(), cx.pinned(), foreign) else {
            return Err(SpawnError::NoLocalThread);
        };
        match shared::find(shared.id()).filter(|shared| !shared.is_closing()) {
            Some(shared) => Ok((shared, pinned)),
            None => Err(SpawnError::ShuttingDown),
        }
    })
}
