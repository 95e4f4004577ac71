//! What a step of a loop says about what comes next.

use std::{fmt, time::Duration};

use super::loops::{Rest, Steps};

/// What follows a step. Made from nothing (`()`), from a [`Pause`], or from a [`Loop`](super::Loop).
#[must_use = "a step says what follows it by returning this"]
pub struct Then(pub(super) Follow);

/// What follows, taken apart.
pub(super) enum Follow {
    /// The step is over.
    Over,
    /// Time, and what belongs to the sleeper.
    Pause(Duration, Option<Box<Rest>>),
    /// A loop that is awaited.
    Await(Box<Steps>),
}

/// A time that passes before the step is over; see [`pause`].
#[must_use = "a pause does nothing unless a step returns it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause(Duration);

/// The step is not over before `duration` has passed.
pub fn pause(duration: Duration) -> Pause {
    Pause(duration.min(super::CENTURY))
}

impl Pause {
    /// After the pause, `run` belongs to the step too: its loop goes on after it, and after what it returns.
    pub fn then<T: Into<Then>>(self, run: impl FnOnce() -> T + Send + 'static) -> Then {
        Then(Follow::Pause(self.0, Some(Box::new(move || run().into()))))
    }
}

impl From<()> for Then {
    fn from((): ()) -> Then {
        Then(Follow::Over)
    }
}

impl From<Pause> for Then {
    fn from(pause: Pause) -> Then {
        Then(Follow::Pause(pause.0, None))
    }
}

impl fmt::Debug for Then {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Follow::Over => "Then::Over",
            Follow::Pause(..) => "Then::Pause",
            Follow::Await(_) => "Then::Await",
        })
    }
}
