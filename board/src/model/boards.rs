//! All boards: the list of them, a new one, and one of them as it is or as it was.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use weald::forest::disk::Moment;
use weald::forest::{Level, Snapshot, Stats, TreeHandle, Version, VersionError};
use weald::sync::{Mutex, Semaphore};

use super::addresses::{Addressed, Addresses};
use super::board_at::{BoardAt, BoardInfo, is_hidden, of_board};
use super::error::BoardError;
use super::message::attribute;
use super::name::BoardName;
use super::passphrase::{Hashed, Turns};
use super::refusals::Refusals;
use super::replays::Replays;
use super::search_index::SearchIndex;
use super::store::{Source, Store};

/// How many messages are made into commits at once. All of them go through the one order of the forest's commits, so
/// more would only wait there. On a busy machine each of them might count as stuck, and take a thread.
const WRITING: u32 = 4;

/// Versions of a board, without a gap.
#[derive(Clone, Debug)]
pub struct Versions {
    /// All of them, the oldest first.
    pub all: Vec<Version>,
    /// A time before the oldest one, if the disk may have older ones.
    pub before: Option<SystemTime>,
}

/// All boards of a forest. A clone is the same.
///
/// # Cancel safety
/// Reading is cancel-safe. A future that is dropped while it changes something has made each of its commits whole or
/// not at all, and some changes need several. A board whose creation or import was dropped is removed at the next
/// start. A dropped measure of a moderator may stand in the log without its outcome. A dropped erasure may have hidden
/// the message without erasing it, or erased it without a new version; a moderator can ask again. A dropped change of a
/// passphrase, or release of a name, may leave the old hash in the history.
#[derive(Clone)]
pub struct Boards(pub(crate) Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) addresses: Addresses,
    pub(crate) replays: Replays,
    pub(crate) turns: Turns,
    /// A request that writes a message takes a place here until the commit is on its way.
    pub(crate) writing: Semaphore,
    pub(crate) refusals: Refusals,
    /// A moderator's measure is taken under this lock, from the look at the log to the outcome in it.
    pub(crate) measures: Mutex<()>,
    /// The trees that an interrupted creation or import has left, and that are still to be deleted.
    pub(crate) left: Mutex<Vec<String>>,
    pub(crate) searches: Mutex<HashMap<BoardName, Arc<Mutex<SearchIndex>>>>,
}

impl Boards {
    /// The boards that a forest has.
    ///
    /// # Errors
    /// [`BoardError::Storage`], if a board lacks what an older program did not give it, and that cannot be stored.
    pub async fn of(store: Store) -> Result<Self, BoardError> {
        let searches = Mutex::new(HashMap::new());
        let (addresses, refusals) = (Addresses::of(&store), Refusals::of(&store));
        let left = Mutex::new(Self::interim_of(&store));
        let boards = Self(Arc::new(Parts {
            store,
            left,
            addresses,
            replays: Replays::new(),
            turns: Turns::new(),
            writing: Semaphore::new(WRITING),
            refusals,
            measures: Mutex::new(()),
            searches,
        }));
        boards.forget_interim().await?;
        for (_, board) in boards.0.addresses.all() {
            // On a full disk an old board is shown without what it lacks.
            match complete(&board.tree).await {
                Err(BoardError::Storage(error)) if boards.is_refused(&error) => break,
                completed => completed?,
            }
        }
        Ok(boards)
    }

    /// All boards at one moment that are not deleted; the one that was changed last comes first.
    pub fn list(&self) -> Vec<BoardInfo> {
        let all = self.0.addresses.all();
        let handles: Vec<_> = all.iter().map(|(_, board)| &board.tree).collect();
        // Only a tree of another forest is refused.
        let snapshots = self.0.store.trees().snapshot_all(&handles);
        let mut boards: Vec<_> = all
            .iter()
            .zip(snapshots.unwrap_or_default())
            .filter(|(_, snapshot)| !is_hidden(snapshot))
            .map(|((name, board), snapshot)| self.of_now(name, board, snapshot).info())
            .collect();
        boards.sort_by_key(|board| std::cmp::Reverse(board.changed));
        boards
    }

