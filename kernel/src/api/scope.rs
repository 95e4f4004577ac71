//! A scope: jobs that cannot outlive it.
//!
//! Every job of a scope has an exit hook that takes the job off the scope's list. The scope ends only when the list is
//! empty.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::Location,
    pin::pin,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
};

use weald_sync::reason::{Kind, Reason};

use crate::{
    api::{join::JoinHandle, spawn::on, sync_hooks::note_wait},
    job::{JobRef, exit_hooks, foreign_call::FiredBy},
    scheduler::stackful::wait::wait_to_the_end,
    scheduler::workers::{cancel, current::with_current, shared, waker},
    sys::lock,
};

#[derive(Default)]
struct Children {
    /// The jobs that have not ended, by number.
    live: BTreeMap<u64, JobRef>,
    next: u64,
    waiter: Option<Waker>,
    /// Whether the scope has ended or is ending: a job that is spawned then is cancelled.
    closed: bool,
}

/// Spawns jobs that end before the scope ends; see [`scope`]. A clone refers to the same scope.
#[derive(Clone, Default)]
pub struct Scope {
    children: Arc<Mutex<Children>>,
}

/// Runs `body`, which may spawn jobs in the scope, and then waits for all of them. No job of the scope is left when
/// `scope` ends, whether `body` returned or panicked, or the future was cancelled. There is one exception: when the
/// runtime stops, the wait ends for children that compute or block beyond the deadline, and for one that shuts the
/// runtime down.
///
/// Dropping the future cancels the children and waits, with the stack, until they have ended. A child's panic is
/// returned by its handle, and does not end the other children.
///
/// ```
/// # let runtime = weald::Runtime::builder().workers(2).build().unwrap();
/// # runtime.block_on(async {
/// let total = weald::scope(async |scope| {
///     let a = scope.spawn(async { 1 });
///     let b = scope.spawn(async { 2 });
///     a.await.unwrap() + b.await.unwrap()
/// })
/// .await;
/// assert_eq!(total, 3);
/// # });
/// ```
#[track_caller]
pub fn scope<R>(body: impl AsyncFnOnce(&Scope) -> R) -> impl Future<Output = R> {
    let site = Location::caller();
    async move {
        let scope = Scope {
            children: Arc::default(),
        };
        let guard = EndChildren(&scope);
        let result = body(&scope).await;
        scope.all_ended_at(Some(site)).await;
        drop(guard);
        result
    }
}

impl Scope {
    /// Spawns a job in the scope. A clone can outlive the scope; a job that is spawned through it then is cancelled at
    /// once.
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let site = Location::caller();
        let handle = with_current(|shared| on(shared, future, site));
        self.adopt(&handle);
        handle
    }

    /// Adds a spawned job to the scope. If the scope has ended, the job is cancelled at once.
    pub fn adopt<T>(&self, handle: &JoinHandle<T>) {
        if let Some(job) = handle.job() {
            self.take_in(job.clone());
        }
    }

    /// Asks all jobs of the scope to end. Does not wait for them.
    pub fn cancel(&self) {
        let live: Vec<JobRef> = lock(&self.children).live.values().cloned().collect();
        for job in live {
            cancel::cancel(&job);
        }
    }

    /// Whether the runtime of all children is stopping: it then ends them itself, and names those that do not end. A
    /// child that shuts the runtime down does not count: it ends only afterwards.
    fn runtime_is_gone(&self) -> bool {
        let is_gone = |id| shared::find(id).is_none_or(|shared| shared.is_stopped());
        // Out of the lock: the last reference to a runtime drops values of the user.
        let runtimes: BTreeSet<u16> = {
            let children = lock(&self.children);
            let live = children.live.values();
            let live = live.filter(|child| !shuts_down(child));
            live.map(|child| child.header().runtime()).collect()
        };
        runtimes.into_iter().all(is_gone)
    }

    fn take_in(&self, job: JobRef) {
        let (number, closed) = {
            let mut children = lock(&self.children);
            let number = children.next;
            children.next += 1;
            children.live.insert(number, job.clone());
            (number, children.closed)
        };
        if closed {
            cancel::cancel(&job);
        }
        let (runtime, children) = (job.header().runtime(), self.children.clone());
        let hook = move || forget(&children, number, runtime);
        let _kept = exit_hooks::attach(job, Box::new(hook));
    }

    /// Waits until no job of the scope is left, and then closes the scope. Cancel-safe.
    #[track_caller]
    pub fn all_ended(&self) -> impl Future<Output = ()> {
        self.all_ended_at(Some(Location::caller()))
    }

    /// As [`all_ended`](Scope::all_ended), at this line, which reports name.
    async fn all_ended_at(&self, site: Option<&'static Location<'static>>) {
        std::future::poll_fn(|cx| {
            if self.has_ended() {
                return Poll::Ready(());
            }
            // Cloned before the lock, and the former one dropped after it: a waker is user code.
            let waker = waker::kept(cx.waker());
            let former = lock(&self.children).waiter.replace(waker);
            drop(former);
            match self.has_ended() {
                true => Poll::Ready(()),
                false => {
                    note_wait(Reason::unspecified(Kind::Children).at(site));
                    Poll::Pending
                }
            }
        })
        .await;
    }

    /// Waits until the scope has no job left that it must wait for, and holds the thread meanwhile. A cancel must not
    /// end this wait: a scope promises that its children have ended.
    fn wait_with_stack(&self) {
        let mut all_ended = pin!(self.all_ended_at(None));
        let ended_or_gone = std::future::poll_fn(|cx| match all_ended.as_mut().poll(cx) {
            // Asked after the waker was left: a child that ends in between wakes it.
            Poll::Pending if self.runtime_is_gone() => Poll::Ready(()),
            ended => ended,
        });
        wait_to_the_end(ended_or_gone, || ());
    }

    /// Closes the scope if no job is left. Whether it did.
    fn has_ended(&self) -> bool {
        let mut children = lock(&self.children);
        let has_ended = children.live.is_empty();
        children.closed |= has_ended;
        has_ended
    }
}

impl std::fmt::Debug for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let live = lock(&self.children).live.len();
        f.debug_struct("Scope").field("live", &live).finish()
    }
}

/// Whether the child shuts its runtime down, so that it ends only afterwards.
fn shuts_down(child: &JobRef) -> bool {
    let extensions = child.header().extensions.lock_existing();
    extensions.is_some_and(|extensions| extensions.shuts_down)
}

/// The child with this number has ended, in this `runtime`. The waiter looks again if none is left, or only children
/// that shut their runtime down: an [`EndChildren`] does not wait for those. The search ends at the first other child.
fn forget(children: &Mutex<Children>, number: u64, runtime: u16) {
    let waiter = {
        let mut children = lock(children);
        children.live.remove(&number);
        match children.live.values().all(shuts_down) {
            true => children.waiter.take(),
            false => None,
        }
    };
    if let Some(waiter) = waiter {
        waker::call_at_end(runtime, FiredBy::End, waiter);
    }
}

/// Cancels the children and waits for them, unless they have ended on their own.
struct EndChildren<'a>(&'a Scope);

impl Drop for EndChildren<'_> {
    fn drop(&mut self) {
        {
            let mut children = lock(&self.0.children);
            children.closed = true;
            if children.live.is_empty() {
                return;
            }
        }
        self.0.cancel();
        if !self.0.runtime_is_gone() {
            self.0.wait_with_stack();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
