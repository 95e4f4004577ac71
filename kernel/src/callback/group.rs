//! The callbacks of one owner: a list, so that all of them can be ended with the owner.
//!
//! Invariants:
//! - A callback is in its owner's list from its start until its block is freed, or until the owner ends,
//!   which empties the list for good.
//! - The list's lock is never held while a closure runs or is dropped.

#![allow(unsafe_code)]

use std::{
    panic::{AssertUnwindSafe, Location},
    sync::Arc,
};

use crate::{
    api::unit::{AsUnit, Unit},
    callback::{
        cell::{CallbackPtr, OwnedLink},
        start,
    },
    job::{JobRef, exit_hooks},
    report::payload,
    report::{self, panic_message},
    scheduler::workers::context,
    sys::{Mutex, lock},
};

/// A callback that panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the callback `{callback}` spawned at {site} panicked: {message}")]
#[non_exhaustive]
pub struct CallbackPanic {
    /// The type of its closure, which contains the path of the function that created it.
    pub callback: &'static str,
    /// Where it was started.
    pub site: &'static Location<'static>,
    /// The panic's message.
    pub message: String,
}

impl CallbackPanic {
    /// Reports the panic, which no handler takes.
    pub(super) fn report(&self) {
        report::callback_panicked(self.callback, self.site, &self.message);
    }
}

type OnPanic = Arc<dyn Fn(CallbackPanic) + Send + Sync>;

/// What the callbacks of one owner share.
pub(crate) struct Group {
    /// The owner's runtime, which runs its callbacks.
    pub(super) runtime: u16,
    members: Mutex<Members>,
}

struct Members {
    first: Option<CallbackPtr>,
    has_ended: bool,
    /// The owner, which refers to the group; none once it has ended.
    owner: Option<Unit>,
    on_panic: Option<OnPanic>,
}

impl Members {
    fn remove(&mut self, callback: CallbackPtr) {
        if self.has_ended {
            return;
        }
        let (next, prev) = get(link(callback));
        if next.is_none() && prev.is_none() && self.first != Some(callback) {
            // It never joined.
            return;
        }
        match prev {
            Some(prev) => set(link(prev), next, get(link(prev)).1),
            None => self.first = next,
        }
        if let Some(next) = next {
            set_prev(link(next), prev);
        }
    }
}

impl Group {
    fn new(runtime: u16, owner: Unit) -> Group {
        let members = Members {
            first: None,
            has_ended: false,
            owner: Some(owner),
            on_panic: None,
        };
        Group {
            runtime,
            members: Mutex::new(members),
        }
    }

    /// Adds a new callback. False if the owner has ended.
    pub(super) fn join(&self, callback: CallbackPtr) -> bool {
        let mut members = lock(&self.members);
        if members.has_ended {
            return false;
        }
        let second = members.first.replace(callback);
        set(link(callback), second, None);
        if let Some(second) = second {
            set_prev(link(second), Some(callback));
        }
        true
    }

    /// Removes a callback whose last claim was given up.
    pub(super) fn leave(&self, callback: CallbackPtr) {
        lock(&self.members).remove(callback);
    }

    /// Removes a callback whose last claim the caller seems to have. False, with nothing changed, if there is another
    /// claim. Further claims are taken under this lock, from the list, so then the caller's is the last one for good.
    ///
    /// # Safety
    /// The caller has a claim.
    pub(super) unsafe fn leave_with_last_claim(&self, callback: CallbackPtr) -> bool {
        let mut members = lock(&self.members);
        // SAFETY: the caller's promise.
        let is_last = unsafe { callback.head() }.entry.phase.is_last();
        if is_last {
            members.remove(callback);
        }
        is_last
    }

    /// The owner has ended: closures that wait are dropped at once; those that run have no further round.
    fn end(&self) {
        let mut taken = Vec::new();
        let mut members = lock(&self.members);
        members.has_ended = true;
        let mut next = members.first.take();
        while let Some(callback) = next {
            next = get(link(callback)).0;
            // SAFETY: claim: the callback is in the list, which a callback leaves under the lock before it is freed.
            let entry = &unsafe { callback.head() }.entry;
            if !entry.phase.claim() {
                continue;
            }
            // The claim is given up outside the lock, even if the callback is over or runs, because it may be the last
            // claim.
            taken.push((callback, entry.take()));
        }
        let (on_panic, owner) = (members.on_panic.take(), members.owner.take());
        drop(members);
        drop((on_panic, owner));
        for (callback, take) in taken {
            // SAFETY: the claim from above, and what the phase word answered.
            unsafe { start::end_taken(callback, take, self.runtime) };
        }
    }

