//! A job in a foreign runtime: `block_on` of another runtime than the job's own, called inside the job.
//!
//! While the future is polled, the current runtime is the foreign one: what it spawns, its timers and its sockets go
//! there. Everything else stays as it is: the job belongs to its own runtime, whose thread runs it, and waits there.
//!
//! The foreign runtime is noted in the context of the job's stack. So the note is suspended and resumed with the stack,
//! and is never that of another job. Forks have no part in it: their halves run on the workers of the job's own
//! runtime, which is current in all of them.

#![allow(unsafe_code)]

use std::{ptr, sync::Arc};

use crate::scheduler::{
    stackful::stack_context::{self, StackContext},
    workers::{
        context::{self, Context},
        shared::Shared,
    },
};

/// The foreign runtime that the running job has entered.
#[inline]
pub(crate) fn entered(cx: &Context) -> Option<&Shared> {
    // SAFETY: `ForeignRuntime` keeps the runtime alive, and clears the note before its frame ends.
    unsafe { stack_context::root(cx)?.foreign_runtime.get().as_ref() }
}

/// While it lives, the running job is in a foreign runtime, or in none.
pub(crate) struct ForeignRuntime<'a> {
    /// The context, and what was noted there before. None on a thread's own stack, which has no context: jobs run there
    /// only if there was no stack for them, and enter no foreign runtime.
    noted: Option<(&'static StackContext, *const Shared)>,
    _runtime: Option<&'a Arc<Shared>>,
}

impl<'a> ForeignRuntime<'a> {
    /// The job enters `shared`, which may be its own.
    pub(crate) fn enter(shared: &'a Arc<Shared>) -> ForeignRuntime<'a> {
        let cx = context::here();
        match cx.shared() {
            Some(own) if own.id() == shared.id() => ForeignRuntime::none(cx),
            _ => ForeignRuntime {
                noted: note(cx, Arc::as_ptr(shared)),
                _runtime: Some(shared),
            },
        }
    }

    /// The job's own runtime is current while it lives, whichever the job had entered.
    pub(crate) fn none(cx: &Context) -> ForeignRuntime<'static> {
        ForeignRuntime {
            noted: note(cx, ptr::null()),
            _runtime: None,
        }
    }
}

fn note(cx: &Context, shared: *const Shared) -> Option<(&'static StackContext, *const Shared)> {
    let context = stack_context::root(cx)?;
    Some((context, context.foreign_runtime.replace(shared)))
}

impl Drop for ForeignRuntime<'_> {
    fn drop(&mut self) {
        if let Some((context, before)) = self.noted {
            context.foreign_runtime.set(before);
        }
    }
}
