//! Changing what is there: edit, delete, restore, undo, erase.
//!
//! - Each change except an erasure notes the version before it. So the history of a message is a chain through the
//!   versions of its board, and nothing is kept twice.
//! - An edit names the version that its author saw. If the message says something else by now, the edit is refused with
//!   the present text, and neither text is lost.
//! - An undo is an edit that restores the former text. It names the change that it takes back, by its time, and the
//!   message notes it: so an undo that is sent twice takes back one change, and none that came in between.

use std::time::SystemTime;

use weald::forest::disk::Moment;
use weald::forest::{Edit, ErasableBytes, NodeId, Sortable, Terms, TreeHandle, Value, Version};

use super::author::{Owner, Requester};
use super::boards::Boards;
use super::error::BoardError;
use super::message::{Body, Deed, DeletedBy, attribute};
use super::name::BoardName;
use super::post::Post;

/// A message, and the person who wants to change it.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The board.
    pub board: &'a BoardName,
    /// The message.
    pub id: NodeId,
    /// The person who asks.
    pub requester: Requester,
}

/// When the change was made that an undo takes back; `None` for what is no undo.
type Undone = Option<SystemTime>;

/// What was changed, or that nothing had to be.
enum Outcome {
    /// The error that stands for "it is so already".
    Unchanged,
    Refused(BoardError),
}

impl<E: Into<BoardError>> From<E> for Outcome {
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

impl Boards {
    /// Makes a message say something else. `seen` is the version that its author edited. Returns the version that says
    /// so.
    ///
    /// # Errors
    /// [`BoardError::Stale`] with the message as it is now, if it was changed since `seen`; [`BoardError::Gone`];
    /// [`BoardError::NotYours`]; [`BoardError::NoMessage`]; [`BoardError::NoVersion`]; [`BoardError::Storage`].
    pub async fn edit(
        &self,
        target: Target<'_>,
        seen: Version,
        post: &Post,
    ) -> Result<Version, BoardError> {
        // A stranger has nothing read from the disk.
        self.must_be_allowed(target)?;
        let before = self.board_at(target.board, Moment::Version(seen)).await;
        // If that version is not available, nobody knows what its author saw, so the texts are compared.
        let before = before
            .and_then(|board| Ok(board.post(board.node(target.id)?)))
            .ok()
            .flatten();
        let change = |edit: &mut Edit| {
            let now = current(edit, target.id)?;
            if now.as_deref() == Some(post.bytes()) {
                return Err(Outcome::Unchanged);
            }
            let is_as_seen = now.as_deref() == before.as_ref().map(Post::bytes);
            if !is_as_seen || before.is_none() {
                return Err(BoardError::Stale(Box::new(
                    self.board(target.board)?.message(target.id)?,
                ))
                .into());
            }
            edit.put_erasable(target.id, attribute::POST, post.bytes())?;
            mark_proven(edit, target.id, target.requester.is_proven)?;
            Ok(Deed::Edit)
        };
        self.revise(target, (b"edit", None), change).await
    }

    /// Hides a message from readers; its answers stay. Its author and moderators can restore it.
    ///
    /// # Errors
    /// As [`edit`](Self::edit), except `Stale`.
    pub async fn delete(&self, target: Target<'_>) -> Result<Version, BoardError> {
        self.hide(target, None).await
    }

    async fn hide(&self, target: Target<'_>, undone: Undone) -> Result<Version, BoardError> {
        let change = |edit: &mut Edit| {
            let by = match target.requester.may_change_as_author(edit, target.id)? {
                true => DeletedBy::Author,
                false => DeletedBy::Moderator,
            };
            match edit.attribute(target.id, attribute::HIDDEN)? {
                None => {}
                // If a moderator has deleted the message, too, its author can no longer restore it.
                Some(b"author") if by == DeletedBy::Moderator => {}
                Some(_) => return Err(Outcome::Unchanged),
            }
            edit.put_attribute(target.id, attribute::HIDDEN, by.word())?;
            Ok(Deed::Delete)
        };
        self.revise(target, (b"delete", undone), change).await
    }

    /// Shows a deleted message again. Its author cannot restore what a moderator deleted.
    ///
    /// # Errors
    /// As [`delete`](Self::delete).
    pub async fn restore(&self, target: Target<'_>) -> Result<Version, BoardError> {
        self.show(target, None).await
    }

