//! What went wrong with a request: a status and a sentence, for a page or as `application/problem+json`.

use std::time::Duration;

use axum::http::StatusCode;

use weald::forest::{AppendError, CommitError};

use crate::model::{BoardError, Field, Invalid, Message};

use super::streams::Full;

/// What went wrong with a request.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
    /// What is wrong with the fields of a form.
    pub(crate) invalid: Invalid,
    /// When to try again.
    pub(crate) retry_after: Option<Duration>,
    /// The present text of the message, if the author of an edit saw another one.
    pub(crate) theirs: Option<Box<Message>>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Self {
            status,
            sentence: sentence.into(),
            invalid: Invalid::default(),
            retry_after: None,
            theirs: None,
        }
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "There is nothing at this address.")
    }

    pub(crate) fn broken_off() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "The request broke off.")
    }

    pub(crate) fn too_many(wait: Duration) -> Self {
        let wait = Duration::from_secs(wait.as_secs() + 1);
        let sentence = format!(
            "That was too much at once. Try again in {} seconds.",
            wait.as_secs()
        );
        let retry_after = Some(wait);
        Self {
            retry_after,
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, sentence)
        }
    }

    pub(crate) fn too_many_tries(wait: Duration) -> Self {
        let problem = Self::too_many(wait);
        let seconds = problem.retry_after.map_or(0, |wait| wait.as_secs());
        let sentence = format!("Too many passphrases were wrong. Try again in {seconds} seconds.");
        Self {
            sentence,
            ..problem
        }
    }

    pub(crate) fn too_many_readers() -> Self {
        let retry_after = Some(Duration::from_secs(10));
        let sentence =
            "From this address so many follow boards already. The page works without that.";
        Self {
            retry_after,
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, sentence)
        }
    }

    pub(crate) fn too_many_looks() -> Self {
        let retry_after = Some(Duration::from_secs(5));
        let sentence = "From this address so many look into the past of the boards already. Try again in a few seconds.";
        Self {
            retry_after,
            ..Self::new(StatusCode::TOO_MANY_REQUESTS, sentence)
        }
    }

    /// For somebody who changes something, and does not look into the past.
    pub(crate) fn too_many_former() -> Self {
        let sentence = "From this address so many changes wait for former versions already. Try again in a few seconds; \
            nothing was changed.";
        Self {
            sentence: sentence.to_owned(),
            ..Self::too_many_looks()
        }
    }

    pub(crate) fn too_many_exports(full: Full) -> Self {
        let (status, sentence) = match full {
            Full::OfAddress => (
                StatusCode::TOO_MANY_REQUESTS,
                "From this address so many exports are being read that no further one begins. Try again in half a minute.",
            ),
            Full::OfAll => (
                StatusCode::SERVICE_UNAVAILABLE,
                "So many exports are being read that no further one begins. Try again in half a minute.",
            ),
        };
        Self {
            retry_after: Some(Duration::from_secs(30)),
            ..Self::new(status, sentence)
        }
    }

    pub(crate) fn no_name() -> Self {
        let sentence = "Nobody has protected this name.";
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    pub(crate) fn no_moderators_key() -> Self {
        let sentence = "Only a moderator can do this. Bring the key that POST /api/moderators gives you: `Authorization: Bearer`.";
        Self::new(StatusCode::UNAUTHORIZED, sentence)
    }

    pub(crate) fn no_moderator() -> Self {
        let sentence = "Only a moderator can do this. Sign in at /moderate first.";
        Self::new(StatusCode::FORBIDDEN, sentence)
    }

    pub(crate) fn wrong_passphrase() -> Self {
        let sentence = "This is not the moderators' passphrase.";
        Self::new(StatusCode::FORBIDDEN, sentence).about(Field::Passphrase)
    }

    pub(crate) fn unsure() -> Self {
        let sentence =
            "Tick the box, because what is erased does not come back. Nothing was erased.";
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, sentence).about(Field::Sure)
    }

    /// The same, told beside a field of the form.
    fn about(self, field: Field) -> Self {
        let mut invalid = Invalid::default();
        invalid.note(field, self.sentence.clone());
        Self { invalid, ..self }
    }

    pub(crate) fn too_large(most: usize) -> Self {
        let sentence = format!(
            "This is more than the board takes at once, which is {} KiB.",
            most >> 10
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    }

    /// The same for a visitor whose form was not read to its end.
    pub(crate) fn unread(mut self) -> Self {
        if self.status == StatusCode::PAYLOAD_TOO_LARGE {
            self.sentence +=
                " Your browser still has what you wrote: go back one page, and make it shorter.";
        }
        self
    }

    pub(crate) fn overloaded() -> Self {
        let retry_after = Some(Duration::from_secs(1));
        let sentence = "Too many requests are being answered. Try again in a second.";
        Self {
            retry_after,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
        }
    }

    pub(crate) fn opening() -> Self {
        let retry_after = Some(Duration::from_secs(2));
        let sentence = "The boards are just being opened. Try again in a few seconds.";
        Self {
            retry_after,
            ..Self::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
        }
    }

    pub(crate) fn misled() -> Self {
        let sentence = "This board is for the machine that it runs on. To reach it under a name, start it with --origin, or \
            name its proxy with --proxy.";
        Self::new(StatusCode::MISDIRECTED_REQUEST, sentence)
    }

    pub(crate) fn forged() -> Self {
        let sentence = "This form did not come from a page of this board, or the page is from before you had a \
            cookie of it. What you wrote is still here: send it again.";
        Self::new(StatusCode::FORBIDDEN, sentence)
    }
}

