//! Loops of callbacks: each step is a run of its own, so that every loop yields.
//!
//! A loop is one callback that runs in rounds. Whatever its steps await is on a stack of frames, which is
//! empty while the loop only sleeps; so a sleeping loop takes one block.

use std::fmt;

use weald_kernel::{
    callback::{Handle, Next, Owner, When, rounds},
    now,
};

use super::then::{Follow, Rest, Steps, Then};

/// A loop. [Started](Loop::start), it is a callback of its own; returned by a step, it is awaited.
#[must_use = "a loop does nothing unless it is started, or returned by a step"]
pub struct Loop<F>(F);

impl<F: FnMut() -> Option<Then> + Send + 'static> Loop<F> {
    /// Starts the loop, as a callback of its own; its first step is ready now.
    #[track_caller]
    pub fn start(self) -> Handle {
        let mut run = LoopRun {
            base: self.0,
            top: None,
        };
        rounds(Owner::current(), When::Ready, move || run.round())
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

/// A started loop, and what its steps await.
struct LoopRun<F> {
    base: F,
    top: Option<Box<Frame>>,
}

/// A frame on top of others.
struct Frame {
    awaited: Awaited,
    below: Option<Box<Frame>>,
}

impl Drop for Frame {
    fn drop(&mut self) {
        // Frames are dropped one after the other: the default drop would recurse as deep as there
        // are frames.
        let mut next = self.below.take();
        while let Some(mut frame) = next {
            next = frame.below.take();
        }
    }
}

/// What a step awaits.
enum Awaited {
    Loop(Box<Steps>),
    /// None once its one step has been taken.
    Rest(Option<Box<Rest>>),
}

impl Awaited {
    fn step(&mut self) -> Option<Then> {
        match self {
            Awaited::Loop(steps) => steps(),
            Awaited::Rest(rest) => rest.take().map(|rest| rest()),
        }
    }
}

impl<F: FnMut() -> Option<Then>> LoopRun<F> {
    /// Takes one step of the frame on top, or of the loop itself.
    fn round(&mut self) -> Next {
        let then = match &mut self.top {
            Some(top) => top.awaited.step(),
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
                    self.push(Awaited::Rest(Some(then)));
                }
                Next::At(now() + duration)
            }
            Some(Follow::Await(steps)) => {
                self.push(Awaited::Loop(steps));
                Next::Ready
            }
        }
    }

    fn push(&mut self, awaited: Awaited) {
        let below = self.top.take();
        self.top = Some(Box::new(Frame { awaited, below }));
    }

    /// The frame on top is over, and so is the step that awaited it.
    fn pop(&mut self) -> Next {
        if let Some(mut over) = self.top.take() {
            self.top = over.below.take();
        }
        Next::Ready
    }
}

/// Runs `body` forever; each round goes to the end of the queue.
pub fn repeat<T: Into<Then>>(
    body: impl FnMut() -> T + Send + 'static,
) -> Loop<impl FnMut() -> Option<Then> + Send + 'static> {
    let mut body = body;
    Loop(move || Some(body().into()))
}

/// Runs `body` as long as `condition` is true. Condition and body are steps of their own.
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

/// Runs `body`, and again as long as `condition` is true after it. Body and condition are steps of their own.
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

/// Runs `body` for each item. Fetching the next item and running `body` are steps of their own. For the `for` loop
/// of C use [`std::iter::successors`].
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
