//! The current runtime: the one that the running job visits, else the one that the calling thread works for, or else
//! the default one.

use crate::{
    FEATURES,
    scheduler::{
        stackful::visit,
        workers::{
            context::{self, Context},
            shared::Shared,
        },
    },
};

/// Runs `act` with the current runtime.
#[inline]
pub(crate) fn with_current<R>(act: impl FnOnce(&Shared) -> R) -> R {
    context::with(|cx| {
        let shared = match of_thread(cx) {
            Some(shared) => shared,
            None => (FEATURES.default_runtime)(),
        };
        // At one place, so that the compiler inlines it.
        act(shared)
    })
}

/// The current runtime, unless that is the default one because the thread works for none.
#[inline]
pub(crate) fn of_thread(cx: &Context) -> Option<&Shared> {
    visit::visited(cx).or_else(|| cx.shared())
}
