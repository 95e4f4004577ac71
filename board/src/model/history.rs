//! The history of a message: a chain through the versions of its board. Each change names the last
//! version before it; that version is in memory, or on the disk, however old it is.
//!
//! A request reads a part of the chain, and needs at most two replays for it: one for the state that it begins with,
//! and one for the state before. What else it shows is in memory, or among the versions that these replays have kept.

use std::time::SystemTime;

use weald::forest::disk::Moment;
use weald::forest::{NodeId, Version};

use super::board_at::BoardAt;
use super::boards::Boards;
use super::error::BoardError;
use super::message::{Body, Deed};
use super::name::BoardName;
use super::post::Post;

/// A message as it was for a while.
#[derive(Clone, Debug)]
pub struct State {
    /// The change that led to this state; `None` for the first one.
    pub deed: Option<Deed>,
    /// When that was.
    pub time: SystemTime,
    /// What it said, even while it was deleted; `None` if it was erased.
    pub post: Option<Post>,
    /// A version of the board in which it was so.
    pub version: Version,
}

/// A part of the history of a message.
#[derive(Clone, Debug)]
pub struct History {
    /// The states, the newest first.
    pub states: Vec<State>,
    /// The state before them, if there is one: its version is where the history continues.
    pub older: Option<State>,
}

impl Boards {
    /// The states of a message, the newest first: at most `most`, from the one that it has in the version `from` on, or
    /// has now. The history of a deleted message is not shown.
    ///
    /// # Errors
    /// [`BoardError::NoMessage`]; [`BoardError::Gone`], if it is deleted; those of [`board_at`](Self::board_at).
    pub async fn history(
        &self,
        name: &BoardName,
        id: NodeId,
        (from, most): (Option<Version>, usize),
    ) -> Result<History, BoardError> {
        let mut board = self.board(name)?;
        if let Body::Deleted(_) = board.message(id)?.body {
            return Err(BoardError::Gone);
        }
        if let Some(from) = from {
            board = self.board_at(name, Moment::Version(from)).await?;
        }
        let mut states = Vec::new();
        let mut has_replayed = false;
        loop {
            let (state, was) = state(&board, id)?;
            if states.len() == most.max(1) {
                let older = Some(state);
                return Ok(History { states, older });
            }
            states.push(state);
            let Some(was) = was else {
                let older = None;
                return Ok(History { states, older });
            };
            let moment = Moment::Version(was);
            let before = match self.kept_board_at(name, moment).await {
                // There are two states at least: one before the replay, and one that it brought.
                Ok(None) if has_replayed => {
                    let older = states.pop();
                    return Ok(History { states, older });
                }
                Ok(None) => {
                    has_replayed = true;
                    self.board_at(name, moment).await.map(Some)
                }
                kept => kept,
            };
            // History that is no longer kept ends the chain.
            match before {
                Ok(Some(before)) => board = before,
                Ok(None) | Err(BoardError::NoVersion(_) | BoardError::Younger) => {
                    let older = None;
                    return Ok(History { states, older });
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A message as a version of its board has it, and the version before its last change.
fn state(board: &BoardAt, id: NodeId) -> Result<(State, Option<Version>), BoardError> {
    let node = board.node(id)?;
    let message = board.read(node);
    let (deed, time) = match message.change {
        Some((deed, time)) => (Some(deed), time),
        None => (None, message.time),
    };
    let state = State {
        deed,
        time,
        post: board.post(node),
        version: board.version(),
    };
    Ok((state, message.was))
}
