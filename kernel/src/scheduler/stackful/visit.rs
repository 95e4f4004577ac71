//! A job's visit to another runtime: `block_on` of that runtime, called inside the job.
//!
//! While the future is polled, the current runtime is the visited one: what it spawns, its timers and its sockets go
//! there. Everything else stays as it is: the job belongs to its own runtime, whose thread runs it, and waits there.
//!
//! The visit is noted in the context of the job's stack. So it is suspended and resumed with the stack, and is never
//! that of another job. Forks do not take part in a visit: their halves run on the workers of the job's own runtime,
//! which is current in all of them.

#![allow(unsafe_code)]

use std::{ptr, sync::Arc};

use crate::scheduler::{
    stackful::stack_context::{self, StackContext},
    workers::{
        context::{self, Context},
        shared::Shared,
    },
};

/// The runtime that the running job visits.
#[inline]
pub(crate) fn visited(cx: &Context) -> Option<&Shared> {
    // SAFETY: a visit keeps its runtime alive, and ends before its frames do.
    unsafe { stack_context::root(cx)?.visited.get().as_ref() }
}

/// While it lives, the running job visits a runtime, or none.
pub(crate) struct JobVisit<'a> {
    /// The context, and what was noted there before. None on a thread's own stack, which has no context: jobs run there
    /// only if there was no stack for them, and do not visit.
    noted: Option<(&'static StackContext, *const Shared)>,
    _runtime: Option<&'a Arc<Shared>>,
}

impl<'a> JobVisit<'a> {
    /// A visit to `shared`.
    pub(crate) fn begin(shared: &'a Arc<Shared>) -> JobVisit<'a> {
        let cx = context::here();
        match cx.shared() {
            Some(own) if own.id() == shared.id() => JobVisit::own_runtime(cx),
            _ => JobVisit {
                noted: note(cx, Arc::as_ptr(shared)),
                _runtime: Some(shared),
            },
        }
    }

    /// Interrupts all visits while it lives: the job's own runtime is current.
    pub(crate) fn own_runtime(cx: &Context) -> JobVisit<'static> {
        JobVisit {
            noted: note(cx, ptr::null()),
            _runtime: None,
        }
    }
}

fn note(cx: &Context, shared: *const Shared) -> Option<(&'static StackContext, *const Shared)> {
    let context = stack_context::root(cx)?;
    Some((context, context.visited.replace(shared)))
}

impl Drop for JobVisit<'_> {
    fn drop(&mut self) {
        if let Some((context, before)) = self.noted {
            context.visited.set(before);
        }
    }
}
