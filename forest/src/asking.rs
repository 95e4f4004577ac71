//! The future of everything that is asked of the combiner.
//!
//! The first poll does the work itself, if nobody else is combining; then it does that of all who came
//! meanwhile, and is ready. Else the request waits at the desk, and the waker with it.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::combiner::Served;
use crate::desk::Tenure;
use crate::forest::Shared;
use crate::request::{Answer, Pending, Request};

/// Dropped before its first poll, it has asked nothing; later, the request is taken back if nobody has
/// taken it up.
pub(crate) struct Asking {
    shared: Arc<Shared>,
    stage: Stage,
}

enum Stage {
    New(Option<Request>),
    Waiting(Arc<Pending>),
    Over,
}

impl Asking {
    pub(crate) fn new(shared: Arc<Shared>, request: Request) -> Self {
        Self {
            shared,
            stage: Stage::New(Some(request)),
        }
    }

    fn begin(&mut self, mut request: Request, waker: &Waker) -> Option<Answer> {
        let shared = &self.shared;
        if let Err(error) = shared.insiders.must_be_outside() {
            return Some(Answer::Committed(Err(error)));
        }
        // Else others come first, and whoever serves them carries this out once, where it belongs.
        if let Request::Commit(work) = &mut request
            && shared.desk.looks_free()
        {
            work.what.carry_out();
        }
        let pending = match shared.desk.take() {
            Some(mut tenure) => {
                let combiner = tenure.combiner();
                let pending = match combiner.serve_own(shared, request) {
                    Served::Done(answer) => {
                        serve_queue(shared, tenure);
                        return Some(answer);
                    }
                    Served::Waits(number, request) => {
                        let pending = Pending::new(request, Some(waker.clone()));
                        combiner.wait(shared, number, Arc::clone(&pending));
                        pending
                    }
                };
                serve_queue(shared, tenure);
                pending
            }
            None => {
                let pending = Pending::new(request, Some(waker.clone()));
                if let Some(tenure) = shared.desk.queue(Arc::clone(&pending)) {
                    serve_queue(shared, tenure);
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

impl Future for Asking {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let this = &mut *self;
        let answer = match &mut this.stage {
            Stage::New(request) => match request.take() {
                Some(request) => this.begin(request, cx.waker()),
                None => None,
            },
            Stage::Waiting(pending) => pending.poll(cx.waker()).or_else(|| {
                // It may have been woken to take over.
                let tenure = this.shared.desk.take()?;
                serve_queue(&this.shared, tenure);
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

impl Drop for Asking {
    fn drop(&mut self) {
        if let Stage::Waiting(pending) = &self.stage {
            pending.withdraw();
            // It may have been the one woken to take over.
            if let Some(tenure) = self.shared.desk.take() {
                serve_queue(&self.shared, tenure);
            }
        }
    }
}

impl Shared {
    /// Asks for something of which nobody waits to hear.
    pub(crate) fn ask_without_waiting(self: &Arc<Self>, request: Request) {
        if let Some(tenure) = self.desk.queue(Pending::new(request, None)) {
            serve_queue(self, tenure);
        }
    }
}

/// Combines until nobody is left, or until others can take over.
fn serve_queue(shared: &Arc<Shared>, mut tenure: Tenure<'_>) {
    let mut queue = VecDeque::new();
    loop {
        // Who comes while a group is served still joins it, because to make a group visible may cost more
        // than to serve one more request.
        while tenure.combiner().has_room() && tenure.take_queue(&mut queue) {
            tenure.combiner().serve_all(shared, &mut queue);
        }
        tenure.combiner().end_group(shared);
        if !tenure.goes_on() {
            return;
        }
    }
}