    async fn show(&self, target: Target<'_>, undone: Undone) -> Result<Version, BoardError> {
        let change = |edit: &mut Edit| {
            match edit.attribute(target.id, attribute::HIDDEN)? {
                None => return Err(Outcome::Unchanged),
                Some(b"author") => {}
                Some(_) if target.requester.is_moderator => {}
                Some(_) => return Err(BoardError::NotYours.into()),
            }
            edit.delete_attribute(target.id, attribute::HIDDEN)?;
            Ok(Deed::Restore)
        };
        self.revise(target, (b"restore", undone), change).await
    }

    /// Takes back the last change of a message. Undone twice, it is as it was. `seen` is when the change was made that
    /// is meant, if the caller knows: then no other one is taken back, and none is taken back twice.
    ///
    /// # Errors
    /// As [`edit`](Self::edit); [`BoardError::NothingToUndo`], if it was never changed.
    pub async fn undo(
        &self,
        target: Target<'_>,
        seen: Option<SystemTime>,
    ) -> Result<Version, BoardError> {
        self.must_be_allowed(target)?;
        let board = self.board(target.board)?;
        let node = board.node(target.id)?;
        let message = board.read(node);
        let (deed, last) = message.change.ok_or(BoardError::NothingToUndo)?;
        let undone = seen.unwrap_or(last);
        if undone != last {
            let undid = node.get(attribute::UNDID);
            return match undid == Some(&undone.to_sortable()[..]) {
                true => Ok(board.version()),
                false => Err(BoardError::Stale(Box::new(message))),
            };
        }
        match deed {
            Deed::Delete => self.show(target, Some(undone)).await,
            Deed::Restore => self.hide(target, Some(undone)).await,
            Deed::Edit => {
                let was = message.was.ok_or(BoardError::NothingToUndo)?;
                let before = self.board_at(target.board, Moment::Version(was)).await?;
                let node = before.node(target.id)?;
                let post = before.post(node).ok_or(BoardError::Gone)?;
                // The name comes back as it was, too.
                let is_proven = node.get(attribute::PROVEN).is_some();
                let change = |edit: &mut Edit| {
                    current(edit, target.id)?;
                    edit.put_erasable(target.id, attribute::POST, post.bytes())?;
                    mark_proven(edit, target.id, is_proven)?;
                    Ok(Deed::Edit)
                };
                self.revise(target, (b"edit", Some(undone)), change).await
            }
        }
    }

    /// Removes the present and all former texts of a message from every version, from the disk, and from exports, as
    /// the law may demand. It stays visible that the message was erased, and when.
    ///
    /// # Errors
    /// As [`delete`](Self::delete); [`BoardError::Gone`], if it was erased before.
    pub async fn erase(&self, target: Target<'_>) -> Result<Version, BoardError> {
        let tree = self.tree_for(target)?;
        let message = self.board_or_deleted(target.board)?.message(target.id)?;
        // The owner is gone, too. A moderator may finish an erasure that was interrupted.
        if matches!(message.body, Body::Erased(_)) && !target.requester.is_moderator {
            return Err(BoardError::Gone);
        }
        if !target.requester.may_change(message.owner) {
            return Err(BoardError::NotYours);
        }
        // The message is hidden first, so that no concurrent edit writes anything new after the erasure. A full disk
        // takes no edits either, so then the message is erased all the same.
        let hidden = tree.update_with(Terms::new().bytes(b"erase"), |edit| {
            if edit.attribute(target.id, attribute::OWNER)?.is_some() {
                edit.delete_attribute(target.id, attribute::OWNER)?;
            }
            mark_proven(edit, target.id, false)?;
            edit.put_attribute(target.id, attribute::HIDDEN, DeletedBy::Moderator.word())?;
            Ok::<_, BoardError>(())
        });
        let hidden = self.noted_of(hidden.await).map_err(BoardError::from);
        if let Err(error) = hidden
            && !matches!(error, BoardError::Storage(_))
        {
            return Err(error);
        }
        self.erase_attribute(&tree, target.id, attribute::POST)
            .await?;
        self.forget(target.board, target.id).await;
        // A new version, so that no browser continues to show a page that it has kept.
        let mark = tree.update_with(Terms::new().bytes(b"erase"), |edit| {
            edit.put_attribute(
                target.id,
                attribute::CHANGED,
                SystemTime::now().to_sortable(),
            )?;
            Ok::<_, BoardError>(())
        });
        Ok(self.noted_of(mark.await)?.1.version)
    }

    /// The tree that a change is for; only moderators change what is in a deleted board.
    fn tree_for(&self, target: Target<'_>) -> Result<TreeHandle, BoardError> {
        match target.requester.is_moderator {
            true => self.tree_or_deleted(target.board),
            false => self.tree(target.board),
        }
    }

