//! The callbacks of one owner: a list, so that the owner's end finds them all.
//!
//! Invariants:
//! - A callback is in its owner's list from its start until its block is freed, or until the owner ends,
//!   which empties the list for good.
//! - The list's lock is never held while a closure runs or is dropped.

#![allow(unsafe_code)]

use std::{panic::AssertUnwindSafe, sync::Arc};

use crate::{
    callback::{
        cell::{CallbackPtr, OwnedLink},
        start,
    },
    job::{JobRef, exit_hooks},
    report::{self, panic_message},
    scheduler::workers::context,
    sys::{Mutex, lock},
};

/// A callback that panicked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the callback `{callback}` panicked: {message}")]
#[non_exhaustive]
pub struct CallbackPanic {
    /// The type of its closure, which contains the path of the function that made it.
    pub callback: &'static str,
    /// What the panic said.
    pub message: String,
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
    on_panic: Option<OnPanic>,
}

impl Group {
    fn new(runtime: u16) -> Group {
        let members = Members {
            first: None,
            has_ended: false,
            on_panic: None,
        };
        Group {
            runtime,
            members: Mutex::new(members),
        }
    }

    /// Enters a new callback. False if the owner has ended.
    pub(super) fn join(&self, callback: CallbackPtr) -> bool {
        let mut members = lock(&self.members);
        if members.has_ended {
            return false;
        }
        let second = members.first.replace(callback);
        set(member(callback), second, None);
        if let Some(second) = second {
            set_prev(member(second), Some(callback));
        }
        true
    }

    /// A callback, of which nobody has a claim any more, leaves.
    pub(super) fn leave(&self, callback: CallbackPtr) {
        let mut members = lock(&self.members);
        if members.has_ended {
            return;
        }
        let (next, prev) = get(member(callback));
        if next.is_none() && prev.is_none() && members.first != Some(callback) {
            // It never joined.
            return;
        }
        match prev {
            Some(prev) => set(member(prev), next, get(member(prev)).1),
            None => members.first = next,
        }
        if let Some(next) = next {
            set_prev(member(next), prev);
        }
    }

    /// The owner has ended: closures that wait are dropped here and now; those that run have no further round.
    fn end(&self) {
        let mut taken = Vec::new();
        let mut members = lock(&self.members);
        members.has_ended = true;
        let mut next = members.first.take();
        while let Some(callback) = next {
            next = get(member(callback)).0;
            // SAFETY: claim: in the list, and who freed it would have left it under the lock.
            let phase = &unsafe { callback.head() }.entry.phase;
            if !phase.claim() {
                continue;
            }
            // Over or running: the claim goes back outside the lock, because it may be the last.
            taken.push((callback, phase.take()));
        }
        let on_panic = members.on_panic.take();
        drop(members);
        drop(on_panic);
        for (callback, take) in taken {
            // SAFETY: the claim from above, and what the phase said.
            unsafe { start::end_taken(callback, take, self.runtime) };
        }
    }

    /// Tells the owner of a panic.
    pub(super) fn tell(&self, panic: CallbackPanic) {
        let on_panic = lock(&self.members).on_panic.clone();
        let Some(on_panic) = on_panic else {
            return report::callback_panicked(panic.callback, &panic.message);
        };
        let callback = panic.callback;
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| on_panic(panic)));
        if let Err(payload) = told {
            report::callback_panicked(callback, &panic_message(payload.as_ref()));
            // Its own destructor could panic again.
            std::mem::forget(payload);
        }
    }
}

/// Who owns the callbacks that it starts: their closures are dropped when it ends.
#[derive(Clone)]
pub struct Owner(pub(super) Option<Arc<Group>>);

impl Owner {
    /// The running job, which may be a process; inside a callback, the owner of that callback; in what a job
    /// forked, that job; outside of jobs, the runtime. Amortised O(1).
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
        // SAFETY: the thread runs the job, or what that forked and waits for: it is alive.
        let header = unsafe { job.header() };
        let mut extensions = header.extensions.lock();
        if extensions.callbacks.is_some() || extensions.callback.is_some() {
            let group = extensions.callbacks.clone();
            return Owner(group.and_then(|group| group.downcast().ok()));
        }
        let group = Arc::new(Group::new(header.runtime()));
        extensions.callbacks = Some(group.clone());
        drop(extensions);
        let ending = group.clone();
        // SAFETY: as above.
        let job = unsafe { JobRef::new_for(job) };
        let _attached = exit_hooks::attach(job, Box::new(move || ending.end()));
        Owner(Some(group))
    }

    /// The runtime, which ends when it is shut down.
    #[must_use]
    pub fn runtime() -> Owner {
        Owner(None)
    }

    /// From now on `tell` is told of each panic in a callback of this owner, on the thread that ran it. It
    /// must not block. What it held is dropped with the owner's end. Nobody tells the runtime: without an
    /// `on_panic`, panics are reported through `tracing`.
    pub fn on_panic(&self, tell: impl Fn(CallbackPanic) + Send + Sync + 'static) {
        let Some(group) = &self.0 else { return };
        let mut members = lock(&group.members);
        let tell = match members.has_ended {
            true => None,
            false => members.on_panic.replace(Arc::new(tell)),
        };
        drop(members);
        drop(tell);
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

/// The place in the list of a callback that has an owner. Under the owner's lock.
fn member<'a>(callback: CallbackPtr) -> &'a OwnedLink {
    // SAFETY: claim: callers pass what is in the list or about to be.
    let member = unsafe { callback.member() };
    member.expect("only callbacks with an owner join")
}

fn get(member: &OwnedLink) -> (Option<CallbackPtr>, Option<CallbackPtr>) {
    // SAFETY: links are touched under the lock only.
    let next = unsafe { *member.next.get() };
    // SAFETY: as above.
    (next, unsafe { *member.prev.get() })
}

fn set(member: &OwnedLink, next: Option<CallbackPtr>, prev: Option<CallbackPtr>) {
    // SAFETY: links are touched under the lock only.
    unsafe { *member.next.get() = next };
    set_prev(member, prev);
}

fn set_prev(member: &OwnedLink, prev: Option<CallbackPtr>) {
    // SAFETY: links are touched under the lock only.
    unsafe { *member.prev.get() = prev };
}
