//! What happens if a moderator frees a name and is interrupted.

use weald::forest::disk::DiskForest;
use weald::forest::{NodeId, Value};
use weald_board::model::{BoardError, Boards, By, Measure, NameKey, Store};

use super::measures::{BY, interrupt, log};

const FIRST: &str = "the first passphrase";
const SECOND: &str = "the second passphrase";

const WITH_TOKEN: By<'_> = By {
    token: Some("one"),
    ..BY
};

/// A forest in which Ada has protected her name.
struct Names {
    _directory: tempfile::TempDir,
    forest: DiskForest,
    boards: Boards,
    ada: NameKey,
}

impl Names {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let forest = DiskForest::open(directory.path()).await.unwrap();
        let boards = Boards::of(Store::Disk(forest.clone())).await.unwrap();
        boards.protect("Ada", FIRST).await.unwrap();
        Self {
            _directory: directory,
            forest,
            boards,
            ada: NameKey::of("Ada").unwrap(),
        }
    }

    /// Whether the hash that the name has now is erased, as soon as it is.
    fn hash(&self) -> impl Fn() -> bool {
        let before = self.forest.get("names").unwrap().snapshot();
        let id: NodeId = before.tree().root().child(0).unwrap().id();
        move || {
            let node = before.tree().node(id).unwrap();
            matches!(self.forest.value(node, "hash"), Some(Value::Erased { .. }))
        }
    }

    /// The name is free for all to see when the moderator goes away.
    async fn interrupt_when_free(&self) {
        let freeing = self.boards.free_name("Ada", WITH_TOKEN);
        interrupt(freeing, || !self.boards.is_protected(self.ada)).await;
    }

    async fn free(&self) {
        self.boards.free_name("Ada", WITH_TOKEN).await.unwrap();
        assert_eq!(
            log(&self.boards),
            [(Measure::Free, Some("done".to_owned()))]
        );
    }
}

#[test]
fn a_freeing_of_a_name_that_was_interrupted_is_completed() {
    weald::block_on(async {
        let names = Names::new().await;
        let is_erased = names.hash();
        names.interrupt_when_free().await;
        assert!(!is_erased());
        assert_eq!(log(&names.boards), [(Measure::Free, None)]);
        for _ in 0..2 {
            names.free().await;
            assert!(is_erased());
        }
        let other = names.boards.free_name("Ada", BY).await;
        assert!(matches!(other, Err(BoardError::NoName)), "{other:?}");
        names.boards.close().await;
    });
}

#[test]
fn a_repeat_takes_the_name_from_nobody_who_has_protected_it_since() {
    weald::block_on(async {
        let names = Names::new().await;
        let is_erased = names.hash();
        names.interrupt_when_free().await;
        assert!(!is_erased());
        names.boards.protect("Ada", SECOND).await.unwrap();
        for _ in 0..2 {
            names.free().await;
            assert!(is_erased(), "that of the first owner");
            names.boards.prove(names.ada, SECOND).await.unwrap();
        }
        names.boards.close().await;
    });
}

#[test]
fn a_repeat_erases_the_hash_that_its_owner_has_put_there_meanwhile() {
    weald::block_on(async {
        let names = Names::new().await;
        let boards = &names.boards;
        let freeing = boards.free_name("Ada", WITH_TOKEN);
        interrupt(freeing, || !log(boards).is_empty()).await;
        let changed = boards.change_passphrase("Ada", FIRST, SECOND).await;
        changed.unwrap();
        let is_erased = names.hash();
        names.interrupt_when_free().await;
        assert!(!is_erased());
        names.free().await;
        assert!(is_erased() && !boards.is_protected(names.ada));
        boards.close().await;
    });
}
