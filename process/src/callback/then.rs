//! The return value of a loop's step: what comes next.

use std::{fmt, time::Duration};

/// Longer waits count as a hundred years.
pub(crate) const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// The steps of an awaited loop: returns the next one, or none if the loop is over.
pub(super) type Steps = dyn FnMut() -> Option<Then> + Send;
/// The step after a sleep.
pub(super) type Rest = dyn FnOnce() -> Then + Send;

/// What follows a step. Built from nothing (`()`), from a [`Pause`], or from a [`Loop`](super::Loop).
#[must_use = "a step says what follows it by returning this"]
pub struct Then(pub(super) Follow);

/// The cases of [`Then`].
pub(super) enum Follow {
    /// The step is over.
    Over,
    /// A time to wait, and the step that follows it.
    Pause(Duration, Option<Box<Rest>>),
    /// A loop to await.
    Await(Box<Steps>),
}

/// A time that passes before the step is over; see [`pause`].
#[must_use = "a pause does nothing unless a step returns it"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause(Duration);

/// A pause of `duration`: the step that returns it is not over before that time has passed.
pub fn pause(duration: Duration) -> Pause {
    Pause(duration.min(CENTURY))
}

impl Pause {
    /// Adds `run` to the step, after the pause: the loop continues after `run` and what `run` returns.
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
