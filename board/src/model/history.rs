//! The history of a message: a chain through the versions of its board. Each change names the last
//! version before it; that version is in memory, or on the disk, however old it is.

use std::time::SystemTime;

use weald::forest::disk::Moment;
use weald::forest::{NodeId, Version};

use super::boards::Boards;
use super::error::BoardError;
use super::message::{Body, Deed};
use super::name::BoardName;
use super::post::Post;

/// How many states of a message are read at most. To see older ones, read an older version of the board.
pub const STATES: usize = 50;

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

impl Boards {
    /// The states of a message, the newest first. The history of a deleted message is not shown.
    ///
    /// # Errors
    /// [`BoardError::NoMessage`]; [`BoardError::Gone`], if it is deleted.
    pub async fn history(&self, name: &BoardName, id: NodeId) -> Result<Vec<State>, BoardError> {
        let mut board = self.board(name)?;
        if let Body::Deleted(_) = board.message(id)?.body {
            return Err(BoardError::Gone);
        }
        let mut states = Vec::new();
        loop {
            let node = board.node(id)?;
            let message = board.read(node);
            let (deed, time) = match message.change {
                Some((deed, time)) => (Some(deed), time),
                None => (None, message.time),
            };
            let post = board.post(node);
            states.push(State {
                deed,
                time,
                post,
                version: board.version(),
            });
            let Some(was) = message.was.filter(|_| states.len() < STATES) else {
                return Ok(states);
            };
            // History that is no longer kept ends the chain.
            match self.board_at(name, Moment::Version(was)).await {
                Ok(before) => board = before,
                Err(BoardError::NoVersion(_)) => return Ok(states),
                Err(error) => return Err(error),
            }
        }
    }
}
