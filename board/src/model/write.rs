//! A new message: one commit, whose id is the token of the form, so that a form that is sent twice makes one message.
//!
//! The edit is blind: it names the nodes under which it writes, and relies on nothing else. So any number of people
//! write to one board at once, and none of them is refused.

use std::future::{Future, IntoFuture, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::SystemTime;

use weald::forest::disk::Moment;
use weald::forest::{Attributes, CommitError, Committed, NodeId, Sortable, Tree, Version, Where};

use super::addresses::Addressed;
use super::author::{Requester, Token};
use super::board_at::is_hidden;
use super::boards::Boards;
use super::error::BoardError;
use super::message::{Body, attribute};
use super::name::BoardName;
use super::post::Post;
use super::thread::topic_of;

/// Beyond this depth an answer to a message stands beside it, so that a thread stays readable.
pub const MAX_DEPTH: usize = 50;

/// A message that is to be written.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// The message that it answers; `None` if it begins a topic.
    pub parent: Option<NodeId>,
    /// What it says.
    pub post: Post,
    /// The person who writes it. The rights of a moderator make no difference here.
    pub requester: Requester,
    /// The token, by which it is one message if it is sent twice.
    pub token: Option<Token>,
}

/// The receipt of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its number.
    pub id: NodeId,
    /// The version that first has it.
    pub version: Version,
    /// Whether it was written before, and sent again.
    pub is_repetition: bool,
}

impl Boards {
    /// Writes a message. When this returns, the message is durable, or has reached the level that the
    /// forest was opened with.
    ///
    /// If the future is dropped while it waits, the message may be written or not; with the token it can
    /// be sent again.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`], [`BoardError::NoMessage`], [`BoardError::Gone`] if what it answers was deleted,
    /// [`BoardError::TokenUsed`], [`BoardError::WasErased`], [`BoardError::Storage`].
    pub fn write<'a>(
        &'a self,
        board: &'a BoardName,
        new: NewMessage,
    ) -> impl Future<Output = Result<Written, BoardError>> + Send + 'a {
        self.write_at(board, new, SystemTime::now)
    }

    /// The same with another clock.
    pub(crate) async fn write_at(
        &self,
        board: &BoardName,
        new: NewMessage,
        now: impl Fn() -> SystemTime + Send,
    ) -> Result<Written, BoardError> {
        let Addressed { tree, writing, .. } = self.find(board)?;
        if is_hidden(&tree.snapshot()) {
            return Err(BoardError::BoardGone);
        }
        // Those who wait for a hot board wait there, and hold no place that writers of other boards want.
        let turn = (writing.acquire().await, self.0.writing.acquire().await);
        let mut edit = tree.edit().blind();
        let place = place(edit.tree(), new.parent)?;
        let now = now().to_sortable();
        let mut attributes = Attributes::new().with(attribute::TIME, &now);
        if let Some(owner) = &new.requester.owner {
            attributes = attributes.with(attribute::OWNER, owner.bytes());
        }
        if new.requester.is_proven {
            attributes = attributes.with(attribute::PROVEN, b"1");
        }
        let root = edit.root();
        let id = match place {
            None => edit.append(root, attributes.with(attribute::ACTIVE, &now))?,
            Some((parent, topic)) => {
                let id = edit.append(parent, attributes)?;
                edit.put_attribute(topic, attribute::ACTIVE, &now)?;
                edit.move_to(topic, Where::Last(root))?;
                id
            }
        };
        edit.put_erasable(id, attribute::POST, new.post.bytes())?;
        let commit = edit.commit().bytes(b"write");
        let commit = match new.token {
            Some(token) => commit.id(token.id()),
            None => commit,
        };
        let mut commit = pin!(commit.into_future());
        let begun = poll_fn(|cx| Poll::Ready(commit.as_mut().poll(cx))).await;
        // Others have their turn while this one waits to be durable.
        drop(turn);
        let commit = match begun {
            Poll::Ready(commit) => commit,
            Poll::Pending => commit.await,
        };
        let commit = self.noted_text(commit);
        match commit {
            // A message with the same time, to the nanosecond, has the same digest.
            Ok(made) if tree.view().tree().node(id).is_none() => {
                self.repeated(board, made, &new).await
            }
            Ok(made) => Ok(Written {
                id,
                version: made.version,
                is_repetition: false,
            }),
            Err(CommitError::IdTaken(made)) => self.repeated(board, made, &new).await,
            Err(error) => Err(error.into()),
        }
    }

    /// The message that a commit with the same token made: in that version it was the last below the message that it
    /// answers. It is the same message if it says the same. A version that memory has let go comes from the disk.
    async fn repeated(
        &self,
        board: &BoardName,
        made: Committed,
        new: &NewMessage,
    ) -> Result<Written, BoardError> {
        let then = self.board_at(board, Moment::Version(made.version)).await;
        let then = then.map_err(|_| BoardError::TokenUsed)?;
        let place = place(then.snapshot().tree(), new.parent).map_err(|_| BoardError::TokenUsed)?;
        let above = match place {
            None => then.root(),
            Some((parent, _)) => then.node(parent)?,
        };
        let last = above.child_count().checked_sub(1);
        let node = last.and_then(|last| above.child(last));
        // Whether it said the same can no longer be told.
        if node.is_some_and(|node| matches!(then.read(node).body, Body::Erased(_))) {
            return Err(BoardError::WasErased);
        }
        let node = node.filter(|node| then.post(*node).as_ref() == Some(&new.post));
        Ok(Written {
            id: node.ok_or(BoardError::TokenUsed)?.id(),
            version: made.version,
            is_repetition: true,
        })
    }
}

