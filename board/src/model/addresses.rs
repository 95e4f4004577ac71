//! Which tree each board is: the address of a board leads to its tree.
//!
//! - The tree of a board has a random name. Its title, and the address that is made of the title, are erasable
//!   attributes of the root. So a moderator can erase them for good: no name of a tree and no commit has them.
//! - A board whose address was erased has the name of its tree as its address. So has an old board, from when the
//!   addresses of boards were still the names of their trees.
//! - Addresses change only in turns ([`Addresses::turn`]), so no two boards have the same one.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use weald::forest::TreeHandle;
use weald::sync::{Mutex, MutexGuard, Semaphore};

use super::board_at::{Called, of_board};
use super::name::BoardName;
use super::store::Store;

/// How many messages of one board are made into commits at once. These are fewer than all boards together may have, so
/// other boards find a free place however many write to a hot one.
const WRITING: u32 = 3;

/// A board: its tree, what it is called, and the places of those who write to it.
#[derive(Clone)]
pub(crate) struct Addressed {
    pub(crate) tree: TreeHandle,
    pub(crate) called: Arc<Called>,
    pub(crate) writing: Arc<Semaphore>,
}

/// The boards by their addresses.
pub(crate) struct Addresses {
    boards: RwLock<HashMap<BoardName, Addressed>>,
    changing: Mutex<()>,
}

impl Addresses {
    /// Those of all boards of a forest.
    pub(crate) fn of(store: &Store) -> Self {
        let trees = store.trees();
        let names = trees.list_prefix(BoardName::prefix());
        let mut all = HashMap::new();
        for tree in names.iter().filter_map(|name| trees.get(name).ok()) {
            let own = BoardName::of_tree(&tree.name());
            let address = address(store, &tree).filter(|address| !all.contains_key(address));
            if let Some(address) = address.or(own) {
                all.insert(address, Addressed::of(tree, store));
            }
        }
        Self {
            boards: RwLock::new(all),
            changing: Mutex::new(()),
        }
    }

    /// The board with an address.
    pub(crate) fn find(&self, name: &BoardName) -> Option<Addressed> {
        let boards = self.boards.read().unwrap_or_else(PoisonError::into_inner);
        boards.get(name).cloned()
    }

    /// The address of the board whose tree has this name.
    pub(crate) fn of_tree(&self, tree: &str) -> Option<BoardName> {
        let boards = self.boards.read().unwrap_or_else(PoisonError::into_inner);
        let found = boards.iter().find(|(_, it)| it.tree.name() == tree);
        found.map(|(name, _)| name.clone())
    }

    /// All boards, in no order.
    pub(crate) fn all(&self) -> Vec<(BoardName, Addressed)> {
        let boards = self.boards.read().unwrap_or_else(PoisonError::into_inner);
        let boards = boards.iter();
        boards
            .map(|(name, board)| (name.clone(), board.clone()))
            .collect()
    }

    /// The turn to change addresses.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().await
    }

    /// Gives a board an address that nobody has.
    pub(crate) fn put(&self, name: BoardName, board: Addressed) {
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        boards.insert(name, board);
    }

    /// The title and the address of a board were erased: from now on its address is the name of its tree.
    pub(crate) fn forget(&self, name: &BoardName, store: &Store) {
        let mut boards = self.boards.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(Addressed { tree, .. }) = boards.remove(name) {
            let own = BoardName::of_tree(&tree.name()).unwrap_or_else(|| name.clone());
            boards.insert(own, Addressed::of(tree, store));
        }
    }
}

impl Addressed {
    pub(crate) fn of(tree: TreeHandle, store: &Store) -> Self {
        let called = Arc::new(Called::of(&tree.snapshot(), store));
        let writing = Arc::new(Semaphore::new(WRITING));
        Self {
            tree,
            called,
            writing,
        }
    }
}

/// The address that the root of a board has.
fn address(store: &Store, tree: &TreeHandle) -> Option<BoardName> {
    let snapshot = tree.snapshot();
    let value = store
        .trees()
        .value(snapshot.tree().root(), of_board::ADDRESS)?;
    str::from_utf8(value.bytes()?).ok()?.parse().ok()
}
