//! Loops of callbacks: each step is a run of its own, so that every loop gives way.
//!
//! A loop is one callback that runs in rounds. What its steps await lies on a stack of frames in it, which
//! is empty while it just sleeps; so a loop that sleeps takes one block.

use std::fmt;

use weald_kernel::{
    callback::{Handle, Next, Owner, When, rounds},
    now,
};

use super::then::{Follow, Then};

/// The steps of an awaited loop: the next one, or none if it is over.
pub(super) type Steps = dyn FnMut() -> Option<Then> + Send;
/// What follows a sleep: one step.
pub(super) type Rest = dyn FnOnce() -> Then + Send;

/// A loop: [started](Loop::start), it is a task of its own; returned by a step, it is awaited.
#[must_use = "a loop does nothing unless it is started, or returned by a step"]
pub struct Loop<F>(F);

impl<F: FnMut() -> Option<Then> + Send + 'static> Loop<F> {
    /// Starts the loop, as a task of its own; its first step is ready now.
    pub fn start(self) -> Handle {
        let mut task = Task {
            base: self.0,
            above: None,
        };
        rounds(Owner::current(), When::Ready, move || task.round())
    }
}

impl<F: FnMut() -> Option<Then> + Send + 'static> From<Loop<F>> for Then {
    fn from(awaited: Loop<F>) -> Then {
        Then(Follow::Await(Box::new(awaited.0)))
    }
}

impl<F> fmt::Debug for Loop<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").finish_non_exhaustive()
    }
}

/// A loop at work, and what its steps await.
struct Task<F> {
    base: F,
    above: Option<Box<Above>>,
}

/// A frame on top of others.
struct Above {
    frame: Frame,
    below: Option<Box<Above>>,
}

impl Drop for Above {
    fn drop(&mut self) {
        // One after the other: as many as there are would else be dropped inside each other.
        let mut next = self.below.take();
        while let Some(mut above) = next {
            next = above.below.take();
        }
    }
}

/// What a step awaits.
enum Frame {
    Loop(Box<Steps>),
    /// None once its one step was taken.
    Rest(Option<Box<Rest>>),
}

impl Frame {
    fn step(&mut self) -> Option<Then> {
        match self {
            Frame::Loop(steps) => steps(),
            Frame::Rest(rest) => rest.take().map(|rest| rest()),
        }
    }
}

impl<F: FnMut() -> Option<Then>> Task<F> {
    /// One step of whatever is on top.
    fn round(&mut self) -> Next {
        let then = match &mut self.above {
            Some(above) => above.frame.step(),
            None => match (self.base)() {
                Some(then) => Some(then),
                None => return Next::Ended,
            },
        };
        match then.map(|then| then.0) {
            None => self.pop(),
            Some(Follow::Over) => Next::Ready,
            Some(Follow::Pause(duration, then)) => {
                if let Some(then) = then {
                    self.push(Frame::Rest(Some(then)));
                }
                Next::At(now() + duration)
            }
            Some(Follow::Await(steps)) => {
                self.push(Frame::Loop(steps));
                Next::Ready
            }
        }
    }

    fn push(&mut self, frame: Frame) {
        let below = self.above.take();
        self.above = Some(Box::new(Above { frame, below }));
    }

    /// What was on top is over: the step below it is.
    fn pop(&mut self) -> Next {
        if let Some(mut over) = self.above.take() {
            self.above = over.below.take();
        }
        Next::Ready
    }
}

/// Runs `body` for ever; each round goes to the end of the line.
pub fn repeat<T: Into<Then>>(
    body: impl FnMut() -> T + Send + 'static,
) -> Loop<impl FnMut() -> Option<Then> + Send + 'static> {
    let mut body = body;
    Loop(move || Some(body().into()))
}

/// Runs `body` as long as `condition` is true. Each is a step of its own.
pub fn repeat_while<T: Into<Then>>(
    condition: impl FnMut() -> bool + Send + 'static,
    body: impl FnMut() -> T + Send + 'static,
) -> Loop<impl FnMut() -> Option<Then> + Send + 'static> {
    let (mut condition, mut body) = (condition, body);
    let mut holds = false;
    Loop(move || {
        if std::mem::take(&mut holds) {
            return Some(body().into());
        }
        holds = condition();
        holds.then(|| ().into())
    })
}

/// Runs `body`, and again as long as `condition` is true after it. Each is a step of its own.
pub fn do_while<T: Into<Then>>(
    body: impl FnMut() -> T + Send + 'static,
    condition: impl FnMut() -> bool + Send + 'static,
) -> Loop<impl FnMut() -> Option<Then> + Send + 'static> {
    let (mut condition, mut body) = (condition, body);
    let mut holds = true;
    Loop(move || {
        if std::mem::take(&mut holds) {
            return Some(body().into());
        }
        holds = condition();
        holds.then(|| ().into())
    })
}

/// Runs `body` for each item. Fetching the next item and `body` are steps of their own, as are the parts of
/// the `for` of C, which [`std::iter::successors`] gives.
pub fn for_each<I, T>(
    items: I,
    body: impl FnMut(I::Item) -> T + Send + 'static,
) -> Loop<impl FnMut() -> Option<Then> + Send + 'static>
where
    I: IntoIterator,
    I::IntoIter: Send + 'static,
    I::Item: Send + 'static,
    T: Into<Then>,
{
    let (mut items, mut body) = (items.into_iter(), body);
    let mut item = None;
    Loop(move || {
        if let Some(item) = item.take() {
            return Some(body(item).into());
        }
        item = items.next();
        item.is_some().then(|| ().into())
    })
}