    /// Reports a panic to the owner.
    pub(super) fn report_panic(&self, panic: CallbackPanic) {
        let on_panic = lock(&self.members).on_panic.clone();
        let Some(on_panic) = on_panic else {
            return panic.report();
        };
        let (callback, site) = (panic.callback, panic.site);
        let handled = std::panic::catch_unwind(AssertUnwindSafe(|| on_panic(panic)));
        if let Err(payload) = handled {
            // A cancel is the runner's.
            if !payload::delivers_cancel_again(&payload) {
                report::callback_panicked(callback, site, &panic_message(payload.as_ref()));
            }
            payload::discard(payload);
        }
    }
}

/// An owner of callbacks: their closures are dropped when it ends.
#[derive(Clone)]
pub struct Owner(pub(super) Option<Arc<Group>>);

impl Owner {
    /// The running job, which may be a process; inside a callback, that callback's owner; inside a fork, the job
    /// that forked first; outside jobs, the runtime. Amortised O(1).
    #[inline]
    pub fn current() -> Owner {
        let cx = context::again();
        let job = match cx.thread_fork() {
            Some(fork) => fork.root_job(),
            None => cx.job(),
        };
        let Some(job) = job else {
            return Owner(None);
        };
        // SAFETY: the job is alive: the thread runs the job, or something that it forked and waits for.
        let header = unsafe { job.header() };
        let known = header.extensions.owner().cast::<Group>();
        if !known.is_null() {
            // SAFETY: only groups are set as owners, and the job's extensions hold it while the job runs.
            unsafe { Arc::increment_strong_count(known) };
            // SAFETY: the count from above.
            return Owner(Some(unsafe { Arc::from_raw(known) }));
        }
        let mut extensions = header.extensions.lock();
        if extensions.owner.is_some() || extensions.running_unit.is_some() {
            let group = extensions.owner.clone();
            return Owner(group.and_then(|group| group.downcast().ok()));
        }
        // SAFETY: as above.
        let job = unsafe { JobRef::new_for(job) };
        let group = Arc::new(Group::new(header.runtime(), Unit::new(job.clone())));
        let _none = header
            .extensions
            .set_owner(&mut extensions, Some(group.clone()));
        drop(extensions);
        let ending = group.clone();
        let _attached = exit_hooks::attach(job, Box::new(move || ending.end()));
        Owner(Some(group))
    }

    /// The runtime, as an owner: it ends when it is shut down.
    #[must_use]
    pub fn runtime() -> Owner {
        Owner(None)
    }

    /// From now on `handler` is called with each panic in a callback of this owner, on the thread that ran the
    /// callback. It must not block. It is dropped when the owner ends. The runtime as an owner takes no handler.
    /// Without a handler panics are reported through `tracing`.
    pub fn on_panic(&self, handler: impl Fn(CallbackPanic) + Send + Sync + 'static) {
        let Some(group) = &self.0 else { return };
        let mut members = lock(&group.members);
        let unused = match members.has_ended {
            true => None,
            false => members.on_panic.replace(Arc::new(handler)),
        };
        drop(members);
        drop(unused);
    }
}

/// The job that owns the callbacks. None for the runtime, and for a job that has ended.
impl AsUnit for Owner {
    fn as_unit(&self) -> Option<Unit> {
        let group = self.0.as_ref()?;
        lock(&group.members).owner.clone()
    }
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let owner = match self.0 {
            Some(_) => "a job",
            None => "the runtime",
        };
        f.debug_tuple("Owner").field(&owner).finish()
    }
}

/// The link of a callback that has an owner. Under the list's lock.
#[inline(always)]
fn link<'a>(callback: CallbackPtr) -> &'a OwnedLink {
    // SAFETY: claim: callers pass a callback that is in the list, or enters or leaves it; so it has an owner.
    unsafe { callback.owned_link() }
}

fn get(link: &OwnedLink) -> (Option<CallbackPtr>, Option<CallbackPtr>) {
    // SAFETY: links are touched only under the lock.
    let next = unsafe { *link.next.get() };
    // SAFETY: as above.
    (next, unsafe { *link.prev.get() })
}

fn set(link: &OwnedLink, next: Option<CallbackPtr>, prev: Option<CallbackPtr>) {
    // SAFETY: links are touched only under the lock.
    unsafe { *link.next.get() = next };
    set_prev(link, prev);
}

fn set_prev(link: &OwnedLink, prev: Option<CallbackPtr>) {
    // SAFETY: links are touched only under the lock.
    unsafe { *link.prev.get() = prev };
}
