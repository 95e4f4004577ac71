//! A submission: the future of a request to the combiner.
//!
//! If the combiner is free, the first poll takes it, serves the request itself and then all requests that
//! were queued meanwhile, and is ready. Otherwise the request waits on the publication list, with the waker.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use weald_tree::Bytes;

use super::combiner::Served;
use super::request::{Action, Answer, CommitRequest, Pending, Request};
use super::shared::Shared;
use crate::error::CommitError;
use crate::version::Committed;

/// Dropped before its first poll, it has submitted nothing; dropped later, it withdraws the request unless
/// the combiner has taken it up.
pub(crate) struct Submission {
    shared: Arc<Shared>,
    stage: Stage,
}

enum Stage {
    New(Option<Request>),
    Waiting(Arc<Pending>),
    Over,
}

impl Submission {
    pub(crate) fn new(shared: Arc<Shared>, request: Request) -> Self {
        Self {
            shared,
            stage: Stage::New(Some(request)),
        }
    }

    fn begin(&mut self, mut request: Request, waker: &Waker) -> Option<Answer> {
        let Shared { forest, list } = &*self.shared;
        if let Err(error) = forest.reentrancy.must_be_outside() {
            return Some(Answer::Committed(Err(error)));
        }
        // If the combiner is taken, others come first, and the thread that serves this request carries it out
        // once, on the version where it belongs.
        if let Request::Commit(commit) = &mut request
            && list.looks_free()
        {
            commit.action.carry_out();
        }
        let pending = match list.take() {
            Some(mut guard) => {
                let combiner = guard.combiner();
                let pending = match combiner.serve_own(forest, request) {
                    Served::Done(answer) => {
                        guard.serve_queue(forest);
                        return Some(answer);
                    }
                    Served::Waits(tree_number, request) => {
                        let pending = Pending::new(request, Some(waker.clone()));
                        combiner.queue_behind_lease(forest, tree_number, Arc::clone(&pending));
                        pending
                    }
                };
                guard.serve_queue(forest);
                pending
            }
            None => {
                let pending = Pending::new(request, Some(waker.clone()));
                if let Some(guard) = list.queue(Arc::clone(&pending)) {
                    guard.serve_queue(forest);
                }
                pending
            }
        };
        let answer = pending.poll(waker);
        if answer.is_none() {
            self.stage = Stage::Waiting(pending);
        }
        answer
    }
}

impl Future for Submission {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        let answer = match &mut this.stage {
            Stage::New(request) => match request.take() {
                Some(request) => this.begin(request, cx.waker()),
                None => None,
            },
            Stage::Waiting(pending) => pending.poll(cx.waker()).or_else(|| {
                // It may have been woken to take the combiner.
                let guard = this.shared.list.take()?;
                guard.serve_queue(&this.shared.forest);
                pending.poll(cx.waker())
            }),
            Stage::Over => panic!("a commit was polled after it had ended"),
        };
        match answer {
            Some(answer) => {
                this.stage = Stage::Over;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}

impl Drop for Submission {
    fn drop(&mut self) {
        if let Stage::Waiting(pending) = &self.stage {
            pending.withdraw();
            // It may have been woken to take the combiner.
            if let Some(guard) = self.shared.list.take() {
                guard.serve_queue(&self.shared.forest);
            }
        }
    }
}

impl Shared {
    /// Submits a change that creates no tree; the future is its outcome.
    pub(crate) fn submit_change(
        self: &Arc<Self>,
        action: Action,
    ) -> impl Future<Output = Result<Committed, CommitError>> + Send + use<> {
        let submission = self.submit(action);
        async move {
            match submission.await {
                Answer::Committed(outcome) => outcome,
                _ => unreachable!("a change is answered with its outcome"),
            }
        }
    }

    /// Submits a change that is not an edit.
    pub(crate) fn submit(self: &Arc<Self>, action: Action) -> Submission {
        let commit = CommitRequest {
            action,
            id: None,
            bytes: Bytes::new(&[]),
            lease: None,
        };
        Submission::new(Arc::clone(self), Request::Commit(commit))
    }
}