/// Under which message an answer is put, and in which topic; `None` for a message that begins a topic.
fn place(tree: &Tree, parent: Option<NodeId>) -> Result<Option<(NodeId, NodeId)>, BoardError> {
    let Some(parent) = parent else {
        return Ok(None);
    };
    let node = tree.node(parent).filter(|node| node.parent().is_some());
    let node = node.ok_or_else(|| BoardError::no_message(parent))?;
    if node.get(attribute::HIDDEN).is_some() {
        return Err(BoardError::Gone);
    }
    let topic = topic_of(node).id();
    let is_deep = node.ancestors().nth(MAX_DEPTH).is_some();
    let parent = node
        .parent()
        .filter(|_| is_deep)
        .map_or(parent, |above| above.id());
    Ok(Some((parent, topic)))
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use weald::forest::Forest;

    use crate::model::{Draft, Kind, Store};

    use super::*;

    #[test]
    fn those_who_wait_for_a_hot_board_hold_nobody_else_up() {
        weald::block_on(async {
            let boards = Boards::of(Store::Memory(Forest::new())).await.unwrap();
            let [hot, other] = ["Hot", "Other"].map(|title| boards.create(title, "", None));
            let (hot, other) = (hot.await.unwrap(), other.await.unwrap());
            let draft = Draft {
                title: "T".to_owned(),
                text: "x".to_owned(),
                ..Draft::default()
            };
            let new = NewMessage {
                parent: None,
                post: draft.check(Kind::Topic).unwrap(),
                requester: Requester::default(),
                token: None,
            };
            // Those that are being written hold the places of their board.
            let busy = boards.find(&hot).unwrap().writing;
            let places: Vec<_> = std::iter::from_fn(|| busy.try_acquire().ok()).collect();
            let cx = &mut Context::from_waker(Waker::noop());
            let write = || Box::pin(boards.write(&hot, new.clone()));
            let mut waiting: Vec<_> = std::iter::repeat_with(write).take(1_000).collect();
            for waits in &mut waiting {
                assert!(waits.as_mut().poll(cx).is_pending());
            }
            boards.write(&other, new.clone()).await.unwrap();
            drop(places);
            for waits in waiting {
                waits.await.unwrap();
            }
            assert_eq!(boards.board(&hot).unwrap().message_count(), 1_000);
        });
    }
}