    /// Whether the requester may change the message, as far as can be told before the change is made.
    ///
    /// # Errors
    /// [`BoardError::NotYours`]; those of [`board`](Self::board).
    fn must_be_allowed(&self, target: Target<'_>) -> Result<(), BoardError> {
        let board = match target.requester.is_moderator {
            true => self.board_or_deleted(target.board)?,
            false => self.board(target.board)?,
        };
        match target.requester.may_change(board.message(target.id)?.owner) {
            true => Ok(()),
            false => Err(BoardError::NotYours),
        }
    }

    /// Runs `change` on the newest version, with the note of what it was; runs it again if others changed the same. An
    /// undo goes on only while the change that it takes back is the last one.
    async fn revise(
        &self,
        target: Target<'_>,
        (what, undone): (&[u8], Undone),
        mut change: impl FnMut(&mut Edit) -> Result<Deed, Outcome>,
    ) -> Result<Version, BoardError> {
        let tree = self.tree_for(target)?;
        let update = tree.update_with(Terms::new().bytes(what), |edit| {
            let was = edit.base().version().to_string();
            if !is_message(edit, target.id) {
                return Err(BoardError::no_message(target.id).into());
            }
            if !target.requester.is_moderator
                && !target.requester.may_change_as_author(edit, target.id)?
            {
                return Err(BoardError::NotYours.into());
            }
            if let Some(undone) = undone {
                let undone = undone.to_sortable();
                if edit.attribute(target.id, attribute::UNDID)? == Some(&undone[..]) {
                    return Err(Outcome::Unchanged);
                }
                if edit.attribute(target.id, attribute::CHANGED)? != Some(&undone[..]) {
                    let message = self.board(target.board)?.message(target.id)?;
                    return Err(BoardError::Stale(Box::new(message)).into());
                }
                edit.put_attribute(target.id, attribute::UNDID, undone)?;
            }
            let deed = change(edit)?;
            edit.put_attribute(target.id, attribute::DID, deed.word())?;
            edit.put_attribute(
                target.id,
                attribute::CHANGED,
                SystemTime::now().to_sortable(),
            )?;
            edit.put_attribute(target.id, attribute::WAS, was)?;
            Ok::<(), Outcome>(())
        });
        let outcome = self.noted_of(update.await);
        // The other changes bring no text.
        if outcome.is_ok() && what == b"edit" {
            self.note_room();
        }
        match outcome {
            Ok(((), made)) => Ok(made.version),
            Err(weald::forest::UpdateError::GivenUp(Outcome::Unchanged)) => {
                Ok(tree.view().version())
            }
            Err(weald::forest::UpdateError::GivenUp(Outcome::Refused(error))) => Err(error),
            Err(weald::forest::UpdateError::Commit(error)) => Err(error.into()),
            Err(_) => Err(BoardError::Crowded),
        }
    }
}

impl Requester {
    /// Whether this is the author of the message; the read is recorded.
    fn may_change_as_author(&self, edit: &Edit, id: NodeId) -> Result<bool, BoardError> {
        let owner = edit.attribute(id, attribute::OWNER)?;
        let owner = owner.and_then(Owner::of_bytes);
        Ok(self.owner.is_some() && self.owner == owner)
    }
}

fn mark_proven(edit: &mut Edit, id: NodeId, is_proven: bool) -> Result<(), BoardError> {
    let was_proven = edit.attribute(id, attribute::PROVEN)?.is_some();
    match (was_proven, is_proven) {
        (false, true) => edit.put_attribute(id, attribute::PROVEN, b"1")?,
        (true, false) => edit.delete_attribute(id, attribute::PROVEN)?,
        (true, true) | (false, false) => {}
    }
    Ok(())
}

fn is_message(edit: &Edit, id: NodeId) -> bool {
    let node = edit.tree().node(id);
    node.is_some_and(|node| node.parent().is_some())
}

/// What a message says; the read is recorded.
fn current(edit: &Edit, id: NodeId) -> Result<Option<ErasableBytes>, BoardError> {
    if edit.attribute(id, attribute::HIDDEN)?.is_some() {
        return Err(BoardError::Gone);
    }
    match edit.value(id, attribute::POST)? {
        Some(Value::Erased { .. } | Value::Elsewhere) => Err(BoardError::Gone),
        Some(Value::Erasable(bytes)) => Ok(Some(bytes)),
        Some(Value::Plain(bytes)) => Ok(Some(bytes.into())),
        None => Ok(None),
    }
}
