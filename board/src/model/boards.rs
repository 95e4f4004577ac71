//! All boards: the list of them, a new one, and one of them as it is or as it was.

use std::collections::HashMap;
use std::sync::Arc;

use weald::forest::disk::Moment;
use weald::forest::{Attributes, CommitError, NameError, Stats, Tree, Version};
use weald::sync::{Mutex, Semaphore};

use super::author::Token;
use super::board_at::{BoardAt, BoardInfo, of_board};
use super::draft::{Field, Invalid, MAX_TITLE, one_line};
use super::error::BoardError;
use super::message::attribute;
use super::name::BoardName;
use super::passphrase::{Hashed, Turns};
use super::refusals::Refusals;
use super::replays::Replays;
use super::search_index::SearchIndex;
use super::store::{Source, Store, tree_at};

/// The most bytes of what a board says that it is about.
pub const MAX_ABOUT: usize = 500;

/// How many messages are made into commits at once. All of them go through the one order of the forest's commits, so more
/// would only wait there, each with a thread, if the machine has so much to do that they count as stuck.
const WRITING: u32 = 4;

/// All boards of a forest. A clone is the same.
#[derive(Clone)]
pub struct Boards(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) replays: Replays,
    pub(crate) turns: Turns,
    /// Who writes a message takes a place here until the commit is on its way.
    pub(crate) writing: Semaphore,
    pub(crate) refusals: Refusals,
    pub(crate) searches: Mutex<HashMap<BoardName, Arc<Mutex<SearchIndex>>>>,
}

impl Boards {
    /// The boards that a forest has.
    ///
    /// # Errors
    /// [`BoardError::Storage`], if a board has no index yet, and none can be made.
    pub async fn of(store: Store) -> Result<Self, BoardError> {
        let searches = Mutex::new(HashMap::new());
        let boards = Self(Arc::new(Parts {
            store,
            replays: Replays::new(),
            turns: Turns::new(),
            writing: Semaphore::new(WRITING),
            refusals: Refusals::default(),
            searches,
        }));
        boards.forget_interim().await?;
        for board in boards.list() {
            // A creation that was interrupted left a board without its index.
            boards.index(&board.name).await?;
        }
        Ok(boards)
    }

    /// All boards at one moment; the one that was changed last comes first.
    pub fn list(&self) -> Vec<BoardInfo> {
        let trees = self.0.store.trees();
        let names = trees.list_prefix(BoardName::prefix());
        let handles: Vec<_> = names
            .iter()
            .filter_map(|name| trees.get(name).ok())
            .collect();
        // Only a tree of another forest is refused.
        let snapshots = trees
            .snapshot_all(&handles.iter().collect::<Vec<_>>())
            .unwrap_or_default();
        let boards = handles
            .iter()
            .zip(snapshots)
            .filter_map(|(handle, snapshot)| {
                let name = BoardName::of_tree(&handle.name())?;
                let source = Source::Now(self.0.store.clone());
                Some(BoardAt::new(name, (snapshot, source), None).info())
            });
        let mut boards: Vec<_> = boards.collect();
        boards.sort_by_key(|board| std::cmp::Reverse(board.changed));
        boards
    }

    /// Creates a board, whose address is made of its title. Sent again with the same token, it is the same board.
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
        let name = check(&title, &about)?;
        let token = token.map(|token| token.id().0.to_le_bytes());
        let root = Attributes::new()
            .with(of_board::TITLE, title)
            .with(of_board::ABOUT, about);
        let root = match &token {
            Some(token) => root.with(of_board::TOKEN, token),
            None => root,
        };
        let created = self
            .0
            .store
            .trees()
            .create_from(&name.tree(), Tree::with_root(root));
        match self.noted(created.await) {
            Ok(_) => self.index(&name).await?,
            Err(CommitError::Name(NameError::Taken(_))) => {
                let other = self.board(&name)?;
                let is_same = token
                    .is_some_and(|token| other.root().get(of_board::TOKEN) == Some(&token[..]));
                if !is_same {
                    return Err(BoardError::BoardTaken(name.to_string()));
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(name)
    }

    /// A board as it is now.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`].
    pub fn board(&self, name: &BoardName) -> Result<BoardAt, BoardError> {
        let snapshot = self.0.store.tree(name)?.snapshot();
        let source = Source::Now(self.0.store.clone());
        Ok(BoardAt::new(name.clone(), (snapshot, source), None))
    }

    /// A board as it was: in memory if that keeps the version, otherwise read from the disk.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`], [`BoardError::NoVersion`]; [`BoardError::Busy`], if too many ask for what only the disk has.
    pub async fn board_at(&self, name: &BoardName, moment: Moment) -> Result<BoardAt, BoardError> {
        let newest = self.board(name)?;
        let Parts { store, replays, .. } = &*self.0;
        let found = tree_at((store, replays), name, moment).await?;
        Ok(BoardAt::new(
            name.clone(),
            found,
            Some(newest.snapshot().clone()),
        ))
    }

    /// The versions of a board that memory keeps without a gap, the oldest first; older ones may be on the disk.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`].
    pub fn versions(&self, name: &BoardName) -> Result<Vec<Version>, BoardError> {
        let versions = self.0.store.tree(name)?.versions();
        Ok(versions.iter().map(|version| version.version()).collect())
    }

    /// What has happened in the forest since it was opened, and what it holds.
    pub fn stats(&self) -> Stats {
        self.0.store.trees().stats()
    }

    /// Whether a passphrase is the one of a hash. Few are looked at at once.
    ///
    /// # Errors
    /// [`BoardError::Crowded`], if too many wait for that.
    pub async fn fits(&self, hash: &Hashed, passphrase: &str) -> Result<bool, BoardError> {
        self.0.turns.fits(hash, passphrase).await
    }

    /// Closes the forest, if it is on disk: everything is written and synced when this returns. What is in memory can
    /// still be read; nothing can be written any more.
    pub async fn close(&self) {
        if let Store::Disk(forest) = &self.0.store {
            forest.close().await;
        }
    }

    async fn index(&self, name: &BoardName) -> Result<(), BoardError> {
        let tree = self.0.store.tree(name)?;
        let has_index = tree.view().indexes().any(|index| index == attribute::TIME);
        if !has_index {
            tree.add_index(attribute::TIME).await?;
        }
        Ok(())
    }
}

/// The address of a board with this title.
pub(crate) fn check(title: &str, about: &str) -> Result<BoardName, Invalid> {
    let mut invalid = Invalid::default();
    invalid.expect_some(Field::Title, "A board needs a title.", title);
    invalid.expect_line(Field::Title, title, MAX_TITLE);
    invalid.expect_text(about, MAX_ABOUT);
    let name = BoardName::of_title(title);
    if name.is_none() && invalid.0.is_empty() {
        let sentence = "The title needs a letter or a digit from a to z or 0 to 9, of which its address is made.";
        invalid.note(Field::Title, sentence.to_owned());
    }
    match name {
        Some(name) if invalid.0.is_empty() => Ok(name),
        _ => Err(invalid),
    }
}

impl std::fmt::Debug for Boards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Boards").field(&self.0.store).finish()
    }
}
