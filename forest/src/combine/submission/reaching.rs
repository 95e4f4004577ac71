//! The end of a submission: its commit is visible, and waits until the journal has brought it to its level.

use std::task::{Context, Poll, ready};

use super::{Stage, Submission};
use crate::combine::request::Answer;
use crate::error::CommitError;
use crate::journal::Durability;

impl Submission {
    /// The answer, once the commit has reached its level.
    pub(super) fn poll_level(&mut self, mut answer: Answer, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(journal) = &self.shared.forest.journal else {
            return Poll::Ready(answer);
        };
        let number = match &answer {
            Answer::Committed(Ok(commit), _) => commit.version.number,
            Answer::Created(Ok(state), _) => state.number,
            _ => return Poll::Ready(answer),
        };
        match journal.when_reached(number, self.level) {
            None => Poll::Ready(answer),
            Some(reached) => {
                // Erased bytes are among it, which are not to stay readable while the medium works.
                answer.free_garbage();
                self.stage = Stage::Reaching(reached, Some(answer));
                self.poll_reaching(cx)
            }
        }
    }

    /// The receipt, once the journal has told how far it is.
    pub(super) fn poll_reaching(&mut self, cx: &mut Context<'_>) -> Poll<Answer> {
        let Stage::Reaching(reached, answer) = &mut self.stage else {
            return Poll::Pending;
        };
        let durability = ready!(reached.as_mut().poll(cx));
        let answer = match (durability, answer.take()) {
            (Durability::Unknown, Some(Answer::Committed(Ok(commit), garbage))) => {
                Answer::Committed(Err(CommitError::Unknown(commit.id)), garbage)
            }
            (Durability::Unknown, Some(Answer::Created(Ok(state), garbage))) => {
                let id = state.history().first_commit();
                Answer::Created(Err(CommitError::Unknown(id)), garbage)
            }
            (_, answer) => answer.expect("it is answered once"),
        };
        self.stage = Stage::Over;
        Poll::Ready(answer)
    }
}
