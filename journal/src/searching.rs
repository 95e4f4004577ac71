//! A search on a thread of its own: a future that may be polled where nothing may wait for a medium.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::{io, thread};

use weald_forest::journal::Position;
use weald_forest::{CommitId, Version};

use crate::core::Core;
use crate::error::Unreadable;
use crate::search::search;

type Outcome = Result<Option<(Position, Version)>, Unreadable>;

/// Finds the record with an id. Dropping it loses nothing; the thread ends by itself.
pub(crate) struct Searching(Arc<Mutex<SearchState>>);

#[derive(Default)]
struct SearchState {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

fn lock(state: &Mutex<SearchState>) -> MutexGuard<'_, SearchState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn find(core: &Core, id: CommitId, state: &Mutex<SearchState>) {
    let outcome = catch_unwind(AssertUnwindSafe(|| search(core, id)));
    let outcome = outcome.unwrap_or_else(|_| {
        let error = io::Error::other("the medium has panicked");
        Err(error.into())
    });
    let waker = {
        let mut state = lock(state);
        state.outcome = Some(outcome);
        state.waker.take()
    };
    if let Some(waker) = waker {
        // A foreign waker may panic.
        core.wakes
            .run(|| drop(catch_unwind(AssertUnwindSafe(|| waker.wake()))));
    }
}

impl Searching {
    /// Begins to look through what is written. A journal that is worked by hand has no threads, so it looks at once.
    pub(crate) fn begin(core: &Arc<Core>, id: CommitId) -> Self {
        let state = Arc::default();
        let (its_core, its_state) = (Arc::clone(core), Arc::clone(&state));
        let thread = thread::Builder::new().name("journal-search".into());
        let is_begun = core.settings.has_threads
            && thread
                .spawn(move || find(&its_core, id, &its_state))
                .is_ok();
        if !is_begun {
            // Without a thread it is better to wait here than not to know what became of a commit.
            find(core, id, &state);
        }
        Self(state)
    }
}

impl Future for Searching {
    type Output = Outcome;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Outcome> {
        // Before the lock, because a foreign waker's clone may do anything.
        let waker = cx.waker().clone();
        let mut state = lock(&self.0);
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(outcome);
        }
        let old = state.waker.replace(waker);
        drop(state);
        drop(old);
        Poll::Pending
    }
}
