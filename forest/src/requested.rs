//! A change of the forest that is no edit: the future of its outcome, and the level that it must reach first.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::combine::request::{Action, Answer};
use crate::combine::shared::Shared;
use crate::combine::submission::Submission;
use crate::error::CommitError;
use crate::journal::Level;
use crate::version::Committed;

/// A change that is made when it is awaited: of names, tags and indexes, or of a whole tree.
///
/// If it is dropped before its first poll, it is not made. If it is dropped later, it is withdrawn, unless the thread
/// that serves requests has taken it up.
///
/// ```
/// use weald::block_on;
/// use weald::forest::{CommitError, Forest, Level};
///
/// let forest = Forest::new();
/// block_on(forest.create("notes").level(Level::Accepted))?;
/// // Without a journal nothing survives the program.
/// let durable = block_on(forest.create("more").level(Level::Durable));
/// assert!(matches!(durable, Err(CommitError::Level { .. })));
/// # Ok::<(), CommitError>(())
/// ```
#[must_use = "a change is made when it is awaited"]
pub struct Requested<T> {
    shared: Arc<Shared>,
    level: Option<Level>,
    stage: RequestStage,
    finish: fn(&Arc<Shared>, Answer) -> Result<T, CommitError>,
}

type Make = Box<dyn FnOnce() -> Result<Action, CommitError> + Send>;

enum RequestStage {
    New(Option<Make>),
    Submitted(Submission),
}

impl<T> Requested<T> {
    /// The level that the change must have reached before it is acknowledged; by default the one that the forest was
    /// built with. If the journal cannot reach the level, the outcome is [`CommitError::Level`], and nothing was
    /// changed.
    pub fn level(mut self, level: Level) -> Self {
        self.level = Some(level);
        self
    }

    fn submit(&self, make: Make) -> Result<Submission, CommitError> {
        let most = self.shared.forest.most();
        if let Some(asked) = self.level.filter(|asked| *asked > most) {
            return Err(CommitError::Level { asked, most });
        }
        let action = make()?;
        // An erasure is acknowledged only when the bytes cannot come back.
        let is_erasure = matches!(action, Action::Erase(..));
        let level = if is_erasure { Some(most) } else { self.level };
        Ok(self.shared.submit(action, level))
    }
}

impl<T> Requested<T> {
    /// `make` is called when the change is first polled, and `finish` makes the outcome of the answer.
    pub(crate) fn with(
        shared: &Arc<Shared>,
        make: impl FnOnce() -> Result<Action, CommitError> + Send + 'static,
        finish: fn(&Arc<Shared>, Answer) -> Result<T, CommitError>,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            level: None,
            stage: RequestStage::New(Some(Box::new(make))),
            finish,
        }
    }
}

impl Requested<Committed> {
    /// A change that creates no tree.
    pub(crate) fn new(
        shared: &Arc<Shared>,
        make: impl FnOnce() -> Result<Action, CommitError> + Send + 'static,
    ) -> Self {
        Self::with(shared, make, |_, answer| match answer {
            Answer::Committed(outcome, garbage) => {
                drop(garbage); // Outside the right to commit, by the author.
                outcome
            }
            _ => unreachable!("a change is answered with its outcome"),
        })
    }
}

impl<T> Future for Requested<T> {
    type Output = Result<T, CommitError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let RequestStage::New(make) = &mut this.stage {
            let make = make.take().expect("a change that has failed is not polled");
            this.stage = RequestStage::Submitted(this.submit(make)?);
        }
        let RequestStage::Submitted(submission) = &mut this.stage else {
            unreachable!("it was submitted above")
        };
        let answer = ready!(Pin::new(submission).poll(cx));
        Poll::Ready((this.finish)(&this.shared, answer))
    }
}
