//! Boards to test with, in memory and on disk, and short words for what tests do.

#![allow(dead_code, reason = "not every test needs every word")]

use std::path::Path;

use weald::forest::disk::{Directory, DiskForest, DiskJournal, Settings};
use weald::forest::{Forest, NodeId};
use weald_board::model::{
    BoardName, Boards, Draft, Kind, NewMessage, Post, Requester, Store, Target,
};

/// Runs a test with boards in memory, and again with boards on disk.
pub(crate) async fn on_both(test: impl AsyncFn(Boards)) {
    test(Boards::of(Store::Memory(Forest::new())).await.unwrap()).await;
    let directory = tempfile::tempdir().unwrap();
    test(open(directory.path()).await).await;
}

/// The boards in a directory.
pub(crate) async fn open(path: &Path) -> Boards {
    Boards::of(Store::Disk(DiskForest::open(path).await.unwrap()))
        .await
        .unwrap()
}

/// The same, with so few versions in memory that the others have to be read from the disk.
pub(crate) async fn open_forgetful(path: &Path) -> Boards {
    Boards::of(forgetful(path).await).await.unwrap()
}

/// The forest of such boards.
pub(crate) async fn forgetful(path: &Path) -> Store {
    let journal = DiskJournal::open_on(Directory::create(path).unwrap(), Settings::new()).unwrap();
    let forest = DiskForest::recover(Forest::builder().keep(1), journal);
    Store::Disk(forest.await.unwrap())
}

pub(crate) fn ada() -> Requester {
    Requester::of_secret("the secret of Ada")
}

pub(crate) fn alan() -> Requester {
    Requester::of_secret("the secret of Alan")
}

pub(crate) fn moderator() -> Requester {
    Requester {
        is_moderator: true,
        ..Requester::default()
    }
}

/// What a reply says.
pub(crate) fn says(text: &str) -> Post {
    let [author, title, text] = ["Ada", "", text].map(str::to_owned);
    Draft {
        author,
        title,
        text,
    }
    .check(Kind::Reply)
    .unwrap()
}

/// A message of Ada's; one that begins a topic has its text as its title, too.
pub(crate) fn new(parent: Option<NodeId>, text: &str) -> NewMessage {
    let (kind, title) = match parent {
        None => (Kind::Topic, text),
        Some(_) => (Kind::Reply, ""),
    };
    let [author, title, text] = ["Ada", title, text].map(str::to_owned);
    let post = Draft {
        author,
        title,
        text,
    }
    .check(kind)
    .unwrap();
    NewMessage {
        parent,
        post,
        requester: ada(),
        token: None,
    }
}

/// Creates a board.
pub(crate) async fn board(boards: &Boards, title: &str) -> BoardName {
    boards.create(title, "", None).await.unwrap()
}

/// Writes a message of Ada's.
pub(crate) async fn write(
    boards: &Boards,
    board: &BoardName,
    parent: Option<NodeId>,
    text: &str,
) -> NodeId {
    boards.write(board, new(parent, text)).await.unwrap().id
}

/// What a message says now; `None` if readers do not see that.
pub(crate) fn text(boards: &Boards, board: &BoardName, id: NodeId) -> Option<String> {
    let message = boards.board(board).unwrap().message(id).unwrap();
    message.post().map(|post| post.text().to_owned())
}

pub(crate) fn target(board: &BoardName, id: NodeId, requester: Requester) -> Target<'_> {
    Target {
        board,
        id,
        requester,
    }
}