    /// All boards as they were in a version, without those that are deleted by now; so a list that has several pages
    /// does not shift while others write. A board that memory no longer has in that version is shown as it is: to read
    /// the disk takes the time of all boards, too much for a list of names.
    ///
    /// # Errors
    /// [`BoardError::NoVersion`], if the version does not exist.
    pub fn list_at(&self, version: Version) -> Result<Vec<BoardInfo>, BoardError> {
        let mut boards = Vec::new();
        for (name, board) in self.0.addresses.all() {
            let newest = board.tree.snapshot();
            if is_hidden(&newest) {
                continue;
            }
            let then = match board.tree.kept_at(version) {
                Ok(then) => then,
                Err(VersionError::NotCreated { .. }) => continue,
                Err(VersionError::TooOld { .. }) => newest,
                Err(error) => return Err(BoardError::NoVersion(error.to_string())),
            };
            let source = Source::Now(self.0.store.clone());
            boards.push(was(&name, board, (then, source)).info());
        }
        boards.sort_by_key(|board| std::cmp::Reverse(board.changed));
        Ok(boards)
    }

    /// A board as it is now.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`], [`BoardError::BoardGone`].
    pub fn board(&self, name: &BoardName) -> Result<BoardAt, BoardError> {
        let board = self.board_or_deleted(name)?;
        match board.is_deleted() {
            false => Ok(board),
            true => Err(BoardError::BoardGone),
        }
    }

    /// A board as it is now, even if it is deleted, for moderators.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`].
    pub fn board_or_deleted(&self, name: &BoardName) -> Result<BoardAt, BoardError> {
        let board = self.find(name)?;
        let snapshot = board.tree.snapshot();
        Ok(self.of_now(name, &board, snapshot))
    }

    fn of_now(&self, name: &BoardName, board: &Addressed, snapshot: Snapshot) -> BoardAt {
        let source = Source::Now(self.0.store.clone());
        let known = (name.clone(), board.called.clone());
        BoardAt::new(known, (snapshot, source), None)
    }

    pub(crate) fn find(&self, name: &BoardName) -> Result<Addressed, BoardError> {
        let found = self.0.addresses.find(name);
        found.ok_or_else(|| BoardError::NoBoard(name.to_string()))
    }

    /// The tree of a board.
    ///
    /// # Errors
    /// As [`board`](Self::board).
    pub(crate) fn tree(&self, name: &BoardName) -> Result<TreeHandle, BoardError> {
        let tree = self.tree_or_deleted(name)?;
        match is_hidden(&tree.snapshot()) {
            false => Ok(tree),
            true => Err(BoardError::BoardGone),
        }
    }

    /// The tree of a board, even if it is deleted.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`].
    pub(crate) fn tree_or_deleted(&self, name: &BoardName) -> Result<TreeHandle, BoardError> {
        Ok(self.find(name)?.tree)
    }

    /// A board as it was: in memory if that keeps the version, otherwise read from the disk.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`], [`BoardError::BoardGone`], [`BoardError::NoVersion`]; [`BoardError::Busy`], if too many
    /// ask for what only the disk has.
    pub async fn board_at(&self, name: &BoardName, moment: Moment) -> Result<BoardAt, BoardError> {
        self.board(name)?;
        self.board_or_deleted_at(name, moment).await
    }

    /// The same, even if the board is deleted now, for moderators.
    ///
    /// # Errors
    /// As [`board_at`](Self::board_at), except `BoardGone`.
    pub async fn board_or_deleted_at(
        &self,
        name: &BoardName,
        moment: Moment,
    ) -> Result<BoardAt, BoardError> {
        let board = self.find(name)?;
        let Parts { store, replays, .. } = &*self.0;
        let found = replays.tree_at(store, &board.tree, moment).await?;
        Ok(was(name, board, found))
    }

