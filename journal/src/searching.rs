//! A search on a thread of its own: a future that may be polled where nothing may wait for a medium.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::{io, thread};

use weald_forest::Version;
use weald_forest::journal::{Position, catch_foreign};

use crate::error::Unreadable;

pub(crate) type Outcome = Result<Option<(Position, Version)>, Unreadable>;

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

/// Something that a thread can search.
pub(crate) trait Searcher: Send + Sync + 'static {
    fn search(&self) -> Outcome;

    /// Wakes the units that wait for the outcome.
    fn wake(&self, waker: Waker);
}

fn find(searcher: &impl Searcher, state: &Mutex<SearchState>) {
    let outcome = catch_foreign(|| searcher.search());
    let outcome = outcome.unwrap_or_else(|| {
        let error = io::Error::other("the medium has panicked");
        Err(error.into())
    });
    let waker = {
        let mut state = lock(state);
        state.outcome = Some(outcome);
        state.waker.take()
    };
    if let Some(waker) = waker {
        catch_foreign(|| searcher.wake(waker));
    }
}

impl Searching {
    /// Begins to search the written records, on a thread of its own unless the calling one is to do
    /// it.
    pub(crate) fn begin(searcher: impl Searcher, has_threads: bool) -> Self {
        let state = Arc::default();
        let searcher = Arc::new(searcher);
        let (its_searcher, its_state) = (Arc::clone(&searcher), Arc::clone(&state));
        let thread = thread::Builder::new().name("journal-search".into());
        let is_begun = has_threads
            && thread
                .spawn(move || find(&*its_searcher, &its_state))
                .is_ok();
        if !is_begun {
            // If there is no thread, it is better to search here than not to know what became of a
            // commit.
            find(&*searcher, &state);
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
