//! The current runtime: the one that the calling thread works for, or else the default one.

use crate::{
    FEATURES,
    scheduler::workers::{context, shared::Shared},
};

/// Runs `act` with the current runtime.
#[inline]
pub(crate) fn with_current<R>(act: impl FnOnce(&Shared) -> R) -> R {
    context::with(|cx| match cx.shared() {
        Some(shared) => act(shared),
        None => act((FEATURES.default_runtime)()),
    })
}