    /// The same, if no replay is needed for it.
    pub(crate) async fn kept_board_at(
        &self,
        name: &BoardName,
        moment: Moment,
    ) -> Result<Option<BoardAt>, BoardError> {
        let board = self.find(name)?;
        let Parts { store, replays, .. } = &*self.0;
        let found = replays.kept_tree_at(store, &board.tree, moment).await?;
        Ok(found.map(|found| was(name, board, found)))
    }

    /// Whether memory has a version of a board, so that nothing is read from the disk for it.
    pub fn keeps(&self, name: &BoardName, version: Version) -> bool {
        let board = self.find(name);
        board.is_ok_and(|board| board.tree.kept_at(version).is_ok())
    }

    /// The versions around one of a board that can be shown without a further look at the disk.
    ///
    /// # Errors
    /// [`BoardError::NoBoard`].
    pub fn versions_around(&self, board: &BoardAt) -> Result<Versions, BoardError> {
        let snapshots = match board.source() {
            Source::Now(_) => self.tree_or_deleted(board.name())?.versions(),
            Source::Past(_, tree) => tree.versions(),
        };
        // Nobody had written before: there is nothing to see.
        let is_begun = |oldest: &&Snapshot| oldest.tree().len() > 1;
        let has_disk = matches!(self.0.store, Store::Disk(_));
        let oldest = snapshots.first().filter(|it| has_disk && is_begun(it));
        Ok(Versions {
            before: oldest.map(|oldest| oldest.time() - Duration::from_nanos(1)),
            all: snapshots.iter().map(|it| it.version()).collect(),
        })
    }

    /// How many boards are not deleted, and how many messages they have.
    pub fn count(&self) -> (usize, u64) {
        let all = self.0.addresses.all();
        let shown = all.iter().map(|(_, board)| board.tree.snapshot());
        let shown = shown.filter(|board| !is_hidden(board));
        shown.fold((0, 0), |(boards, messages), board| {
            (boards + 1, messages + board.tree().len() - 1)
        })
    }

    /// What has happened in the forest since it was opened, and what it holds.
    pub fn stats(&self) -> Stats {
        self.0.store.trees().stats()
    }

    /// How often what only the disk has was read from there.
    pub fn replays(&self) -> u64 {
        self.0.replays.made()
    }

    /// How often something was erased.
    pub(crate) fn erasures(&self) -> u64 {
        self.0.replays.erasures()
    }

    /// Something was erased: what was read from the disk, and might have it, is forgotten.
    pub(crate) fn note_erasure(&self) {
        self.0.replays.forget();
    }

    /// Whether a passphrase is the one of a hash. Only a few are checked at once.
    ///
    /// # Errors
    /// [`BoardError::Crowded`], if too many wait for that.
    pub async fn fits(&self, hash: &Hashed, passphrase: &str) -> Result<bool, BoardError> {
        self.0.turns.fits(hash, passphrase).await
    }

    /// Closes the forest, if it is on disk: everything is written and synced when this returns. Boards in memory can
    /// still be read; nothing can be written any more.
    pub async fn close(&self) {
        if let Store::Disk(forest) = &self.0.store {
            forest.close().await;
        }
    }
}

/// A board as it was, which hides what is deleted by now.
fn was(name: &BoardName, board: Addressed, found: (Snapshot, Source)) -> BoardAt {
    let newest = board.tree.snapshot();
    BoardAt::new((name.clone(), board.called), found, Some(newest))
}

/// Gives a board what one of an older program lacks: its index, and its id.
pub(crate) async fn complete(tree: &TreeHandle) -> Result<(), BoardError> {
    let has_index = tree.view().indexes().any(|index| index == attribute::TIME);
    if !has_index {
        tree.add_index(attribute::TIME)
            .level(Level::Accepted)
            .await?;
    }
    if tree.snapshot().tree().root().get(of_board::ID).is_none() {
        let mut edit = tree.edit();
        let root = edit.root();
        edit.put_attribute(root, of_board::ID, BoardName::random().as_str())?;
        edit.commit().level(Level::Accepted).await?;
    }
    Ok(())
}

impl std::fmt::Debug for Boards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Boards").field(&self.0.store).finish()
    }
}