impl From<BoardError> for Problem {
    fn from(error: BoardError) -> Self {
        let sentence = sentence(&error);
        let new = |status| Self::new(status, sentence);
        match error {
            BoardError::NoBoard(_)
            | BoardError::NoMessage(_)
            | BoardError::NoVersion(_)
            | BoardError::Younger
            | BoardError::NoPage(_) => new(StatusCode::NOT_FOUND),
            BoardError::Gone | BoardError::BoardGone | BoardError::WasErased => {
                new(StatusCode::GONE)
            }
            BoardError::StaysOnDisk
            | BoardError::BoardTaken(_)
            | BoardError::TokenUsed
            | BoardError::NothingToUndo => new(StatusCode::CONFLICT),
            BoardError::NotYours => new(StatusCode::FORBIDDEN),
            BoardError::NameProtected | BoardError::WrongPassphrase => {
                new(StatusCode::FORBIDDEN).about(Field::Passphrase)
            }
            BoardError::NoName => new(StatusCode::UNPROCESSABLE_ENTITY).about(Field::Passphrase),
            BoardError::NameTaken => new(StatusCode::CONFLICT).about(Field::Author),
            BoardError::Invalid(invalid) => Self {
                invalid,
                ..new(StatusCode::UNPROCESSABLE_ENTITY)
            },
            BoardError::Stale(theirs) => Self {
                theirs: Some(theirs),
                ..new(StatusCode::CONFLICT)
            },
            // Until the board is started again, another try gets no other answer.
            BoardError::Storage(
                CommitError::Journal(AppendError::Fenced | AppendError::Poisoned)
                | CommitError::Unknown(_),
            ) => new(StatusCode::SERVICE_UNAVAILABLE),
            BoardError::Storage(_) | BoardError::Crowded | BoardError::Busy => {
                let retry_after = Some(Duration::from_secs(5));
                Self {
                    retry_after,
                    ..new(StatusCode::SERVICE_UNAVAILABLE)
                }
            }
            BoardError::Edit(_) => new(StatusCode::INTERNAL_SERVER_ERROR),
        }
    }
}

fn sentence(error: &BoardError) -> String {
    match error {
        BoardError::NoBoard(name) => format!("There is no board “{name}”."),
        BoardError::NoMessage(number) => format!("There is no message {number} on this board."),
        BoardError::NoPage(number) => format!("There is no page {number} here."),
        BoardError::BoardTaken(name) => format!("There is a board “{name}” already. Choose another title."),
        // Each of them says where and why; a page has them beside its fields, too.
        BoardError::Invalid(invalid) => invalid.to_string(),
        BoardError::Stale(_) => {
            "Somebody has changed this message since you opened it. Both texts are below; nothing is lost.".to_owned()
        }
        BoardError::TokenUsed => {
            "This form was sent before, with other words. Send it again if you mean a second message.".to_owned()
        }
        BoardError::WasErased => "What this form wrote has been erased. Send it again if you mean a second message.".to_owned(),
        BoardError::NotYours => "Only the one who wrote a message, and a moderator, can change it.".to_owned(),
        BoardError::NameProtected => {
            "This name is protected. If it is yours, give its passphrase; or choose another name.".to_owned()
        }
        BoardError::WrongPassphrase => "This is not the passphrase of the name.".to_owned(),
        BoardError::NameTaken => "Somebody has protected this name already.".to_owned(),
        BoardError::NoName => {
            "Nobody has protected this name. Protect it first, or leave the passphrase empty.".to_owned()
        }
        BoardError::Gone => "This message was deleted.".to_owned(),
        BoardError::BoardGone => "A moderator has deleted this board.".to_owned(),
        BoardError::StaysOnDisk => {
            "The title is no longer shown. Older versions on the disk still have it, because it was stored before titles \
             could be erased."
                .to_owned()
        }
        BoardError::NothingToUndo => "This message was never changed, so there is nothing to take back.".to_owned(),
        BoardError::NoVersion(why) => format!("The board is not there in this version: {why}."),
        BoardError::Younger => "The board was made later than that.".to_owned(),
        BoardError::Storage(error) => unwritten(error),
        BoardError::Crowded => "Too many others write to this place. What you wrote is still here.".to_owned(),
        BoardError::Busy => {
            "Too many others look into the past of this board. Try again in a few seconds.".to_owned()
        }
        BoardError::Edit(_) => "Something is wrong with the board itself.".to_owned(),
    }
}

/// Why something was not stored, as far as it is known.
fn unwritten(error: &CommitError) -> String {
    let why = match error {
        CommitError::Journal(AppendError::Fenced) => {
            "until it is started again: its directory was removed, or another program has taken it over"
        }
        // A journal that is closed answers so, too.
        CommitError::Journal(AppendError::Poisoned) => {
            "until it is started again: its disk has failed, or it is just being stopped"
        }
        // Of what was in flight when the journal ended, for whatever reason.
        CommitError::Unknown(_) => {
            "until it is started again: its disk has failed, its directory was removed, or another program has taken it \
             over"
        }
        CommitError::Journal(AppendError::Full) => "at the moment: its disk is full",
        CommitError::Journal(AppendError::Unprepared) => {
            "at the moment: its disk is full, or the system refuses it a file"
        }
        _ => "at the moment",
    };
    format!("The board can be read, but takes nothing new {why}. What you wrote is still here.")
}
