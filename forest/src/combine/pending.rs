//! A request that waits for the combiner, and the place where the waiter finds the answer.
//!
//! A request that the combiner has not yet taken up is withdrawn when its future is dropped. Once taken up,
//! it is carried out or refused, whether or not anything still waits for the answer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use super::request::{Answer, Request};
use crate::wake::wake;

/// A request that waits, and its answer.
pub(crate) struct Pending(Mutex<Waiting>);

struct Waiting {
    request: Option<Request>,
    answer: Option<Answer>,
    waker: Option<Waker>,
}

impl Pending {
    pub(crate) fn new(request: Request, waker: Option<Waker>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Waiting {
            request: Some(request),
            answer: None,
            waker,
        })))
    }

    /// One whose request was taken up already.
    pub(crate) fn taken_up(waker: Waker) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Waiting {
            request: None,
            answer: None,
            waker: Some(waker),
        })))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the request, unless it was withdrawn.
    pub(crate) fn take_up(&self) -> Option<Request> {
        self.waiting().request.take()
    }

    /// Returns a request that must wait longer.
    pub(crate) fn put_back(&self, request: Request) {
        self.waiting().request = Some(request);
    }

    /// Leaves the answer, and returns the waker to wake.
    #[must_use = "the waiter must be woken"]
    pub(crate) fn answer(&self, answer: Answer) -> Option<Waker> {
        let mut waiting = self.waiting();
        waiting.answer = Some(answer);
        // A waiter that polls on its own needs no wake.
        let waker = waiting.waker.take();
        waker.filter(|waker| !waker.will_wake(Waker::noop()))
    }

    pub(crate) fn waker(&self) -> Option<Waker> {
        self.waiting().waker.clone()
    }

    /// Wakes the waiter without an answer.
    pub(crate) fn nudge(&self) {
        wake(self.waker());
    }

    /// The answer; if there is none yet, `waker` is woken when it is there.
    pub(crate) fn poll(&self, waker: &Waker) -> Option<Answer> {
        let mut waiting = self.waiting();
        let answer = waiting.answer.take();
        let is_known = waiting
            .waker
            .as_ref()
            .is_some_and(|old| old.will_wake(waker));
        let old = match answer {
            None if !is_known => waiting.waker.replace(waker.clone()),
            _ => None,
        };
        drop(waiting);
        drop(old); // After the lock, because a foreign waker's drop may do anything.
        answer
    }

    /// Withdraws the request, unless the combiner has taken it up.
    pub(crate) fn withdraw(&self) {
        let mut waiting = self.waiting();
        let request = (waiting.request.take(), waiting.waker.take());
        drop(waiting);
        drop(request); // After the lock, because versions may be freed with it.
    }

    pub(crate) fn can_be_nudged(&self) -> bool {
        self.waiting().waker.is_some()
    }
}
