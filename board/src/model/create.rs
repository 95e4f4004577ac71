//! A new board: it is made under a name that is not one of a board, so that it appears whole or not
//! at all.

use weald::forest::{Attributes, CommitError, Level, NameError, Tree, TreeHandle};

use super::addresses::Addressed;
use super::author::{Token, hash};
use super::board_at::of_board;
use super::boards::{Boards, complete};
use super::draft::{Field, Invalid, MAX_TITLE, one_line};
use super::error::BoardError;
use super::name::BoardName;
use super::store::Store;

/// The most bytes of what a board says that it is about.
pub const MAX_ABOUT: usize = 500;

/// The prefix of the names of trees that are not boards yet. If an interruption leaves one, the next start deletes it.
const INTERIM: &str = "import/";

impl Boards {
    /// Creates a board, whose address is made of its title; if the title suggests none, it is a short random one. Sent
    /// again with the same token, it is the same board.
    ///
    /// # Errors
    /// [`BoardError::BoardTaken`], [`BoardError::Invalid`], [`BoardError::Storage`].
    pub async fn create(
        &self,
        title: &str,
        about: &str,
        token: Option<Token>,
    ) -> Result<BoardName, BoardError> {
        let (title, about) = (one_line(title), one_line(about));
        check(&title, &about)?;
        let token = token.map(|token| token.id().0.to_le_bytes());
        let name = BoardName::of_title(&title).unwrap_or_else(|| short(token));
        if let Some(other) = self.0.addresses.find(&name) {
            let other = other.tree.snapshot();
            let other = other.tree().root().get(of_board::TOKEN);
            return match token.is_some_and(|token| other == Some(&token[..])) {
                true => Ok(name),
                false => Err(BoardError::BoardTaken(name.to_string())),
            };
        }
        let called = (&name, title.as_str(), about.as_str());
        let interim = self.interim(called, token.as_ref().map(|token| &token[..]));
        self.become_board(interim.await?, &name).await?;
        Ok(name)
    }

    /// A tree that is not a board yet, but has the title of one.
    pub(crate) async fn interim(
        &self,
        (address, title, about): (&BoardName, &str, &str),
        token: Option<&[u8]>,
    ) -> Result<TreeHandle, BoardError> {
        // A number would begin anew at each start, and what an earlier one left may still be there.
        let name = format!("{INTERIM}{}", BoardName::random());
        let root = Attributes::new().with(of_board::ID, BoardName::random().as_str());
        let root = match token {
            Some(token) => root.with(of_board::TOKEN, token),
            None => root,
        };
        let trees = self.0.store.trees();
        let tree = trees.create_from(&name, Tree::with_root(root));
        let tree = self.noted(tree.level(Level::Accepted).await)?;
        let mut edit = tree.edit();
        let root = edit.root();
        let texts = [
            (of_board::ADDRESS, address.as_str()),
            (of_board::TITLE, title),
            (of_board::ABOUT, about),
        ];
        for (attribute, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
            edit.put_erasable(root, attribute, text)?;
        }
        self.noted_text(edit.commit().level(Level::Accepted).await)?;
        Ok(tree)
    }

    /// Makes a board of a tree, if nobody has its address meanwhile; otherwise the tree is deleted. The board is
    /// durable when this returns. If the future is dropped while it waits, the work continues.
    ///
    /// # Errors
    /// [`BoardError::BoardTaken`], [`BoardError::Storage`].
    pub(crate) async fn become_board(
        &self,
        interim: TreeHandle,
        name: &BoardName,
    ) -> Result<(), BoardError> {
        let (boards, name) = (self.clone(), name.clone());
        let became = weald::spawn(async move {
            let became = boards.rename(&interim, &name).await;
            if became.is_err() {
                boards.give_up(&interim).await;
            }
            became
        });
        became.await.map_err(|_| BoardError::Crowded)?
    }

    async fn rename(&self, interim: &TreeHandle, name: &BoardName) -> Result<(), BoardError> {
        complete(interim).await?;
        let _turn = self.0.addresses.turn().await;
        if self.0.addresses.find(name).is_some() {
            return Err(BoardError::BoardTaken(name.to_string()));
        }
        let trees = self.0.store.trees();
        let own = BoardName::random();
        self.noted(trees.rename(&interim.name(), &own.tree()).await)?;
        let board = Addressed::of(interim.clone(), &self.0.store);
        self.0.addresses.put(name.clone(), board);
        Ok(())
    }

    /// Deletes a tree that does not become a board. If the disk is too full even for that, it waits for room.
    pub(crate) async fn give_up(&self, interim: &TreeHandle) {
        let name = interim.name();
        // A unit that notes meanwhile that there is room waits for the lock, so it finds the name.
        let mut left = self.0.left.lock().await;
        let deleted = self.0.store.trees().delete(&name).await;
        if self.noted(deleted).is_err() {
            left.push(name);
        }
    }

    /// Deletes what interruptions had left when the forest was opened. On a full disk that waits: the boards can be
    /// read meanwhile, and it is done after the next text that the disk takes.
    pub(crate) async fn forget_interim(&self) -> Result<(), BoardError> {
        let trees = self.0.store.trees();
        let mut left = self.0.left.lock().await;
        while let Some(name) = left.last() {
            match self.noted(trees.delete(name).await) {
                Ok(_) | Err(CommitError::Deleted(_)) => {}
                Err(CommitError::Name(NameError::Missing(_))) => {}
                Err(_) if !self.takes_commits() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            left.pop();
        }
        Ok(())
    }

    /// What interruptions have left in a forest that was just opened.
    pub(crate) fn interim_of(store: &Store) -> Vec<String> {
        store.trees().list_prefix(INTERIM)
    }
}

/// An address that nobody can guess. Sent again with the same token, a board finds itself by it.
fn short(token: Option<[u8; 16]>) -> BoardName {
    let bytes = token.map(|token| hash("address", &[&token]));
    BoardName::of_bytes(bytes.unwrap_or_else(|| {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the system has random numbers");
        bytes
    }))
}

/// Whether a board may be called so.
pub(crate) fn check(title: &str, about: &str) -> Result<(), Invalid> {
    let mut invalid = Invalid::default();
    invalid.expect_some(Field::Title, "A board needs a title.", title);
    invalid.expect_line(Field::Title, title, MAX_TITLE);
    invalid.expect_text(about, MAX_ABOUT);
    match invalid.0.is_empty() {
        true => Ok(()),
        false => Err(invalid),
    }
}
