//! What moderators do to a board as a whole: delete it, restore it, and erase its title.
//!
//! - Only moderators see a deleted board. Its address stays taken, and its messages stay as they are.
//! - Its title, its description, and its address (which is made of the title) are erased together, from every version.
//!   After that the name of its tree is its address.

use std::time::SystemTime;

use weald::forest::{Edit, Sortable, Terms, TreeHandle, Value, Version};

use super::audit::{By, Measure, Turn, check, of_entry};
use super::board_at::of_board;
use super::boards::Boards;
use super::error::BoardError;
use super::message::DeletedBy;
use super::name::BoardName;

/// The attributes of what a board is called, in the order of their erasure: while anything is left, the address is.
const CALLED: [&str; 3] = [of_board::TITLE, of_board::ABOUT, of_board::ADDRESS];

impl Boards {
    /// Takes a measure of a moderator against a board, after it is in the log. Returns a version that has it.
    ///
    /// # Errors
    /// [`BoardError::Invalid`], if there is no reason; [`BoardError::TokenUsed`]; [`BoardError::NoBoard`];
    /// [`BoardError::Storage`]; [`BoardError::StaysOnDisk`]. If the log takes no entry, nothing is done.
    pub async fn moderate_board(
        &self,
        name: &BoardName,
        measure: Measure,
        by: By<'_>,
    ) -> Result<Version, BoardError> {
        let texts = [(of_entry::WHY, check(by.why)?)];
        let of = [name.as_str().as_bytes()];
        let turn = self.turn((by, measure), &of, &texts).await?;
        if let Some(done) = turn.done {
            return Ok(done);
        }
        let name = &self.address_of_turn(&turn, name)?;
        let tree = self.tree_or_deleted(name)?;
        let entry = turn.entry();
        let entry = entry.with(of_entry::BOARD, self.board_of_entry(name)?);
        let noted = self.note(&turn, entry, texts).await?;
        let outcome = match measure {
            Measure::Delete => {
                let hide = |edit: &mut Edit| {
                    let by = DeletedBy::Moderator.word();
                    edit.put_attribute(edit.root(), of_board::HIDDEN, by)
                };
                self.change_board(&tree, b"delete", hide).await
            }
            Measure::Restore => {
                let show = |edit: &mut Edit| match edit.attribute(edit.root(), of_board::HIDDEN)? {
                    Some(_) => edit.delete_attribute(edit.root(), of_board::HIDDEN),
                    None => Ok(()),
                };
                self.change_board(&tree, b"restore", show).await
            }
            Measure::Erase => self.erase_called(name, &tree).await,
            Measure::Free | Measure::Import => Err(BoardError::NoName),
        };
        self.conclude(noted, outcome).await
    }

    async fn erase_called(
        &self,
        name: &BoardName,
        tree: &TreeHandle,
    ) -> Result<Version, BoardError> {
        let _turn = self.0.addresses.turn().await;
        for attribute in CALLED {
            let root = tree.view().tree().root().id();
            self.erase_attribute(tree, root, attribute).await?;
        }
        self.0.searches.lock().await.remove(name);
        let mut stays = false;
        // A new version, so that no browser continues to show a page that it has kept.
        let mark = |edit: &mut Edit| {
            for attribute in CALLED {
                if let Some(Value::Plain(_)) = edit.value(edit.root(), attribute)? {
                    stays = true;
                    edit.delete_attribute(edit.root(), attribute)?;
                }
            }
            Ok(())
        };
        let version = self.change_board(tree, b"erase", mark).await;
        self.0.addresses.forget(name, &self.0.store);
        let version = version?;
        match stays {
            true => Err(BoardError::StaysOnDisk),
            false => Ok(version),
        }
    }

    async fn change_board(
        &self,
        tree: &TreeHandle,
        what: &[u8],
        mut change: impl FnMut(&mut Edit) -> Result<(), weald::forest::EditError>,
    ) -> Result<Version, BoardError> {
        let update = tree.update_with(Terms::new().bytes(what), |edit| {
            change(edit)?;
            let now = SystemTime::now().to_sortable();
            edit.put_attribute(edit.root(), of_board::CHANGED, now)?;
            Ok::<_, BoardError>(())
        });
        Ok(self.noted_of(update.await)?.1.version)
    }

    /// How an entry of the log names a board.
    pub(super) fn board_of_entry(&self, name: &BoardName) -> Result<String, BoardError> {
        let tree = self.tree_or_deleted(name)?.name();
        let own = BoardName::of_tree(&tree);
        own.map(|own| own.to_string())
            .ok_or_else(|| BoardError::NoBoard(name.to_string()))
    }

    /// The address that the board of a measure has now. A measure that was sent before may have erased the one that the
    /// sender knows.
    pub(super) fn address_of_turn(
        &self,
        turn: &Turn<'_>,
        name: &BoardName,
    ) -> Result<BoardName, BoardError> {
        let Some(board) = &turn.board else {
            return Ok(name.clone());
        };
        let now = self.address_of_entry(board).parse();
        now.map_err(|_| BoardError::NoBoard(name.to_string()))
    }

    /// The address that the board of an entry has now.
    pub(super) fn address_of_entry(&self, board: &str) -> String {
        let Ok(own) = board.parse::<BoardName>() else {
            return board.to_owned();
        };
        let address = self.0.addresses.of_tree(&own.tree());
        address.unwrap_or(own).to_string()
    }
}
